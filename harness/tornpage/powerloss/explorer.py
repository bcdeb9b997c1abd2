"""Power loss: lets the explorer (explorer/) enumerate the crash states that a recorded run could have
suffered. What it finds comes back as violations, each with the id of its state, which replays alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tornpage.faults.image import remove_image
from tornpage.faults.process import ChildResult, require_loaded, run_child
from tornpage.live.recording import Recording
from tornpage.plans.limits import Limits
from tornpage.powerloss.watching import Tell, Watch
from tornpage.targets.target import Command, Target, last_object
from tornpage.vocabulary.errors import ChildError, DeafError, MachineError, TargetError
from tornpage.vocabulary.model import (
    FaultPlan,
    Outcome,
    Site,
    Source,
    TrialResult,
    TrialSpec,
    Violation,
)

__all__ = [
    "EVERYWHERE",
    "Exploration",
    "Scope",
    "explore",
    "explore_slice",
    "lay_out_state",
    "loss_models",
    "loss_plan",
    "merge_slices",
    "replay_state",
]

EXPLORER_DEADLINE_S = 120.0
"""For what it does besides its states."""
WHOLE_DEADLINE_S = 24 * 3600.0
"""Of an exploration, or a slice of one, that no budget ends."""
MODELS_DEADLINE_S = 10.0
EXIT_CLEAN = 0
EXIT_VIOLATIONS = 1
EXIT_NOTHING = 3
EXIT_MACHINE = 10
EXIT_DEAF = 11
BEFORE_ALL = 0
"""The crash point before a run: none behind `ready`."""
JOBS = "jobs"
"""How many processes shared the states, which makes no difference to what they came to."""
PATHS = "paths"
OF_ALL = ("second_crash", "recovered_twice")
"""Paths that states of every target can take."""
RECOVERY = "recovery"
"""The explorer's name for what recovery itself said."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an exploration looks, within its limits. jobs: processes that share it; events: only crash points
    after events of these numbers, both included, None = all; ignored_fsyncs: patterns of files whose fsync is
    a lie; aim: only crash points after events by which the run broke a rule on bytes; else a quarter of the
    states; whole: all states of the basic models, however few the limit allows; canaries: also judge states
    that must be condemned."""

    jobs: int = 1
    events: tuple[int, int] | None = None
    ignored_fsyncs: tuple[str, ...] = ()
    aim: bool = False
    whole: bool = False
    canaries: bool = False


EVERYWHERE = Scope()


@dataclass(frozen=True, slots=True)
class Exploration:
    """What the explorer said. summary: its last object (states, distinct, states_per_s, paths, ...);
    broken: state id -> violations, one state of each kind, each violation with the site of the write that
    its crash point follows; alike: state id -> how many states broke just the same at such a site;
    answer: what a recovery said that did not succeed."""

    summary: Mapping[str, Any]
    broken: Mapping[str, tuple[Violation, ...]] = field(default_factory=dict)
    alike: Mapping[str, int] = field(default_factory=dict)
    answer: str = ""


def loss_models(explorer: Path) -> dict[str, str]:
    """By name of a model of crash states, what it keeps of that which was not fsynced. Raises TargetError."""
    child = run_child([explorer, "--list-models", "--json"], os.environ, MODELS_DEADLINE_S)
    data = last_object(child.stdout)
    if child.exit_code != EXIT_CLEAN or data is None:
        raise TargetError(f"{explorer} lists no models: {child.describe()}")
    return {item["name"]: item["what"] for item in data["models"]}


def explore(
    spec: TrialSpec,
    target: Target,
    recording: Recording,
    limits: Limits,
    scope: Scope = EVERYWHERE,
    tell: Tell | None = None,
    progress: Path | None = None,
) -> Exploration:
    """Enumerates crash states. tell: hears how far it is; progress: a file in which others see that. Raises
    ChildError when the explorer fails, DeafError where a canary is not condemned."""
    arguments = _arguments(spec, recording, limits, scope)
    deadline = limits.budget_s * 2 + EXPLORER_DEADLINE_S if limits.budget_s else WHOLE_DEADLINE_S
    if tell is None and progress is None:
        return _read(target, _run(_explorer(spec, target, recording, arguments), deadline))
    file = progress or recording.trace.with_name("progress")
    command = _explorer(spec, target, recording, [*arguments, "--progress", str(file)])
    if tell is None:
        return _read(target, _run(command, deadline))
    try:
        return _read(target, _run(command, deadline, Watch(file, limits, tell).look))
    finally:
        tell("", 0.0)


def explore_slice(
    spec: TrialSpec,
    target: Target,
    recording: Recording,
    limits: Limits,
    scope: Scope,
    number: int,
    of: int,
) -> bytes:
    """Enumerates the crash states of a slice, 1 ... of. Returns what merge_slices() wants of each. Raises as
    explore()."""
    file = recording.trace.with_name("slice")
    arguments = _arguments(spec, recording, limits, scope)
    arguments += ["--slice", f"{number}/{of}", "--slice-file", str(file)]
    _run(_explorer(spec, target, recording, arguments), WHOLE_DEADLINE_S)
    return file.read_bytes()


def merge_slices(spec: TrialSpec, target: Target, slices: Path) -> Exploration:
    """What explore() would have returned. slices: a file of all of them, one behind the other. ChildError:
    they do not fit."""
    command = target.explore_command(slices, slices, spec.options)
    command = replace(command, argv=(*command.argv, "--merge", str(slices), "--json"))
    return _read(target, _run(command, WHOLE_DEADLINE_S))


def _arguments(spec: TrialSpec, recording: Recording, limits: Limits, scope: Scope) -> list[str]:
    """Those that say what is explored."""
    arguments = ["--seed", str(spec.seed), "--depth", str(limits.depth or 1)]
    arguments += ["--jobs", str(scope.jobs)]
    for model in limits.models:
        arguments += ["--model", model]
    if limits.states:
        arguments += ["--states", str(limits.states)]
    if limits.budget_s:
        arguments += ["--budget", str(limits.budget_s)]
    if scope.events is not None:
        first, last = scope.events
        arguments += ["--from-seq", str(first), "--to-seq", str(last)]
    elif recording.ready:
        arguments += ["--from-seq", str(recording.ready)]
    if scope.events is None and recording.over:
        arguments += ["--to-seq", str(recording.over)]
    option = "--at-seq" if scope.aim else "--suspect"
    for seq in recording.suspect or ((BEFORE_ALL,) if scope.aim else ()):
        arguments += [option, str(seq)]
    for inode, offset in recording.accused:
        arguments += ["--accused", f"{inode}:{offset}"]
    if scope.whole:
        arguments += ["--whole"]
    if scope.canaries:
        arguments += ["--canaries"]
    for pattern in scope.ignored_fsyncs:
        arguments += ["--ignore-fsync", pattern]
    return arguments


def loss_plan(state: str) -> FaultPlan:
    """The plan of the power-loss state of this id."""
    return FaultPlan(name=f"power loss {state}", loss=state)


def lay_out_state(
    spec: TrialSpec,
    target: Target,
    recording: Recording,
    state: str,
    image: Path | None,
    way: Path | None = None,
    chosen: Path | None = None,
    sample: str = "",
) -> Exploration:
    """Runs one state again; its files go to `image`, and to the file `way` what became of the last
    operations before its crash, one JSON object per level. chosen: file with what the states of the model
    `chosen` keep (disk/chosen.h); sample: by which it is drawn what is looked at besides its recovery, as the
    way of another state has it; "": its own."""
    depth = state.count("/") + 1
    arguments = ["--seed", str(spec.seed), "--only", state]
    for option, path in (("--dump-state", image), ("--way", way), ("--chosen", chosen)):
        arguments += [option, str(path)] if path is not None else []
    arguments += ["--sample", sample] if sample else []
    arguments += ["--depth", str(depth)]
    command = _explorer(spec, target, recording, arguments)
    return _read(target, _run(command, _state_deadline_s(command, depth)))


def replay_state(spec: TrialSpec, target: Target, recording: Recording, image: Path) -> TrialResult:
    """Runs the state of the plan again and keeps its files in image/data, in place of any before."""
    state = spec.plan.loss
    remove_image(image)
    image.mkdir(parents=True)
    found = lay_out_state(spec, target, recording, state, image / "data")
    violations = found.broken.get(state, ())
    outcome = Outcome.VIOLATION if violations else Outcome.CLEAN
    return TrialResult(
        number=spec.number,
        outcome=outcome,
        violations=violations,
        site=violations[0].site if violations else None,
        mask=state,
        counters=dict(found.summary.get(PATHS, {})),
        trace_hash=recording.trace_hash,
        image=image.resolve(),
        answer=found.answer,
    )


def _what(item: Mapping[str, Any]) -> str:
    """In the words of rules.py: a rule's finding begins with the name of the rule."""
    if "rule" not in item:
        return str(item["what"])
    return f"{item['rule']}: {str(item['what']).removeprefix('recovery: ')}"


def _source(name: str) -> Source:
    """The explorer tells recovery, scan and oracle apart: all of them speak of the state."""
    return Source.RULE if name == Source.RULE else Source.STATE


def _state_deadline_s(command: Command, depth: int) -> float:
    """Of one state alone. The explorer may ask a target twice at each level before it says that the state
    hangs, which is a verdict and comes first."""
    return 2 * command.deadline_s * depth + EXPLORER_DEADLINE_S


def _explorer(
    spec: TrialSpec, target: Target, recording: Recording, arguments: list[str]
) -> Command:
    """The explorer on this recording."""
    command = target.explore_command(recording.trace, recording.allowed, spec.options)
    base = ["--base", str(recording.found)] if any(recording.found.iterdir()) else []
    base += [] if recording.at is None else ["--recover-at", str(recording.at)]
    sites = () if recording.write_sites is None else ("--write-sites", str(recording.write_sites))
    words = ("--kinds", str(recording.kinds), *sites, *arguments, *base, "--json")
    return replace(command, argv=(*command.argv, *words))


def _run(
    command: Command, deadline_s: float, watch: Callable[[], None] | None = None
) -> ChildResult:
    """Raises DeafError, MachineError or ChildError unless the explorer has done its work."""
    child = run_child(command.argv, command.env, deadline_s, watch=watch)
    if child.exit_code == EXIT_DEAF:
        raise DeafError(child.last_line.removeprefix("tornpage-explore: "))
    if child.exit_code == EXIT_MACHINE:
        raise MachineError(f"the explorer: {child.last_line}")
    if child.exit_code not in (EXIT_CLEAN, EXIT_VIOLATIONS, EXIT_NOTHING):
        raise ChildError(f"the explorer failed: {child.describe()}")
    return child


def _read(target: Target, child: ChildResult) -> Exploration:
    """Raises ChildError, and TargetError for recoveries that could not be loaded."""
    lines = [line for line in child.stdout.splitlines() if line.startswith(b"{")]
    objects = [json.loads(line) for line in lines]
    if not objects or "states" not in objects[-1]:
        raise ChildError(f"the explorer printed no summary: {child.describe()}")
    broken: dict[str, tuple[Violation, ...]] = {}
    alike: dict[str, int] = {}
    for item in objects[:-1]:
        what = f"{_what(item)} (model {item['model']})"
        violation = Violation(
            int(item["invariant"]), what, Site(item["site"]), source=_source(item["source"])
        )
        state = item["state"]
        broken[state] = (*broken.get(state, ()), violation)
        alike[state] = int(item["count"])
    answers = [str(item["what"]) for item in objects[:-1] if item["source"] == RECOVERY]
    for answer in answers:
        require_loaded(answer)
    summary = {key: value for key, value in objects[-1].items() if key != JOBS}
    counted = {*target.counters, *OF_ALL}
    paths = {name: n for name, n in summary.pop(PATHS, {}).items() if name in counted}
    summary |= {PATHS: paths} if paths else {}
    return Exploration(summary, broken, alike, answers[0] if answers else "")
