"""The base line: what a plain `kill -9` loop finds. No preload, no chosen write: the program is started,
killed by its pid after a time drawn by seed, recovered, checked, and compared with the oracle by the
acknowledgements that it had printed.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tornpage.faults.image import remove_image
from tornpage.faults.process import end_child, launch_argv, run_child
from tornpage.oracle.judgement import judge
from tornpage.oracle.oracle import Oracle
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import ChildError, TargetError
from tornpage.vocabulary.model import TrialSpec, Violation
from tornpage.vocabulary.seeds import make_rng
from tornpage.workloads.workload import generate

__all__ = ["KillLoop"]

RUN_DEADLINE_S = 60.0


class KillLoop:
    """Random kills of one configuration's run."""

    def __init__(self, spec: TrialSpec, target: Target, work: Path) -> None:
        """work: folder on tmpfs, made here; the caller removes it."""
        if not isinstance(target, EngineTarget):
            raise TargetError(f"target {target.name} prints no acknowledgements")
        self._spec = spec
        self._target = target
        self._work = work
        self._data = work / "data"
        remove_image(work)
        work.mkdir(parents=True)
        script = generate(spec.workload, spec.params, spec.workload_seed)
        self._oracle = Oracle(script, spec.options)
        self._script = work / "script"
        self._script.write_text(script.text, "ascii")
        self._seconds = self._measure()

    def strike(self, number: int) -> list[Violation]:
        """What is found after the kill of this number: the same number draws the same time, not the same
        moment."""
        delay = make_rng(self._spec.seed, "kill", number).uniform(0, self._seconds)
        self._clean()
        command = self._target.loop_command(self._data, self._script, self._spec.options)
        acks = self._work / "acks"
        with acks.open("wb") as out:
            child = subprocess.Popen(
                launch_argv(command.argv, RUN_DEADLINE_S),
                env=dict(command.env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(delay)
            end_child(child.pid)
            child.wait()
        lines = [int(line[4:]) for line in acks.read_bytes().splitlines() if line[:4] == b"ack "]
        return self._judge(lines[-1] if lines else 0)

    def _judge(self, acked: int) -> list[Violation]:
        command = self._target.recover_command(self._data, self._spec.options)
        answer = self._target.parse_recovery(run_child(command.argv, command.env, RUN_DEADLINE_S))
        if answer.no_database and acked == 0:
            return []
        if not answer.ok or answer.state is None:
            return [Violation(30, f"recovery failed: {answer.message}")]
        low, high = self._range(acked)
        return [*answer.findings, *judge(self._oracle.states, answer.state, low, high)]

    def _range(self, acked: int) -> tuple[int, int]:
        """From the last acknowledged statement to the next one that succeeds: failures print nothing."""
        later = [step.line for step in self._oracle.steps if step.line > acked and not step.error]
        return self._oracle.after(acked), self._oracle.after(later[0] if later else acked)

    def _measure(self) -> float:
        self._clean()
        command = self._target.loop_command(self._data, self._script, self._spec.options)
        child = run_child(command.argv, command.env, RUN_DEADLINE_S)
        if child.exit_code != 0:
            raise ChildError(f"the run without a kill failed: {child.describe()}")
        return child.seconds

    def _clean(self) -> None:
        remove_image(self._data)
        self._data.mkdir()
