"""The picture of a crash: a lane per thread, a bar per call, what each sync covers, flags, the crash; and it
is well-formed whatever files are called."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from filled_store import EXPLAINED

from tornpage.reports.drawing import Drawing
from tornpage.reports.lanes import draw_way, drawing_of
from tornpage.vocabulary.cause import Explained, Operation
from tornpage.vocabulary.evidence import Evidence, Fate, Phase, Step
from tornpage.vocabulary.paths import data_folder

PAGE = 4096
SVG = "{http://www.w3.org/2000/svg}"


def write(seq: int, fate: Fate, began: int, thread: int = 0, path: str = "t.ibd") -> Step:
    """Of a page whose number is that of the operation."""
    return Step(
        seq,
        "write",
        path,
        fate,
        offset=PAGE * seq,
        length=PAGE,
        line=1,
        thread=thread,
        began=began,
    )


STEPS = (
    Step(1, "issue", "c1", Fate.MARK, line=1),
    write(3, Fate.DURABLE, 1),
    write(5, Fate.LOST, 2, thread=1),
    Step(6, "fsync", "t.ibd", Fate.DURABLE, thread=0, began=4, covers=9),
    Step(7, "ack", "c1", Fate.MARK, line=1),
    replace(write(8, Fate.TORN, 6), kept="11100000"),
)
"""Operation 5 had not ended when the sync, 6, began; 2 and 4 are not told."""
FLUSH = Step(
    9, "fsync", "t.ibd", Fate.UNDER_WAY, thread=1, began=7
)  # ends behind the crash, which is after 8
PHASE = Phase("run", "power loss, one-torn", 512, STEPS, around=(FLUSH,), total=1234)


def drawn(phase: Phase = PHASE, explained: Explained | None = None) -> Drawing:
    """Its picture, in an evidence of its own."""
    return drawing_of(phase, Evidence((phase,), (), {1: "insert <a>"}, PAGE), explained)


def test_a_lane_per_thread_and_a_bar_per_call() -> None:
    """From begin to end, in the order in which these were seen; calls of one thread never overlap."""
    first, second = drawn().lanes
    assert (first.name, second.name) == ("thread 0", "thread 1")
    assert [bar.seq for bar in first.bars] == [3, 6, 8] and [b.seq for b in second.bars] == [5, 9]
    for lane in (first, second):
        for one, other in zip(lane.bars, lane.bars[1:], strict=False):
            assert one.x + one.width <= other.x
    three, six, eight = first.bars
    five, nine = second.bars
    assert (
        three.x < five.x < three.x + three.width < six.x < five.x + five.width < six.x + six.width
    )
    assert [(bar.fate, bar.kind) for bar in (three, five, six, eight, nine)] == [
        ("durable", "write"),
        ("lost", "write"),
        ("durable", "sync"),
        ("torn", "write"),
        ("under-way", "sync"),
    ]
    assert second.y > first.y


def test_what_was_lost_is_told_in_words_and_by_sectors() -> None:
    """Above its bar; of a torn write the part that is lost."""
    first, second = drawn().lanes
    assert [label.text for label in first.labels] == ["torn write t.ibd, page 8"]
    assert [label.text for label in second.labels] == ["lost write t.ibd, page 5"]
    torn = first.bars[-1]
    (kept, lost) = torn.segments
    assert not kept[2] and lost[2]
    assert (kept[0], kept[0] + kept[1], lost[0] + lost[1]) == (torn.x, lost[0], torn.x + torn.width)
    assert abs(kept[1] / torn.width - 3 / 8) < 0.02
    assert "lost; statement 1" in second.bars[0].title


def test_a_sync_shows_what_it_covers_and_what_not() -> None:
    """A write that had ended before it began, and one that it overlaps; the one under way too."""
    sync, late = drawn().syncs
    assert [(dot.title.split(":")[0], dot.covered) for dot in sync.dots] == [
        ("3", True),
        ("5", False),
    ]
    assert sync.text == "t.ibd: covers 1 of 2 that are drawn, 9 in all; not 5"
    bar = next(bar for lane in drawn().lanes for bar in lane.bars if bar.seq == 6)
    assert (sync.x, sync.width) == (bar.x, bar.width)
    covered, missed = (dot.x for dot in sync.dots)
    assert sync.left == covered < sync.x < missed <= sync.x + sync.width
    assert (late.seq, [dot.covered for dot in late.dots]) == (9, [True, False])
    assert late.text == "t.ibd: would cover 1 of 2 that are drawn; not 8"


def test_statements_are_flags() -> None:
    """With their text and client."""
    issue, ack = drawn().flags
    assert (issue.verb, issue.text, ack.verb, ack.text) == ("issue", "issue 1", "ack", "ack 1")
    assert issue.title == "1 issue 1 c1: insert <a>" and issue.x < ack.x
    bars = {bar.seq: bar for lane in drawn().lanes for bar in lane.bars}
    assert bars[6].x + bars[6].width < ack.x < bars[8].x + bars[8].width


def test_a_power_loss_is_a_line_behind_all_that_had_ended() -> None:
    """And what was under way ends there."""
    picture = drawn()
    bars = {bar.seq: bar for lane in picture.lanes for bar in lane.bars}
    assert all(bar.x + bar.width < picture.crash for seq, bar in bars.items() if seq < 9)
    assert bars[9].x + bars[9].width == picture.crash
    assert picture.crash_text == "crash"


@pytest.mark.parametrize(
    ("kept", "share"), [("11100000", 3 / 8), ("00000000", 0.0), ("10101010", None)]
)
def test_a_kill_is_a_line_at_its_byte(kept: str, share: float | None) -> None:
    """In the bar of the write that it hit, where its first sectors were done; else behind it."""
    hit = replace(write(8, Fate.TORN if "1" in kept else Fate.LOST, 6), kept=kept)
    picture = drawn(Phase("run", "killed", 512, (*STEPS[:-1], hit)))
    bar = picture.lanes[0].bars[-1]
    if share is None:
        assert picture.crash > bar.x + bar.width
    else:
        assert picture.crash == bar.x + round(bar.width * share)


def test_a_broken_rule_has_no_crash() -> None:
    """The line says so."""
    accused = Phase("run", "write_ahead: early", 512, (*STEPS[:2], write(5, Fate.ACCUSED, 4)), "wa")
    picture = drawn(accused)
    assert picture.crash_text == "breaks the rule"
    assert picture.lanes[0].labels[0].text == "accused write t.ibd, page 5"


def test_operations_of_an_explanation_have_letters() -> None:
    """What was lost, what relies on it, the sync that did not cover it; one that is not told otherwise is
    drawn too."""

    def operation(seq: int) -> Operation:
        return Operation(seq, "write", "t.ibd", "", "", 1)

    cause = replace(
        EXPLAINED.cause, lost=(operation(5),), relied=operation(4), syncs=(operation(6),)
    )
    rename = Step(4, "rename", "log.new", Fate.DURABLE, to="log", thread=2, began=3)
    picture = drawn(explained=replace(EXPLAINED, cause=cause, steps=(rename,)))
    texts = {bar.seq: bar.text for lane in picture.lanes for bar in lane.bars}
    assert texts == {
        3: "write",
        4: "B rename",
        5: "A write",
        6: "C fsync",
        8: "write",
        9: "fsync",
    }
    labels = [label.text for lane in picture.lanes for label in lane.labels]
    assert "B rename log.new to log" in labels and "A lost write t.ibd, page 5" in labels
    assert [sync.name for sync in picture.syncs] == ["C fsync 6", "fsync 9"]
    assert any(note.text.startswith("Of the explanation: A was lost") for note in picture.notes)


def test_what_is_left_out_is_said() -> None:
    """In all, and where."""
    picture = drawn()
    notes = [note.text for note in picture.notes]
    assert notes[0] == "4 of 1,234 operations are drawn; ≈ marks where others were."
    assert [cut.text for cut in picture.cuts] == ["1 more event", "1 more event"]
    assert "No times were taken: the order is that of the recording." in notes


def test_times_give_lengths_and_an_axis() -> None:
    """A long call is longer; a gap beyond all bounds is cut, and its time is said."""
    times = {3: (0, 10_000), 6: (12_000, 14_000), 8: (9_000_000, 9_001_000)}
    steps = [
        replace(one, start_ns=10**9 + times[one.seq][0], end_ns=10**9 + times[one.seq][1])
        for one in STEPS
        if one.seq in times
    ]
    picture = drawn(Phase("run", "power loss", 512, tuple(steps)))
    three, six, eight = picture.lanes[0].bars
    assert three.width > six.width >= eight.width
    assert picture.ticks[0].text == "-8.99 ms" and picture.ticks[-1].text == "0"
    assert picture.cuts[-1].text == "8.99 ms"
    assert picture.width < 1000


def test_labels_do_not_lie_on_each_other() -> None:
    """Of writes that were all lost at once some go without; each bar still has its words."""
    lost = tuple(write(seq, Fate.LOST, seq - 1) for seq in range(1, 40))
    (lane,) = drawn(Phase("run", "power loss", 512, lost)).lanes
    rows: dict[int, list[tuple[float, float]]] = {}
    for label in lane.labels:
        wide = 6.2 * len(label.text)
        left = label.x - wide if label.anchor == "end" else label.x
        assert all(left >= b or left + wide <= a for a, b in rows.get(label.y, []))
        rows.setdefault(label.y, []).append((left, left + wide))
        assert label.y < lane.y
    assert 0 < len(lane.labels) < len(lane.bars) == 39
    assert all("lost" in bar.title for bar in lane.bars)


def test_it_is_well_formed_alone_and_holds_all_processes() -> None:
    """Whatever the names of files and statements are; with its own colours, for dark paper too."""
    odd = replace(
        PHASE, steps=tuple(replace(one, path="a<&\"'\x00\x1b\udc80\uffff") for one in STEPS)
    )
    second = replace(PHASE, name="recovery 1")
    evidence = Evidence((odd, second), statements={1: "]]>\x01<script>"}, page_size=PAGE)
    text = draw_way(evidence, None, data_folder("reports"), "way", "trial 1.0 <")
    root = ElementTree.fromstring(str(text))
    assert root.tag == f"{SVG}svg" and root.findtext(f"{SVG}title") == "trial 1.0 <"
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")
    heads = [one.text for one in root.iter(f"{SVG}text") if one.get("class") == "head"]
    assert heads == ["run: power loss, one-torn", "recovery 1: power loss, one-torn"]
    calls = [one for one in root.iter(f"{SVG}g") if one.get("data-seq")]
    fates = [set((one.get("class") or "").split()) for one in calls]
    assert sum("lost" in one for one in fates) == 2 and sum("covers" in one for one in fates) == 3
    hatched = [one for one in calls if one.find(f"{SVG}path[@fill='url(#way-lost)']") is not None]
    assert len(hatched) == 4
    assert not root.findall(f".//{SVG}script")


def test_a_phase_without_operations_is_a_picture() -> None:
    """Of a crash before the first one."""
    picture = drawn(Phase("run", "power loss", 512, ()))
    assert (picture.lanes, picture.syncs, picture.flags) == ([], [], [])
    assert picture.crash > 0
