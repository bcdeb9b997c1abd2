"""The way of a crash: what became of each of the last operations."""

from __future__ import annotations

import json
from pathlib import Path

from fake_trace import FakeTrace

from tornpage.evidence.timeline import (
    STEPS_MAX,
    accused_phase,
    crash_point,
    is_covered,
    live_phase,
    loss_phases,
    recorded_steps,
    with_around,
)
from tornpage.faults.trace import Op
from tornpage.targets.engine.target import EngineTarget
from tornpage.vocabulary.evidence import Fate, Phase, Step

TARGET = EngineTarget(Path("/engine"), Path("/preload"))
PAGE = 4096


def fates(trace: FakeTrace) -> list[tuple[str, str, Fate]]:
    """Operation, path and fate of each step."""
    phase = live_phase("run", trace.trace(), TARGET, PAGE, "data_page")
    return [(step.op, step.path, step.fate) for step in phase.steps]


def test_a_sync_makes_durable_what_it_covers() -> None:
    """An fsync the writes of its file before it, one of the directory the names; nothing else."""
    trace = FakeTrace().open("a", True).open("b", True)
    trace.write("a", 0, PAGE).write("b", 0, PAGE).rename("b", "c").unlink("x").fsync("a")
    trace.write("a", PAGE, PAGE).sync_dir()
    assert fates(trace) == [
        ("create", "a", Fate.DURABLE),
        ("create", "b", Fate.DURABLE),
        ("write", "a", Fate.DURABLE),
        ("write", "b", Fate.KEPT),
        ("rename", "b", Fate.DURABLE),
        ("unlink", "x", Fate.DURABLE),
        ("fsync", "a", Fate.DURABLE),
        ("write", "a", Fate.KEPT),
        ("sync_dir", ".", Fate.DURABLE),
    ]


def test_a_failed_operation_is_told_as_such() -> None:
    """And a failed fsync makes nothing durable."""
    trace = FakeTrace().open("a").write("a", 0, PAGE).fsync("a", result=-5)
    trace.record(Op.WRITE, file=1, length=PAGE, result=-28)
    assert [fate for _, _, fate in fates(trace)] == [Fate.KEPT, Fate.FAILED, Fate.FAILED]


def test_the_write_that_was_hit_ends_it() -> None:
    """With its sectors, its site, and the statement in flight."""
    old, new = b"o" * PAGE, b"n" * PAGE
    for kept, fate in ((b"\1\0" * 4, Fate.TORN), (b"\0" * 8, Fate.LOST), (b"\1" * 8, Fate.KEPT)):
        trace = FakeTrace().mark("issue n=3").open("t1.ibd").write("t1.ibd", 0, PAGE)
        trace.mark("issue n=4").kill("t1.ibd", PAGE, kept, old, new)
        phase = live_phase("run", trace.trace(), TARGET, PAGE, "data_page")
        first, last = (step for step in phase.steps if step.fate is not Fate.MARK)
        assert (first.line, last.line, last.site) == (3, 4, "data_page")
        assert (last.fate, last.offset, last.length) == (fate, PAGE, PAGE)
        assert (phase.how, phase.sector) == ("killed", 512)


def test_only_the_last_operations_are_told() -> None:
    """However long the run, and what they depend on from before is known."""
    trace = FakeTrace().open("a")
    for n in range(100):
        trace.write("a", n * PAGE, PAGE)
    phase = live_phase("run", trace.trace(), TARGET, PAGE, "")
    assert [step.offset // PAGE for step in phase.steps] == list(range(100 - STEPS_MAX, 100))


def test_what_the_explorer_tells_is_read() -> None:
    """One phase per level; a second one is a crash of the recovery."""
    events = [
        {"seq": 4, "op": "write", "path": "a", "offset": 8, "length": 1024, "site": "redo"}
        | {"issued": 2, "acked": 1, "fate": "torn", "kept": "10"},
        {"seq": 5, "op": "rename", "path": "a", "to": "b", "issued": 2, "acked": 1, "fate": "lost"},
    ]
    level = {"level": 1, "model": "subset", "sector": 512, "waiting": 7, "events": events}
    marks = [Step(3, "issue", "", Fate.MARK, line=2), Step(6, "ack", "", Fate.MARK, line=2)]
    lines = [json.dumps(level), json.dumps({**level, "level": 2})]
    first, second = loss_phases(lines, marks)
    assert [step.seq for step in first.steps] == [3, 4, 5, 6]
    assert [step.seq for step in second.steps] == [4, 5]
    assert (first.name, second.name) == ("run", "recovery 1")
    assert first.how == "power loss, subset; 7 operations were not synced"
    torn, lost = second.steps
    assert (torn.fate, torn.kept, torn.line) == (Fate.TORN, "10", 2)
    assert (lost.op, lost.to, lost.fate) == ("rename", "b", Fate.LOST)


def test_marks_stand_among_the_operations() -> None:
    """From the statement on that the first operation is of; acknowledgements too, each with its client."""
    trace = FakeTrace().open("a").mark("issue n=1").mark("ack n=1")
    trace.mark("issue n=2 client=c1").write("a", 0, PAGE).mark("ack n=2 client=c1").fsync("a")
    steps = live_phase("run", trace.trace(), TARGET, PAGE, "").steps
    told = [(step.op, step.line, step.path) for step in steps]
    assert told == [("issue", 2, "c1"), ("write", 2, "a"), ("ack", 2, "c1"), ("fsync", 2, "a")]
    assert [step.fate for step in steps if step.op in ("issue", "ack")] == [Fate.MARK] * 2


def test_the_accused_operation_ends_it() -> None:
    """What came before stands as it was then: a later fsync does not count."""
    trace = FakeTrace().open("a").mark("issue n=1").write("a", 0, PAGE).write("a", PAGE, PAGE)
    whole = trace.fsync("a").trace()
    phase = accused_phase(whole, TARGET, PAGE, 4, "write_ahead", "write_ahead: too early")
    assert [(step.seq, step.fate) for step in phase.steps] == [
        (2, Fate.MARK),
        (3, Fate.KEPT),
        (4, Fate.ACCUSED),
    ]
    assert (phase.rule, phase.how) == ("write_ahead", "write_ahead: too early")


def test_a_power_loss_comes_before_the_next_operation() -> None:
    """What the run said until then it had said."""
    trace = FakeTrace().open("a").mark("issue n=1").write("a", 0, PAGE).mark("ack n=1")
    steps = recorded_steps(trace.fsync("a").mark("issue n=2").trace())
    assert [step.op for step in crash_point(steps, 3)] == ["issue", "write", "ack"]
    assert [step.op for step in crash_point(steps, 5)] == [step.op for step in steps]


def test_a_sync_of_everything_covers_names_and_contents() -> None:
    """And no other sync does both."""
    trace = FakeTrace().open("a", True).write("a", 0, PAGE)
    create, write, sync = recorded_steps(trace.record(Op.SYNC_ALL).trace())
    assert create.op == "create" and sync.op == "sync"
    assert is_covered(create, sync) and is_covered(write, sync)
    folder = Step(9, "sync_dir", ".", Fate.DURABLE)
    assert is_covered(create, folder) and not is_covered(write, folder)


def overlapping() -> FakeTrace:
    """Thread 1 writes while thread 0 syncs: operation 4 had not ended when the sync, 5, began."""
    trace = FakeTrace().open("a").mark("issue n=1").write("a", 0, PAGE)
    trace.record(Op.WRITE, file=1, offset=PAGE, length=PAGE, result=PAGE, thread=1, began=2)
    return trace.record(Op.FSYNC, file=1, began=3)


def test_a_sync_does_not_cover_what_it_overlaps() -> None:
    """A write that ended behind its begin waits for another one."""
    phase = live_phase("run", overlapping().trace(), TARGET, PAGE, "")
    assert [(one.seq, one.fate, one.thread, one.began) for one in phase.steps[1:]] == [
        (3, Fate.DURABLE, 0, 2),
        (4, Fate.KEPT, 1, 2),
        (5, Fate.DURABLE, 0, 3),
    ]
    assert phase.steps[-1].covers == 1 and phase.total == 3


def test_a_picture_has_the_syncs_and_marks_around_what_was_lost() -> None:
    """However long ago it was, and whatever came behind it; and how much there was in all."""
    trace = FakeTrace().open("a").open("b").mark("issue n=1").write("a", 0, PAGE).fsync("a")
    trace.mark("issue n=2").write("a", 0, PAGE).mark("ack n=2").write("b", 0, PAGE)
    trace.record(Op.FSYNC, file=1, began=6).fsync("b")
    for n in range(40):
        trace.write("b", n * PAGE, PAGE)
    steps = recorded_steps(trace.trace())
    lost = Step(7, "write", "a", Fate.LOST, length=PAGE, line=2)
    phase = with_around(Phase("run", "power loss", 512, (lost,)), steps, steps[-1].seq)
    assert [(one.seq, one.op) for one in phase.around] == [
        (5, "fsync"),
        (6, "issue"),
        (8, "ack"),
        (10, "fsync"),
    ]
    assert [one.covers for one in phase.around] == [1, 0, 0, 0]
    assert phase.total == sum(one.fate is not Fate.MARK for one in steps)


def test_a_picture_has_what_was_under_way() -> None:
    """Calls that had begun before the crash and ended behind it."""
    trace = FakeTrace().open("a").write("a", 0, PAGE)
    trace.record(Op.WRITE, file=1, length=PAGE, result=PAGE, began=2)
    trace.record(Op.FSYNC, file=1, thread=1, began=1)
    steps = recorded_steps(trace.trace())
    phase = with_around(Phase("run", "power loss", 512, tuple(steps[:1])), steps, 2)
    assert [(one.seq, one.fate, one.thread) for one in phase.around] == [(4, Fate.UNDER_WAY, 1)]
    assert phase.total == 1
