"""The table "Ways to write" of docs/FAULT_MODEL.md, row by row: what is torn or lost of a write is found,
however it is made, and what is durable is no alarm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from e2e_support import Tornpage

from tornpage.vocabulary.paths import ROOT

PROGRAM = """#!/usr/bin/env python3
import ctypes, mmap, os, sys
from tornpage_mark import ack, issue, ready, serve

WAY, SECTORS, SYNC, COMMITS = "{way}", {sectors}, {sync}, 8
FLAGS = {{"O_DIRECT": os.O_DIRECT, "O_DSYNC": os.O_DSYNC, "O_SYNC": os.O_SYNC}}
PUNCH = 3

def header(n):
    memory = mmap.mmap(-1, 512 * SECTORS)
    memory[:] = bytes([n]) * 512 * SECTORS
    return memory

def write(fd, n):
    if WAY == "fallocate":
        libc = ctypes.CDLL(None, use_errno=True)
        at = (ctypes.c_long(4096 * n), ctypes.c_long(512 * SECTORS))
        assert libc.fallocate(fd, PUNCH, *at) == 0, os.strerror(ctypes.get_errno())
    elif WAY == "mapping":
        mmap.mmap(fd, 4096)[:512 * SECTORS] = header(n)[:]
    elif WAY == "writev":
        os.pwritev(fd, [header(n)[:512], header(n)[512:]], 0)
    else:
        os.pwritev(fd, [header(n)], 0, os.RWF_DSYNC if WAY == "RWF_DSYNC" else 0)

def load(folder):
    made = os.open(f"{{folder}}/store", os.O_RDWR | os.O_CREAT)
    os.pwrite(made, bytes([1]) * 65536 if WAY == "fallocate" else header(0)[:], 0)
    os.fsync(made)
    os.fsync(os.open(folder, os.O_RDONLY))
    fd = os.open(f"{{folder}}/store", os.O_RDWR | FLAGS.get(WAY, 0))
    ready({{"n": "0"}})
    for n in range(1, COMMITS + 1):
        issue(n)
        write(fd, n)
        if SYNC:
            os.fsync(fd)
        ack(n, {{"n": str(n)}})

def recover(folder):
    data = open(f"{{folder}}/store", "rb").read()
    if WAY != "fallocate":
        return {{"n": " ".join(str(n) for n in sorted(set(data[:512 * SECTORS])))}}
    blocks = [set(data[4096 * n : 4096 * n + 512 * SECTORS]) for n in range(1, COMMITS + 1)]
    return {{"n": str(sum(block == {{0}} for block in blocks)) if {{0, 1}} not in blocks else "torn"}}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""
FILE = """
name = "ways"
long_lived = true
[commands]
run = "./store.py load {dir}"
recover = "./store.py recover"
"""


def _rows() -> list[tuple[str, str, str]]:
    text = (ROOT / "docs" / "FAULT_MODEL.md").read_text("utf-8")
    table = text[text.index("## Ways to write") : text.index("## The torn-page matrix")]
    return re.findall(r"^\| `(\S+)` \| (.+?) \| (.+?) \|$", table, re.MULTILINE)


ROWS = _rows()


def test_the_table_has_the_ways_there_are() -> None:
    """None is forgotten, and none told twice."""
    ways = ["write", "writev", "O_DIRECT", "O_DSYNC", "O_SYNC", "RWF_DSYNC", "fallocate", "mapping"]
    assert [way for way, _during, _after in ROWS] == ways


@pytest.mark.parametrize(("way", "during", "after"), ROWS, ids=[row[0] for row in ROWS])
def test_a_way_to_write(
    way: str, during: str, after: str, tmp_path: Path, tornpage: Tornpage
) -> None:
    """Three sectors in place, synced: broken if such a write can be torn. One sector that nobody syncs,
    acknowledged: broken unless it is durable when the call has ended."""
    program, file = tmp_path / "store.py", tmp_path / "ways.toml"
    file.write_text(FILE, "utf-8")
    run = ("run", "powerloss", "--target", str(file), "--jobs", "1")
    limits = ("--states", "200", "--depth", "1")
    for sectors, sync, broken in ((3, True, "torn" in during), (1, False, after != "durable")):
        program.write_text(PROGRAM.format(way=way, sectors=sectors, sync=sync), "utf-8")
        program.chmod(0o755)
        answer = tornpage(*run, *limits)
        if during == "refused":
            assert answer.code == 2, answer.text
            return
        assert answer.code == broken, answer.text
