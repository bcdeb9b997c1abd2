"""Where the calls of two operations meet, as an explanation says it."""

from __future__ import annotations

import json
from dataclasses import replace

from tornpage.causes.cause import meetings, sentence, with_frames
from tornpage.vocabulary.cause import Cause, Change, Explained, Kind, Operation, Parting
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.evidence import Frame

NOTHING = ("broken", (), (), None, 0, None, (), ())
OUTER = Frame("serve", "main.c", 90, "/bin/store", "", 900)


def operation(seq: int, *frames: Frame, line: int = 7) -> Operation:
    return Operation(seq, "write", "f", f"write of f (operation {seq})", "", line, frames)


def called(function: str, line: int, offset: int = 0) -> Frame:
    return Frame(function, f"{function}.c", line, "/bin/store", "", offset)


def order(lost: Operation, relied: Operation) -> Cause:
    return Cause(Kind.ORDER, "broken", (lost,), (), relied, 0, None, (), ())


def test_the_innermost_common_call_is_named() -> None:
    """Not one further in, which is another call of the same function."""
    lost = operation(2, called("put", 5), called("save", 10), OUTER)
    relied = operation(4, called("put", 5), called("save", 12), OUTER)
    assert "Operations 2 and 4 are both called by save, at save.c:10 and save.c:12." in sentence(
        order(lost, relied)
    )


def test_what_a_write_brings_has_the_stack_of_who_made_it() -> None:
    """Beside that of who wrote it; one whose stack nobody took has none."""
    wrote, made = called("flush", 3), called("put", 5)
    lost = replace(operation(2), change=Change("the records", 7, 9))
    told = order(lost, replace(operation(4), change=Change("the records", 7, 0)))
    framed = with_frames(told, {2: (wrote,)}, {9: (made,)})
    assert framed.lost[0].frames == (wrote,)
    assert framed.lost[0].change == Change("the records", 7, 9, (made,))
    assert framed.relied is not None and framed.relied.change == Change("the records", 7, 0)


def test_they_meet_where_they_were_written_too() -> None:
    """And where one was made and the other written, of the same statement; each function once."""
    batch, put = called("batch", 10), called("put", 5)
    lost = replace(
        operation(2, called("write_log", 3), batch, OUTER, line=8),
        change=Change("the records", 7, 9, (put, called("insert", 4), OUTER)),
    )
    told = order(lost, operation(4, called("write_page", 6), called("batch", 12), OUTER, line=8))
    assert [one.frames[0].function for one in meetings(told)] == ["batch"]
    assert told.relied is not None
    change = Change("others", 7, 9, (called("put", 6), called("insert", 4), OUTER))
    both = replace(told, relied=replace(told.relied, change=change))
    assert [one.frames[0].function for one in meetings(both)] == ["put", "batch"]
    wrote = replace(told, relied=operation(4, called("put", 6), called("insert", 4), OUTER, line=7))
    assert [one.frames[0].function for one in meetings(wrote)] == ["put"]


def test_inlined_functions_meet_by_line() -> None:
    """All frames of one address have its offset; the caller's line is the same."""
    lost = operation(2, called("save", 10, 1), called("commit", 30, 1), OUTER)
    relied = operation(4, called("save", 12, 2), called("commit", 30, 2), OUTER)
    ((one, other),) = [met.frames for met in meetings(order(lost, relied))]
    assert (one.function, one.line, other.line) == ("save", 10, 12)


def test_without_lines_another_place_is_another_call() -> None:
    """Of two calls of one function nothing further in is the same call."""
    nowhere = [Frame(name, "", 0, "/bin/store", "", at) for name, at in (("put", 1), ("save", 5))]
    other = [Frame(name, "", 0, "/bin/store", "", at) for name, at in (("put", 1), ("save", 6))]
    (met,) = meetings(order(operation(2, *nowhere), operation(4, *other)))
    assert str(met) == "Operations 2 and 4 are both called by save."


def test_where_recovery_goes_another_way_is_said() -> None:
    """With the function that decides, where it fails, and whether the run is to blame; whatever was lost."""
    goes, instead = operation(5, called("read", 5), OUTER), operation(6, called("make", 6), OUTER)
    fails = operation(9, called("refuse", 7))
    parting = Parting("with it durable", goes, instead, fails, blames=True)
    for cause in (order(operation(2), operation(4)), Cause(Kind.NOTHING_LOST, *NOTHING)):
        said = sentence(replace(cause, parting=parting))
        assert (
            "Recovery goes another way than with it durable, at write of f (operation 5), not write of f "
            "(operation 6). Both are called by serve. It fails at write of f (operation 9). The run has "
            "broken no rule on bytes up to the crash" in said
        )
        alone = sentence(replace(cause, parting=Parting("right before that", goes, None)))
        assert alone.endswith(
            "goes another way than right before that, at write of f (operation 5)."
        )
        never = sentence(replace(cause, parting=Parting("right before that", None, instead)))
        assert never.endswith(
            "Recovery never comes to write of f (operation 6), as it does right before that."
        )


def test_what_does_not_meet_is_not_told() -> None:
    """Statements that differ, none at all, no stacks, frames without a function."""
    frames = called("save", 10), OUTER
    for one, other in (
        (operation(2, *frames), operation(4, *frames, line=8)),
        (operation(2, *frames, line=0), operation(4, *frames, line=0)),
        (operation(2), operation(4, *frames)),
        (operation(2, Frame()), operation(4, Frame())),
    ):
        assert meetings(order(one, other)) == []
        assert "both called" not in sentence(order(one, other))


def test_the_ends_meet_where_nothing_was_lost() -> None:
    """From which operation on a crash breaks it, and until which one."""
    first, last = operation(2, called("save", 10), OUTER), operation(4, called("save", 12), OUTER)
    cause = Cause(Kind.NOTHING_LOST, "broken", (), (), first, 0, last, (), ())
    assert "these must be one step. Operations 2 and 4 are both called by save," in sentence(cause)


def test_what_an_older_tornpage_has_kept_is_read() -> None:
    """Its operations have a key that is gone."""
    found = Explained("said", order(operation(2, OUTER), operation(4)), "kept", 3)
    text = json.loads(to_json(found))
    for one in (text["cause"]["lost"][0], text["cause"]["relied"]):
        one |= {"stack": 9}
        del one["change"]
    assert from_json(Explained, json.dumps(text)) == found
