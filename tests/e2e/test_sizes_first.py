"""A size may be durable before the bytes that it makes room for: on the file systems that do that a store of
appends without checksums is broken, and on the others it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_support import Tornpage

PROGRAM = """#!/usr/bin/env python3
import os, sys
from tornpage_mark import ack, issue, ready, serve

def record(n):
    return f"{n:08}".encode() * 16

def load(folder):
    log = os.open(f"{folder}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.fsync(log)
    os.fsync(os.open(folder, os.O_RDONLY))
    ready({"last": "0"})
    for n in range(1, 9):
        issue(n)
        os.write(log, record(n))
        os.fsync(log)
        ack(n, {"last": str(n)})

def recover(folder):
    data = open(f"{folder}/log", "rb").read()
    records = [data[at : at + 128] for at in range(0, len(data) // 128 * 128, 128)]
    known = {record(n): str(n) for n in range(1, 9)}
    return {"last": known.get(records[-1], "garbage") if records else "0"}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""
FILE = """
name = "appends"
long_lived = true
[commands]
run = "./store.py load {dir}"
recover = "./store.py recover"
"""


@pytest.mark.parametrize(
    ("fs", "code"),
    [("posix", 1), ("ext4-ordered", 1), ("ext4-writeback", 1), ("xfs", 0), ("btrfs", 0)],
)
def test_appends_without_checksums(fs: str, code: int, tmp_path: Path, tornpage: Tornpage) -> None:
    """A record of zeros is read as a commit where the profile lets a size come first, and only there; the
    verdict names the profile."""
    program, file = tmp_path / "store.py", tmp_path / "appends.toml"
    program.write_text(PROGRAM, "utf-8")
    program.chmod(0o755)
    file.write_text(FILE, "utf-8")
    run = ("run", "powerloss", "--target", str(file), "--fs", fs, "--jobs", "1")
    answer = tornpage(*run, "--states", "300", "--depth", "1")
    assert answer.code == code, answer.text
    assert answer.data["looked_at"]["fs"] == fs
