"""How a crash came about, in words: which operations are told with the code that made them."""

from __future__ import annotations

from dataclasses import replace

from tornpage.reports.dossier import FRAMES_SHOWN, phase_views, stack_lines, way_lines
from tornpage.vocabulary.evidence import Evidence, Fate, Frame, Phase, Step

BUILD = "ab" * 20


def frame(function: str, line: int = 7) -> Frame:
    """Of one source file."""
    return Frame(function, f"/src/{function}.cc", line, "/usr/sbin/store", BUILD, line)


def evidence(*steps: Step, wrappers: tuple[str, ...] = ()) -> Evidence:
    """A killed run of these operations."""
    return Evidence((Phase("run", "killed", 512, steps),), page_size=4096, wrappers=wrappers)


def write(seq: int, fate: Fate, *frames: Frame) -> Step:
    """Of a page."""
    return Step(seq, "write", "t.ibd", fate, length=4096, offset=4096 * seq, stack=frames)


def test_what_matters_is_told_with_its_frames() -> None:
    """What was lost, torn or kept, and what synced; a write that is durable does not matter any more."""
    save, sync = frame("save"), frame("sync")
    told = evidence(
        write(1, Fate.DURABLE, save),
        Step(2, "fsync", "t.ibd", Fate.DURABLE, stack=(sync,)),
        write(3, Fate.KEPT, save),
        write(4, Fate.LOST, save),
    )
    assert [row.stack for row in phase_views(told)[0].rows] == [
        [],
        ["sync sync.cc:7"],
        ["save save.cc:7"],
        ["save save.cc:7"],
    ]
    assert stack_lines(told) == ["lost write t.ibd, page 4: save save.cc:7"]
    assert stack_lines(None) == []


def test_equal_stacks_are_told_once_but_for_what_is_broken() -> None:
    """In a terminal, where they would be most of the lines."""
    save = frame("save")
    told = way_lines(
        evidence(*(write(n, Fate.KEPT, save) for n in (1, 2)), write(3, Fate.TORN, save))
    )
    frames = [line.strip() for line in told if line.strip().startswith("by ")]
    assert frames == ["by save save.cc:7", "by the same calls", "by save save.cc:7"]


def test_wrappers_come_off_and_one_function_stands_once() -> None:
    """Only in front; a function that the compiler has made two of is one, and two calls without a name are
    two. The innermost frames are shown, the others stay in the evidence."""
    unknown = [Frame(module="/usr/sbin/store", build_id=BUILD, offset=n) for n in (1, 2)]
    stack = (frame("io"), frame("save", 9), frame("save", 4), frame("io"), *unknown, frame("main"))
    told = evidence(write(1, Fate.LOST, *stack), wrappers=("io",))
    (row,) = phase_views(told)[0].rows
    assert row.stack == [
        "save save.cc:9",
        "io io.cc:7",
        "store+0x1",
        "store+0x2",
        "main main.cc:7",
    ]
    (line,) = stack_lines(told)
    assert line.endswith(" ← ".join(row.stack[:FRAMES_SHOWN]))


def test_a_program_without_symbols_is_named_with_what_it_lacks() -> None:
    """Once, with the build id by which its debug file is found."""
    unknown = Frame(module="/usr/sbin/store", build_id=BUILD, offset=1)
    lines = way_lines(evidence(*(write(n, Fate.LOST, unknown) for n in (1, 2))))
    (hint,) = (line.strip() for line in lines if "unknown" in line)
    assert hint.startswith("functions of /usr/sbin/store are unknown: --debug-files FOLDER")
    assert hint.endswith(f"of build id {BUILD}")
    assert not any(
        "unknown" in line for line in way_lines(evidence(write(1, Fate.LOST, frame("f"))))
    )


def test_a_lost_write_is_shown_however_long_ago_it_was() -> None:
    """With the sync that began before it had ended; of the others the last ones."""
    lost = replace(write(1, Fate.LOST), sync="fsync 3 began 12 us before this ended")
    lines = way_lines(evidence(lost, *(write(n, Fate.DURABLE) for n in range(2, 50))))
    assert lines[1].split()[:2] == ["1", "lost"] and lines[2].split()[:2] == ["fsync", "3"]
    assert [line.split()[0] for line in lines[3:-1]] == [str(n) for n in range(34, 50)]
