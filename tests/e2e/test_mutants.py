"""A slice of `make mutants`: patched programs are built, and the bugs are caught, by state and by rule."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_support import Answer, Tornpage

pytestmark = pytest.mark.extended

ROOT = Path(__file__).resolve().parents[2]
RULES = {"ckpt_partial": 19, "fil_create_no_dir_sync": 24}
"""Mutants of this test that a rule catches too, and the invariant that it names."""
CAUGHT = (*RULES, "recv_page0_not_restored")
PROGRAMS = ROOT / "build" / "mutants" / "bin"
SEEN_BY_SCAN = ("ddl_recover_first_only", "recv_applies_again", "recv_enable_lsn_ignored")
"""Mutants whose states the scanner finds broken: files and segments, order, entries against rows."""


def mutants(tornpage: Tornpage, *arguments: str) -> Answer:
    """`tornpage mutants` without the base line, which has a test of its own."""
    return tornpage("mutants", "--kills", "0", *arguments)


def only(*names: str) -> list[str]:
    """The options that choose these mutants."""
    return [word for name in names for word in ("--only", name)]


@pytest.fixture(scope="session")
def patched() -> str:
    """The mutant whose programs other tests run by themselves."""
    return "dblwr_skip_nonlogged"


def test_planted_bugs_are_caught_by_state_and_replay(tornpage: Tornpage) -> None:
    """The catch by a rule does not end the hunt. Each line in `replay` finds the same bug again."""
    answer = mutants(tornpage, *only(*CAUGHT))
    assert answer.code == 0, answer.text
    assert answer.data["mutants"] == answer.data["caught"] == answer.data["by_state"] == len(CAUGHT)
    assert answer.data["by_rule"] >= len(RULES)
    for row in answer.data["rows"]:
        state, rule = row["by_state"], row["by_rule"]
        assert row["caught"] and state["source"] == "state" and state["tries"] > 0
        assert rule is None or rule["source"] in {"rule", "run"}
        assert row["name"] not in RULES or rule["invariant"] == RULES[row["name"]]
        for catch in filter(None, (state, rule)):
            assert repeated(tornpage, catch["replay"]), catch


def repeated(tornpage: Tornpage, line: str) -> bool:
    """Whether the line finds something, and the same as before."""
    words = line.split()
    environment = dict([words[0].split("=", 1)])
    command = words[2 : words.index("--out")]
    again = tornpage(*command, out=Path(words[-1]), **environment)
    return again.code == 1 and bool(again.data.get("same_verdict", True))


def test_power_loss_judges_the_recorded_run_too(
    tornpage: Tornpage, tmp_path: Path, patched: str
) -> None:
    """A wrong order of writes is found even where no state is explored; the finding's line repeats it."""
    checked = tornpage("mutants", "--check", *only(patched))
    assert checked.code == 0 and (checked.data["mutants"], checked.data["compiled"]) == (1, 1), (
        checked.text
    )
    planted = {"TORNPAGE_BUILD": str(PROGRAMS / patched)}
    run = ("run", "powerloss", "--states", "1", "--option", "params.rows=200", "--seed", "7")
    answer = tornpage(*run, out=tmp_path / "first", **planted)
    assert answer.code == 1 and answer.data["by_invariant"].get("I13"), answer.text
    report = Path(answer.data["report"]).read_text(encoding="utf-8")
    assert "<td>rule</td>" in report
    replays = {bug["replay"] for bug in answer.data["bugs"] if 13 in bug["invariants"]}
    assert replays
    for replay in sorted(replays):
        line = re.search(r"tornpage (replay 1\.s?\d+) --out", replay)
        assert line is not None and line[0] in report
        again = tornpage(*line[1].split(), out=tmp_path / "first", **planted)
        assert again.code == 1 and again.data["same_verdict"], again.text
        assert 13 in {item["invariant"] for item in again.data["result"]["violations"]}


def test_broken_states_are_scanned_alike_with_and_without_memo(tornpage: Tornpage) -> None:
    """What the scanner knows of earlier states hides nothing of a planted bug: the explorer's own test, with
    its programs. That asserts too that the scanner finds some of these states broken."""
    checked = tornpage("mutants", "--check", *only(*SEEN_BY_SCAN))
    assert checked.code == 0 and checked.data["compiled"] == len(SEEN_BY_SCAN), checked.text
    for name in SEEN_BY_SCAN:
        programs = {
            "ENGINE": "engine/engine",
            "EXPLORE": "explorer/tornpage-explore",
            "PRELOAD": "faults/libtornpage_preload.so",
        }
        planted = {
            f"TORNPAGE_TEST_{key}": str(PROGRAMS / name / path) for key, path in programs.items()
        }
        planted |= {"TORNPAGE_TEST_IN_BOTH_WAYS": "10000", "TORNPAGE_TEST_PLANTED": name}
        argv = [sys.executable, "-B", str(ROOT / "explorer" / "tests" / "test_program.py")]
        argv.append("Program.test_scan_in_full_changes_nothing")
        done = subprocess.run(
            argv, env={**os.environ, **planted}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"


def test_time_to_find(tornpage: Tornpage, tmp_path: Path, patched: str) -> None:
    """Processor time until the first alarm and until a broken state, kept like every result; a search that is
    given up has none."""
    names = (patched, "dblwr_copy_before_log")
    command = ("bench", "finds", "--seeds", "1", "--limit", "1s", *only(*names))
    answer = tornpage(*command)
    assert answer.code == 0, answer.text
    found = {row["name"]: row for row in answer.data["rows"]}
    assert found["dblwr_copy_before_log"]["state"]["median_s"] is None
    for kind in ("alarm", "state"):
        times = [row[kind]["median_s"] for row in found.values()]
        assert answer.data[kind]["found"] == sum(time is not None for time in times)
    for row in found.values():
        assert (
            row["state"]["median_s"] is None or row["alarm"]["median_s"] <= row["state"]["median_s"]
        )
    kept = sorted((tmp_path / "out" / "as-shipped").iterdir())
    assert [path.name for path in kept] == sorted(f"{name}.1.json" for name in names)
    written = [path.stat().st_mtime_ns for path in kept]
    assert tornpage(*command).data == answer.data
    assert [path.stat().st_mtime_ns for path in kept] == written


def test_finished_mutants_are_kept(tornpage: Tornpage, tmp_path: Path) -> None:
    """The same command again hunts for nothing that it has caught."""
    first = mutants(tornpage, *only("ckpt_partial"))
    kept = tmp_path / "out" / "ckpt_partial.json"
    before = kept.stat().st_mtime_ns
    assert mutants(tornpage, *only("ckpt_partial")).data == first.data
    assert kept.stat().st_mtime_ns == before


def test_the_base_line_kills_at_random(tornpage: Tornpage) -> None:
    """Random kills of the engine raise no alarm where only fsyncs are wrong: they lose nothing."""
    answer = tornpage("mutants", *only("fil_create_no_dir_sync"), "--kills", "30")
    assert answer.code == 0, answer.text
    assert answer.data["baseline_caught"] == 0


def test_as_shipped_the_default_campaigns_detect(tornpage: Tornpage, tmp_path: Path) -> None:
    """Default campaigns and budgets, one seed; the result is kept."""
    command = ("mutants", "--as-shipped", "--seeds", "1", *only("fil_create_no_dir_sync"))
    answer = tornpage(*command)
    assert answer.code == 0, answer.text
    data = answer.data
    assert (data["mutants"], data["detected_every_seed"], data["by_state"]) == (1, 1, 1)
    assert data["rate"] == 100
    seed = data["rows"][0]["seeds"][0]
    assert seed["by_state"]["source"] == "state" and seed["by_rule"]["source"] == "rule"
    kept = tmp_path / "out" / "as-shipped" / "fil_create_no_dir_sync.1.json"
    before = kept.stat().st_mtime_ns
    assert tornpage(*command).data == data
    assert kept.stat().st_mtime_ns == before


def test_an_explanation_names_the_function_that_was_changed(tornpage: Tornpage) -> None:
    """A folder that is not synced by who created the file; a bug of recovery is in no stack of the run. Where
    the two builds part is in the function, of both."""
    answer = tornpage(
        "mutants", "--explain", *only("fil_create_no_dir_sync", "recv_page0_not_restored")
    )
    assert answer.code == 0, answer.text
    assert [answer.data[name] for name in ("mutants", "named", "contrasted")] == [2, 1, 2]
    create, copy = answer.data["rows"]
    assert create["changed"] == ["fil_file_create"] and create["named"].startswith("A, frame ")
    assert create["explained"]["cause"]["kind"] == "order"
    assert copy["changed"] == ["recv_copy_restore"] and copy["named"] == "" and not copy["error"]
    parted = create["explained"]["contrast"]["run"]
    assert parted["stack"][0] == "fil_file_create" and "env_sync_dir" in parted["instead"]
    assert copy["explained"]["contrast"]["recovery"]["stack"][0] == "recv_copy_restore"
