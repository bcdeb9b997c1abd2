"""What a person sees, as it is printed."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from builders import make_result, make_spec, make_summary
from rich.console import Console

from tornpage.cli.console import print_summary, print_trial
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
