"""What others have written reaches no terminal as it is: on every command that prints it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec, make_summary
from rich.table import Table

from tornpage.cli.attempt import _lines
from tornpage.cli.bugs import bugs
from tornpage.cli.console import print_night, print_summary, print_trial
from tornpage.cli.diff import diff
from tornpage.cli.main import _one_line, _say
from tornpage.cli.runs import runs
from tornpage.cli.show import show
from tornpage.cli.terminal import make_console, say
from tornpage.live.admission import Admission, Audited
from tornpage.live.stopped import Compared
from tornpage.reports.annotations import github_lines
from tornpage.reports.night import NightBug, NightSummary, Standing
from tornpage.store.bugs import BugStatus
from tornpage.store.memory import Night
from tornpage.store.origin import Examined, Origin
from tornpage.store.rows import Run, TrialRow
from tornpage.store.store import Store
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.model import Violation
from tornpage.vocabulary.shown import one_line, visible

BAD = (
    "\x1b]0;title\x07 \x1b[2J \u202egnp\u2066 \x9b31m \u2028 \r\n::error::forged\nbug 9, new\ttail"
)
"""Escapes of a terminal, also in their one-byte form, marks that turn a line around, and ends of lines."""
NAME = "mydb\x1b[8m\n::error::forged"
TARGET = f"/home/{NAME}.toml"


def result_of(number: int) -> object:
    """A trial that says it everywhere."""
    told = Violation(30, f"recover gave no answer: {BAD} {number}")
    torn = make_result(number, broken=5).torn
    assert torn is not None
    return replace(
        make_result(number, broken=5),
        violations=(told,),
        reason=BAD,
        answer=BAD,
        torn=replace(torn, path=NAME),
    )


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two runs, with a bug each."""
    folder = tmp_path_factory.mktemp("out")
    with Store(folder / "tornpage.db") as store:
        for number in range(2):
            settings = json.loads(SETTINGS)
            run = store.begin_run(f"x{NAME}", TARGET, 1, 1, settings, Origin(target=NAME)).id
            spec = replace(make_spec(0), target=TARGET, options={"mode": BAD})
            store.start_trial(run, spec, "page0", "none")
            store.finish_trial(run, result_of(number))  # type: ignore[arg-type]
            store.finish_run(run)
        store.mark_bug(1, BugStatus.KNOWN, BAD)
    return folder


SETTINGS = """{"name": "x", "description": "", "workload": "smoke", "crash_model": "kill", "trials": 1,
"seed": 1, "hit": [{"sites": ["page0"], "masks": ["none"]}]}"""


def summary_of(name: str = NAME) -> object:
    """Of a run with one such trial."""
    run = Run(1, f"x{name}", TARGET, 1, 1, {}, "finished", 2.0)
    row = TrialRow(1, 0, make_spec(0), "page0", "none", result_of(0))  # type: ignore[arg-type]
    return make_summary(run, [], [row])


def night() -> NightSummary:
    """That tells of it."""
    summary = summary_of()
    (seen,) = summary.bugs  # type: ignore[attr-defined]
    one = NightBug(seen.bug, Standing.NEW, 1, BAD, f"tornpage replay {BAD}")
    of = Night(1, {"seed": 1}, "finished", 1.0, Origin())
    return NightSummary(of, {NAME: set()}, (), [one], [BAD])


def tried() -> list[str]:
    """Of `tornpage try`."""
    audited = Audited("", Compared(0, 0), 0)
    admission, seen = Admission(1, 1, 1, 1, 1, True, {}, audited, (BAD,)), Examined("", 1, 1)
    return _lines(admission, seen, [summary_of()], [Path(NAME)])  # type: ignore[list-item]


def annotated() -> None:
    """As `--annotate` does."""
    for line in github_lines([summary_of()]):  # type: ignore[list-item]
        say(line, sys.stderr)


PRINTS: dict[str, Callable[[Path], object]] = {
    "bugs": lambda out: bugs(out=out),
    "bugs ID": lambda out: bugs(1, out=out),
    "show": lambda out: show("1.0", out=out),
    "diff": lambda out: diff(1, 2, out=out),
    "diff back": lambda out: diff(2, 1, out=out),
    "runs": lambda out: runs(out=out),
    "run, report": lambda _: print_summary(make_console(), summary_of(), Path(NAME)),  # type: ignore[arg-type]
    "replay": lambda _: print_trial(make_console(), "1.0", make_spec(0), result_of(0), BAD),  # type: ignore[arg-type]
    "nightly": lambda _: print_night(make_console(), night()),
    "try": lambda _: [make_console().print(line) for line in tried()],
    "annotations": lambda _: annotated(),
    "an error": lambda _: _say(_one_line(TornpageError(BAD))),
}


@pytest.mark.parametrize("name", PRINTS)
def test_nothing_of_it_is_obeyed(name: str, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No control character, no mark, and no line of its own."""
    PRINTS[name](out)
    text = "".join(capsys.readouterr())
    assert "forged" in text, "it is told"
    assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert not any(line.startswith(("::error::", "bug 9")) for line in text.split("\n"))


def test_json_stays_the_same() -> None:
    """What is shown in its place is how JSON writes it; all else is as it was, whatever its language."""
    text = json.dumps({BAD: "\U000e0041 naïve 日本 ✓"}, ensure_ascii=False)
    assert json.loads(visible(text)) == json.loads(text)
    assert visible(text).replace("\n", "").isprintable()
    assert visible("a\n\tb 日本") == "a\n\tb 日本" and one_line("a\n\tb") == "a\\n\\tb"


def test_a_console_obeys_nobody_else(capsys: pytest.CaptureFixture[str]) -> None:
    """Also what a command prints without asking: in a line and in a table."""
    table = Table(title=BAD)
    table.add_column(BAD)
    table.add_row(BAD)
    for what in (BAD, table):
        make_console().print(what)
    assert [line for line in capsys.readouterr().out.split("\n") if not line.isprintable()] == []
