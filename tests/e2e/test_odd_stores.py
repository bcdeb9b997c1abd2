"""Stores whose commits are hardly writes: each is clean, and the same without its syncs is not, by both
recorders. Where a commit is in no file's bytes the store is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_support import Tornpage

from tornpage.faults.preload import preload_path
from tornpage.faults.recorder import fs_path, why_no_fs
from tornpage.vocabulary.paths import find_paths

PROGRAM = """#!/usr/bin/env python3
import os, sys, zlib
from tornpage_mark import ack, issue, ready, serve

WAY, SYNC, COMMITS = "{way}", {sync}, 6

def text(n):
    return b"%08d %08x" % (n, zlib.crc32(b"%d" % n))

def number(path):
    found = open(path, "rb").read() if os.path.exists(path) else b""
    return int(found[:8]) if found[:8].isdigit() and found == text(int(found[:8])) else 0

def sync(place):
    if SYNC:
        fd = os.open(place, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

def commit(folder, store, n):
    if WAY == "nothing":  # writes of no bytes, before, behind and beyond the one that counts
        os.pwrite(store, b"", 0)
        os.pwrite(store, text(n), 0)
        os.pwrite(store, b"", 4096 * n)
        os.write(store, b"")
    elif WAY == "size":
        os.truncate(store, 512 * n) if n % 2 else os.posix_fallocate(store, 0, 512 * n)
    elif WAY == "unlink":  # the older one of two files, and then the new version under its name
        path = f"{{folder}}/slot{{n % 2}}"
        if os.path.exists(path):
            os.unlink(path)
        with open(path, "wb") as file:
            file.write(text(n))
        sync(path)
        sync(folder)
    elif WAY == "names":  # a rename of one name of a file to its other one, which leaves both
        path = f"{{folder}}/slot{{n % 2}}"
        with open(f"{{folder}}/new", "wb") as file:
            file.write(text(n))
        sync(f"{{folder}}/new")
        if os.path.exists(path):
            os.unlink(path)
        os.link(f"{{folder}}/new", path)
        os.rename(f"{{folder}}/new", path)
        os.unlink(f"{{folder}}/new")
        sync(folder)
    elif WAY == "xattr":
        os.setxattr(store, b"user.n", b"%d" % n)
    elif WAY == "mode":
        os.chmod(store, 0o600 + n)
    elif WAY == "time":
        os.utime(store, (n, n))
    sync(f"{{folder}}/store")

def load(folder):
    store = os.open(f"{{folder}}/store", os.O_RDWR | os.O_CREAT, 0o600)
    sync(f"{{folder}}/store")
    sync(folder)
    ready({{"n": "0"}})
    for n in range(1, COMMITS + 1):
        issue(n)
        commit(folder, store, n)
        ack(n, {{"n": str(n)}})

def recover(folder):
    path = f"{{folder}}/store"
    if WAY == "nothing":
        return {{"n": str(number(path))}}
    if WAY in ("unlink", "names"):
        return {{"n": str(max(number(f"{{folder}}/slot{{k}}") for k in (0, 1)))}}
    if not os.path.exists(path):
        return {{"n": "0"}}
    if WAY == "size":
        return {{"n": str(os.path.getsize(path) // 512)}}
    if WAY == "xattr":
        return {{"n": os.getxattr(path, "user.n").decode() if os.listxattr(path) else "0"}}
    if WAY == "mode":
        return {{"n": str((os.stat(path).st_mode & 0o777) - 0o600)}}
    return {{"n": str(int(os.stat(path).st_mtime))}}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""
FILE = """
name = "odd"
long_lived = true
[commands]
run = "./store.py load {dir}"
recover = "./store.py recover"
"""
LIMITS = ("--states", "120", "--trials", "12", "--no-stacks")
TRIED = ("nothing", "size", "unlink", "names")


def made(folder: Path, way: str, sync: bool) -> str:
    """The target file of such a store."""
    folder.mkdir()
    (folder / "odd.toml").write_text(FILE, "utf-8")
    program = folder / "store.py"
    program.write_text(PROGRAM.format(way=way, sync=sync), "utf-8")
    program.chmod(0o755)
    return str(folder / "odd.toml")


def check_both(way: str, recorder: str, folder: Path, tornpage: Tornpage) -> None:
    """The store that syncs, and the one that does not."""
    option = ("--option", f"recorder={recorder}")
    clean = tornpage("try", made(folder / "synced", way, True), *LIMITS, *option)
    assert clean.code == 0, clean.text
    assert ("kills" in clean.data["not_exercised"]) == (way == "size"), clean.text
    broken = tornpage("try", made(folder / "unsynced", way, False), *LIMITS, *option)
    assert broken.code == 1, broken.text


@pytest.mark.parametrize(
    "way", [*TRIED[:2], *(pytest.param(way, marks=pytest.mark.extended) for way in TRIED[2:])]
)
def test_it_is_tried(way: str, tmp_path: Path, tornpage: Tornpage) -> None:
    """A write of no bytes, a change of a size, a file that goes before the next one comes."""
    check_both(way, "preload", tmp_path, tornpage)


@pytest.mark.extended
@pytest.mark.parametrize("way", TRIED)
def test_a_file_system_records_it_too(way: str, tmp_path: Path, tornpage: Tornpage) -> None:
    """With the same verdicts."""
    if why := why_no_fs(fs_path(preload_path(find_paths().build))):
        pytest.skip(why)
    check_both(way, "fs", tmp_path, tornpage)


@pytest.mark.parametrize("way", ["xattr", "mode", "time"])
def test_what_is_in_no_byte_is_refused(way: str, tmp_path: Path, tornpage: Tornpage) -> None:
    """No image has it: nothing could be said of any."""
    answer = tornpage("try", made(tmp_path / "odd", way, True), *LIMITS)
    assert answer.code == 2, answer.text
    assert "recover finds in the files what it does not find in a copy of them" in answer.text
    assert ("(user.n of store)" in answer.text) == (way == "xattr")


DRAWN = """#!/usr/bin/env python3
import os, sys, zlib
from tornpage_mark import ack, issue, ready, serve

def load(folder):
    log = os.open(f"{folder}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.fsync(os.open(folder, os.O_RDONLY))
    rows = ""
    ready({"rows": rows})
    for n in range(1, 4):
        issue(n)
        line = os.urandom(300).hex()
        os.write(log, f"{line} {zlib.crc32(line.encode())}\\n".encode())
        os.fsync(log)
        rows += f"{line}\\n"
        ack(n, {"rows": rows})

def recover(folder):
    rows = ""
    for line in open(f"{folder}/log", errors="replace"):
        words = line.split()
        if len(words) != 2 or line != f"{words[0]} {zlib.crc32(words[0].encode())}\\n":
            break
        rows += f"{words[0]}\\n"
    return {"rows": rows}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""


def test_a_store_that_draws_what_it_commits_is_clean(tornpage: Tornpage, tmp_path: Path) -> None:
    """A kill whose commit in flight survived shows a state that no other run comes to: of that nothing is
    said."""
    program = tmp_path / "store.py"
    program.write_text(DRAWN, "utf-8")
    program.chmod(0o755)
    file = tmp_path / "drawn.toml"
    commands = 'run = "./store.py load {dir}"\nrecover = "./store.py recover"\n'
    file.write_text(f'name = "drawn"\nlong_lived = true\n[commands]\n{commands}', "utf-8")
    tried = tornpage("try", str(file), "--states", "20", "--trials", "30", "--depth", "1", "--json")
    assert tried.code == 0, tried.text
    losses, kills = tried.data["runs"]
    assert (losses["violations"], kills["violations"]) == (0, 0)
    assert kills["exercised"] > 15 and kills["not_exercised"] > 0


DYING = """#!/usr/bin/env python3
import os, signal, sys
from tornpage_mark import ack, issue, ready, serve

def load(folder):
    log = os.open(f"{folder}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.fsync(os.open(folder, os.O_RDONLY))
    ready({"n": "0"})
    for n in range(1, 7):
        issue(n)
        os.write(log, b"%d" % n * 1024)
        os.fsync(log)
        ack(n, {"n": str(n)})

def recover(folder):
    data, n = open(f"{folder}/log", "rb").read(), 0
    while data[n * 1024 : (n + 1) * 1024] == b"%d" % (n + 1) * 1024:
        n += 1
    if data[n * 1024 :]:  # torn
        DIES
    return {"n": str(n)}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""


@pytest.mark.parametrize(
    "dies",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        pytest.param("bytes(1 << 62)", marks=pytest.mark.extended),
    ],
)
def test_a_recovery_that_ends_itself_is_no_fault_of_the_machine(
    dies: str, tmp_path: Path, tornpage: Tornpage
) -> None:
    """By a signal that the kernel sends for want of memory, or by asking for more than there is: it does so
    each time behind a torn write, after power losses and kills."""
    (tmp_path / "odd.toml").write_text(FILE, "utf-8")
    (tmp_path / "store.py").write_text(DYING.replace("DIES", dies), "utf-8")
    (tmp_path / "store.py").chmod(0o755)
    few = ("--states", "40", "--trials", "6", "--no-stacks", "--depth", "1")
    answer = tornpage("try", str(tmp_path / "odd.toml"), *few)
    assert answer.code == 1, answer.text
    assert [{*run["by_invariant"]} for run in answer.data["runs"]] == [{"I30"}, {"I30"}]
    titles = [bug["title"] for run in answer.data["runs"] for bug in run["bugs"]]
    assert all("times in a row, on a machine with memory" in title for title in titles)
