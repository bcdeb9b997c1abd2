"""A store that commits by an exchange of two names (renameat2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_support import Tornpage
from test_target_file import changed, make

from tornpage.faults.preload import preload_path
from tornpage.faults.recorder import Recorder, fs_path, why_no_fs

STORE = """#!/usr/bin/env python3
import ctypes, os, sys, zlib
from tornpage_mark import ack, issue, ready, serve

RENAME_EXCHANGE = 2

def put(name, n):
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    body = f"{n:01200}"
    os.write(file, f"{zlib.crc32(body.encode()):08x} {body}".encode())
    os.fsync(file)
    os.close(file)

def load(folder):
    os.chdir(folder)
    parent = os.open(".", os.O_RDONLY)
    put("now", 0)
    put("next", 0)
    os.fsync(parent)
    ready({"n": "0"})
    for n in range(1, 16):
        issue(n)
        put("next", n)
        if ctypes.CDLL(None).renameat2(-100, b"next", -100, b"now", RENAME_EXCHANGE) != 0:
            sys.exit("renameat2")
        os.fsync(parent)
        ack(n, {"n": str(n)})

def recover(folder):
    crc, body = open(f"{folder}/now").read().split()
    assert int(crc, 16) == zlib.crc32(body.encode())
    return {"n": str(int(body))}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""
NO_SYNC = ("        os.fsync(parent)\n", "")
LIMITS = ["--states", "300", "--depth", "1"]


@pytest.mark.parametrize("recorder", Recorder)
def test_an_exchange_is_one_change(
    recorder: Recorder, build: Path, tmp_path: Path, tornpage: Tornpage
) -> None:
    """Both names change, or none: no crash leaves the store without its file. Where the folder is not synced,
    what the next commit overwrites may be the file that a crash finds."""
    if recorder is Recorder.FS and (why := why_no_fs(fs_path(preload_path(build)))):
        pytest.skip(why)
    file = make(tmp_path)
    file.with_name("store.py").write_text(STORE, "utf-8")
    words = ["--option", f"recorder={recorder}", *LIMITS]
    told = tornpage("run", "powerloss", "--target", str(file), *words)
    assert told.code == 0, told.text
    broken = changed(file, "broken", NO_SYNC)
    told = tornpage("run", "powerloss", "--target", str(broken), *words)
    assert told.code == 1, told.text
    assert told.data["bugs"]
