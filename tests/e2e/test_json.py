"""What each command prints with --json is what docs/json.schema.json says, key by key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from called import called
from e2e_support import ONE_CONFIGURATION
from jsonschema import Draft202012Validator

from tornpage.cli.terminal import SCHEMA
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.vocabulary.paths import ROOT

SCHEMAS = json.loads((ROOT / "docs" / "json.schema.json").read_text("utf-8"))
BROKEN = "--option doublewrite=off"
KILLS = f"run smoke {BROKEN} --scripts 1 --fault-free 0 --trials 6"
LOSSES = f"run powerloss {BROKEN} {' '.join(ONE_CONFIGURATION)} --states 60"
FEW = "--states 40 --trials 4 --jobs 1"


def printed(folder: Path, line: str) -> dict[str, Any]:
    """The object that a command prints last, with the exit code that it ends with."""
    done = called(folder, *line.split(), "--json")
    data: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert data["exit_code"] == done.returncode, done.stderr
    return data


def judged(data: dict[str, Any], name: str) -> None:
    """It is what the schema says of the command of this name."""
    schema = {**SCHEMAS, "$ref": f"#/$defs/{name}"}
    Draft202012Validator(schema).validate(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where there are two runs with a bug, of kills and of power losses."""
    folder = tmp_path_factory.mktemp("json")
    for line in (KILLS, LOSSES):
        data = printed(folder, line)
        assert (data["exit_code"], data["verdict"]) == (1, "violations")
        judged(data, "run")
    return folder


def test_the_entry_of_each_command_is_told() -> None:
    """On the page of the store: the schema has no rule at its root."""
    page = (ROOT / "docs" / "STORE.md").read_text("utf-8")
    rows = page.partition("| entry of `$defs` |")[2].partition("\n\n")[0].splitlines()[2:]
    told = {word.strip("` ") for row in rows for word in row.split("|")[1].split(",")}
    commands = {
        name for name, one in SCHEMAS["$defs"].items() if "exit_code" in one.get("required", ())
    }
    assert told == commands


@pytest.mark.parametrize(
    ("line", "name", "code"),
    [
        ("report", "run", 1),
        ("report --run 1", "run", 1),
        ("show 1.0", "show", 0),
        ("explain 2.0", "explain", 0),
        ("explain --run 2 --of-each 1", "explain_run", 0),
        ("show 2.0", "show", 0),
        ("replay 1.0", "replay", 1),
        ("runs", "runs", 0),
        ("bugs", "bugs", 0),
        ("bugs 1 --mark known --reason seen", "bugs", 0),
        ("diff 1 2", "diff", 0),
        ("prune --keep 0 --dry-run", "prune", 0),
        ("hunt powerloss --option doublewrite=off --looks 2 --jobs 1", "hunt", 1),
        ("nightly smoke --trials 2 --scripts 1 --fault-free 0 --seed 1", "nightly", 1),
    ],
)
def test_a_command_of_a_store(line: str, name: str, code: int, folder: Path) -> None:
    """Whatever is in it; a version of the schema, and the exit code that the command ends with."""
    data = printed(folder, line)
    assert (data["schema"], data["exit_code"]) == (SCHEMA, code)
    judged(data, name)


def test_lists(tmp_path: Path) -> None:
    """What needs no store."""
    for line in ("list campaigns", "list options", "list fs"):
        judged(printed(tmp_path, line), "list")
    judged(printed(tmp_path, "doctor"), "doctor")
    judged(printed(tmp_path, "new campaign mine"), "other")


def test_a_try(tmp_path: Path) -> None:
    """With the control, and its JUnit file; a second one of the same limits has nothing to go on with."""
    write_skeleton("mydb", Language.PYTHON, tmp_path)
    data = printed(tmp_path, f"try mydb {FEW} --junit junit.xml --fail-on new")
    assert (data["exit_code"], data["verdict"]) == (0, "clean")
    judged(data, "try")
    assert (tmp_path / "junit.xml").read_text("utf-8").count("<testsuite ") == 2
    again = called(tmp_path, *f"try mydb {FEW} --resume".split())
    assert again.returncode == 2 and "no interrupted try with these limits" in again.stderr


def test_a_dry_run_deletes_nothing(folder: Path) -> None:
    """It tells how much each run would give back."""
    told = printed(folder, "prune --keep 0 --dry-run")
    assert told["deleted"] and set(told["bytes"]) == {str(run) for run in told["deleted"]}
    assert min(told["bytes"].values()) >= 0 and max(told["bytes"].values()) > 0
    assert (folder / "out" / f"report-{told['deleted'][0]}.html").is_file()
    assert len(printed(folder, "runs")["runs"]) == told["left"] + len(told["deleted"])
