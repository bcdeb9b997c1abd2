"""A slice of `make mutants`: the mutant build is the product until a bug is switched on, and planted bugs are
caught by the invariants that their rows name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from e2e_support import Answer, Tornpage

ROOT = Path(__file__).resolve().parents[2]
CAUGHT = {
    "dblwr_skip_nonlogged": 13,
    "fil_create_no_dir_sync": 24,
    "recv_page0_not_restored": None,
}
"""Mutants of this test, and by which invariant; None: by any that the row names."""


@pytest.fixture(scope="session")
def mutant_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """build/mutants, made or brought up to date; one worker of pytest at a time does that."""
    lock = tmp_path_factory.getbasetemp().parent / "mutants.lock"
    script = "cmake --preset mutants >/dev/null && cmake --build --preset mutants -- --quiet"
    subprocess.run(["flock", lock, "sh", "-c", script], cwd=ROOT, check=True, timeout=600)
    return ROOT / "build" / "mutants"


def mutants(tornpage: Tornpage, build: Path, *arguments: str) -> Answer:
    """`tornpage mutants` without the base line, which has a test of its own."""
    return tornpage("mutants", "--kills", "0", *arguments, TORNPAGE_BUILD=str(build))


def test_without_a_choice_the_mutant_build_is_the_product(
    tornpage: Tornpage, mutant_build: Path, tmp_path: Path
) -> None:
    """The same campaign gives the same events, byte for byte, and the same verdicts: no alarm."""
    run = ("run", "smoke", "--trials", "60", "--scripts", "1", "--undisturbed", "0")
    product = tornpage(*run, out=tmp_path / "product")
    planted = tornpage(*run, out=tmp_path / "planted", TORNPAGE_BUILD=str(mutant_build))
    assert product.code == planted.code == 0, planted.text
    assert product.data["trace_hash"] == planted.data["trace_hash"]
    assert product.data["counters"] == planted.data["counters"]


def test_planted_bugs_are_caught_and_replay(tornpage: Tornpage, mutant_build: Path) -> None:
    """Among them MDEV-19738's first patch, by I13. Each line in `replay` finds the same bug again."""
    only = [word for name in CAUGHT for word in ("--only", name)]
    answer = mutants(tornpage, mutant_build, *only)
    assert answer.code == 0, answer.text
    assert answer.data["score"] == 100 and answer.data["mutants"] == len(CAUGHT)
    for row in answer.data["rows"]:
        assert row["caught"] and row["invariant"] == (CAUGHT[row["name"]] or row["invariant"])
        assert row["tries"] > 0 and row["seconds"] > 0 and row["what"]
        words = row["replay"].split()
        environment = dict(word.split("=", 1) for word in words[:2])
        command = words[3 : words.index("--out")]
        again = tornpage(*command, out=Path(words[-1]), **environment)
        assert again.code == 1, again.text
        assert again.data.get("same_verdict", True), again.text


def test_power_loss_judges_the_recorded_run_too(
    tornpage: Tornpage, mutant_build: Path, tmp_path: Path
) -> None:
    """A wrong order of writes is found even where no state is explored; the finding's line repeats it."""
    planted = {"TORNPAGE_BUILD": str(mutant_build), "TORNPAGE_MUTANT": "dblwr_skip_nonlogged"}
    run = (
        "run",
        "powerloss",
        "--states",
        "1",
        "--scripts",
        "1",
        "--depth",
        "1",
        "--set",
        "params.rows=200",
        "--seed",
        "7",
    )
    answer = tornpage(*run, out=tmp_path / "first", **planted)
    assert answer.code == 1 and answer.data["by_invariant"].get("I13"), answer.text
    report = Path(answer.data["report"]).read_text(encoding="utf-8")
    line = re.search(r"tornpage (run powerloss [^<]*)", report)
    assert line is not None
    again = tornpage(*line[1].split(), out=tmp_path / "again", **planted)
    assert again.code == 1 and again.data["by_invariant"].get("I13"), again.text


def test_finished_mutants_are_kept(tornpage: Tornpage, mutant_build: Path, tmp_path: Path) -> None:
    """The same command again hunts for nothing that it has caught."""
    only = ("--only", "dblwr_skip_nonlogged")
    first = mutants(tornpage, mutant_build, *only)
    kept = tmp_path / "out" / "dblwr_skip_nonlogged.json"
    before = kept.stat().st_mtime_ns
    assert mutants(tornpage, mutant_build, *only).data == first.data
    assert kept.stat().st_mtime_ns == before


def test_the_base_line_kills_at_random(tornpage: Tornpage, mutant_build: Path) -> None:
    """Random kills of the engine raise no alarm where only fsyncs are wrong: they lose nothing."""
    only = ("mutants", "--only", "fil_create_no_dir_sync", "--kills", "30")
    answer = tornpage(*only, TORNPAGE_BUILD=str(mutant_build))
    assert answer.code == 0, answer.text
    assert answer.data["baseline_caught"] == 0


def test_a_build_without_mutants_is_refused(tornpage: Tornpage, build: Path) -> None:
    """It would prove nothing: exit code 2, and what to build."""
    answer = mutants(tornpage, build, "--only", "dblwr_off")
    assert answer.code == 2
    assert "not a mutant build" in answer.text
