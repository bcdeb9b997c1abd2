"""What a person sees, as it is printed."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from builders import make_result, make_spec, make_summary
from rich.console import Console

from tornpage.cli.console import print_summary, print_trial
from tornpage.cli.runs import _table
from tornpage.store.memory import RunFacts
from tornpage.store.rows import Run, TrialRow
from tornpage.vocabulary.model import FaultPlan, Violation

MARKUP = "the key [bold]x[/] of [/nonsense] is gone " + "and gone " * 20


def _printed(count: int) -> str:
    """The summary of trials that each tell of a bug of their own."""
    rows = []
    for number in range(count):
        what = f"{MARKUP}{'and away ' * number}"
        violation = Violation(30, what, path="t1.ibd")
        result = replace(make_result(number, broken=1), violations=(violation,))
        rows.append(TrialRow(1, number, make_spec(number), "page0", "none", result))
    run = Run(1, "smoke", "engine", 1, count, {}, "finished", 2.0)
    text = io.StringIO()
    print_summary(Console(file=text), make_summary(run, [], rows), Path("report.html"))
    return text.getvalue()


def test_what_a_target_says_is_no_markup() -> None:
    """Brackets in its messages are printed as they are, in one line where nobody watches."""
    (line,) = [line for line in _printed(1).splitlines() if line.startswith("    I5 by state")]
    assert MARKUP.rstrip() in line
    text = io.StringIO()
    result = replace(make_result(0, broken=1), reason=MARKUP, violations=(Violation(1, MARKUP),))
    print_trial(Console(file=text), "1.0", make_spec(0), result, "again")
    assert text.getvalue().count(MARKUP.rstrip()) == 2


def test_findings_that_are_not_shown_are_counted() -> None:
    """Twenty, and how many more."""
    text = _printed(23)
    assert text.count("tornpage replay 1.") == 20
    assert "and 3 more" in text


def test_a_power_loss_state_is_told() -> None:
    """Its number, and how many states were like it."""
    spec = replace(make_spec(0), plan=FaultPlan(name="p", loss="17.prefix.3"))
    text = io.StringIO()
    print_trial(
        Console(file=text), "1.0", spec, replace(make_result(0, broken=1), alike=342), "again"
    )
    assert "power loss, state 17.prefix.3, 342 states like it" in text.getvalue()


def test_the_answer_of_a_recovery_is_told() -> None:
    """And the line that plays it again is the last."""
    text = io.StringIO()
    result = replace(make_result(0, broken=5), answer="refused: torn")
    print_trial(Console(file=text), "1.0", make_spec(0), result, "the line")
    lines = text.getvalue().splitlines()
    assert "  recovery: refused: torn" in lines
    assert lines[-1] == "  the line"


def test_a_summary_adds_up() -> None:
    """Each site with its trials and the broken ones, or with the broken states, which together are those of
    the line below; what there is none of is not told."""
    results = [
        make_result(0, broken=5),
        make_result(1),
        replace(make_result(2, broken=5), alike=40),
    ]
    rows = [TrialRow(1, one.number, make_spec(one.number), "page0", "none", one) for one in results]
    run = Run(1, "smoke", "engine", 1, 3, {}, "finished", 1.0)
    for explored, site, line in (
        ({}, r"page0 +. +3 +. +41", "3 trials, 3 exercised, 41 broken, 3 trials/s"),
        (
            {"a": {"states": 90, "distinct": 9, "paths": {"purged": 2, "worked": 0}}},
            r"page0 +. +41",
            "90 states, 90 exercised, 41 broken, 90 states/s",
        ),
    ):
        text = io.StringIO()
        summary = make_summary(run, [], rows, explored=explored)
        print_summary(Console(file=text, width=80), summary, Path("report.html"))
        assert re.search(site, text.getvalue()), text.getvalue()
        assert line in text.getvalue().splitlines()
        assert "vacuous" not in text.getvalue() and "worked" not in text.getvalue()


def test_runs_fit_into_80_columns() -> None:
    """No word is cut; the campaign, the verdict and the bugs are always there."""
    facts = RunFacts(
        117,
        "2026-11-21T19:00:00",
        "powerloss",
        "/home/me/mydb/mydb.toml",
        20261121,
        "finished",
        "violations",
        239984,
        62,
        0,
        3,
        1,
        900.0,
        12,
    )
    for width, shown in ((80, {"started", "broken"}), (200, {"night", "target", "seed"})):
        text = io.StringIO()
        Console(file=text, width=width).print(_table([facts], width))
        lines = text.getvalue().splitlines()
        assert len(lines) == 2 and "…" not in text.getvalue()
        assert {"run", "campaign", "verdict", "crashes", "bugs", "new"} <= {*lines[0].split()}
        assert "violations" in lines[1] and "powerloss" in lines[1]
        assert shown & {*lines[0].split()}
