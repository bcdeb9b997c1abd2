"""`tornpage list` and `tornpage new`, as they are called: what is listed can be used."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from e2e_support import call

from tornpage.campaigns.catalogue import KINDS
from tornpage.vocabulary.paths import ROOT

pytestmark = pytest.mark.usefixtures("build")
OURS = ("fs", "recorder")
"""Options of the engine that its program does not take."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_for_people_and_for_programs(tmp_path: Path, kind: str) -> None:
    """Both have every item; piped, each is one line."""
    for_programs = call(tmp_path, "list", kind, "--json")
    assert for_programs.returncode == 0, for_programs.stderr
    data = json.loads(for_programs.stdout)
    assert data["kind"] == kind
    lines = call(tmp_path, "list", kind).stdout.splitlines()
    for item in data["items"]:
        assert any(item["name"] in line and item["what"] in line for line in lines), item
    assert not re.search(r"[\x00-\x1f]", "".join(lines))


def test_listed_options_are_taken(build: Path, tmp_path: Path) -> None:
    """Each one with its default; the file system is the explorer's, the recorder the harness's."""
    data = json.loads(call(tmp_path, "list", "options", "--json").stdout)
    sets = [
        argument
        for item in data["items"]
        if item["facts"]["target"] == "engine" and item["name"] not in OURS
        for argument in ("--option", f"{item['name']}={item['facts']['default']}")
    ]
    assert len(sets) == 2 * 29
    (tmp_path / "script").write_text("create table t a:bigint primary a\n")
    engine = build / "engine" / "engine"
    done = subprocess.run([engine, "run", tmp_path / "db", tmp_path / "script", *sets], check=False)
    assert done.returncode == 0


def test_models_are_those_of_the_fault_model(tmp_path: Path) -> None:
    """The document has the same names and texts."""
    data = json.loads(call(tmp_path, "list", "models", "--json").stdout)
    page = (ROOT / "docs" / "FAULT_MODEL.md").read_text("utf-8")
    table = page.partition("| model | what is kept of what was not fsynced |")[2].partition("\n\n")[
        0
    ]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", table, re.MULTILINE)
    told = [(name, text.replace("`", "")) for name, text in rows]
    assert told == [(item["name"], item["what"]) for item in data["items"]]


@pytest.mark.parametrize(
    ("more", "limits"),
    [
        ((), ("--trials", "20", "--scripts", "1", "--fault-free", "1")),
        (("--like", "powerloss"), ("--states", "50", "--scripts", "1")),
        (("--target", "sqlite"), ("--trials", "8", "--scripts", "1")),
        (("--like", "powerloss", "--target", "sqlite"), ("--states", "50", "--scripts", "1")),
    ],
)
def test_a_new_campaign_runs(
    tmp_path: Path, more: tuple[str, ...], limits: tuple[str, ...]
) -> None:
    """As it is (here with few trials), on its target; the name of the run is that of the file."""
    made = call(tmp_path, "new", "campaign", "mine", *more, "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["run"].startswith("tornpage run mine.toml")
    done = call(tmp_path, "run", "mine.toml", *limits, "--json")
    data = json.loads(done.stdout)
    assert (data["campaign"], data["complete"], data["violations"]) == ("mine", True, 0)
    assert data["exercised"] > 0
    assert data["target"] == ("sqlite" if "sqlite" in more else "engine")


def test_a_new_campaign_is_for_a_target_that_there_is(tmp_path: Path) -> None:
    """Otherwise nothing is written."""
    done = call(tmp_path, "new", "campaign", "mine", "--target", "nosuch")
    assert done.returncode == 2 and "no target 'nosuch'" in done.stderr
    assert not [*tmp_path.iterdir()]


def test_a_file_that_exists_is_left_alone(tmp_path: Path) -> None:
    """Also one that is no campaign; and a name is no path."""
    (tmp_path / "mine.toml").write_text("mine")
    done = call(tmp_path, "new", "campaign", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert "mine.toml exists already" in done.stderr
    assert (tmp_path / "mine.toml").read_text() == "mine"
    for name in ("../mine", "a b", "-", ""):
        assert call(tmp_path, "new", "campaign", "--", name).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
