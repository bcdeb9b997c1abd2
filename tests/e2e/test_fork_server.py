"""Children that are forked by a server do what executed ones do, and end as they do."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tornpage.faults.forkserver import SERVERS_MAX, ForkServer, fork_server
from tornpage.faults.preload import EXIT_PRELOAD_REFUSED, WHOLE, preload_environment, preload_path
from tornpage.faults.process import ChildResult, Launch, Starter, launch_argv, run_child
from tornpage.faults.trace import Trace
from tornpage.vocabulary.errors import ChildError, MachineError

SHELL = Path("/bin/sh")
KILL = "fault kind=write file=*.ibd nth=20 action=kill sectors=1010"
SCRIPT = """create table t a:bigint b:char(64) primary a
insert_seq - t 1 500
add index t ib(b)
checkpoint full
"""


@pytest.fixture
def shell(build: Path) -> Iterator[ForkServer]:
    """A server of the shell."""
    server = ForkServer(SHELL, preload_path(build))
    yield server
    server.stop()


def told(server: Starter, text: str, deadline_s: float = 30.0, **env: str) -> ChildResult:
    """A shell that does this."""
    argv = [SHELL, "-c", text]
    return run_child(argv, env, deadline_s, may_be_killed=True, starter=server)


def recorded(
    build: Path, folder: Path, server: Starter | None, plan: str = ""
) -> tuple[ChildResult, ChildResult, list[bytes]]:
    """A run of the engine under a plan, the recovery after it, and both recordings."""
    data, program = folder / "data", build / "engine" / "engine"
    data.mkdir(parents=True)
    (folder / "script").write_text(SCRIPT)
    (folder / "plan").write_text(plan)
    children = []
    for name, argv in {
        "run": ["run", "--json", str(data), str(folder / "script")],
        "recover": ["recover", "--json", "--check", str(data)],
    }.items():
        asked = folder / "plan" if name == "run" and plan else None
        env = preload_environment(preload_path(build), data, folder / name, asked) | WHOLE
        argv = [str(program), *argv]
        children.append(run_child(argv, env, 60.0, may_be_killed=bool(plan), starter=server))
    return (
        children[0],
        children[1],
        [bytes(Trace.load(folder / n).body) for n in ("run", "recover")],
    )


@pytest.mark.parametrize("plan", ["", KILL])
def test_the_stream_is_that_of_an_executed_engine(build: Path, tmp_path: Path, plan: str) -> None:
    """Fault-free and killed inside a write: streams, outputs and ends are the same, byte for byte."""
    server = fork_server(build / "engine" / "engine", preload_path(build))
    assert server is not None
    executed = recorded(build, tmp_path / "executed", None, plan)
    served = recorded(build, tmp_path / "served", server, plan)
    assert executed[2] == served[2]
    for one, other in zip(executed[:2], served[:2], strict=True):
        assert (one.exit_code, one.signal, one.stdout) == (
            other.exit_code,
            other.signal,
            other.stdout,
        )
    assert executed[0].signal == (signal.SIGKILL if plan else 0)


def test_outputs_and_ends_come_back(shell: ForkServer) -> None:
    """Outputs, exit code, signal, arguments, environment; standard input is empty."""
    child = told(shell, 'cat; echo "out $A"; echo err >&2; exit 3', A="a b")
    assert (child.exit_code, child.stdout, child.stderr) == (3, b"out a b\n", b"err\n")
    assert child.written_bytes > 0
    assert told(shell, "kill -SEGV $$").signal == signal.SIGSEGV
    assert told(shell, 'test -z "$TORNPAGE_SERVE$LD_PRELOAD"').exit_code == 0


def test_arguments_end_where_they_end(shell: ForkServer) -> None:
    """A child has its own arguments and none of what was asked before it."""
    for names in ["b", ""], ["b", "c", "d"], []:
        argv = [SHELL, "-c", 'echo "$#"', "a", *names]
        child = run_child(argv, {"A": "1", "B": "2"}, 30.0, starter=shell)
        assert child.stdout == b"%d\n" % len(names)


def test_a_hang_ends_at_the_deadline_with_what_it_started(shell: ForkServer) -> None:
    """Its process group is ended too, and the server goes on."""
    child = told(shell, "sleep 1000 & echo $!; wait", 1.0)
    assert child.timed_out
    with contextlib.suppress(ProcessLookupError):  # it is gone already
        end = os.pidfd_open(int(child.stdout))
        assert select.select([end], [], [], 60)[0]
        os.close(end)
    assert told(shell, "exit 0").exit_code == 0


def test_the_alarm_is_that_of_an_executed_child(build: Path) -> None:
    """What nobody watches any more ends at the same time: by its launcher, or by its own timer."""
    program = Path(sys.executable)
    code = "import signal; print(signal.getitimer(signal.ITIMER_REAL)[0])"
    launch = Launch([program, "-c", code], {}, 30.0, (1, 2))
    server = fork_server(program, preload_path(build))
    child = run_child(launch.argv, {}, 30.0, starter=server)
    assert 30 < float(child.stdout) <= launch.alarm_s, child.describe()
    assert launch_argv(launch.argv, 30.0)[2] == str(launch.alarm_s)


def test_the_preload_refuses_as_ever(shell: ForkServer) -> None:
    """What its environment asks of a child and cannot be done ends the child, not the server."""
    child = told(shell, "exit 0", TORNPAGE_ROOT="/no/such/folder", TORNPAGE_TRACE="/dev/null/x")
    assert child.exit_code == EXIT_PRELOAD_REFUSED
    assert "TORNPAGE_ROOT=/no/such/folder" in child.last_line
    assert told(shell, "exit 0").exit_code == 0


def test_too_much_to_ask_is_told(shell: ForkServer) -> None:
    """More than the server takes is an error, and harms nothing."""
    with pytest.raises(ChildError, match="too long"):
        told(shell, "exit 0", A="x" * 200_000)
    with pytest.raises(ChildError, match="too long"):
        told(shell, "exit 0", **{f"A{i}": "" for i in range(5000)})
    assert told(shell, "exit 0").exit_code == 0


def test_a_script_gets_its_arguments_behind_its_name(build: Path, tmp_path: Path) -> None:
    """The kernel puts the interpreter before a script; its server's children see it there, too."""
    script = tmp_path / "script"
    script.write_text('#!/bin/sh -e\ntest "$0 $# $1 $2" = "$NAME 2 a b" && exit 7\n')
    script.chmod(0o755)
    server = fork_server(script, preload_path(build))
    child = run_child([script, "a", "b"], {"NAME": str(script)}, 30.0, starter=server)
    assert child.exit_code == 7


def test_a_server_that_ended_is_the_machines_failure(shell: ForkServer) -> None:
    """Its end is told, whether it comes before a child or in the middle of one."""
    assert told(shell, "exit 0").exit_code == 0
    with pytest.raises(MachineError, match="fork server"):
        told(shell, "kill -KILL $PPID; sleep 1000")
    with pytest.raises(MachineError, match="fork server"):
        told(shell, "exit 0")


def test_the_oldest_servers_end(build: Path, tmp_path: Path) -> None:
    """One program after the other: the last few stay, and the newest one is used again."""
    before = len(psutil.Process().children())
    for number in range(2 * SERVERS_MAX):
        program = tmp_path / f"sh{number}"
        program.symlink_to(SHELL)
        server = fork_server(program, preload_path(build))
        assert server is not None
        child = run_child([program, "-c", "exit 3"], {}, 30.0, starter=server)
        assert child.exit_code == 3
        assert fork_server(program, preload_path(build)) is server
    assert len(psutil.Process().children()) <= before + SERVERS_MAX


def test_nothing_outlives_its_owner(build: Path) -> None:
    """An owner that is killed leaves neither server nor child."""
    code = (
        "import sys; from pathlib import Path;"
        "from tornpage.faults.forkserver import ForkServer;"
        "from tornpage.faults.process import run_child;"
        "server = ForkServer(Path('/bin/sh'), Path(sys.argv[1]));"
        "run_child(['/bin/sh', '-c', 'echo $$ $PPID > ' + sys.argv[2] + '; exec sleep 1000'],"
        " {}, 60.0, starter=server)"
    )
    read, write = os.pipe()
    argv = [sys.executable, "-c", code, str(preload_path(build)), f"/proc/{os.getpid()}/fd/{write}"]
    owner = subprocess.Popen(argv)
    pids = [int(pid) for pid in os.read(read, 100).split()]
    watched = [psutil.Process(pid) for pid in pids]
    owner.kill()
    owner.wait()
    assert len(watched) == 2
    assert psutil.wait_procs(watched, timeout=20)[1] == []
