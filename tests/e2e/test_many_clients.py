"""Several clients of one store at once: each is judged by its own sequence of states."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_support import Tornpage

PROGRAM = """#!/usr/bin/env python3
import os, sys, threading
from tornpage_mark import ack, issue, ready, serve, tell

CLIENTS, COMMITS = 3, 12

def work(folder, k):
    log = os.open(f"{folder}/log{k}", os.O_WRONLY | os.O_APPEND)
    rows = ""
    for i in range(COMMITS):
        n = i * CLIENTS + k
        rows += f"{n:01200}\\n"
        tell(n, {f"rows{k}": rows})
        issue(n, f"client{k}")
        os.write(log, f"{n:01200}\\n".encode())
        if not (k == 2 and LAZY):
            os.fsync(log)
        ack(n, client=f"client{k}")

def load(folder):
    for k in range(1, CLIENTS + 1):
        os.fsync(os.open(f"{folder}/log{k}", os.O_WRONLY | os.O_CREAT, 0o644))
    os.fsync(os.open(folder, os.O_RDONLY))
    ready({**{f"rows{k}": "" for k in range(1, CLIENTS + 1)}, "name": "a store"})
    threads = [threading.Thread(target=work, args=(folder, k)) for k in range(1, CLIENTS + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def recover(folder):
    state = {"name": "a store"}
    for k in range(1, CLIENTS + 1):
        rows = open(f"{folder}/log{k}", errors="replace").read().split("\\n")[:-1]
        whole = [row for row in rows if len(row) == 1200 and row.isdigit() and int(row) > 0]
        state[f"rows{k}"] = "".join(f"{row}\\n" for row in whole)
    return state

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""
FILE = """
name = "clients"
long_lived = true
[commands]
run = "./store.py load {dir}"
recover = "./store.py recover"
"""


@pytest.mark.parametrize(
    ("lazy", "wanted"),
    [(False, set()), (True, {"I1", "I2"})],
    ids=["sound", "one acknowledges too early"],
)
def test_each_client_is_judged_by_itself(
    lazy: bool, wanted: set[str], tmp_path: Path, tornpage: Tornpage
) -> None:
    """A client whose commits others overtake is not taken for one that has lost them; one that does not
    sync is found, however the others do. A kill loses nothing of any."""
    program = tmp_path / "store.py"
    program.write_text(PROGRAM.replace("LAZY", str(lazy)), "utf-8")
    program.chmod(0o755)
    (tmp_path / "clients.toml").write_text(FILE, "utf-8")
    target = ("--target", str(tmp_path / "clients.toml"), "--jobs", "1")
    answer = tornpage("run", "powerloss", *target, "--states", "240", "--depth", "1")
    assert answer.code == bool(wanted), answer.text
    assert set(answer.data["by_invariant"]) == wanted
    assert answer.data["states"] >= 240
    answer = tornpage("run", "smoke", *target, "--trials", "12", "--fault-free", "1")
    assert answer.code == 0, answer.text
    assert answer.data["exercised"] >= 6


HELPER = """#!/usr/bin/env python3
import os, sys
from tornpage_mark import ack, issue, ready, serve, tell

def write(log, n, done):
    if os.fork() == 0:
        os.write(log, f"{n:01200}\\n".encode())
        os.fsync(log)
        os.write(done, b"x")
        os._exit(0)

def load(folder):
    log = os.open(f"{folder}/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.fsync(os.open(folder, os.O_RDONLY))
    ready({"rows": "0"})
    answers, done = os.pipe()
    for n in range(1, 9):
        tell(n, {"rows": str(n)})
        issue(n)
        write(log, n, done)
        os.read(answers, 1)
        ack(n)

def recover(folder):
    rows = open(f"{folder}/log", errors="replace").read().split("\\n")[:-1]
    return {"rows": str(sum(len(row) == 1200 and row.isdigit() and int(row) > 0 for row in rows))}

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""


def test_a_parent_that_waits_for_a_killed_helper_did_not_hang(
    tmp_path: Path, tornpage: Tornpage
) -> None:
    """It holds the other end of the pipe on which the answer would come."""
    program = tmp_path / "store.py"
    program.write_text(HELPER, "utf-8")
    program.chmod(0o755)
    (tmp_path / "helper.toml").write_text(FILE.replace('"clients"', '"helper"'), "utf-8")
    target = ("--target", str(tmp_path / "helper.toml"), "--jobs", "1")
    answer = tornpage("run", "smoke", *target, "--trials", "4", "--fault-free", "1")
    assert answer.code == 0, answer.text
    assert answer.data["exercised"] >= 3
