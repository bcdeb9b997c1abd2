"""Child processes: started cheaply, given a deadline, sampled, and reaped by their own pid.

A hang is a verdict, not an exception: the child is killed, with what it started, and reported as timed
out. One that was ended from outside is a failure of the machine: what it did says nothing. Every child
has tornpage-launch above it (faults/launch.c): it ends with the process that started it, however that ends,
and takes along whatever it has started, in a session of its own too.
posix_spawn because fork() of a large Python process costs more than the engine's whole run.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tornpage.vocabulary.errors import ChildError, EndedError, MachineError, TargetError
from tornpage.vocabulary.paths import find_paths

__all__ = [
    "ENDING",
    "EXECUTED",
    "FROM_OUTSIDE",
    "LAUNCHER",
    "ChildResult",
    "Launch",
    "Starter",
    "end_child",
    "ended_from_outside",
    "launch_argv",
    "launcher_path",
    "require_loaded",
    "run_child",
    "undivided",
    "why_not_run",
]

LAUNCHER = Path("faults", "tornpage-launch")
"""Inside a build folder."""
LINE_MAX = 256
"""Bytes that the kernel reads of a script's first line."""
SAMPLE_FIRST_MS = 2
SAMPLE_MAX_MS = 250
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PROC_MAX = 1 << 16
"""Bytes of a file below /proc that are looked at, at most."""
OUTPUT_MAX = 256 << 20
"""Bytes of each output; more is no answer."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a run. Workers ignore them: the owner ends its workers. Their children do not."""
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGXCPU, signal.SIGXFSZ, *ENDING)
"""Signals that no program sends itself: a person does, or the kernel that runs out of memory, or that
holds it to a limit."""
STILL_S = 1.0
"""A look at a child that comes so many seconds late says that the watch was held up."""
LEFT_S = 1.0
"""How long processes go on when another one of them was killed."""
LIMIT_EXTRA_S = 30
"""How long a child may outlive its deadline when nobody watches it any more."""

_UNLOADED = re.compile(
    r"\b(?:ModuleNotFoundError|ImportError): .*|: No module named .*"
    r"|error while loading shared libraries: .*"
)
"""What Python and the dynamic loader say of a program that they could not load."""


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child ended.

    exit_code: of exit(), or None if a signal ended it; signal: its number, or 0. seconds: wall time.
    peak_bytes: largest resident size seen (sampled, so a lower bound for children of a few
    milliseconds); written_bytes: what its write calls moved, page cache included.
    """

    exit_code: int | None
    signal: int
    timed_out: bool
    seconds: float
    peak_bytes: int
    written_bytes: int
    stdout: bytes
    stderr: bytes

    @property
    def from_outside(self) -> bool:
        """Somebody ended it: a fault plan, or nobody whom we know. What it left says nothing then."""
        return not self.timed_out and self.signal in FROM_OUTSIDE

    @property
    def last_line(self) -> str:
        """The last line of stderr, for messages; at most 500 characters."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:500] if lines else ""

    def describe(self) -> str:
        """How it ended, in a few words."""
        if self.timed_out:
            return f"hung: killed after {self.seconds:.1f} s"
        if self.signal:
            name = signal.Signals(self.signal).name
            return f"died by {name}: {self.last_line}".rstrip(": ")
        return f"exit code {self.exit_code}: {self.last_line}".rstrip(": ")


@dataclass(frozen=True, slots=True)
class Launch:
    """A child that is to be started. argv: its program first; env: its whole environment; deadline_s: seconds
    after which its owner ends it; outputs: descriptors for its standard output and error."""

    argv: Sequence[str | Path]
    env: Mapping[str, str]
    deadline_s: float
    outputs: tuple[int, int]

    @property
    def alarm_s(self) -> int:
        """Seconds after which it ends by itself."""
        return _alarm_s(self.deadline_s)


class Starter(Protocol):
    """How a child comes to be: executed, or forked by a server (forkserver)."""

    def start(self, launch: Launch) -> int:
        """Starts a program that ends as launch_argv() says, and returns its pid. ChildError."""

    def end(self, pid: int) -> None:
        """Ends a child and what it has started; the caller reaps it. Nothing happens to one that has
        ended."""

    def reap(self, pid: int) -> int:
        """The status, as of wait(), of a child that has ended or is ending; once."""


class _Executed:
    """Every child by a spawn of its own."""

    def start(self, launch: Launch) -> int:
        args = launch_argv(launch.argv, launch.deadline_s)
        out_fd, err_fd = launch.outputs
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out_fd, 1),
            (os.POSIX_SPAWN_DUP2, err_fd, 2),
        ]
        try:
            return os.posix_spawn(args[0], args, launch.env, file_actions=actions, setsigdef=ENDING)
        except OSError as error:
            raise ChildError(f"{launch.argv[0]}: {error.strerror}") from error

    def end(self, pid: int) -> None:
        end_child(pid)

    def reap(self, pid: int) -> int:
        return os.waitpid(pid, 0)[1]


EXECUTED: Starter = _Executed()
"""The usual one."""


@contextlib.contextmanager
def undivided() -> Iterator[None]:
    """What must not be ended in its middle; a signal that comes meanwhile is there again behind it. Threads
    other than the first one get none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _frame: held.append(number))
        for number in ENDING
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


def launcher_path() -> Path:
    """The program as which every child begins."""
    return find_paths().build / LAUNCHER


def why_not_run(program: Path, path: str | None = None) -> str:
    """In words; "" if it can be run. path: where its interpreter is looked for, as PATH, if it is named by
    env."""
    if not program.is_file():
        return "no such program"
    if not os.access(program, os.X_OK):
        return f"not executable: chmod +x {program}"
    with program.open("rb") as file:
        first = file.readline(LINE_MAX).decode("utf-8", "replace").rstrip("\n")
    words = first.removeprefix("#!").split(" ") if first.startswith("#!") else []
    words = [word for word in words if word]
    if words and not os.access(words[0], os.X_OK):
        return f"its interpreter {words[0]!r} is not there"
    is_env = len(words) > 1 and Path(words[0]).name == "env" and not words[1].startswith("-")
    if is_env and shutil.which(words[1], path=path) is None:
        return f"its interpreter {words[1]!r} is not on PATH"
    return ""


def launch_argv(argv: Sequence[str | Path], deadline_s: float) -> list[str]:
    """The same program, started so that it ends with this process, with all that it has started, in a process
    group of its own, and not later than some time after its deadline (seconds). ChildError: no such program,
    or tornpage-launch is not built."""
    launcher = launcher_path()
    args = [os.fspath(arg) for arg in argv]
    if not os.access(launcher, os.X_OK):
        raise ChildError(f"{launcher}: no such program: run make build")
    if wrong := why_not_run(Path(args[0])):
        raise ChildError(f"{args[0]}: {wrong}")
    return [str(launcher), str(os.getpid()), str(_alarm_s(deadline_s)), *args]


def _alarm_s(deadline_s: float) -> int:
    return math.ceil(deadline_s) + LIMIT_EXTRA_S


def end_child(pid: int) -> None:
    """Ends a child that launch_argv() started, and all that it has started; the caller reaps it."""
    for number in (signal.SIGTERM, signal.SIGCONT):  # it may stand still
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def run_child(
    argv: Sequence[str | Path],
    env: Mapping[str, str],
    deadline_s: float,
    *,
    may_be_killed: bool = False,
    watch: Callable[[], None] | None = None,
    over: Callable[[], bool] | None = None,
    starter: Starter | None = None,
) -> ChildResult:
    """Runs a program to its end or its deadline (seconds).

    env is its whole environment. What it prints goes to memory: a full disk, as that of its data, loses
    none of it. may_be_killed: a fault plan may kill it, so that the caller must look who did. watch: called
    while it runs, a few times per second. over: asked as often, whether one of its processes was killed: what
    still runs LEFT_S later is ended by the same signal. starter: how it comes to be; None: executed. Raises
    ChildError when it cannot be started or prints without end, EndedError when it was ended from outside,
    MachineError when the machine stood still.
    """
    out_fd, err_fd = os.memfd_create("stdout"), os.memfd_create("stderr")
    try:
        launch = Launch(argv, env, deadline_s, (out_fd, err_fd))

        left = _Left(over)

        def look() -> bool:
            _require_end(launch)
            if watch is not None:
                watch()
            return left.is_to_end()

        child = _run(launch, look, starter or EXECUTED)
        if left.since and child.signal == signal.SIGTERM:  # by us
            child = replace(child, signal=int(signal.SIGKILL))
    finally:
        os.close(out_fd)
        os.close(err_fd)
    if child.from_outside and not (may_be_killed and child.signal == signal.SIGKILL):
        raise ended_from_outside(Path(argv[0]).name, child.signal)
    return child


class _Left:
    """Processes that a kill of another one has left: they may wait for it for ever. since: when it was
    seen."""

    def __init__(self, over: Callable[[], bool] | None) -> None:
        self._over = over
        self.since = 0.0

    def is_to_end(self) -> bool:
        """Nobody has ended by itself for long enough."""
        if self._over is not None and not self.since and self._over():
            self.since = time.monotonic()
        return bool(self.since) and time.monotonic() - self.since > LEFT_S


def ended_from_outside(what: str, number: int) -> EndedError:
    """The error of a process that signal `number` ended, sent by none of us."""
    return EndedError(f"{what} was ended from outside by {signal.Signals(number).name}")


def _require_end(launch: Launch) -> None:
    """Of what it prints: it is held in memory."""
    if any(os.fstat(fd).st_size > OUTPUT_MAX for fd in launch.outputs):
        raise ChildError(f"{Path(launch.argv[0]).name} printed more than {OUTPUT_MAX >> 20} MB")


def _run(launch: Launch, watch: Callable[[], bool], starter: Starter) -> ChildResult:
    """watch: as of _wait()."""
    started = time.monotonic()
    pid = starter.start(launch)
    usage = _Usage(pid)
    try:
        timed_out = not _wait(pid, started + launch.deadline_s, usage, watch)
        if timed_out:
            starter.end(pid)
    except BaseException:
        starter.end(pid)
        starter.reap(pid)
        raise
    usage.sample_end()
    starter.end(pid)  # what it has left behind
    code = os.waitstatus_to_exitcode(starter.reap(pid))
    seconds = time.monotonic() - started
    if not timed_out and -code == signal.SIGALRM and seconds >= launch.alarm_s:
        raise MachineError(
            f"{Path(launch.argv[0]).name} outlived its deadline of {launch.deadline_s:.0f} s while nobody "
            "watched it: the machine, or this whole run, was stopped"
        )
    return ChildResult(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else 0,
        timed_out=timed_out,
        seconds=seconds,
        peak_bytes=usage.peak_bytes,
        written_bytes=usage.written_bytes,
        stdout=_read_all(launch.outputs[0]),
        stderr=_read_all(launch.outputs[1]),
    )


class _Usage:
    """What a child uses. rusage is no help for memory: after a vfork it counts the parent's too."""

    __slots__ = ("peak_bytes", "pid", "written_bytes")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.peak_bytes = 0
        self.written_bytes = 0

    def sample(self) -> None:
        """While it lives: the resident size of it, or of the program that it is above."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            below = _read_proc(f"{self.pid}/task/{self.pid}/children").split()
            for pid in (self.pid, *map(int, below)):
                pages = _read_proc(f"{pid}/statm").split()[1]
                self.peak_bytes = max(self.peak_bytes, int(pages) * PAGE_BYTES)

    def sample_end(self) -> None:
        """As a zombie, before it is reaped: bytes that its write calls moved."""
        try:
            for line in _read_proc(f"{self.pid}/io").splitlines():
                if line.startswith(b"wchar:"):
                    self.written_bytes = int(line[6:])
        except (OSError, ValueError):
            pass


def _read_proc(name: str) -> bytes:
    """A file below /proc. Plain calls, since every child is looked at several times."""
    fd = os.open(f"/proc/{name}", os.O_RDONLY)
    try:
        return os.read(fd, PROC_MAX)
    finally:
        os.close(fd)


def _wait(pid: int, deadline: float, usage: _Usage, watch: Callable[[], bool]) -> bool:
    """Waits for the end of pid without reaping it, or until watch() says that it is to be ended; False at the
    deadline (time.monotonic). While the watch
    itself stood still, as with a machine that was frozen, so did the child: that time is not counted."""
    fd = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        step_ms = SAMPLE_FIRST_MS
        due = time.monotonic()
        while True:
            now = time.monotonic()
            deadline += now - due if now - due > STILL_S else 0.0
            left_ms = (deadline - now) * 1000
            if left_ms <= 0:
                return bool(poller.poll(0))
            due = now + min(step_ms, left_ms) / 1000
            if poller.poll(min(step_ms, left_ms + 1)):
                return True
            usage.sample()
            if watch():
                return True
            step_ms = min(2 * step_ms, SAMPLE_MAX_MS)
    finally:
        os.close(fd)


def _read_all(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0) if size else b""


def require_loaded(said: str) -> None:
    """TargetError if that is what was said of a program of which not all could be loaded: it has never seen
    what it was to judge or recover, and the installation is to blame."""
    found = _UNLOADED.search(said)
    if found is not None:
        raise TargetError(f"a program could not be loaded: {found[0].lstrip(': ')}")
