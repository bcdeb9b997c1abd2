"""The observed oracle against the model: on SQLite both come to the same verdicts on the same states."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.live.admission import own_work
from tornpage.live.recording import recorded_run
from tornpage.oracle.observed import ObservedOracle, observed_state
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.prefixes import prefixes_of
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Scope, explore
from tornpage.targets.command.target import CommandTarget
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import GoldenRunError
from tornpage.vocabulary.paths import ROOT
from tornpage.workloads.workload import generate

PROGRAM = """
import json, pathlib, sqlite3, sys
from tornpage_mark import Refused, ack, issue, ready, serve
import sqlite_reader as image
from tornpage.targets.sqlite import driver
from tornpage.workloads.parse import parse_script

def texts(state):
    return {name: json.dumps(table) for name, table in state.items()}

def load(folder, script, level):
    driver._seed_random_numbers()
    db = sqlite3.connect(f"{folder}/main.db", isolation_level=None)
    db.execute("PRAGMA cache_size = 10")
    db.execute(f"PRAGMA synchronous = {level}")
    db.execute("PRAGMA journal_mode = wal").fetchall()
    db.execute("PRAGMA wal_autocheckpoint = 40").fetchall()
    runs, state = driver.Driver(db), {}
    ready(state)
    for statement in parse_script(pathlib.Path(script).read_text()).statements:
        issue(statement.line)
        runs.execute(statement)
        if not db.in_transaction:
            state = texts(image.read_state(db))
        ack(statement.line, state)
    if db.in_transaction:
        db.execute("ROLLBACK")
    db.close()

def recover(folder):
    answer = image.examine(pathlib.Path(folder))
    if not answer["ok"]:
        raise Refused(answer["message"])
    if answer["check"]["findings"]:
        raise Refused("damaged")
    return texts(image.read_tables(answer["check"]["tables"]))

load(*sys.argv[2:]) if sys.argv[1] == "load" else serve(recover)
""".replace("image.read_tables", "__import__('tornpage.oracle.state', fromlist=['x']).read_tables")


def target_file(folder: Path, level: str) -> Path:
    """SQLite behind a target file, with the script of a workload."""
    script = generate("sqlite_smoke", {}, 3)
    (folder / "script").write_text(script.text, "ascii")
    (folder / "sqlite.py").write_text(PROGRAM, "utf-8")
    file = folder / "sqlite.toml"
    file.write_text(
        f"""
name = "sqlite"
ignore = ["*-shm"]
sites = {{ redo = "*-wal", data_page = "main.db" }}
long_lived = true
[env]
PYTHONPATH = "{ROOT / "harness"}:{ROOT / "marking"}:{ROOT / "tests" / "py"}"
[commands]
run = "{sys.executable} sqlite.py load {{dir}} script {level}"
recover = "{sys.executable} sqlite.py recover"
""",
        "utf-8",
    )
    return file


def with_sites_of(observed: CommandTarget, build: Path) -> CommandTarget:
    """SQLite under the model, with the sites of that target, by which states are chosen and counted."""
    model = make_target("sqlite", build)
    assert isinstance(model, CommandTarget)
    model.file = model.file.model_copy(update={"sites": observed.file.sites})
    return model


@pytest.mark.parametrize(
    ("level", "events", "found"), [("full", 250, set()), ("normal", 60, {"1"}), ("off", 60, {"1"})]
)
def test_both_oracles_judge_alike(
    level: str, events: int, found: set[str], build: Path, tmp_path: Path
) -> None:
    """Of one recording: each finds the same invariants broken, in the same number of images. More is synced
    at level full, and fewer states follow an event."""
    observed = make_target(str(target_file(tmp_path, level)), build)
    assert isinstance(observed, CommandTarget)
    model = with_sites_of(observed, build)
    spec = own_work(observed)
    with recorded_run(spec, observed, tmp_path) as recording:
        some = (recording.events // 2, recording.events // 2 + events)
        limits = Limits(models=("none-persisted", "one-persisted", "ordered"))
        scope = Scope(jobs=2, events=some)
        seen = explore(spec, observed, recording, limits, scope).summary
        allowed = tmp_path / "model"
        allowed.write_text(prefixes_of(Oracle(generate("sqlite_smoke", {}, 3))), "ascii")
        wanted = explore(spec, model, replace(recording, allowed=allowed), limits, scope).summary
    assert seen["states"] == wanted["states"] > 200
    assert found <= set(wanted["by_invariant"])
    assert seen["by_invariant"].get("1") == wanted["by_invariant"].get("1")
    assert bool(seen["by_invariant"]) == bool(wanted["by_invariant"]) == bool(found)


def test_what_is_told_and_what_is_acknowledged_go_together() -> None:
    """States belong to acknowledgements by their numbers, which grow."""
    states = {n: observed_state({"t": "x\n" * n}) for n in range(4)}
    oracle = ObservedOracle(states, [1, 3])
    assert [oracle.after(line) for line in range(5)] == [0, 1, 1, 2, 2]
    assert [state["t"][0] for state in oracle.states] == [0, 1, 3]
    same = ObservedOracle({**states, 2: states[1]}, [1, 2, 3])
    assert (same.commit_lines, [same.after(line) for line in range(4)]) == ([0, 1, 3], [0, 1, 1, 2])
    for told, acknowledged in (({}, [1]), (states, []), (states, [2, 2]), (states, [1, 4])):
        with pytest.raises(GoldenRunError):
            ObservedOracle(told, acknowledged)


@pytest.mark.parametrize("texts", [None, [], {"t": 1}, {"n" * 64: ""}])
def test_a_state_is_texts_by_name(texts: object) -> None:
    """Anything else is told."""
    with pytest.raises(ValueError):
        observed_state(texts)
