"""The table of mutants as the harness reads it, what counts as a catch, and what the scores say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.lab import mutant_pool
from tornpage.lab.hunt import ROUNDS, MutantRow
from tornpage.lab.mutant_pool import KeptRows, maker_of
from tornpage.lab.mutant_table import Mutant, choose_mutants, load_patches
from tornpage.lab.mutants import Score
from tornpage.lab.shipped import LIVE, SeedRow, ShippedRow, ShippedScore, bugs_page
from tornpage.lab.tryout import Catch, Catches, Tried
from tornpage.plans.campaign import default_campaigns
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import FaultPlan, Source, TrialSpec, Violation
from tornpage.vocabulary.paths import data_folder

BY_RULE = Catch(13, Source.RULE, "smoke", "golden_run", 1, 0.5, 0.4, "what", "line")
CAUGHT = MutantRow("a", by_rule=BY_RULE)
MISSED = MutantRow("b", baseline=7)
ROW = """# mutant: a
# bug: x
# mechanism: It errs.
# invariants: I13 I1
# models: kill
# options: doublewrite=off
--- a/engine/buf/buf.c
+++ b/engine/buf/buf.c
"""


def tried(model: str, count: int, *violations: Violation) -> Tried:
    """Something of a campaign that broke these."""
    spec = TrialSpec(
        campaign="smoke",
        target="engine",
        config="",
        options={},
        workload="smoke",
        params={},
        workload_seed=1,
        seed=1,
        number=0,
        plan=FaultPlan(name="none"),
    )
    return Tried(model, count, spec, violations)


def patches(folder: Path, *names: str) -> Path:
    """A folder of patches with these names."""
    for name in names:
        (folder / f"{name}.patch").write_text(ROW.replace("mutant: a", f"mutant: {name}"), "utf-8")
    return folder


def test_rows_are_read_and_chosen_in_the_order_of_their_names(tmp_path: Path) -> None:
    """All fields of a header; an unknown name is refused."""
    rows = load_patches(Mutant, patches(tmp_path, "b", "a"))
    assert [row.name for row in rows] == ["a", "b"]
    assert (rows[0].bug, rows[0].mechanism) == ("x", "It errs.")
    assert (rows[0].invariants, rows[0].models) == ((13, 1), ("kill",))
    assert rows[0].options == {"doublewrite": "off"}
    assert rows[0].diff == "--- a/engine/buf/buf.c\n+++ b/engine/buf/buf.c\n"
    assert choose_mutants(rows, ["b", "a"]) == choose_mutants(rows, []) == rows
    assert choose_mutants(rows, ["b"]) == rows[1:]
    with pytest.raises(ConfigError, match="no mutant 'c'"):
        choose_mutants(rows, ["c"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# bug: x\n", "# bug: x\n# colour: 1\n", "colour"),
        ("# bug: x\n", "", "bug: Field required"),
        ("# bug: x\n", "# bug: x\n# bug: y\n", "each key once"),
        ("# bug: x\n", "a bug\n", "expected '# key: value'"),
        ("I13", "thirteen", r"invariants\.0"),
        ("models: kill", "models: kill fire", r"models\.1"),
        ("mutant: a", "mutant: b", "is not the name of the file"),
        ("--- a/", "--- ", r"'--- engine"),
    ],
)
def test_a_wrong_header_is_refused_by_name(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """An unknown, missing or repeated key, a wrong value, another file's name, no diff."""
    assert old in ROW
    (tmp_path / "a.patch").write_text(ROW.replace(old, new), "utf-8")
    with pytest.raises(ConfigError, match=rf"a\.patch.*{message}"):
        load_patches(Mutant, tmp_path)


def test_a_folder_without_patches_is_refused(tmp_path: Path) -> None:
    """A score of nothing would be perfect."""
    with pytest.raises(ConfigError, match="no patches"):
        load_patches(Mutant, tmp_path)


def test_a_hunt_stays_within_its_states() -> None:
    """The rounds' shares add up to all states, and each round does something."""
    assert sum(effort.share for effort in ROUNDS) == pytest.approx(1)
    assert all(effort.share > 0 and effort.scale > 0 for effort in ROUNDS)


def test_the_score_and_its_exit_code() -> None:
    """0 only if all were caught; a row that the harness failed at is 2, whatever the others are."""
    assert Score((CAUGHT,)).exit_code() == 0
    both = Score((CAUGHT, MISSED))
    assert both.exit_code() == 1
    data = both.to_json()
    assert (data["mutants"], data["caught"], data["score"]) == (2, 1, 50)
    assert (data["by_state"], data["by_rule"], data["score_by_state"]) == (0, 1, 0)
    assert data["baseline_caught"] == 1
    assert [(row["name"], row["caught"]) for row in data["rows"]] == [("a", True), ("b", False)]
    assert data["rows"][0]["by_rule"]["model"] == "golden_run"
    assert Score((CAUGHT, replace(MISSED, error="broken"))).exit_code() == 2


def test_a_catch_by_rule_is_noted_and_the_hunt_goes_on() -> None:
    """A rule must name an invariant of the row, a broken state need not; the first of each kind stays."""
    kept: list[str] = []
    catches = Catches(lambda _, violation: kept.append(violation.what) or "again", (13,))
    assert not catches.add(tried("golden_run", 1, Violation(22, "another", source=Source.RULE)))
    assert catches.by_rule is None
    assert not catches.add(tried("golden_run", 1, Violation(13, "rule", source=Source.RULE)))
    assert not catches.add(tried("kill", 1, Violation(13, "late", source=Source.RUN)))
    assert catches.add(tried("kill", 1, Violation(5, "state")))
    assert catches.add(tried("kill", 1, Violation(4, "later")))
    by_rule, by_state = catches.by_rule, catches.by_state
    assert by_rule is not None and by_state is not None
    assert (by_rule.invariant, by_rule.model, by_rule.tries) == (13, "golden_run", 2)
    assert (by_state.invariant, by_state.model, by_state.tries) == (5, "kill", 2)
    assert kept == ["rule", "state"] and by_state.replay == "again"
    assert catches.tried == {"golden_run": 2, "kill": 3} and catches.broken == {22, 13, 5, 4}


def test_as_shipped_every_seed_must_detect() -> None:
    """By state or by rule; what was found by state is told apart."""
    state, rule = SeedRow(1, by_state=BY_RULE), SeedRow(2, by_rule=BY_RULE)
    rows = (
        ShippedRow("a", (state, replace(state, seed=2, by_rule=BY_RULE))),
        ShippedRow("b", (state, rule)),
        ShippedRow("c", (state, SeedRow(2))),
    )
    data = ShippedScore(rows).to_json()
    assert (data["mutants"], data["detected_every_seed"], data["by_state"]) == (3, 2, 1)
    assert data["rate"] == pytest.approx(83.3)
    assert [row["rate"] for row in data["rows"]] == [100, 100, 50]
    assert [(row["detected"], row["by_state"]) for row in data["rows"]] == [
        (True, True),
        (True, False),
        (False, False),
    ]
    assert ShippedScore(rows[:2]).exit_code() == 0
    assert ShippedScore(rows).exit_code() == 1
    assert ShippedScore((ShippedRow("d", (SeedRow(1, error="broken"),)),)).exit_code() == 2


def test_the_default_campaigns_are_those_of_the_engine() -> None:
    """Every crash model is among them, and each has a place in the order."""
    campaigns = default_campaigns(data_folder("workloads"))
    names = [campaign.name for campaign in campaigns]
    assert names == [
        "backup",
        "backup_error",
        "backup_kill",
        "bounded",
        "build_error",
        "churn",
        "creation",
        "io_error",
        "large_pages",
        "mix",
        "mix_error",
        "mix_kill",
        "places",
        "powerloss",
        "smoke",
        "switches",
    ]
    assert {campaign.crash_model for campaign in campaigns} == {"power_loss", *LIVE}


def test_rows_are_kept_under_their_key(tmp_path: Path) -> None:
    """Another key, a damaged file and none at all count as nothing."""
    kept = KeptRows(tmp_path / "rows", MutantRow, maker_of(tmp_path))
    assert kept.load("a", "key") is None
    kept.keep("a", "key", CAUGHT)
    assert kept.load("a", "key") == CAUGHT
    assert kept.load("a", "another") is None
    (tmp_path / "rows" / "a.json").write_text("{", "utf-8")
    assert kept.load("a", "key") is None


def test_rows_of_another_harness_or_other_campaigns_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the key says: the verdicts may be others now."""

    def kept() -> KeptRows[MutantRow]:
        return KeptRows(tmp_path / "rows", MutantRow, maker_of(tmp_path))

    kept().keep("a", "key", CAUGHT)
    assert kept().load("a", "key") == CAUGHT
    with monkeypatch.context() as other:
        other.setattr(mutant_pool, "harness_hash", lambda: "another")
        assert kept().load("a", "key") is None
    assert kept().load("a", "key") == CAUGHT
    (tmp_path / "smoke.toml").write_text("seed = 1\n", "utf-8")
    assert kept().load("a", "key") is None


def test_the_page_of_bugs_tells_what_was_not_found(tmp_path: Path) -> None:
    """One line per mutant: what it breaks, how many seeds found it by state and by rule, and with what."""
    rows = load_patches(Mutant, patches(tmp_path, "a", "b"))
    found = ShippedRow("a", (SeedRow(1, by_rule=BY_RULE), SeedRow(2)))
    lines = bugs_page(rows, ShippedScore((found, ShippedRow("b", (SeedRow(1),) * 2)))).splitlines()
    assert "| `a` | x | It errs. | I13, I1 | no | 1 of 2: smoke I13 |" in lines
    assert "| `b` | x | It errs. | I13, I1 | no | no |" in lines
    assert any(
        line.startswith("**0 of 2 found with every seed**") and "25.0 %" in line for line in lines
    )
