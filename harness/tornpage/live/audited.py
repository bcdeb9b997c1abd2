"""A run under audit: its command, and what the audit found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tornpage.faults.audit import Audit, audited_argv, mapped_files, unrecorded_call
from tornpage.faults.trace import Trace
from tornpage.targets.target import Command
from tornpage.vocabulary.errors import UnseenError

__all__ = ["check_audit", "mapped_in", "under_audit"]

SLOWER = 4.0
"""A run under audit may take so many times its deadline."""


def under_audit(command: Command, work: Path) -> Command:
    """The command of a run in work/data, which records to work/trace, with its audit in work/audit."""
    argv = audited_argv(command.argv, work / "data", work / "trace", work / "audit")
    return replace(command, argv=argv, deadline_s=SLOWER * command.deadline_s, fork=None)


def check_audit(
    trace: Trace | None, work: Path, ignored: Sequence[str], what: str, *, below: bool
) -> str:
    """Why there was no audit, "" if there was. UnseenError naming the first call that changed something
    and is not in the recording (None: nothing was recorded). ignored: patterns of files of which nothing is
    wanted; below: the recorder is a file system."""
    audit = Audit.load(work / "audit")
    call = unrecorded_call(trace, audit, ignored, below=below)
    if call is not None:
        raise UnseenError(f"{what}: not in the recording: {call.describe()}")
    return audit.missing


def mapped_in(work: Path, ignored: Sequence[str]) -> tuple[str, ...]:
    """The files that an audited run has mapped to write. Such a page may be on disk at any moment, and a
    recorder learns of it when the kernel hands it over."""
    return mapped_files(Audit.load(work / "audit"), ignored)
