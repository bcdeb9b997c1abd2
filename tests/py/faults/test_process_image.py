"""Child processes and crashed images."""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tornpage.faults import process
from tornpage.faults.image import attributes_below, copy_image, keep_files, odd_files
from tornpage.faults.limits import FLOORS, require_limits
from tornpage.faults.process import launcher_path, require_loaded, run_child
from tornpage.targets.target import Command
from tornpage.vocabulary.errors import ChildError, MachineError, TargetError


def _python(code: str, deadline_s: float = 20.0):  # type: ignore[no-untyped-def]
    return run_child([sys.executable, "-c", code], {}, deadline_s)


def test_output_exit_code_and_bytes_written() -> None:
    """Both outputs, the exit code and what its writes moved come back."""
    code = "import sys; print('out'); print('a\\nlast', file=sys.stderr); sys.exit(3)"
    result = _python(code)
    assert (result.exit_code, result.signal, result.timed_out) == (3, 0, False)
    assert (result.stdout, result.last_line) == (b"out\n", "last")
    assert result.written_bytes >= len("out\na\nlast\n")


def test_death_by_signal_is_told() -> None:
    """A child that dies by a signal has no exit code."""
    result = _python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (result.exit_code, result.signal) == (None, 11)
    assert "SIGSEGV" in result.describe()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])
def test_a_child_that_somebody_ended_is_no_result(name: str) -> None:
    """Nothing is known of a child that a person or the kernel ended. A plan may send SIGKILL."""
    code = f"import os, signal; os.kill(os.getpid(), signal.{name})"
    code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); {code}"
    with pytest.raises(MachineError, match=f"was ended from outside by {name}"):
        _python(code)
    argv = [sys.executable, "-c", code]
    if name == "SIGKILL":
        assert run_child(argv, dict(os.environ), 30.0, may_be_killed=True).from_outside
    else:
        with pytest.raises(MachineError):
            run_child(argv, dict(os.environ), 30.0, may_be_killed=True)


def test_hang_ends_at_the_deadline(tmp_path: Path) -> None:
    """A child that waits for ever is killed, reaped and reported; no exception."""
    pid_file = tmp_path / "pid"
    code = (
        f"import os, signal; open({str(pid_file)!r}, 'w').write(str(os.getpid())); signal.pause()"
    )
    result = _python(code, deadline_s=1.0)
    assert result.timed_out
    assert "hung" in result.describe()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_time_limit_ends_a_child_of_an_owner_without_alarms() -> None:
    """The launcher's timer ends the program also where SIGALRM was ignored and blocked."""
    code = (
        "import os, signal, sys; signal.signal(signal.SIGALRM, signal.SIG_IGN);"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]);"
        "os.execv(sys.argv[1], [sys.argv[1], sys.argv[2], '1', sys.executable, '-c',"
        " 'import signal; signal.pause()'])"
    )
    command = [sys.executable, "-c", code, str(launcher_path()), str(os.getpid())]
    done = subprocess.run(command, check=False, timeout=20)
    assert done.returncode == -signal.SIGALRM


def test_peak_memory_is_sampled() -> None:
    """A child that holds 64 MiB for a while is seen with at least that much."""
    code = "x = b'1' * (64 << 20); import select; select.select([], [], [], 0.4)"
    assert _python(code).peak_bytes >= 64 << 20


class _Frozen:
    """A clock, and a watch that stands still for a time at its first look."""

    def __init__(self, seconds: float, at_second: Callable[[], None]) -> None:
        self._seconds, self._at_second = seconds, at_second
        self._looks, self._behind = 0, 0.0

    def monotonic(self) -> float:
        """Goes on with the machine's."""
        return time.monotonic() + self._behind

    def look(self) -> None:
        """The first is late."""
        self._looks += 1
        self._behind = self._seconds
        if self._looks == 2:
            self._at_second()


@pytest.mark.parametrize(("code", "signal_"), [("read()", 0), ("signal.pause()", signal.SIGALRM)])
def test_time_that_the_watch_stood_still_is_not_the_childs(
    code: str, signal_: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen machine: a child that was given five seconds, and all of which was stopped for a hundred, ends
    well when it goes on. One that its own alarm ended then is the machine's failure."""
    fifo, told = tmp_path / "fifo", tmp_path / "pid"
    os.mkfifo(fifo)
    program = (
        "import os, signal, sys; open(sys.argv[2], 'w').write(str(os.getpid()));"
        f"file = open(sys.argv[1]); {'file.' if code == 'read()' else ''}{code}"
    )

    def go_on() -> None:
        with fifo.open("w"):
            if signal_:
                os.kill(int(told.read_text()), signal_)

    frozen = _Frozen(100.0, go_on)
    monkeypatch.setattr(process, "time", frozen)
    argv = [sys.executable, "-c", program, str(fifo), str(told)]
    if signal_:
        with pytest.raises(MachineError, match="was stopped"):
            run_child(argv, os.environ, 5.0, watch=frozen.look)
    else:
        child = run_child(argv, os.environ, 5.0, watch=frozen.look)
        assert (child.timed_out, child.exit_code) == (False, 0)


def test_a_child_that_hangs_does_so_after_a_freeze_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets its time, and no more."""
    frozen = _Frozen(100.0, lambda: None)
    monkeypatch.setattr(process, "time", frozen)
    argv = [sys.executable, "-c", "import signal; signal.pause()"]
    child = run_child(argv, os.environ, 0.5, watch=frozen.look)
    assert child.timed_out and 100 < child.seconds < 120


@pytest.mark.parametrize("ends", [True, False])
def test_a_child_that_ended_while_the_watch_was_late_did_not_hang(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at it goes past the deadline, by less than a freeze: only what lives then hangs."""
    now = 100.0
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: now))
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        pipe = child.stdin
        assert pipe is not None

        def look() -> None:
            nonlocal now
            now += 0.9 * process.STILL_S
            if ends:
                pipe.close()
                os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert process._wait(child.pid, now + 0.5, process._Usage(child.pid), look) is ends


@pytest.mark.parametrize("limit", ["stack", "file size", "processor time"])
def test_a_limit_that_is_too_low_is_told(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, what there is, what is needed, and the command that raises it."""
    (floor,) = [one for one in FLOORS if one.name == limit]

    def getrlimit(number: int) -> tuple[int, int]:
        low = number == floor.number
        return (floor.least - 1 if low else resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    monkeypatch.setattr(resource, "getrlimit", getrlimit)
    with pytest.raises(MachineError, match=f"the limit on {limit} is .* needed: ulimit -"):
        require_limits()
    monkeypatch.setattr(
        resource, "getrlimit", lambda number: (floor.least if number == floor.number else -1, -1)
    )
    require_limits()


def test_a_program_that_the_kernel_holds_to_a_limit_is_no_result() -> None:
    """SIGXFSZ and SIGXCPU are sent by it."""
    for name in ("SIGXFSZ", "SIGXCPU"):
        with pytest.raises(MachineError, match=name):
            _python(f"import os, signal; signal.signal(signal.{name}, signal.SIG_DFL); "
                    f"os.kill(os.getpid(), signal.{name})")  # fmt: skip


def test_output_without_end_is_a_harness_error() -> None:
    """It is ended before it fills the memory."""
    code = "import os\nwhile True: os.write(2, bytes(1 << 20))"
    with pytest.raises(ChildError, match=r"python.* printed more than 256 MB"):
        _python(code)


def test_missing_program_is_a_harness_error(tmp_path: Path) -> None:
    """Not to be able to start a child is the harness's failure."""
    with pytest.raises(ChildError, match="no such program"):
        run_child([tmp_path / "nope"], {}, 1.0)


@pytest.mark.parametrize(
    ("first", "mode", "why"),
    [
        ("#!/bin/sh", 0o644, r"not executable: chmod \+x /.*prog"),
        ("#!/no/such -x", 0o755, "its interpreter '/no/such' is not there"),
        ("#! /bin/sh\r", 0o755, r"its interpreter '/bin/sh\\r' is not there"),
        ("#!/usr/bin/env nopython", 0o755, "its interpreter 'nopython' is not on PATH"),
    ],
)
def test_a_program_that_cannot_run_says_why(
    first: str, mode: int, why: str, tmp_path: Path
) -> None:
    """Its run bit and its interpreter are told apart from a file that is not there."""
    program = tmp_path / "prog"
    program.write_bytes(f"{first}\nexit 0\n".encode())
    program.chmod(mode)
    with pytest.raises(ChildError, match=why):
        run_child([program], {}, 5.0)


def test_environment_is_exactly_what_was_given() -> None:
    """Nothing leaks from the harness's own environment."""
    os.environ["TORNPAGE_LEAK"] = "1"
    code = "import os; print('TORNPAGE_LEAK' in os.environ, os.environ['GIVEN'])"
    result = run_child([sys.executable, "-c", code], {"GIVEN": "yes"}, 20.0)
    assert result.stdout == b"False yes\n"


def test_copy_image_copies_one_level_of_folders(tmp_path: Path) -> None:
    """Files and a folder of files come out byte-equal."""
    source = tmp_path / "a"
    (source / "tmp").mkdir(parents=True)
    (source / "t1.ibd").write_bytes(bytes(range(256)) * 20)
    (source / "tmp" / "merge0").write_bytes(b"x")
    copy_image(source, tmp_path / "b")
    assert (tmp_path / "b" / "t1.ibd").read_bytes() == (source / "t1.ibd").read_bytes()
    assert (tmp_path / "b" / "tmp" / "merge0").read_bytes() == b"x"


def test_what_must_not_be_divided_ends_first() -> None:
    """A signal that comes in its middle is there again behind it."""
    code = (
        "import os, signal\n"
        "from tornpage.faults.process import undivided\n"
        "def end(number, frame): print('ended'); raise SystemExit(7)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "with undivided():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('whole')\n"
        "print('never')\n"
    )
    done = _python(code)
    assert (done.exit_code, done.stdout) == (7, b"whole\nended\n")


def test_a_copy_keeps_the_holes(tmp_path: Path) -> None:
    """A file of 1 GiB with a few pages in it takes a few pages."""
    source = tmp_path / "a"
    (source / "d").mkdir(parents=True)
    with (source / "d" / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(512 << 20)
        file.write(b"middle")
        file.truncate(1 << 30)
    copy_image(source, tmp_path / "b")
    copy = tmp_path / "b" / "d" / "sparse"
    assert copy.stat().st_size == 1 << 30
    assert copy.stat().st_blocks * 512 < 1 << 20
    with copy.open("rb") as file:
        assert file.read(6) == b"begin\0"
        file.seek(512 << 20)
        assert file.read(7) == b"middle\0"


@pytest.mark.parametrize(
    ("said", "unloaded"),
    [
        ("ModuleNotFoundError: No module named 'tornpage'", True),
        ("ImportError: libz.so.1: cannot open shared object file", True),
        ("/usr/bin/python3: No module named tornpage.targets", True),
        ("store: error while loading shared libraries: libz.so.1: no such file", True),
        ("recover gave no answer: exit code 1: ImportError: cannot import name 'x'", True),
        ("KeyError: 'module'", False),
        ("no module of the log is whole", False),
        ("", False),
    ],
)
def test_a_program_that_was_not_loaded_is_no_finding(said: str, unloaded: bool) -> None:
    """What Python or the loader says is the installation's failure, never the target's."""
    with pytest.raises(TargetError, match="could not be loaded") if unloaded else nullcontext():
        require_loaded(said)


def test_a_command_that_could_not_be_loaded_has_no_result() -> None:
    """A recovery that never ran has not refused; one that ran and ended so has a result."""
    words = {"-m": "tornpage_nowhere", "-c": "raise SystemExit('no')"}
    with pytest.raises(TargetError, match="tornpage_nowhere"):
        Command((sys.executable, "-m", words["-m"])).run({})
    assert Command((sys.executable, "-c", words["-c"])).run({}).exit_code == 1


DAEMON = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    pid = os.fork()
    if pid:
        open(sys.argv[1], "w").write(str(pid))
        os._exit(0)
    signal.pause()
os.wait()
"""
"""Leaves a process in a session of its own, whose number is in a file when its parent goes on."""


def _gone(pid_file: Path) -> bool:
    """Nothing is left of a process, nor of its entry."""
    try:
        os.kill(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "os.kill(os.getpid(), 9)", "signal.pause()"])
def test_what_a_child_has_started_elsewhere_ends_with_it(end: str, tmp_path: Path) -> None:
    """Also a process that has left its session and lost its parents, however the child ends."""
    file = tmp_path / "pid"
    argv = [sys.executable, "-c", DAEMON + end, str(file)]
    child = run_child(argv, {}, 2.0, may_be_killed=True)
    told = {"": (0, 0), "sys.exit(3)": (3, 0), "os.kill(os.getpid(), 9)": (None, 9)}
    assert (child.exit_code, child.signal) == told.get(end, (None, signal.SIGTERM))
    assert child.timed_out == (end == "signal.pause()")
    assert _gone(file)


@pytest.mark.parametrize("killed", [True, False])
def test_what_a_kill_has_left_waits_for_nobody(
    killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parent that waits for a process that was killed does not hang: it is ended like that one."""
    monkeypatch.setattr("tornpage.faults.process.LEFT_S", 0.0)
    argv = [sys.executable, "-c", "import signal; signal.pause()"]
    child = run_child(argv, {}, 2.0, may_be_killed=True, over=lambda: killed)
    ended = (None, signal.SIGKILL, False) if killed else (None, signal.SIGTERM, True)
    assert (child.exit_code, child.signal, child.timed_out) == ended


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_what_a_child_has_started_ends_with_the_owner(sent: signal.Signals, tmp_path: Path) -> None:
    """However the owner ends: by Ctrl-C, or without a chance to do anything."""
    file, fifo = tmp_path / "pid", tmp_path / "fifo"
    os.mkfifo(fifo)
    child = f"{DAEMON}open({str(fifo)!r}, 'w').write('up')\nsignal.pause()"
    code = (  # what runs in the background of a shell ignores Ctrl-C
        "import signal, sys; from tornpage.faults.process import run_child\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run_child([sys.executable, '-c', *sys.argv[1:]], {}, 60.0)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, child, str(file)], stderr=subprocess.PIPE)
    assert fifo.read_text() == "up"  # waits for it
    daemon = os.pidfd_open(int(file.read_text()))
    owner.send_signal(sent)
    owner.communicate(timeout=60)
    assert select.select([daemon], [], [], 60)[0], "it lives on"
    os.close(daemon)


def test_nothing_else_is_killed(tmp_path: Path) -> None:
    """Only what the child has started: neither another child of this process, nor its own session."""
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    run_child([sys.executable, "-c", DAEMON, str(tmp_path / "pid")], {}, 20.0)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_an_image_has_files_and_folders_only(tmp_path: Path) -> None:
    """A socket, a FIFO, links and a device are left out, and none is waited for."""
    source = tmp_path / "a"
    (source / "d").mkdir(parents=True)
    (source / "d" / "file").write_bytes(b"x")
    os.mkfifo(source / "d" / "fifo")
    (source / "link").symlink_to("d/file")
    (source / "loop").symlink_to("..")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(source / "socket"))
    found = [("link", "a symbolic link"), ("loop", "a symbolic link")]
    if os.geteuid() == 0:
        os.mknod(source / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        found.append(("null", "a device"))
    assert list(odd_files(source)) == found
    copy_image(source, tmp_path / "b")
    left = sorted(str(path.relative_to(tmp_path / "b")) for path in (tmp_path / "b").rglob("*"))
    assert left == ["d", "d/file"]
    keep_files(source)
    assert sorted(path.name for path in source.rglob("*")) == ["d", "file"]


def test_what_may_not_be_read_is_in_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told by its name, like all that cannot be copied."""
    (tmp_path / "a").mkdir()
    (tmp_path / "log").write_bytes(b"1")
    assert list(odd_files(tmp_path)) == []
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.R_OK or path == tmp_path)
    assert list(odd_files(tmp_path)) == [
        ("a", "a folder that may not be read"),
        ("log", "a file that may not be read"),
    ]


REMOVE = """
import sys
from pathlib import Path
from tornpage.faults.image import remove_image
folder = Path(sys.argv[1])
(folder / "a" / "b").mkdir(parents=True)
(folder / "a" / "b" / "log").write_bytes(b"1")
for part in ("a/b", "a", "."):
    (folder / part).chmod(0o555)
remove_image(folder)
sys.exit(folder.exists())
"""


def test_read_only_folders_are_removed(tmp_path: Path) -> None:
    """By those who need permissions; root gives up its own."""
    capabilities = "-dac_override,-dac_read_search"
    less = ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}"]
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("no setpriv")
    words = [*(less if os.geteuid() == 0 else []), sys.executable, "-c", REMOVE]
    subprocess.run([*words, tmp_path / "image"], check=True)


def test_attributes_that_no_copy_has_are_named(tmp_path: Path) -> None:
    """Those of users, of files in folders too."""
    (tmp_path / "a").mkdir()
    store = tmp_path / "a" / "store"
    store.write_bytes(b"1")
    assert attributes_below(tmp_path) == []
    try:
        os.setxattr(store, "user.n", b"7")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    assert attributes_below(tmp_path) == ["user.n of a/store"]
