"""Runs that stand still at their acknowledgements: what is in the files then must be what was recorded till
then; and runs that a fault ends.

At the end of a run a file may hold again what it should, whatever was written to it past the recorder in
between. So the recorder waits at each acknowledgement until the files have been compared with the recording.
"""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import xxhash

from tornpage.faults.image import copy_image, keep_files, remove_image
from tornpage.faults.plan import compile_plan
from tornpage.faults.preload import WHOLE
from tornpage.faults.stream import RecordedFiles
from tornpage.faults.trace import GrowingTrace, Trace, has_fired
from tornpage.targets.target import Command, Recorded, Target
from tornpage.vocabulary.errors import TraceError, UnseenError
from tornpage.vocabulary.model import Fault, TrialSpec
from tornpage.workloads.workload import generate

__all__ = ["Compared", "check_at_acknowledgements", "run_stopped"]

SLOWER = 4.0
"""A run that stands still so often may take so many times its deadline."""
EVERY_ACK = 500
"""Where a run has more acknowledgements than that, every second one is compared up to 500 more, then every
third, and so on."""
EVERY_BYTES = 1 << 29
"""The same of bytes that were read for it."""


@dataclass(frozen=True, slots=True)
class Compared:
    """At how many of its acknowledgements the files of a run were compared with its recording."""

    acknowledgements: int
    of: int

    def __add__(self, other: Compared) -> Compared:
        return Compared(self.acknowledgements + other.acknowledgements, self.of + other.of)


def check_at_acknowledgements(spec: TrialSpec, target: Target, work: Path) -> Compared:
    """Compares the files of a run in the new folder `work` at its acknowledgements. Raises GoldenRunError
    naming acknowledgement, file and range."""
    command = _lay_out(spec, target, work)
    command = target.recorded(command, Recorded(work / "data", work / "trace", spec.options))
    name = f"tornpage-pause-{os.getpid()}-{xxhash.xxh3_64_hexdigest(str(work).encode())}"
    pauses = _Pauses(name, work, RecordedFiles(target.unrecorded, work / "found"))
    with pauses:
        command = replace(command, deadline_s=SLOWER * command.deadline_s, fork=None)
        command.run({**WHOLE, "TORNPAGE_PAUSE": name})
    if pauses.problem:
        raise UnseenError(
            f"at acknowledgement {pauses.compared.of} of a run: the recorded stream is not what happened: "
            f"{pauses.problem}"
        )
    return pauses.compared


def run_stopped(spec: TrialSpec, target: Target, work: Path, fault: Fault) -> Trace:
    """Runs the workload of `spec` in the new folder `work` until this fault kills it, if it does. Returns the
    recording; the crashed files are in work/data, those that were there before the run in work/found."""
    command = _lay_out(spec, target, work)
    (work / "plan").write_text(compile_plan((fault,)), "ascii")
    how = Recorded(work / "data", work / "trace", spec.options, work / "plan")
    killed = partial(has_fired, how.trace)
    target.recorded(command, how).run(WHOLE, may_be_killed=True, over=killed)
    return Trace.load(work / "trace")


def _lay_out(spec: TrialSpec, target: Target, work: Path) -> Command:
    """The command of a run in work/data."""
    remove_image(work)
    data, found = work / "data", work / "found"
    found.mkdir(parents=True)
    target.lay_out(found, spec.options)
    keep_files(found)
    copy_image(found, data)
    script = generate(spec.workload, spec.params, spec.workload_seed)
    (work / "script").write_text(script.text, "ascii")
    return target.run_command(data, work / "script", spec.options)


class _Pauses:
    """Answers the recorder on its socket: behind each acknowledgement, when the files are compared. problem:
    the first difference; compared.of: the acknowledgement that showed it."""

    def __init__(self, name: str, work: Path, files: RecordedFiles) -> None:
        """name: of the abstract socket."""
        self.problem = ""
        self.compared = Compared(0, 0)
        self._work, self._files = work, files
        self._trace: GrowingTrace | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{name}")
        self._listener.listen()
        self._thread = threading.Thread(target=self._answer, daemon=True)

    def __enter__(self) -> _Pauses:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Behind the end of the run."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        if self._trace is not None:
            self._trace.__exit__()

    def _answer(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # shut down
                return
            with connection:
                if not self.problem:
                    self._pause()

    def _pause(self) -> None:
        done, number = self.compared.acknowledgements, self.compared.of + 1
        stride = 1 + max(done // EVERY_ACK, self._files.read_bytes // EVERY_BYTES)
        due = number % stride == 0
        try:
            self.problem = self._compare() if due else ""
        except (OSError, TraceError) as error:
            self.problem = str(error)
        self.compared = Compared(done + due, number)

    def _compare(self) -> str:
        if self._trace is None:
            self._trace = GrowingTrace(self._work / "trace")
        problem = self._files.follow(self._trace.more())
        data = self._work / "data"
        return problem or self._files.difference(self._trace.under_way, data, all_=False)
