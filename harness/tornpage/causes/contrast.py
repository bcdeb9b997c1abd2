"""Where the build that has a finding parts from a good build of the bundled engine: in the script up to the
crash, and in the recovery of the crashed image. Both are programs that tell which functions they enter and
leave (faults/calls.c); the engine calls the same ones each time.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tornpage.causes.explain import crash_seq, recording_of
from tornpage.faults.image import fill_image, remove_image
from tornpage.faults.process import EXECUTED, Launch, run_child
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.trace import Trace
from tornpage.live.journal import read_journal
from tornpage.live.recording import Recording
from tornpage.powerloss.explorer import lay_out_state
from tornpage.store.rows import TrialRow
from tornpage.targets.registry import DEFAULT_TARGET, make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.cause import Contrast, Parted
from tornpage.vocabulary.errors import ChildError, ConfigError
from tornpage.vocabulary.paths import Paths
from tornpage.workloads.workload import generate

__all__ = ["Deed", "contrast_trial", "parted", "require_engine", "sentence"]

CALLS, STOP = "TORNPAGE_CALLS", "TORNPAGE_CALLS_STOP"
WORD, LEFT = 2, 0x8000
"""Bytes of an event; its bit of a function that is left."""
HOOK = "__cyg_profile_func_enter"
"""Of faults/calls.c."""
CHUNK = 1 << 20
DEADLINE_S = 300.0
"""Of a program that tells its calls, which takes several times as long."""
SHOWN = 6
"""Functions under way that are told."""
_DONE = re.compile(rb"^(?:ack |engine: line )(\d+)", re.MULTILINE)
_STACK = re.compile(rb"^calls((?: \d+)*)\n\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Deed:
    """What both do. arguments: of the program, with the path of its folder; image: what lies in that at
    first, None: nothing; lines: of the statements that it executes."""

    arguments: Callable[[Path], Sequence[str]]
    image: Path | None = None
    lines: Sequence[int] = ()


def require_engine(row: TrialRow) -> None:
    """ConfigError: the trial is of another target."""
    if row.spec.target != DEFAULT_TARGET:
        raise ConfigError(
            f"trial {row.run}.{row.number} is of target {row.spec.target}: only builds of the bundled engine "
            "tell which functions they call, so there is no --good of another target"
        )


def contrast_trial(row: TrialRow, paths: Paths, bad: Path, good: Path, name: str) -> Contrast:
    """Of a trial that can be explained. bad, good: programs that tell their calls; name: of the sources of
    the good one. ConfigError: it is of another target, or no recording equals the trial's."""
    require_engine(row)
    target = make_target(row.spec.target, paths.build)
    with scratch_folder(target.on_shm) as scratch, recording_of(row, target, scratch) as found:
        run = parted(
            bad, good, _run(row, target, found[1], scratch / "script"), scratch / "contrast"
        )
        options, recovery = row.spec.options, None
        for image in _images(row, target, found[1], scratch / "crashed"):
            again = Deed(lambda data: target.recover_command(data, options).argv[1:], image)
            recovery = recovery or parted(bad, good, again, scratch / "contrast")
    return Contrast(name, sentence(name, run, recovery), run, recovery)


def _run(row: TrialRow, target: Target, recording: Recording, script: Path) -> Deed:
    """Up to the statement that was under way, and without an end of its own."""
    assert row.result is not None, "it was explained"
    spec = row.spec
    seq = crash_seq(spec, row.result)
    last = read_journal(Trace.load(recording.trace)).at(seq + 1)[1]
    work = generate(spec.workload, spec.params, spec.workload_seed)
    script.write_text("\n".join([*work.text.splitlines()[:last], ""]), "utf-8")

    def arguments(data: Path) -> Sequence[str]:
        command, *rest = target.run_command(data, script, spec.options).argv[1:]
        return [command, "--acks", "--crash", *(word for word in rest if word != "--json")]

    return Deed(arguments, lines=[one.line for one in work.statements])


def _images(row: TrialRow, target: Target, recording: Recording, place: Path) -> Iterator[Path]:
    """Of each crash, where recoveries are crashed too."""
    levels = row.spec.plan.loss.split("/")
    for level in range(1, len(levels) + 1) if row.spec.plan.loss else ():
        remove_image(place)
        lay_out_state(row.spec, target, recording, "/".join(levels[:level]), place)
        yield place
    if not row.spec.plan.loss:
        assert row.result is not None, "it was explained"
        assert row.result.image is not None, "the recording of the killed run lies there"
        yield row.result.image / "data"


# ---- two programs ----


def parted(bad: Path, good: Path, deed: Deed, scratch: Path) -> Parted | None:
    """Where two programs part that do the same. ChildError: they do not do the same each time, or take too
    long."""
    functions = [_functions(program) for program in (bad, good)]
    names = sorted({name for found in functions for name in found.values()})
    number = {name: n for n, name in enumerate(names, 1)}
    scratch.mkdir()
    try:
        tables = []
        for found, table in zip(functions, (scratch / "bad", scratch / "good"), strict=True):
            numbers = array("H", bytes(WORD * (max(found) + 1)))
            for offset, name in found.items():
                numbers[offset] = number[name]
            table.write_bytes(numbers.tobytes())
            tables.append(table)
        both = [_Told(*one, deed) for one in zip((bad, good), tables, strict=True)]
        at = _first_difference(both, scratch)
        if at is None:
            return None
        longer = both[0] if at.goes else both[1]
        stack, line = longer.stopped(at.events, scratch)
    finally:
        remove_image(scratch)
    goes, instead = (_words(one, names) for one in (at.goes, at.instead))
    behind = names[at.behind - LEFT - 1] if at.behind & LEFT else ""
    return Parted(tuple(names[one - 1] for one in stack), behind, goes, instead, line)


def _functions(program: Path) -> Mapping[int, str]:
    """Names by offset, without what compilers append to them."""
    listed = run_child([_nm(), "--defined-only", program], os.environ, DEADLINE_S)
    lines = (line.split() for line in listed.stdout.decode("utf-8", "replace").splitlines())
    found = {int(at, 16): name.partition(".")[0] for at, kind, name in lines if kind in "tTwW"}
    if HOOK not in found.values():
        raise ConfigError(f"{program} does not tell its calls")
    return found


def _nm() -> str:
    program = shutil.which("nm")
    if program is None:
        raise ConfigError("nm: no such program, and functions are named with it")
    return program


@dataclass(frozen=True, slots=True)
class _Difference:
    """events: how many come before it; behind: the last of these, goes, instead: the next one of each
    program, 0: none."""

    events: int
    behind: int
    goes: int
    instead: int


@dataclass(frozen=True, slots=True)
class _Told:
    """What a program does, told by itself."""

    program: Path
    table: Path
    deed: Deed

    @contextmanager
    def events(self, scratch: Path) -> Iterator[_Pipe]:
        """As they come."""
        reads, writes = os.pipe()
        with ExitStack() as opened:
            opened.callback(os.close, reads)
            try:
                fcntl.fcntl(reads, fcntl.F_SETPIPE_SZ, CHUNK)
                nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                opened.callback(os.close, nowhere)
                argv = self._argv(scratch / f"{self.table.name}.data")
                env = {**os.environ, CALLS: str(self.table)}
                pid = EXECUTED.start(Launch(argv, env, DEADLINE_S, (writes, nowhere)))
            finally:
                os.close(writes)
            pipe = _Pipe(reads, pid)
            opened.callback(pipe.end)
            yield pipe

    def stopped(self, events: int, scratch: Path) -> tuple[list[int], int]:
        """Which functions are under way behind so many events, the innermost first, and the line of the
        statement."""
        data = scratch / f"{self.table.name}.data"
        remove_image(data)
        env = {**os.environ, CALLS: str(self.table), STOP: str(events)}
        child = run_child(self._argv(data), env, DEADLINE_S)
        stack = _STACK.search(child.stdout)
        if stack is None:
            raise ChildError(f"{self.program} does not do the same each time: {child.describe()}")
        done = max(map(int, _DONE.findall(child.stdout) + _DONE.findall(child.stderr)), default=0)
        line = next((one for one in self.deed.lines if one > done), 0)
        return [int(word) for word in stack[1].split()][:SHOWN], line

    def _argv(self, data: Path) -> list[str]:
        data.mkdir()
        if self.deed.image is not None:
            fill_image(self.deed.image, data)
        return [str(self.program), *self.deed.arguments(data)]


class _Pipe:
    """From which the events of a program are read."""

    def __init__(self, reads: int, pid: int) -> None:
        self._reads, self._pid, self._ended = reads, pid, False

    def chunk(self) -> bytes:
        """The next events: whole ones, and less than a chunk at the end only. ChildError: it was late."""
        got = bytearray()
        while len(got) < CHUNK and (some := os.read(self._reads, CHUNK - len(got))):
            got += some
        if len(got) < CHUNK and self.end() == -signal.SIGALRM:
            raise ChildError(f"a program that tells its calls took longer than {DEADLINE_S:.0f} s")
        return bytes(got)

    def end(self) -> int:
        """How it has ended, as of os.waitstatus_to_exitcode(); it has to now. The first answer counts."""
        if self._ended:
            return 0
        self._ended = True
        EXECUTED.end(self._pid)
        return os.waitstatus_to_exitcode(EXECUTED.reap(self._pid))


def _first_difference(both: Sequence[_Told], scratch: Path) -> _Difference | None:
    with both[0].events(scratch) as bad, both[1].events(scratch) as good:
        events, last = 0, b""
        while True:
            one, other = bad.chunk(), good.chunk()
            if one != other:
                break
            if not one:
                return None
            events, last = events + len(one) // WORD, one[-WORD:]
    at = next(
        (at for at in range(0, CHUNK, WORD) if one[at : at + WORD] != other[at : at + WORD]), CHUNK
    )
    behind = one[at - WORD : at] if at else last
    words = (behind, one[at : at + WORD], other[at : at + WORD])
    return _Difference(events + at // WORD, *(int.from_bytes(word, "little") for word in words))


def _words(event: int, names: Sequence[str]) -> str:
    if not event:
        return "ends"
    return f"leaves {names[event - LEFT - 1]}" if event & LEFT else f"calls {names[event - 1]}"


# ---- words ----


def sentence(good: str, run: Parted | None, recovery: Parted | None) -> str:
    """Where they part, for a person."""
    told = [_where(what, one, good) for what, one in (("run", run), ("recovery", recovery)) if one]
    same = "what the two builds do differs in data only, or behind the recovery, if at all"
    return " ".join(told) or f"Run and recovery call the same functions in {good}: {same}."


def _where(what: str, one: Parted, good: str) -> str:
    line = f" at statement {one.line}" if one.line else ""
    behind = f", behind the return of {one.behind}" if one.behind else ""
    return (
        f"The {what} parts from that of {good}{line}: in {' ← '.join(one.stack) or 'nothing'}{behind}. "
        f"This build then {one.goes}, the good one {one.instead}."
    )
