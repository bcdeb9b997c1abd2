"""`tornpage shrink` on real findings: the control without doublewrite, under kills and under power loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from e2e_support import ONE_CONFIGURATION, Tornpage

from tornpage.oracle.fingerprint import Fingerprint, fingerprint_of
from tornpage.plans.campaign import Campaign
from tornpage.store.store import Store

pytestmark = pytest.mark.extended

FEW_ROWS = ("--option", "params.rows=24")
SMALL = ("--scripts", "1", "--fault-free", "0", *FEW_ROWS)
RUNS = {
    "kill": ("run", "smoke", "--trials", "40", *SMALL, "--option", "doublewrite=off"),
    "power loss": (
        *("run", "powerloss", "--states", "300", *ONE_CONFIGURATION, *FEW_ROWS),
        *("--option", "doublewrite=off"),
    ),
}

ENOUGH = "10m"
"""A search that time ends comes to another trial on a busy machine."""


def first_finding(out: Path, run: int) -> tuple[str, Fingerprint]:
    """Id and fingerprint of the first broken trial of a run."""
    with Store(out / "tornpage.db", create=False) as store:
        for row in store.trials(run):
            if row.result and row.result.violations:
                violation = row.result.violations[0]
                return f"{run}.{row.number}", fingerprint_of(violation, row.site)
    raise AssertionError("the control was not found")


def check_smaller(shrunk: dict[str, Any]) -> None:
    """What a search with time enough comes to."""
    before, after = shrunk["before"], shrunk["after"]
    assert shrunk["complete"]
    assert after["statements"] <= before["statements"] / 4
    assert after["operations"] <= before["operations"] / 4
    assert 1 <= after["lost_sectors"] <= before["lost_sectors"]
    assert len(shrunk["script"].splitlines()) == after["statements"]


@pytest.mark.parametrize("kind", sorted(RUNS))
def test_a_finding_shrinks_and_replays(kind: str, tornpage: Tornpage, tmp_path: Path) -> None:
    """A quarter of the statements at most, fewer lost sectors, the same fingerprint, and a replay line that
    needs nothing but the store. The same search twice ends at the same trial."""
    out = tmp_path / "out"
    assert tornpage(*RUNS[kind]).code == 1
    trial, wanted = first_finding(out, 1)
    first = tornpage("shrink", trial, "--budget", ENOUGH)
    assert first.code == 0, first.text
    check_smaller(first.data)
    found = Fingerprint(**first.data["fingerprint"])
    assert found == wanted
    assert first.data["shrunk"] == "2.0"
    assert first.data["replay"].endswith(f"tornpage replay 2.0 --out {out}")

    again = tornpage("replay", "2.0")
    assert again.code == 1 and again.data["same_verdict"], again.text
    with Store(out / "tornpage.db", create=False) as store:
        row = store.trial(2, 0)
        assert row.result is not None
        assert found in {fingerprint_of(item, row.site) for item in row.result.violations}
        assert row.result.image is not None and row.result.image.is_dir()
        assert store.latest_run().campaign != "shrink"
        assert {store.bug(bug).reproducer.name for bug in row.bugs if bug} == {"2.0"}
        settings = Campaign.model_validate(store.run(2).settings)
        assert (settings.scripts, settings.fault_free) == (1, 0)
        assert not (settings.claims or settings.run_claims or settings.cross or settings.vary)

    second = tornpage("shrink", trial, "--budget", ENOUGH)
    for key in ("script", "crash", "after", "probes"):
        assert second.data[key] == first.data[key]
    assert tornpage("report", "--run", "2").data["violations"] == 1
    assert tornpage("report").data["run"] == 1


def test_time_that_is_up_leaves_a_valid_result(tornpage: Tornpage, tmp_path: Path) -> None:
    """The best so far is stored, and it replays."""
    assert tornpage(*RUNS["kill"]).code == 1
    trial, _ = first_finding(tmp_path / "out", 1)
    shrunk = tornpage("shrink", trial, "--budget", "0.01")
    assert shrunk.code == 2, "less than a second is refused"
    shrunk = tornpage("shrink", trial, "--budget", "1")
    assert shrunk.code == 0, shrunk.text
    assert shrunk.data["after"]["statements"] <= shrunk.data["before"]["statements"]
    assert tornpage("replay", shrunk.data["shrunk"]).data["same_verdict"]


def test_a_clean_trial_is_refused(tornpage: Tornpage) -> None:
    """One line that says so, exit code 2."""
    run = tornpage("run", "smoke", "--trials", "20", *SMALL)
    assert run.data["violations"] == 0
    answer = tornpage("shrink", "1.0")
    assert answer.code == 2
    assert "broke no invariant" in answer.text
