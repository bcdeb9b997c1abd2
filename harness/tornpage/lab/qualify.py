"""`tornpage qualify`: does the fault layer do what it says? The judge is fio, a stranger to it.

fio writes blocks with checksums under the preload, reads them again, and tells which are bad. Without a
fault none may be; with one, exactly those that the preload's record says it damaged. fio's exit code is
not asked: after a kill of its job it is 0 with psync, SIGABRT from fio's own cleanup with pvsync2, and it
is 0 when errors were counted but did not stop a job. The verdict is fio's JSON and its messages together,
held against the record.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.plan import compile_plan, resolve_mask
from tornpage.faults.preload import preload_environment, preload_path
from tornpage.faults.process import ChildResult, run_child
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.trace import Op, Trace
from tornpage.lab.doctor import Finding
from tornpage.vocabulary.errors import ConfigError, TornpageError
from tornpage.vocabulary.model import Action, Fault, FaultKind
from tornpage.vocabulary.paths import Paths

__all__ = [
    "CASES",
    "ENGINES",
    "Case",
    "FioReport",
    "Hit",
    "Seen",
    "judge_kill",
    "judge_verify",
    "judge_write",
    "observe",
    "parse_fio",
    "qualify",
]

ENGINES = ("psync", "pvsync2")
"""fio's engines whose calls go through the C library one by one: pread/pwrite, preadv2/pwritev2."""

BLOCK = 4096
FILE_BYTES = 1024 * 1024
DATA = "data"
DEADLINE_S = 15.0

_BAD_BLOCK = re.compile(
    rb"^\S+: (?:verify failed|bad [^\n]*?) at file [^\n]*? offset (\d+), length \d+", re.MULTILINE
)
_GOT_SIGNAL = re.compile(rb"^fio: pid=\d+, got signal=(\d+)", re.MULTILINE)

_BROKEN = "fio itself failed; run it by hand as workloads/fio/README.md shows"
_JOB = "the job does not write and verify the whole file: see workloads/fio"
_UNSEEN = "I/O went past the preload: see what it does not see in faults/README.md"
_IDLE = "the plan and the preload count differently, or the job is too short: nothing was tested"
_OTHER = "the preload did something else than its plan said: see inject.c and damage.c"
_SILENT = "damage was done and not found: verification is off in the job, or the record is wrong"
_FALSE = "blocks are bad that nobody damaged: the preload must pass all other operations through"


@dataclass(frozen=True, slots=True)
class Case:
    """One fault, or none, in fio's sequential write of FILE_BYTES."""

    name: str
    fault: Fault | None = None


def _fault(action: Action, sectors: str | None = None, shift: int | None = None) -> Fault:
    return Fault(FaultKind.WRITE, 100, action, file=DATA, sectors=sectors, shift=shift)


CASES = (
    Case("clean run"),
    Case("dropped write", _fault(Action.DROP)),
    Case("torn write", _fault(Action.TEAR, sectors="prefix:3")),
    Case("corrupted write", _fault(Action.CORRUPT, sectors="00010000")),
    # Backwards, so that it destroys a block that fio will not write again.
    Case("misdirected write", _fault(Action.MISDIRECT, shift=-16 * BLOCK)),
    Case("killed in a torn write", _fault(Action.KILL, sectors="prefix:3")),
    # The control of the one above: the same kill, but nothing is torn.
    Case("killed after a whole write", _fault(Action.KILL, sectors="all")),
)


@dataclass(frozen=True, slots=True)
class FioReport:
    """What fio told. complete: its JSON was there; reads, writes: blocks; error: errno of its jobs, or 0;
    signal: that killed a job, or 0; bad: offsets of the blocks that failed verification."""

    complete: bool
    reads: int = 0
    writes: int = 0
    error: int = 0
    signal: int = 0
    bad: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault as the preload recorded it; sectors: 0 lost, 1 kept (corrupt: damaged), 2 partly."""

    offset: int
    length: int
    sectors: bytes


@dataclass(frozen=True, slots=True)
class Seen:
    """What the preload recorded. fired: its header says so."""

    reads: int
    writes: int
    hits: tuple[Hit, ...]
    fired: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """A deviation, and what it means."""

    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Run:
    child: ChildResult
    report: FioReport
    seen: Seen


def qualify(
    paths: Paths,
    progress: Callable[[str], None],
    engines: Sequence[str] = ENGINES,
    cases: Sequence[Case] = CASES,
) -> list[Finding]:
    """Runs every case on every engine of fio; progress is told each before it starts.

    Needs fio, the built preload and the jobs of paths.workloads; what is missing is a failed check.
    Raises ConfigError when there is no scratch space.
    """
    library = preload_path(paths.build)
    if not library.is_file():
        return [Finding("fio under the preload", False, f"{library} is missing", "make build")]
    missing = [program for program in ("fio", "env") if shutil.which(program) is None]
    if missing:
        return [
            Finding(
                "fio under the preload", False, f"{missing[0]} is not installed", "make setup-all"
            )
        ]
    checks = []
    for engine in engines:
        for case in cases:
            name = f"fio {engine}: {case.name}"
            progress(name)
            with scratch_folder() as folder:
                bench = _Bench(folder.resolve(), library, paths.workloads / "fio", engine)
                checks.append(_check(name, case.fault, bench))
    return checks


def _check(name: str, fault: Fault | None, bench: _Bench) -> Finding:
    try:
        problems, seen = _examine(fault, bench)
    except ConfigError:
        raise
    except TornpageError as error:
        return Finding(name, False, str(error), _BROKEN)
    if problems:
        text = "; ".join(problem.text for problem in problems)
        return Finding(name, False, text, problems[0].remedy)
    return Finding(name, True, seen)


def _examine(fault: Fault | None, bench: _Bench) -> tuple[list[Problem], str]:
    run = bench.run("write.fio", FILE_BYTES, fault)
    if fault is None or fault.action is not Action.KILL:
        return _ended(run) or judge_write(fault, run.report, run.seen), _describe(run)
    problems = _hung(run) or judge_kill(fault, run.report, run.seen)
    if problems:
        return problems, ""
    hit = run.seen.hits[0]
    again = bench.run("verify.fio", hit.offset + BLOCK, None)
    problems = _ended(again) or judge_verify(hit, again.report, again.seen)
    end = f"signal {run.child.signal}" if run.child.signal else f"exit code {run.child.exit_code}"
    return problems, f"job killed, fio's own end: {end}; then {_describe(again)}"


def _hung(run: _Run) -> list[Problem]:
    return [Problem(f"fio {run.child.describe()}", _BROKEN)] if run.child.timed_out else []


def _ended(run: _Run) -> list[Problem]:
    if problems := _hung(run):
        return problems
    if run.child.signal or not run.report.complete:
        return [Problem(f"fio ended without a result: {run.child.describe()}", _BROKEN)]
    return []


def _describe(run: _Run) -> str:
    seen, bad = run.seen, sorted(run.report.bad)
    blocks = f"bad blocks {[offset // BLOCK for offset in bad]}" if bad else "no bad block"
    return f"{seen.writes} writes and {seen.reads} reads seen, hits {len(seen.hits)}, {blocks}"


class _Bench:
    """One scratch folder with the file under test, and fio on it under the preload."""

    def __init__(self, folder: Path, library: Path, jobs: Path, engine: str) -> None:
        """folder: of its own, absolute and without links; jobs: folder with the .fio files."""
        self._folder = folder
        self._root = folder / "root"
        self._library = library
        self._jobs = jobs.resolve()
        self._engine = engine
        self._root.mkdir()
        (self._root / DATA).write_bytes(bytes(FILE_BYTES))

    def run(self, job: str, size: int, fault: Fault | None) -> _Run:
        """Runs fio on the first `size` bytes. Raises ChildError and TraceError."""
        trace, plan = self._folder / "trace", self._folder / "plan"
        plan.write_text(compile_plan((fault,) if fault else ()), "ascii")
        env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "LC_ALL": "C",
            **preload_environment(self._library, self._root, trace, plan),
            "TORNPAGE_FIO_ENGINE": self._engine,
            "TORNPAGE_FIO_SIZE": str(size),
        }
        # With a folder in its file's name fio's parent process would create it, and so own the trace.
        argv = [_program("env"), f"--chdir={self._root}", _program("fio"), "--output-format=json"]
        child = run_child([*argv, str(self._jobs / job)], env, DEADLINE_S)
        if child.timed_out:
            _end_jobs(self._root)
        report = parse_fio(child.stdout, child.stderr)
        if not trace.is_file():
            raise TornpageError(f"fio left no trace: {child.describe()}")
        return _Run(child, report, observe(Trace.load(trace)))


def _program(name: str) -> str:
    return shutil.which(name) or name


def _end_jobs(folder: Path) -> None:
    """fio's jobs are sessions of their own and outlive it; only they work in this folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                os.kill(int(process.name), signal.SIGKILL)


def parse_fio(stdout: bytes, stderr: bytes) -> FioReport:
    """What fio printed with --output-format=json; notes around the JSON are skipped."""
    bad = frozenset(int(offset) for offset in _BAD_BLOCK.findall(stderr + b"\n" + stdout))
    killed = [int(number) for number in _GOT_SIGNAL.findall(stderr + b"\n" + stdout)]
    number = killed[0] if killed else 0
    text = stdout.decode("utf-8", "replace")
    try:
        data, _ = json.JSONDecoder().raw_decode(text, max(0, text.find("{\n")))
        jobs = data["jobs"]
        return FioReport(
            complete=len(jobs) > 0,
            reads=sum(int(job["read"]["total_ios"]) for job in jobs),
            writes=sum(int(job["write"]["total_ios"]) for job in jobs),
            error=next((int(job["error"]) for job in jobs if job["error"]), 0),
            signal=number,
            bad=bad,
        )
    except (ValueError, KeyError, TypeError):
        return FioReport(complete=False, signal=number, bad=bad)


def observe(trace: Trace) -> Seen:
    """Counts what the preload recorded; an operation that failed does not count."""
    reads = writes = 0
    hits = []
    for event in trace.events():
        if event.kind == Op.READ:
            reads += event.result > 0
        elif event.kind == Op.WRITE:
            writes += event.result > 0
        elif event.kind in (Op.FAULT, Op.KILL):
            damage = trace.damage(event)
            hits.append(Hit(event.offset, event.length, damage.sectors if damage else b""))
    return Seen(reads, writes, tuple(hits), trace.fired)


def judge_write(fault: Fault | None, report: FioReport, seen: Seen) -> list[Problem]:
    """A run of write.fio to its end: the file was damaged as planned, and fio found just that."""
    problems = _judge_counts(report, seen, FILE_BYTES // BLOCK, FILE_BYTES // BLOCK)
    if report.signal:
        problems.append(Problem(f"fio's job died by signal {report.signal}", _BROKEN))
    problems += _judge_hits(fault, seen)
    damaged = {hit.offset for hit in seen.hits}
    if fault is not None and fault.shift is not None:
        damaged |= {hit.offset - fault.shift for hit in seen.hits}
    return problems + _judge_bad(report, damaged)


def judge_kill(fault: Fault, report: FioReport, seen: Seen) -> list[Problem]:
    """A run of write.fio that dies in its nth write: by SIGKILL, with the n-1 before it recorded."""
    problems = _judge_hits(fault, seen)
    if report.signal != signal.SIGKILL:
        problems.append(Problem("fio does not say that its job was killed", _OTHER))
    if seen.writes != fault.nth - 1:
        text = f"{seen.writes} writes recorded before the kill in number {fault.nth}"
        problems.append(Problem(text, _UNSEEN))
    return problems


def judge_verify(hit: Hit, report: FioReport, seen: Seen) -> list[Problem]:
    """A run of verify.fio after a kill, up to the block that was hit: that is bad if torn, others never."""
    problems = _judge_counts(report, seen, hit.offset // BLOCK + 1, 0)
    torn = any(sector != 1 for sector in hit.sectors)
    return problems + _judge_hits(None, seen) + _judge_bad(report, {hit.offset} if torn else set())


def _judge_counts(report: FioReport, seen: Seen, reads: int, writes: int) -> list[Problem]:
    problems = []
    for what, wanted, told, recorded in [
        ("reads", reads, report.reads, seen.reads),
        ("writes", writes, report.writes, seen.writes),
    ]:
        if told != wanted:
            problems.append(Problem(f"fio tells of {told} {what}, not {wanted}", _JOB))
        if recorded != wanted:
            problems.append(Problem(f"the preload saw {recorded} {what}, not {wanted}", _UNSEEN))
    return problems


def _judge_hits(fault: Fault | None, seen: Seen) -> list[Problem]:
    wanted = 0 if fault is None else 1
    if len(seen.hits) != wanted or seen.fired != (wanted > 0):
        flag = "says" if seen.fired else "does not say"
        text = f"{len(seen.hits)} hits, not {wanted}; the header {flag} that a fault fired"
        return [Problem(text, _IDLE if fault else _OTHER)]
    if fault is None:
        return []
    hit = seen.hits[0]
    spec = fault.sectors or ("none" if fault.action is Action.DROP else "all")
    mask = resolve_mask(spec, hit.offset, hit.length, fault.sector)
    done = "".join(str(sector) for sector in hit.sectors)
    offset = (fault.nth - 1) * BLOCK + (fault.shift or 0)
    if (hit.offset, hit.length, done) != (offset, BLOCK, mask):
        text = f"hit {hit.length} bytes at {hit.offset}, sectors {done}; not {offset}, {mask}"
        return [Problem(text, _OTHER)]
    return []


def _judge_bad(report: FioReport, damaged: set[int]) -> list[Problem]:
    problems = []
    if missed := sorted(damaged - report.bad):
        problems.append(Problem(f"fio did not find the damage at {missed}", _SILENT))
    if surplus := sorted(report.bad - damaged):
        problems.append(Problem(f"fio finds {surplus} bad, which nobody damaged", _FALSE))
    error = errno.EILSEQ if report.bad else 0
    if report.error != error:
        text = (
            f"error {report.error} in fio's JSON, but {len(report.bad)} bad blocks in its messages"
        )
        problems.append(Problem(text, _BROKEN))
    return problems
