"""The judge of the qualification, on output and records written by hand: what passes, and what fails."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fake_trace import FakeTrace

from tornpage.faults.trace import Op, Trace
from tornpage.lab.qualify import (
    CASES,
    FioReport,
    Hit,
    Seen,
    judge_kill,
    judge_verify,
    judge_write,
    observe,
    parse_fio,
)
from tornpage.vocabulary.model import Action, Fault, FaultKind

BLOCKS = 256
AT = 99 * 4096
VICTIM = 83 * 4096
EILSEQ = 84

MAGIC = (
    f"verify: bad magic header 0, wanted acca at file data offset {AT}, length 4096 "
    f"(requested block: offset={AT}, length=4096)\n"
)
HEADER = (
    f"verify: bad header offset {AT}, wanted {VICTIM} at file data offset {VICTIM}, length 4096 "
    f"(requested block: offset={VICTIM}, length=4096)\n"
)
CRC = (
    f"crc32c: verify failed at file data offset {AT}, length 4096 "
    f"(requested block: offset={AT}, length=4096, flags=88)\n"
    "       Expected CRC: 8a533efe\n       Received CRC: d83c3fa6\n"
)


def fio_json(reads: int = BLOCKS, writes: int = BLOCKS, error: int = 0) -> bytes:
    """As much of fio's JSON as is read."""
    job = {"error": error, "read": {"total_ios": reads}, "write": {"total_ios": writes}}
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]}, indent=2).encode()


@pytest.mark.parametrize(
    ("text", "bad"),
    [("", set()), (MAGIC, {AT}), (CRC, {AT}), (HEADER + MAGIC, {AT, VICTIM}), (CRC + MAGIC, {AT})],
)
def test_each_bad_block_is_read_from_the_messages(text: str, bad: set[int]) -> None:
    """The place where the block lies counts, not the one that its header or the message's tail names."""
    report = parse_fio(fio_json(error=EILSEQ), text.encode())
    assert report == FioReport(True, BLOCKS, BLOCKS, EILSEQ, 0, frozenset(bad))


def test_messages_in_front_of_the_json_are_read_too() -> None:
    """fio prints some notes on its standard output."""
    report = parse_fio(b"fio: {note}\n" + CRC.encode() + fio_json(), b"")
    assert report.complete
    assert report.bad == {AT}


def test_a_killed_job_is_found_in_the_messages() -> None:
    """Nothing in the JSON tells of it."""
    stderr = b"fio: pid=7985, got signal=9\nfio: file hash not empty on exit\n"
    assert parse_fio(fio_json(0, 99), stderr).signal == 9


@pytest.mark.parametrize(
    "stdout",
    [
        b"",
        b"fio: no such engine\n",
        fio_json()[:-20],
        b'{\n "jobs": 3}',
        b'{\n "jobs": []}',
        b'{\n "jobs": [{"error": 0, "read": {}, "write": {}}]}',
        b'{\n "jobs": [{"error": 0, "read": null, "write": null}]}',
        b"\xff{\n",
    ],
)
def test_output_that_is_none_is_not_complete(stdout: bytes) -> None:
    """Cut, empty or of another shape: never taken for a clean run, never a crash of ours."""
    assert not parse_fio(stdout, b"").complete


def seen_of(fault: Fault | None) -> Seen:
    """The record of a run in which all went as planned."""
    if fault is None:
        return Seen(BLOCKS, BLOCKS, (), fired=False)
    sectors = {
        Action.DROP: bytes(8),
        Action.TEAR: bytes([1, 1, 1, 0, 0, 0, 0, 0]),
        Action.CORRUPT: bytes([0, 0, 0, 1, 0, 0, 0, 0]),
        Action.MISDIRECT: bytes([1] * 8),
    }[fault.action]
    hit = Hit(AT + (fault.shift or 0), 4096, sectors)
    return Seen(BLOCKS, BLOCKS, (hit,), fired=True)


def report_of(fault: Fault | None) -> FioReport:
    """What fio must say of it."""
    bad = set() if fault is None else {AT, VICTIM} if fault.shift else {AT}
    return FioReport(True, BLOCKS, BLOCKS, EILSEQ if bad else 0, 0, frozenset(bad))


WRITE_CASES = [case for case in CASES if case.fault is None or case.fault.action is not Action.KILL]
FAULTS = [case.fault for case in WRITE_CASES if case.fault is not None]


@pytest.mark.parametrize("fault", [case.fault for case in WRITE_CASES])
def test_a_run_as_planned_passes(fault: Fault | None) -> None:
    """No deviation, no problem."""
    assert judge_write(fault, report_of(fault), seen_of(fault)) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_fio_did_not_find_fails(fault: Fault) -> None:
    """The damage is recorded, and fio says nothing, or finds only a part."""
    silent = replace(report_of(None))
    assert "did not find the damage" in judge_write(fault, silent, seen_of(fault))[0].text
    if fault.shift:
        partly = replace(report_of(fault), bad=frozenset({AT}))
        assert "did not find" in judge_write(fault, partly, seen_of(fault))[0].text


@pytest.mark.parametrize("fault", FAULTS)
def test_fio_must_say_the_same_twice(fault: Fault) -> None:
    """Of damage that its messages name, and its JSON does not."""
    quiet = replace(report_of(fault), error=0)
    (problem,) = judge_write(fault, quiet, seen_of(fault))
    assert "error 0 in fio's JSON" in problem.text


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_never_fired_fails(fault: Fault) -> None:
    """However fio judges the file."""
    for report in (report_of(None), report_of(fault)):
        assert "0 hits" in judge_write(fault, report, seen_of(None))[0].text
    quiet = replace(seen_of(fault), fired=False)
    assert "does not say" in judge_write(fault, report_of(fault), quiet)[0].text


@pytest.mark.parametrize("fault", FAULTS)
def test_another_damage_than_planned_fails(fault: Fault) -> None:
    """Other sectors, or another place, even when fio finds just that."""
    seen = seen_of(fault)
    flipped = bytes(1 - sector for sector in seen.hits[0].sectors)
    moved = replace(seen.hits[0], offset=seen.hits[0].offset + 4096)
    for hit in (replace(seen.hits[0], sectors=flipped), moved):
        problems = judge_write(fault, report_of(fault), replace(seen, hits=(hit,)))
        assert problems[0].text.startswith("hit 4096 bytes")


@pytest.mark.parametrize(
    ("report", "seen", "text"),
    [
        ({"writes": 0}, {}, "fio tells of 0 writes"),
        ({"reads": 0}, {}, "fio tells of 0 reads"),
        ({}, {"writes": 0}, "the preload saw 0 writes"),
        ({}, {"reads": 255}, "the preload saw 255 reads"),
        ({}, {"fired": True}, "says that a fault fired"),
        ({"signal": 9}, {}, "died by signal 9"),
        ({"error": 5}, {}, "error 5 in fio's JSON"),
        ({"error": EILSEQ}, {}, "but 0 bad blocks"),
        ({"bad": frozenset({AT})}, {}, "which nobody damaged"),
    ],
)
def test_a_clean_run_that_is_not_clean_fails(
    report: dict[str, object], seen: dict[str, object], text: str
) -> None:
    """Each sign alone is enough."""
    changed = replace(report_of(None), **report), replace(seen_of(None), **seen)
    problems = judge_write(None, *changed)
    assert any(text in problem.text for problem in problems)
    assert all(problem.remedy for problem in problems)


KILL = Fault(FaultKind.WRITE, 100, Action.KILL, file="data", sectors="prefix:3")
TORN = Hit(AT, 4096, bytes([1, 1, 1, 0, 0, 0, 0, 0]))
WHOLE = Hit(AT, 4096, bytes([1] * 8))


def test_a_kill_is_believed_only_if_all_three_tell_of_it() -> None:
    """Its record, fio's message, and the writes before it."""
    report = FioReport(True, 0, 99, 0, 9)
    seen = Seen(0, 99, (TORN,), fired=True)
    assert judge_kill(KILL, report, seen) == []
    assert judge_kill(KILL, replace(report, signal=0), seen)
    assert judge_kill(KILL, report, replace(seen, writes=100))
    assert judge_kill(KILL, report, replace(seen, writes=98))
    assert judge_kill(KILL, report, replace(seen, hits=(), fired=False))
    assert judge_kill(KILL, report, replace(seen, hits=(WHOLE,)))


def test_after_a_kill_just_the_torn_block_is_bad() -> None:
    """Torn and found, whole and not found pass; the crossed pairs and a bad earlier block fail."""
    clean = FioReport(True, 100, 0)
    found = replace(clean, error=EILSEQ, bad=frozenset({AT}))
    seen = Seen(100, 0, (), fired=False)
    assert judge_verify(TORN, found, seen) == []
    assert judge_verify(WHOLE, clean, seen) == []
    assert judge_verify(TORN, clean, seen)
    assert judge_verify(WHOLE, found, seen)
    assert judge_verify(TORN, replace(found, bad=frozenset({0, AT})), seen)
    assert judge_verify(TORN, found, replace(seen, writes=1))
    assert judge_verify(TORN, replace(found, reads=99), seen)


def test_the_record_is_counted() -> None:
    """Reads, writes and hits with their sectors; what failed does not count."""
    fake = FakeTrace().open("data").write("data", 0, 4096).write("data", 4096, 4096, result=-5)
    fake.read("data", 0, 4096).fsync("data").kill(
        "data", AT, TORN.sectors, bytes(4096), bytes(4096)
    )
    seen = observe(Trace(fake.data()))
    assert seen == Seen(1, 1, (TORN,), fired=True)
    unhit = FakeTrace().record(Op.FAULT, flags=int(Op.FSYNC), payload=bytes(16))
    assert observe(Trace(unhit.data())).hits == (Hit(0, 0, b""),)
