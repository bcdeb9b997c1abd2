"""`tornpage hunt` on targets that are not the engine: stores of lines, and SQLite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from e2e_support import Tornpage

from tornpage.store.place import place_of
from tornpage.store.store import Store

pytestmark = pytest.mark.extended

PROGRAM = """
import os, sys
from tornpage_mark import Refused, ack, issue, ready, serve

def write(path, text, durable):
    with open(path, "w") as file:
        file.write(text)
        file.flush()
        if durable:
            os.fsync(file.fileno())

def compact(folder, value, durable):
    write(f"{folder}/new", f"{value}\\n", durable)
    os.rename(f"{folder}/new", f"{folder}/log")
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)

def load(folder, lines):
    compact(folder, 0, True)
    ready({"n": 0})
    value, compacted = 0, 0
    for number, line in enumerate(open(lines), start=1):
        issue(number)
        word, _, rest = line.partition(" ")
        if word == "set":
            value, compacted = int(rest), 0
            with open(f"{folder}/log", "a") as log:
                log.write(f"{value}\\n")
                log.flush()
                os.fsync(log.fileno())
        elif word.strip() == "compact":
            compacted += 1
            compact(folder, value, WHEN)
        elif word == "begin":
            assert value == 0 and compacted == 0, "begin comes first"
        ack(number, {"n": value})

def recover(folder):
    whole = [line for line in open(f"{folder}/log") if line.endswith("\\n")]
    if not whole:
        raise Refused("the log is empty")
    return {"n": int(whole[-1])}, []

load(*sys.argv[2:4]) if sys.argv[1] == "load" else serve(recover)
"""
LINES = "begin work\nset 1\nset 2\ncompact\nset 3\nset 4\n"
"""With one compaction, which is right in both stores."""


def store_of_lines(folder: Path, when: str) -> Path:
    """when: whether a compaction is durable before it takes the name of the log."""
    folder.mkdir()
    (folder / "store.py").write_text(PROGRAM.replace("WHEN", when), "utf-8")
    (folder / "work.txt").write_text(LINES, "utf-8")
    file = folder / "store.toml"
    file.write_text(
        f"""
name = "store"
lines = "work.txt"
long_lived = true
[commands]
run = "{sys.executable} store.py load {{dir}} {{lines}}"
recover = "{sys.executable} store.py recover"
""",
        "utf-8",
    )
    return file


def test_a_bug_that_no_script_of_the_campaign_has_is_found(
    tmp_path: Path, tornpage: Tornpage
) -> None:
    """The second compaction in a row forgets its fsync. The find is replayed and shrunk, and the hunt that
    goes on tells it again."""
    target = store_of_lines(tmp_path / "wrong", "compacted == 1")
    assert tornpage("run", "powerloss", "--target", str(target), "--states", "400").code == 0
    asked = ("hunt", "powerloss", "--target", str(target), "--jobs", "1")
    hunted = tornpage(*asked, "--looks", "40")
    assert hunted.code == 1, hunted.text
    assert hunted.data["by_source"]["mutation"] > 30 and hunted.data["refused"] > 0
    assert not hunted.data["lost"]
    found = [bug for run in hunted.data["runs"] for bug in run["bugs"]]
    assert found
    replayed = tornpage("replay", found[0]["trial"])
    assert replayed.code == 1, replayed.text
    small = tornpage("shrink", found[0]["trial"])
    assert small.code == 0, small.text
    assert small.data["after"]["statements"] == 2, small.text
    again = tornpage(*asked, "--looks", "41")
    assert again.code == 1 and again.data["looks"] == 41
    assert [run["run"] for run in again.data["runs"]] == [run["run"] for run in hunted.data["runs"]]


def test_its_right_twin_is_clean(tmp_path: Path, tornpage: Tornpage) -> None:
    """And what says so has the control of a campaign."""
    target = store_of_lines(tmp_path / "right", "True")
    hunted = tornpage(
        *("hunt", "powerloss", "--target", str(target), "--looks", "40", "--jobs", "1")
    )
    assert hunted.code == 0, hunted.text
    (kept,) = hunted.data["runs"]
    with Store(place_of(tmp_path / "out"), create=False, write=False) as store:
        examined = store.run(kept["run"]).origin.examined
    assert examined is not None and examined.control and examined.states


def test_scripts_of_sqlite_are_mutated(tornpage: Tornpage) -> None:
    """What it refuses is counted, and no alarm."""
    hunted = tornpage("hunt", "powerloss", "--target", "sqlite", "--looks", "30")
    assert hunted.code == 0, hunted.text
    assert 0 < hunted.data["refused"] < hunted.data["by_source"]["mutation"]
