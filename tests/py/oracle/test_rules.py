"""The process that is asked for the rules on bytes: how it may end, and what comes after that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tornpage.oracle.exports import Export
from tornpage.oracle.rules import (
    JUDGES_MAX,
    Judged,
    RuleCanary,
    Setting,
    ask_canaries,
    ask_export,
    ask_rules,
    stop_judges,
)
from tornpage.vocabulary.errors import ChildError, MachineError

PROGRAM = """#!/bin/sh
while read -r question; do
    if [ ! -e {been} ]; then
        touch {been}
        {end}
    fi
    echo '{{"findings": [], "log": {{"found": true}}}}'
done
"""


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    """No judge of a test outlives it."""
    yield
    stop_judges()


@pytest.mark.parametrize(
    ("end", "error", "told"),
    [
        ("kill -KILL $$", MachineError, "ended from outside by SIGKILL"),
        ("kill -TERM $$", MachineError, "ended from outside by SIGTERM"),
        ("kill -SEGV $$", ChildError, "tornpage-judge died"),
        ("exit 3", ChildError, "tornpage-judge died"),
    ],
)
def test_a_judge_that_ended_is_replaced(
    tmp_path: Path, end: str, error: type[Exception], told: str
) -> None:
    """Its end is the machine's failure if somebody else ended it, else its own; the next question has an
    answer."""
    program = tmp_path / "judge"
    program.write_text(PROGRAM.format(been=tmp_path / "been", end=end), "ascii")
    program.chmod(0o755)
    setting = Setting(page_size=4096)
    with pytest.raises(error, match=told):
        ask_rules([str(program)], tmp_path / "trace", setting, live=True)
    again = ask_rules([str(program)], tmp_path / "trace", setting, live=True)
    assert again == Judged((), True)


def test_what_is_asked(tmp_path: Path) -> None:
    """Which recording, on which files, of what process; of an export, whether it was acknowledged."""
    program, asked = tmp_path / "judge", tmp_path / "asked"
    answer = '{"findings": [], "log": {"found": true}, "judged": true}'
    program.write_text(
        f"#!/bin/sh\nwhile read -r line; do echo \"$line\" >> {asked}; echo '{answer}'; done\n",
        "ascii",
    )
    program.chmod(0o755)
    argv, setting = [str(program)], Setting(page_size=4096, doublewrite=False)
    trace, base = tmp_path / "trace", tmp_path / "base"
    ask_rules(argv, trace, setting, base=base, live=False)
    ask_rules(argv, trace, setting, live=True)
    ask_canaries(argv, trace, setting, base=base)
    for acked in (True, False):
        ask_export(argv, base, Export("t", acked), {"page_size": "4k"})
    of_trace = {"trace": str(trace), "doublewrite": False}
    of_export = {"export": "t", "base": str(base), "options": {"page_size": "4k"}}
    assert [json.loads(line) for line in asked.read_text("ascii").splitlines()] == [
        {**of_trace, "base": str(base), "live": False},
        {**of_trace, "base": "", "live": True},
        {**of_trace, "base": str(base), "live": False, "canaries": True},
        {**of_export, "acked": True},
        {**of_export, "acked": False},
    ]


def test_none_is_left(tmp_path: Path) -> None:
    """The death of one judge leaves the others in use, and in the end every one is stopped and reaped."""
    (tmp_path / "other").touch()
    setting = Setting(page_size=4096)
    children = len(psutil.Process().children())
    programs = [tmp_path / "judge", tmp_path / "another"]
    for program, been in zip(programs, ("been", "other"), strict=True):
        program.write_text(PROGRAM.format(been=tmp_path / been, end="exit 3"), "ascii")
        program.chmod(0o755)
    ask_rules([str(programs[1])], tmp_path / "trace", setting, live=True)
    other = psutil.Process().children()[-1]
    with pytest.raises(ChildError):
        ask_rules([str(programs[0])], tmp_path / "trace", setting, live=True)
    ask_rules([str(programs[1])], tmp_path / "trace", setting, live=True)
    assert other.is_running()
    stop_judges()
    assert len(psutil.Process().children()) == children


def test_the_oldest_judges_end(tmp_path: Path) -> None:
    """One program after the other, as the builds of planted bugs: the last few stay."""
    setting = Setting(page_size=4096)
    (tmp_path / "been").touch()
    children = len(psutil.Process().children())
    for number in range(2 * JUDGES_MAX):
        program = tmp_path / f"judge{number}"
        program.write_text(PROGRAM.format(been=tmp_path / "been", end="exit 3"), "ascii")
        program.chmod(0o755)
        ask_rules([str(program)], tmp_path / "trace", setting, live=True)
    assert len(psutil.Process().children()) == children + JUDGES_MAX


CANARIES = """#!/bin/sh
while read -r question; do
    case $question in
        *'"live": false, "canaries": true'*)
            echo '{"canaries": [{"name": "hole", "invariant": 29, "condemned": true, "by": "hole, I29"},
                {"name": "freed_page", "invariant": 15, "condemned": null, "by": "none"}]}' | tr -d '\n'
            echo ;;
        *) echo '{"error": "no canaries were asked for"}' ;;
    esac
done
"""


def test_canaries_are_told_as_the_judge_tells_them(tmp_path: Path) -> None:
    """Those that cannot be made too; a judge that makes none has none."""
    program = tmp_path / "judge"
    program.write_text(CANARIES, "ascii")
    program.chmod(0o755)
    setting = Setting(page_size=4096)
    assert ask_canaries([str(program)], tmp_path / "trace", setting) == (
        RuleCanary("hole", 29, True, "hole, I29"),
        RuleCanary("freed_page", 15, None, "none"),
    )
    plain = tmp_path / "plain"
    plain.write_text(PROGRAM.format(been=tmp_path, end=""), "ascii")
    plain.chmod(0o755)
    assert ask_canaries([str(plain)], tmp_path / "trace", setting) == ()
