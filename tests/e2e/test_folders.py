"""A store that begins a new folder now and then, and removes the one before: what it makes is durable with
the fsync of the folder above, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_support import Tornpage

PROGRAM = """#!/usr/bin/env python3
import os, sys
from tornpage_mark import ack, issue, ready, serve

FOLDERS, COMMITS = 4, 6

def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)

def load(folder):
    lines = []
    for k in range(FOLDERS):
        now, before = (f"{folder}/part{i % 2}" for i in (k, k - 1))
        os.mkdir(now)
        log = os.open(f"{now}/log", os.O_WRONLY | os.O_CREAT)
        os.write(log, "".join(lines).encode())
        os.fsync(log)
        sync(now)
        if k == 0 or not FORGETFUL:
            sync(folder)
        if k == 0:
            ready({"rows": ""})
        else:
            os.unlink(f"{before}/log")
            os.rmdir(before)
        for n in range(k * COMMITS + 1, (k + 1) * COMMITS + 1):
            lines.append(f"{n:01200}\\n")
            issue(n)
            os.write(log, lines[-1].encode())
            os.fsync(log)
            ack(n, {"rows": "".join(lines)})

def recover(folder):
    found = [""]
    for part in sorted(os.listdir(folder)):
        if os.path.exists(f"{folder}/{part}/log"):
            lines = open(f"{folder}/{part}/log", errors="replace").read().split("\\n")[:-1]
            whole = [line for n, line in enumerate(lines, 1) if line == f"{n:01200}"]
            found.append("".join(f"{line}\\n" for line in whole))
    return {"rows": max(found, key=len)}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""
FILE = """
name = "folders"
long_lived = true
fs = "{fs}"
[commands]
run = "./store.py load {{dir}}"
recover = "./store.py recover"
"""


@pytest.mark.parametrize(
    ("forgetful", "fs", "wanted"),
    [(False, "posix", set()), (True, "posix", {"I1"}), (True, "ext4-ordered", set())],
    ids=["sound", "the folder above is not synced", "any fsync takes names along"],
)
def test_a_folder_is_lost_whose_parent_is_not_synced(
    forgetful: bool, fs: str, wanted: set[str], tmp_path: Path, tornpage: Tornpage
) -> None:
    """With all that was fsynced in it. A name that is used again never has files of the folder before."""
    program = tmp_path / "store.py"
    program.write_text(PROGRAM.replace("FORGETFUL", str(forgetful)), "utf-8")
    program.chmod(0o755)
    (tmp_path / "folders.toml").write_text(FILE.format(fs=fs), "utf-8")
    target = ("--target", str(tmp_path / "folders.toml"), "--jobs", "1")
    answer = tornpage("run", "powerloss", *target, "--states", "400", "--depth", "1")
    assert answer.code == bool(wanted), answer.text
    assert set(answer.data["by_invariant"]) == wanted


EMPTY = """#!/usr/bin/env python3
import os, sys
from tornpage_mark import ack, issue, ready, serve

def state_of(folder):
    return {"folders": " ".join(sorted(os.listdir(folder)))}

def load(folder):
    fd = os.open(folder, os.O_RDONLY)
    os.mkdir(f"{folder}/part0")
    os.fsync(fd)
    ready(state_of(folder))
    for n in range(1, 20):
        issue(n)
        os.rename(f"{folder}/part{n - 1}", f"{folder}/part{n}")
        os.fsync(fd)
        ack(n, state_of(folder))

if sys.argv[1] == "prepare":
    os.mkdir(f"{sys.argv[2]}/prepared")
else:
    load(sys.argv[2]) if sys.argv[1] == "load" else serve(state_of)
"""
PREPARE = 'prepare = "./store.py prepare {dir}"\n'


def test_an_empty_folder_is_there_and_can_be_renamed(tmp_path: Path, tornpage: Tornpage) -> None:
    """It is part of the image although no file is in it, one from before the run too."""
    (tmp_path / "store.py").write_text(EMPTY, "utf-8")
    (tmp_path / "store.py").chmod(0o755)
    (tmp_path / "folders.toml").write_text(FILE.format(fs="posix") + PREPARE, "utf-8")
    target = ("--target", str(tmp_path / "folders.toml"), "--jobs", "1")
    answer = tornpage("run", "powerloss", *target, "--states", "100", "--depth", "1")
    assert answer.code == 0, answer.text
