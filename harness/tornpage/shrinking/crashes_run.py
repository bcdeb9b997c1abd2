"""Follows a finding of a run without a fault, as a rule on bytes that was broken: a script shows it if its
own run does. There is no crash to be made smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tornpage.faults.image import remove_image
from tornpage.live.fault_free import failed_run, run_fault_free
from tornpage.live.journal import read_journal
from tornpage.oracle.fingerprint import RUN_SITE, fingerprint_of
from tornpage.shrinking.crashes import Crash, choose_violation, inline_spec, shows
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import FailedRunError, MachineError, TornpageError
from tornpage.vocabulary.model import FaultPlan, TrialSpec, Violation
from tornpage.workloads.script import Script

__all__ = ["RunSearch"]

NO_CRASH = Crash(FaultPlan(name="fault_free"), None)


class RunSearch:
    """Runs without a fault."""

    def __init__(
        self, spec: TrialSpec, script: Script, target: Target, scratch: Path, wanted: Violation
    ) -> None:
        """Runs the script again; arguments and errors as for KillSearch."""
        self._spec, self._target, self._scratch = spec, target, scratch
        violations, self._lines = self._run(script)
        violation = choose_violation(violations, wanted, spec)
        self.fingerprint = fingerprint_of(violation, RUN_SITE)
        self.start = NO_CRASH
        self.origin = self._line(len(script.statements)) - 1

    def find(self, script: Script, origins: Sequence[int]) -> Crash | None:
        """Runs it. MachineError: it cannot say."""
        try:
            violations, self._lines = self._run(script)
        except MachineError:
            raise
        except TornpageError:
            return None
        if not shows(violations, self.fingerprint, RUN_SITE):
            return None
        self.origin = origins[self._line(len(origins)) - 1] if origins else 0
        return NO_CRASH

    def kept(self, script: Script) -> None:
        """Its crash is one of any run."""

    def refine(self, script: Script, crash: Crash, deadline: float) -> Crash:  # noqa: ARG002
        """It stays as it is."""
        return crash

    def _line(self, last: int) -> int:
        """The statement in flight when the finding was made, from 1; the last one if that is not known."""
        return min(max(self._lines.get(self.fingerprint.path, last), 1), max(last, 1))

    def _run(self, script: Script) -> tuple[tuple[Violation, ...], dict[str, int]]:
        """What is wrong with its run, and by the path of a finding the statement that it was made in."""
        spec = inline_spec(self._spec, script, FaultPlan())
        work = self._scratch / "run"
        try:
            run = run_fault_free(replace(spec, number=0), self._target, work)
        except FailedRunError as error:
            return failed_run(spec.config, False, error).violations, {}
        finally:
            remove_image(work)
        journal = read_journal(run.trace)
        lines: dict[str, int] = {}
        for finding in run.findings:
            path = fingerprint_of(finding.violation, RUN_SITE).path
            lines.setdefault(path, journal.at(finding.seq)[1])
        return run.violations, lines
