"""The rules on bytes, and what an exported table is by itself, asked of tornpage-judge (explorer/judge): a
process per worker, one line per question.

The judge decodes what was written; no marker of the target tells it anything. What is told here is only
which recording it is, and on which files the recorded process began; or which table was exported when the
crash left these files.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tornpage.faults.process import FROM_OUTSIDE, ended_from_outside, launch_argv
from tornpage.oracle.exports import Export
from tornpage.vocabulary.errors import ChildError, MachineError, TornpageError
from tornpage.vocabulary.model import Source, Violation
from tornpage.vocabulary.process_cache import ProcessCache

__all__ = [
    "Finding",
    "Judged",
    "RuleCanary",
    "Setting",
    "ask_canaries",
    "ask_export",
    "ask_rules",
    "stop_judges",
]

ANSWER_DEADLINE_S = 60.0
STOP_DEADLINE_S = 5.0
JUDGES_MAX = 4
"""Of one process; the oldest ends first."""
LIFE_S = 7 * 24 * 3600.0
"""No worker needs its judge any longer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation and the number of the event that showed it. page: file, as its number in the recording, and
    byte of the page that is accused, if one is."""

    seq: int
    violation: Violation
    page: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """What the judges must know of the target: bytes of a page, doublewrite configured."""

    page_size: int
    doublewrite: bool = True
    unit: int = 512
    """Bytes of an aligned part of a page that the storage writes whole or not at all."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules say of one recorded process. found: it found a log with a valid checkpoint; counters:
    what the judge saw it do."""

    findings: tuple[Finding, ...] = ()
    found: bool = False
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleCanary:
    """A damaged copy of a recorded run, which one rule must condemn. condemned: None where the run gives no
    occasion for it; by: which rule did, or why there is none."""

    name: str
    invariant: int
    condemned: bool | None
    by: str


def ask_rules(
    argv: Sequence[str], trace: Path, setting: Setting, *, base: Path | None = None, live: bool
) -> Judged:
    """Judges one recording with contents.

    argv: the judge's command line. base: the files that the process found, None for an empty directory. live:
    it is of a trial: it may have been disturbed, and what it found may lie in the page cache only. Raises
    ChildError when the judge fails, or cannot read the recording, MachineError when it was ended from
    outside; the next question goes to a new one.
    """
    request = {**_recording(trace, setting, base), "live": live}
    answer = _ask(argv, request)
    return Judged(
        tuple(_finding(item) for item in answer["findings"]),
        bool(answer["log"]["found"]),
        answer.get("counters", {}),
    )


def ask_canaries(
    argv: Sequence[str], trace: Path, setting: Setting, *, base: Path | None = None
) -> tuple[RuleCanary, ...]:
    """What the rules say of damaged copies of the recording of a fault-free run; nothing where the judge
    makes none. Arguments and errors as of ask_rules()."""
    request = {**_recording(trace, setting, base), "live": False, "canaries": True}
    return tuple(RuleCanary(**item) for item in _ask(argv, request).get("canaries", ()))


def _recording(trace: Path, setting: Setting, base: Path | None) -> dict[str, Any]:
    return {
        "trace": str(trace),
        "base": str(base) if base is not None else "",
        "doublewrite": setting.doublewrite,
    }


def ask_export(
    argv: Sequence[str], base: Path, export: Export, options: Mapping[str, str]
) -> tuple[bool, list[Violation]]:
    """Whether there was an exported table to be carried away as a crash left it, and what is wrong with it
    (I28).

    argv: the judge's command line. base: the files that the crash left, not recovered yet; they stay as they
    are. options: of the target. Raises as ask_rules().
    """
    request = {
        "export": export.table,
        "acked": export.acked,
        "base": str(base),
        "options": dict(options),
    }
    answer = _ask(argv, request)
    found = [
        Violation(int(item["invariant"]), item["what"], source=Source.STATE)
        for item in answer["findings"]
    ]
    return bool(answer["judged"]), found


def _ask(argv: Sequence[str], request: dict[str, Any]) -> dict[str, Any]:
    key = tuple(argv)
    judge = _JUDGES.get(key, partial(_Judge, key))
    try:
        answer = judge.ask(request)
    except BaseException:  # half an answer may be on its way
        _JUDGES.take(key)
        judge.end()
        raise
    if "error" in answer:
        raise ChildError(f"tornpage-judge: {answer['error']}")
    return answer


def _finding(item: dict[str, Any]) -> Finding:
    what = f"{item['rule']}: {item['what']}"
    inode, offset = item.get("page", (None, None))
    return Finding(
        int(item["seq"]),
        Violation(int(item["invariant"]), what, source=Source(item["source"])),
        page=None if inode is None else (int(inode), int(offset)),
    )


def _about(request: Mapping[str, Any]) -> str:
    return str(request.get("trace") or request["base"])


def stop_judges() -> None:
    """Ends the judges of this process; the next question goes to a new one."""
    _JUDGES.clear()


class _Judge:
    """The process. It ends with its input, and with its owner."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        try:
            self._child = subprocess.Popen(
                launch_argv(argv, LIFE_S), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise ChildError(f"{argv[0]}: {error.strerror}") from error

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One line there, one line back."""
        stdin, stdout = self._child.stdin, self._child.stdout
        assert stdin is not None and stdout is not None, "both are pipes"
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except OSError as error:
            raise self._death(f"has ended: {error.strerror}") from error
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], ANSWER_DEADLINE_S)[0]:
                raise ChildError(f"tornpage-judge hung on {_about(request)}")
            part = os.read(stdout.fileno(), 1 << 16)
            if not part:
                raise self._death(f"died on {_about(request)}")
            line += part
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _death(self, how: str) -> TornpageError:
        """What its end means: nobody but its own faults should have ended it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            number = -self._child.wait(STOP_DEADLINE_S)
            if number in FROM_OUTSIDE:
                return MachineError(str(ended_from_outside("tornpage-judge", number)))
        return ChildError(f"tornpage-judge {how}")

    def end(self) -> None:
        """Ends it at once, whatever it does."""
        self._child.kill()
        self._child.communicate()

    def stop(self) -> None:
        """Ends it and waits for that."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        try:
            self._child.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


_JUDGES: ProcessCache[tuple[str, ...], _Judge] = ProcessCache(JUDGES_MAX, _Judge.stop)
"""By their command lines."""
