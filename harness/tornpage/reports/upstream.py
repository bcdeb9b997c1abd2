"""A finding as the tracker of its engine takes it: the values, and the texts made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tornpage.reports.page import render_text
from tornpage.vocabulary.evidence import RowChange

__all__ = ["Call", "FindReport", "Script", "report_text", "script_text"]

REPORT = "upstream.md.j2"
SCRIPT = "upstream.sh.j2"


@dataclass(frozen=True, slots=True)
class Call:
    """A file operation, or what the run said. role: what it is to the finding, "" if nothing; began, ended:
    in milliseconds after the first one, "" where that is not known; frames: the innermost first."""

    number: int
    what: str
    role: str
    began: str = ""
    ended: str = ""
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """The program that shows the finding. files: folder with what it begins with; change: commands that lose
    what the crash loses, none if these are the crashed files; at: where the files must lie, "" = anywhere;
    text: that starts the store; program: folder of what that needs, "" if it needs none."""

    title: str
    files: str
    change: tuple[str, ...]
    at: str
    text: str
    program: str


@dataclass(frozen=True, slots=True)
class FindReport:
    """cause: what experiments have shown, "" if they could not; unexplained: why; work: after `command` the
    last of its statements, of `statements`; answer: of recovery, "" if it succeeded; smaller: the crash lost
    more when it was found; rows, rows_note: as of Evidence, of that crash; file_systems: name, promise, what
    the same loss comes to there; crashed, whole: lines that the program printed, None if there is no such;
    confirmed: a line for each real file system that was asked; differs: `whole` is told as the difference;
    found: by which Tornpage, with which campaign."""

    title: str
    findings: tuple[str, ...]
    cause: str
    unexplained: str
    versions: Mapping[str, str]
    options: Mapping[str, str]
    command: str
    work: tuple[str, ...]
    statements: int
    crash: str
    calls: tuple[Call, ...]
    answer: str
    rows: tuple[RowChange, ...]
    rows_more: int
    rows_note: str
    file_systems: tuple[tuple[str, str, str], ...]
    confirmed: tuple[str, ...]
    smaller: bool
    crashed: tuple[str, ...]
    whole: tuple[str, ...] | None
    differs: bool
    found: str


def report_text(templates: Path, report: FindReport) -> str:
    """In Markdown."""
    return render_text(templates, REPORT, report=report)


def script_text(templates: Path, script: Script) -> str:
    """Of a POSIX shell."""
    return render_text(templates, SCRIPT, script=script)
