"""Where one trial is played: its folder, its target, and the processes that run in it, each with what was
recorded of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tornpage.faults.image import copy_image, remove_image
from tornpage.faults.plan import compile_plan
from tornpage.faults.preload import BARE, EXIT_PRELOAD_REFUSED
from tornpage.faults.process import ChildResult, ended_from_outside
from tornpage.faults.stream import unseen_changes
from tornpage.faults.trace import Trace, has_fired, refusal
from tornpage.live.golden_run import Baseline
from tornpage.targets.target import Capability, Command, Recorded, Target
from tornpage.vocabulary.errors import ChildError, MachineError, PlanError, TraceError
from tornpage.vocabulary.model import Action, Fault, TrialSpec
from tornpage.vocabulary.paths import require_floor

__all__ = ["Spent", "Stage", "spent_on"]


@dataclass(frozen=True, slots=True)
class Spent:
    """What processes have cost. seconds: by phase."""

    seconds: dict[str, float]
    peak_bytes: int = 0
    written_bytes: int = 0

    def __add__(self, other: Spent) -> Spent:
        names = dict.fromkeys((*self.seconds, *other.seconds))
        return Spent(
            {name: self.seconds.get(name, 0.0) + other.seconds.get(name, 0.0) for name in names},
            max(self.peak_bytes, other.peak_bytes),
            self.written_bytes + other.written_bytes,
        )


def spent_on(phase: str, children: Iterable[ChildResult]) -> Spent:
    """By the processes of a phase."""
    total = Spent({})
    for child in children:
        total += Spent({phase: child.seconds}, child.peak_bytes, child.written_bytes)
    return total


@dataclass(frozen=True, slots=True)
class Stage:
    """work: the trial's own folder, in which `data` is what the target works on, and `image` the crashed
    image as it is kept."""

    spec: TrialSpec
    target: Target
    base: Baseline
    work: Path

    @property
    def data(self) -> Path:
        """What the target works on."""
        return self.work / "data"

    @property
    def image(self) -> Path:
        """The crashed image, which nothing recovers in place."""
        return self.work / "image"

    @property
    def deterministic(self) -> bool:
        """A run of the target is its golden run up to the fault."""
        return Capability.DETERMINISTIC in self.target.capabilities

    @property
    def ruled(self) -> bool:
        """The rules on bytes can be asked."""
        return Capability.RULES in self.target.capabilities

    def trace_of(self, name: str) -> Path:
        """The recording of a process by its name."""
        return self.work / f"{name}.trace"

    def run_command(self) -> Command:
        """The script, on `data`."""
        return self.target.run_command(self.data, self.base.script, self.spec.options)

    def recover_command(self, data: Path) -> Command:
        """A recovery of this folder."""
        return self.target.recover_command(data, self.spec.options)

    def put_in_place(self, source: Path) -> None:
        """`data` becomes a copy of this folder."""
        remove_image(self.data)
        copy_image(source, self.data)

    def play(
        self, name: str, command: Command, faults: tuple[Fault, ...] = (), *, bare: bool = False
    ) -> tuple[ChildResult, Trace]:
        """Runs a command under the recorder and these faults. bare: recorded without contents. EndedError if
        somebody else ended it, MachineError if the machine starved it, ChildError if it did what cannot be
        followed."""
        plan: Path | None = None
        if faults:
            plan = self.work / f"{name}.plan"
            plan.write_text(compile_plan(faults), "ascii")
        options, stacks = self.spec.options, self.spec.stacks
        how = Recorded(self.data, self.trace_of(name), options, plan, stacks=stacks)
        killed = any(fault.action is Action.KILL for fault in faults)
        errors = any(fault.action is not Action.KILL for fault in faults)
        child = self.target.recorded(command, how).run(
            BARE if bare else {},
            may_be_killed=killed,
            over=None if errors or not killed else partial(has_fired, how.trace),
        )
        if child.exit_code == EXIT_PRELOAD_REFUSED:
            require_floor(self.work)  # it may be the trace that found no room
            raise PlanError(
                refusal(self.trace_of(name)) or f"the preload refused: {child.last_line}"
            )
        return child, self._load(name, child)

    def _load(self, name: str, child: ChildResult) -> Trace:
        path = self.trace_of(name)
        if child.from_outside and not has_fired(path):
            raise ended_from_outside(f"the {name} of a trial", child.signal)
        if not path.exists():
            raise ChildError(f"no trace of the {name}: {child.describe()}")
        try:
            trace = Trace.load(path)
        except TraceError:
            require_floor(self.work)  # it overflows where there is no room for it, too
            raise
        unseen = unseen_changes(trace, self.target.unrecorded)
        if unseen:
            raise ChildError(f"the preload cannot follow {unseen} in the {name} of a trial")
        if trace.starved():
            raise MachineError(f"the {name} of a trial failed by {trace.starved()}")
        return trace
