"""What a night came to: its exit code, and what it says that it did not come to."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from builders import make_bug
from rich.console import Console

from tornpage.cli.console import print_night
from tornpage.reports.night import NightBug, NightSummary, Standing
from tornpage.store.bugs import BugStatus
from tornpage.store.memory import Night, RunFacts
from tornpage.store.origin import Origin


def _facts(run: int, campaign: str, state: str, verdict: str, crashes: int) -> RunFacts:
    return RunFacts(run, None, campaign, "engine", run, state, verdict, crashes, 0, 0, 0, 0, 1.0, 1)


def _night(*runs: RunFacts, campaigns: Sequence[str] = ("kills", "losses")) -> NightSummary:
    night = Night(1, {"seed": 1}, "finished", 5.0, Origin())
    numbers = {name: {run.id for run in runs if run.campaign == name} for name in campaigns}
    return NightSummary(night, numbers, runs, (), ())


KILLS = _facts(1, "kills", "finished", "clean", 24)
PAST = _facts(1, "replay", "finished", "clean", 1)
EARLY = _facts(3, "losses", "stopped", "nothing exercised", 0)
MISSED = _facts(2, "losses", "stopped", "nothing exercised", 8)
"""Trials, but none of them was exercised."""
CLAIMED = _facts(2, "losses", "finished", "claims missed", 8)


@pytest.mark.parametrize(
    ("runs", "code", "not_reached"),
    [
        ((KILLS, _facts(2, "losses", "stopped", "clean", 8)), 0, []),
        ((KILLS, EARLY), 0, ["losses"]),
        ((KILLS, _facts(2, "losses", "stopped", "clean", 8), EARLY), 0, []),
        ((KILLS,), 0, ["losses"]),
        ((PAST, EARLY), 0, ["kills", "losses"]),
        ((EARLY,), 3, ["kills", "losses"]),
        ((MISSED,), 3, ["kills", "losses"]),
        ((), 3, ["kills", "losses"]),
        ((KILLS, CLAIMED), 3, []),
        ((KILLS, replace(MISSED, state="finished")), 3, []),
    ],
)
def test_a_time_that_is_too_short(
    runs: Sequence[RunFacts], code: int, not_reached: list[str]
) -> None:
    """What was not reached is told and no failure, unless it is all; a finished run must keep its claims."""
    summary = _night(*runs)
    assert (summary.exit_code(), summary.not_reached) == (code, not_reached)
    text = io.StringIO()
    print_night(Console(file=text, width=200), summary)
    told = [line for line in text.getvalue().splitlines() if line.startswith("not exercised")]
    names = ", ".join(not_reached)
    assert told == ([f"not exercised, the time was up before a crash of: {names}"] * bool(names))
    for one in runs:
        line = (
            f"run {one.id}: {one.campaign} on engine, seed {one.seed}: {one.state}, {one.verdict}, "
        )
        assert line in text.getvalue()


@pytest.mark.parametrize(
    ("status", "code"),
    [(BugStatus.NEW, 3), (BugStatus.KNOWN, 3), (BugStatus.FIXED, 0), (BugStatus.IGNORED, 0)],
)
def test_a_past_finding_that_cannot_be_played(status: BugStatus, code: int) -> None:
    """A night that could not ask whether a bug is still there is not green, until somebody has settled it."""
    summary = _night(KILLS, _facts(2, "losses", "finished", "clean", 8))
    past = NightBug(
        replace(make_bug(1), status=status), Standing.NOT_PLAYED, 0, "no such workload", ""
    )
    told = NightSummary(summary.night, summary.campaigns, summary.runs, [past], ())
    assert (summary.exit_code(), told.exit_code()) == (0, code)
