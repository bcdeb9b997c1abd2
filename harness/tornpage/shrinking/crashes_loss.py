"""Looks for a power-loss state with a given fingerprint: records the script's run and explores it,
first close to the last crash, then all over. A script counts as harmless if no state of a bounded
number shows the finding. Where no run need equal another, a state is one of a recording, which is kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.faults.image import remove_image
from tornpage.faults.trace import Trace
from tornpage.live.journal import read_journal
from tornpage.live.kept import keep_recording, kept_recording, load_recording
from tornpage.live.recording import Recording, recorded_run
from tornpage.oracle.fingerprint import fingerprint_of
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Scope, explore, loss_plan, replay_state
from tornpage.shrinking.crashes import Crash, choose_violation, inline_spec, shows
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.errors import MachineError, TornpageError
from tornpage.vocabulary.model import FaultPlan, TrialResult, TrialSpec, Violation
from tornpage.workloads.script import Script

__all__ = ["LossSearch", "different_sectors"]

STATES_NEAR = 60
STATES_ALL = 120
"""Power-loss states that are tried per script: close to the last crash, and anywhere."""
STATES_LAST = 600
"""States per model when the script is final and the simplest state is wanted."""
EXPLORE_S = 10.0
"""Seconds for one exploration."""
SHARED = Scope(jobs=min(os.cpu_count() or 1, 4))
"""All crash points, by several workers; their number changes no result."""

SIMPLE = (
    "all-persisted",
    "ordered",
    "overlapped",
    "one-dropped",
    "one-torn",
    "one-persisted",
    "one-part",
    "none-persisted",
    "by-file",
)
SUBSET = "subset"


@dataclass(frozen=True, slots=True)
class _Kept:
    """The recording of a run of this script, beside a folder."""

    script: Script
    folder: Path


class LossSearch:
    """Power-loss states of a recorded run."""

    def __init__(
        self,
        spec: TrialSpec,
        script: Script,
        target: Target,
        scratch: Path,
        wanted: Violation,
        image: Path | None = None,
    ) -> None:
        """Plays the state again; image: with which a recording may have been kept. Other arguments and errors
        as for KillSearch."""
        self._spec = spec
        self._target = target
        self._scratch = scratch
        self._kept = _Kept(script, image) if image and load_recording(image) is not None else None
        levels = spec.plan.loss.split("/")
        with self._recorded(script) as recording:
            result = self._replay(script, recording, spec.plan.loss)
            self.origin = max(0, self._line(recording, spec.plan.loss) - 1)
            self.start = Crash(spec.plan, self._lost(script, recording, spec.plan.loss))
        violation = choose_violation(result.violations, wanted, spec)
        self.fingerprint = fingerprint_of(violation, "")
        self._depth = len(levels)
        models = {level.split(".")[1] for level in levels}
        self._models = (*SIMPLE, SUBSET) if SUBSET in models else tuple(sorted(models))

    def find(self, script: Script, origins: Sequence[int]) -> Crash | None:
        """Records a run and explores it: near the last crash, then all over. MachineError: it cannot say."""
        try:
            with self._recorded(script) as recording:
                return self._find(script, recording, origins)
        except MachineError:
            raise
        except TornpageError:
            return None

    def _find(self, script: Script, recording: Recording, origins: Sequence[int]) -> Crash | None:
        for depth in range(1, self._depth + 1):
            for limits, scope in self._steps(recording, origins, depth):
                state = self._first(self._explore(script, recording, limits, scope))
                if state:
                    line = self._line(recording, state)
                    self.origin = origins[line - 1] if line else 0
                    self._depth = depth
                    self._keep(script, recording)
                    return Crash(loss_plan(state), None)
        return None

    def kept(self, script: Script) -> Path | None:
        """As of CrashSearch."""
        known = self._kept
        return known.folder if known is not None and known.script.text == script.text else None

    def _keep(self, script: Script, recording: Recording) -> None:
        """The last one that showed it: the crash is a state of it."""
        folder = self._scratch / "shown"
        if Capability.DETERMINISTIC not in self._target.capabilities and not self.kept(script):
            folder.mkdir(exist_ok=True)
            keep_recording(recording, folder, self._target)
            self._kept = _Kept(script, folder)

    def refine(self, script: Script, crash: Crash, deadline: float) -> Crash:
        """The state of any model in which the fewest sectors are lost."""
        with self._recorded(script) as recording:
            best = replace(crash, lost_sectors=self._lost(script, recording, crash.plan.loss))
            for model in (*SIMPLE, SUBSET):
                if best.lost_sectors == 0 or time.monotonic() > deadline:
                    break
                limits = replace(self._everywhere(self._depth), models=(model,), states=STATES_LAST)
                state = self._first(self._explore(script, recording, limits, SHARED))
                if not state:
                    continue
                lost = self._lost(script, recording, state)
                if best.lost_sectors is None or lost < best.lost_sectors:
                    best = Crash(loss_plan(state), lost)
            return best

    def _recorded(self, script: Script) -> AbstractContextManager[Recording]:
        spec = inline_spec(self._spec, script, FaultPlan())
        kept = self.kept(script)
        old = kept_recording(kept, self._scratch) if kept is not None else None
        return old or recorded_run(spec, self._target, self._scratch)

    def _explore(
        self, script: Script, recording: Recording, limits: Limits, scope: Scope
    ) -> dict[str, tuple[Violation, ...]]:
        spec = inline_spec(self._spec, script, FaultPlan())
        return dict(explore(spec, self._target, recording, limits, scope).broken)

    def _replay(self, script: Script, recording: Recording, state: str) -> TrialResult:
        spec = inline_spec(self._spec, script, loss_plan(state))
        return replay_state(spec, self._target, recording, self._image(state))

    def _image(self, state: str) -> Path:
        return self._scratch / "states" / state.replace("/", "-")

    def _steps(
        self, recording: Recording, origins: Sequence[int], depth: int
    ) -> list[tuple[Limits, Scope]]:
        """Near: the crash points of the statement that is closest to the last crash."""
        everywhere = (self._everywhere(depth), SHARED)
        if not origins:
            return [everywhere]
        at = min(range(len(origins)), key=lambda i: abs(origins[i] - self.origin))
        journal = read_journal(Trace.load(recording.trace))
        starts = [seq for seq, _line in journal.issued]
        if at >= len(starts):
            return [everywhere]
        last = starts[at + 1] if at + 1 < len(starts) else recording.events
        near = (
            replace(everywhere[0], states=STATES_NEAR * depth),
            replace(SHARED, events=(starts[at], last)),
        )
        return [near, everywhere]

    def _everywhere(self, depth: int) -> Limits:
        return Limits(
            models=self._models, depth=depth, states=STATES_ALL * depth, budget_s=EXPLORE_S
        )

    def _first(self, broken: dict[str, tuple[Violation, ...]]) -> str:
        """The first state with the wanted fingerprint, "" if there is none."""
        for state, violations in broken.items():
            if shows(violations, self.fingerprint, ""):
                return state
        return ""

    def _line(self, recording: Recording, state: str) -> int:
        seq = int(state.split(".", 1)[0])
        return read_journal(Trace.load(recording.trace)).at(seq + 1)[1]

    def _lost(self, script: Script, recording: Recording, state: str) -> int:
        """Sectors in which the image differs from the one with everything persisted, over all levels."""
        total = 0
        levels = state.split("/")
        for depth in range(1, len(levels) + 1):
            part = "/".join(levels[:depth])
            whole = "/".join(
                [*levels[: depth - 1], f"{levels[depth - 1].split('.')[0]}.{SIMPLE[0]}.0"]
            )
            images = []
            for each in (part, whole):
                self._replay(script, recording, each)
                images.append(self._image(each))
            total += different_sectors(*images)
            for image in images:
                remove_image(image)
        return total


def different_sectors(one: Path, other: Path) -> int:
    """512-byte sectors that differ; a file that one of them lacks counts as empty, and for one more."""
    count = 0
    names = {path.relative_to(folder) for folder in (one, other) for path in folder.rglob("*")}
    for name in sorted(names):
        if (one / name).is_dir() or (other / name).is_dir():
            continue
        count += (one / name).exists() != (other / name).exists()
        a, b = (p.read_bytes() if p.exists() else b"" for p in (one / name, other / name))
        count += sum(
            a[at : at + 512] != b[at : at + 512] for at in range(0, max(len(a), len(b)), 512)
        )
    return count
