"""A store that commits by files of random names (mkstemp, fsync, rename) has other names in every run: its
kills are exercised all the same, and what they find is played again and shrunk."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from e2e_support import Tornpage

from tornpage.targets.command.skeleton import Language, write_skeleton

STORE = """#!/usr/bin/env python3
import json, os, sys, tempfile
from tornpage_mark import ack, issue, ready, serve

def put(folder, name, value):
    fd, path = tempfile.mkstemp(dir=f"{folder}/new")
    os.write(fd, json.dumps(value).ljust(1500).encode())
    os.fsync(fd)
    os.close(fd)
    os.rename(path, f"{folder}/{name}")
    for changed in (folder, f"{folder}/new"):
        top = os.open(changed, os.O_RDONLY)
        os.fsync(top)
        os.close(top)

def get(folder, name):
    with open(f"{folder}/{name}") as file:
        return json.load(file)

def load(folder):
    os.mkdir(f"{folder}/new")
    rows = {}
    put(folder, "count", 0)
    put(folder, "rows", rows)
    ready({"rows": rows, "count": 0})
    for n in range(1, 13):
        issue(n)
        rows[f"key{n}"] = n
        if not ATOMIC:
            put(folder, "count", len(rows))
        put(folder, "rows", rows)
        ack(n, {"rows": rows, "count": len(rows)})

def recover(folder):
    for name in os.listdir(f"{folder}/new"):
        os.unlink(f"{folder}/new/{name}")
    rows = get(folder, "rows")
    put(folder, "seen", len(rows))
    return {"rows": rows, "count": len(rows) if ATOMIC else get(folder, "count")}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""
CAMPAIGN = """
description = "kills of a store of random names"
workload = "own"
crash_model = "kill"
target = "mydb/mydb.toml"
trials = 12
seed = 5
[[hit]]
sites = ["data_page"]
masks = ["all", "prefix:1"]
[[hit]]
sites = ["data_page"]
masks = ["none"]
during = "recovery"
"""


def make(folder: Path, *, atomic: bool) -> str:
    """The store and its campaign."""
    file = write_skeleton("mydb", Language.PYTHON, folder).file
    text = file.read_text("utf-8").replace('redo = "*.log"', 'data_page = "*"')
    file.write_text(text.replace('"./store', '"{python} store'), "utf-8")
    store = f"ATOMIC = {atomic}\n{STORE}"
    (file.parent / "store.py").write_text(store, "utf-8")
    (folder / "kills.toml").write_text(CAMPAIGN, "utf-8")
    return str(folder / "kills.toml")


def test_its_kills_are_exercised(tmp_path: Path, tornpage: Tornpage) -> None:
    """In the run and in the recovery, each of them; a right store is clean."""
    answer = tornpage("run", make(tmp_path, atomic=True))
    assert (answer.code, answer.data["exercised"]) == (0, 12), answer.text
    assert answer.data["counters"]["nested_kills"] == 4
    assert set(answer.data["by_site"]) == {"data_page", "recovery:data_page"}


@pytest.mark.extended
def test_what_is_found_replays_and_shrinks(tmp_path: Path, tornpage: Tornpage) -> None:
    """Two files that change one after the other: the plan aims at a folder of new files, in any run."""
    answer = tornpage("run", make(tmp_path, atomic=False))
    assert answer.code == 1, answer.text
    bug = answer.data["bugs"][0]
    for _ in range(2):
        again = tornpage("replay", bug["trial"])
        assert (again.code, again.data["answer"]) == (1, "reproduced"), again.text
    small = tornpage("shrink", bug["trial"], "--budget", "20s")
    assert small.code == 0, small.text
    assert re.search(r"kill at write [0-9]+ of new/[*]", small.data["crash"]), small.text
    again = tornpage("replay", small.data["shrunk"])
    assert (again.code, again.data["answer"]) == (1, "reproduced"), again.text
