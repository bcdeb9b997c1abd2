"""Does `explain` name the function that was changed? Planted bugs, drawn by seed, are found by the default
campaigns as shipped; the first state that a crash of a run has broken is explained, and the first frames of
A (what was lost) and B (what relied on it) are held against the functions that the patch changes. So is C,
where the mutant parts from the engine without the patch.

A row lies in OUT/explained/NAME.json and counts as long as sources, patch, campaigns and the harness are the
same.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from tornpage.campaigns.replay import play_trial
from tornpage.causes.cause import meetings
from tornpage.causes.contrast import contrast_trial
from tornpage.causes.explain import explain_trial
from tornpage.faults.scratch import scratch_folder
from tornpage.lab.measured import processor_seconds
from tornpage.lab.mutant_build import MutantBuilder
from tornpage.lab.mutant_pool import KeptRows, each_done, maker_of
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.shipped import live_first, try_campaigns
from tornpage.lab.traced import traced_program
from tornpage.lab.tryout import Tried
from tornpage.store.rows import TrialRow
from tornpage.targets.registry import DEFAULT_TARGET, make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.cause import Cause, Contrast, Explained, Operation
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError, TornpageError
from tornpage.vocabulary.evidence import Frame
from tornpage.vocabulary.model import Outcome, Source, TrialResult
from tornpage.vocabulary.paths import ROOT, Paths
from tornpage.vocabulary.seeds import derive_seed
from tornpage.workers.context import Progress

__all__ = [
    "ExplainedRow",
    "ExplainedScore",
    "contrast_at",
    "draw_mutants",
    "explained_page",
    "explained_table",
    "named_at",
    "run_explained",
]

FRAMES = 3
"""Innermost ones of the target's own code that may name the function."""
AFTER_WORK = "after new work: "
"""What the explorer says of work that it does in a recovered state: no crash has broken that."""
LIMIT_S = 300.0
"""Of processor time, after which the search for a broken state is given up."""


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """changed: functions that the patch changes; found: campaign and plan of the state; explained: None if it
    could not be, and why; error: the harness failed."""

    name: str
    changed: tuple[str, ...] = ()
    found: str = ""
    explained: Explained | None = None
    why: str = ""
    error: str = ""

    @property
    def named(self) -> str:
        """Where, as "A, frame 2"; "" if nowhere."""
        return named_at(self.explained.cause, self.changed) if self.explained else ""

    @property
    def contrasted(self) -> str:
        """Where by the contrast, as "run, frame 1"; "" if nowhere."""
        return contrast_at(self.explained.contrast, self.changed) if self.explained else ""

    @property
    def met(self) -> bool:
        """Whether the calls of A and B meet in one of them."""
        met = meetings(self.explained.cause) if self.explained else []
        return any(one.frames[0].function in self.changed for one in met)


@dataclass(frozen=True, slots=True)
class ExplainedScore:
    """All rows, by name."""

    rows: tuple[ExplainedRow, ...]

    @property
    def named(self) -> int:
        """How many name a changed function."""
        return sum(bool(row.named) for row in self.rows)

    @property
    def met(self) -> int:
        """How many name it there, or as the function in which the calls of A and B meet."""
        return sum(bool(row.named or row.met) for row in self.rows)

    @property
    def contrasted(self) -> int:
        """How many the contrast names."""
        return sum(bool(row.contrasted) for row in self.rows)

    @property
    def either(self) -> int:
        """How many the contrast names, or the first frames."""
        return sum(bool(row.named or row.contrasted) for row in self.rows)

    def exit_code(self) -> int:
        """0: all were named, by what it may be; 1: not all; 2: the harness failed at one of them."""
        if any(row.error for row in self.rows):
            return 2
        return 0 if self.either == len(self.rows) else 1

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        rows = [
            {**to_plain(row), "named": row.named, "met": row.met, "contrasted": row.contrasted}
            for row in self.rows
        ]
        counts = {"named": self.named, "met": self.met, "contrasted": self.contrasted}
        return {"mutants": len(self.rows), **counts, "either": self.either, "rows": rows}


def named_at(cause: Cause, changed: Sequence[str]) -> str:
    """Where the first frames of A, B or R have one of these functions, or those of who made what they
    bring, the innermost place first; "" if they do not."""
    stacks = [
        (name, frames)
        for letter, operations in (
            ("A", _first_of(cause)),
            ("B", _then_of(cause)),
            ("R", _parted(cause)),
        )
        for one in operations
        for name, frames in _stacks_of(letter, one)
    ]
    for depth in range(FRAMES):
        for name, frames in stacks:
            if len(frames) > depth and frames[depth].function in changed:
                return f"{name}, frame {depth + 1}"
    return ""


def contrast_at(contrast: Contrast | None, changed: Sequence[str]) -> str:
    """Where a contrast has one of these functions: the one that was left right before, or among those under
    way, the first of both; "" if it does not."""
    for what, functions in _contrasted(contrast):
        for depth, function in enumerate(functions, 1):
            if function in changed:
                return f"{what}, frame {depth}"
    return ""


def _contrasted(contrast: Contrast | None) -> Iterator[tuple[str, Sequence[str]]]:
    told = (("run", contrast.run), ("recovery", contrast.recovery)) if contrast else ()
    for what, one in told:
        if one is not None:
            yield what, [*([one.behind] if one.behind else []), *one.stack][:FRAMES]


def _stacks_of(letter: str, one: Operation) -> Iterator[tuple[str, Sequence[Frame]]]:
    yield letter, one.frames
    if one.change is not None:
        yield f"change of {letter}", one.change.frames


def _first_of(cause: Cause) -> Sequence[Operation]:
    """A: what was lost; where nothing was, what came too late."""
    return cause.lost or ((cause.until,) if cause.until else ())


def _then_of(cause: Cause) -> Sequence[Operation]:
    """B."""
    return (cause.relied,) if cause.relied else ()


def _parted(cause: Cause) -> Sequence[Operation]:
    """R: where nothing of the run is to blame, where recovery fails, else where it goes another way."""
    told = cause.parting
    found = (told.fails or told.goes or told.instead) if told and told.blames else None
    return (found,) if found else ()


def draw_mutants(mutants: Sequence[Mutant], seed: int, count: int) -> list[Mutant]:
    """So many of them, by name: those that come first in an order of the seed's, in which a new one moves no
    other. Raises ConfigError if there are not so many."""
    if count > len(mutants):
        raise ConfigError(f"--count {count}: there are {len(mutants)} mutants")
    order = sorted(mutants, key=lambda one: derive_seed(seed, "explained", one.name))
    return sorted(order[:count], key=lambda one: one.name)


@dataclass(frozen=True, slots=True)
class _Task:
    mutant: Mutant
    changed: tuple[str, ...]
    first: tuple[str, ...]
    scratch: Path
    seed: int


def run_explained(
    mutants: Sequence[Mutant],
    seed: int,
    builder: MutantBuilder,
    paths: Paths,
    jobs: int,
    out: Path,
    progress: Progress,
) -> ExplainedScore:
    """seed: of the campaigns; jobs: how many mutants at a time."""
    builder.check_patches(list(mutants))
    kept = KeptRows(out / "explained", ExplainedRow, maker_of(paths.workloads))
    keys = {mutant.name: f"{builder.key(mutant)} {seed}" for mutant in mutants}
    rows = {name: row for name, key in keys.items() if (row := kept.load(name, key))}
    left = [mutant for mutant in mutants if mutant.name not in rows]
    progress.phase("mutants", len(left))
    with scratch_folder() as scratch:
        tasks = [
            (one, _Task(one, builder.changed(one), live_first(one), scratch, seed)) for one in left
        ]
        for _task, row in each_done(tasks, _explain, _failed, builder, paths, jobs):
            rows[row.name] = row
            if not row.error:
                kept.keep(row.name, keys[row.name], row)
            progress.advance(not (row.named or row.contrasted))
    return ExplainedScore(tuple(rows[mutant.name] for mutant in mutants))


def _failed(task: _Task, why: str) -> ExplainedRow:
    return ExplainedRow(task.mutant.name, task.changed, error=why)


def _explain(task: _Task, paths: Paths) -> ExplainedRow:
    """On a worker."""
    name = task.mutant.name
    scratch = task.scratch / name
    scratch.mkdir(parents=True)
    try:
        target = make_target(DEFAULT_TARGET, paths.build)
        tries = try_campaigns(task.seed, task.first, target, paths, scratch)
        tried = _first_broken(tries)
        if tried is None:
            why = f"no state broken by a crash within {LIMIT_S:.0f} s of processor time"
            return ExplainedRow(name, task.changed, why=why)
        found = f"{tried.spec.campaign}: {tried.spec.plan.name}"
        row = _row(tried, target, scratch)
        try:
            explained = explain_trial(row, paths, (), lambda _: None)
        except ConfigError as error:
            return ExplainedRow(name, task.changed, found, why=str(error))
        programs = MutantBuilder().traced(task.mutant), traced_program(ROOT)
        contrast = contrast_trial(row, paths, *programs, "the engine without the bug")
        return ExplainedRow(name, task.changed, found, replace(explained, contrast=contrast))
    except TornpageError as error:
        return _failed(task, str(error))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _first_broken(tries: Iterable[Tried]) -> Tried | None:
    """By a crash of a run; by one of a recovery, or by new work after it, if that is all that an exploration
    has found."""
    start = processor_seconds()
    other = None
    for tried in tries:
        broken = [one for one in tried.violations if one.source is Source.STATE]
        if broken and tried.spec.plan.crashes:
            of_run = not any(tried.spec.plan.recover) and "/" not in tried.spec.plan.loss
            if of_run and not all(one.what.startswith(AFTER_WORK) for one in broken):
                return tried
            other = other or tried
        elif other or processor_seconds() - start > LIMIT_S:
            break
    return other


def _row(tried: Tried, target: Target, scratch: Path) -> TrialRow:
    """The trial, as a store would have it; one that killed a process is played again for its recording."""
    spec = tried.spec
    result = TrialResult(spec.number, Outcome.VIOLATION, violations=tried.violations)
    if not spec.plan.loss:
        result = play_trial(spec, target, scratch, scratch / "kept")
    return TrialRow(1, spec.number, spec, "", "", result)


def explained_table(score: ExplainedScore) -> Table:
    """For a terminal."""
    table = Table(title=_title(score))
    for column in _COLUMNS:
        table.add_column(column, overflow="fold")
    for row in score.rows:
        table.add_row(*_cells(row))
    return table


def explained_page(score: ExplainedScore, seed: int) -> str:
    """docs/EXPLAINED.md."""
    lines = [
        "# Explained bugs",
        "",
        f"Written by `tornpage mutants --explain --seed {seed} --count {len(score.rows)} --table FILE`;",
        "do not edit. The seed drew this many [planted bugs](BUGS.md). The default campaigns as shipped,",
        "with the same seed, looked for the first state that a crash of a run breaks, and `tornpage",
        "explain` found its cause: A, what was lost, and B, what relied on it. Where nothing was lost, B",
        "breaks the state, and A came too late: with A the state is right again.",
        "",
        f"**{_title(score)}.**",
        "",
        "The column *named*: the first frame that is a function changed by the bug's patch. *Meets in*:",
        "the functions in which the calls of A and B meet. Frames begin after the functions that every",
        "page write, log write, record group or commit goes through (`WRAPPERS` in",
        "`harness/tornpage/targets/engine/target.py`), so a bug in one of these is not named ([more on",
        "that](TESTING.md#mutants-testing-the-campaigns)). A write of the log or of a page has two",
        'stacks: of the code that wrote it, and (after "of") of the code that made the record group at',
        "fault, or that last changed the page. A bug of recovery is in no stack of the run. So where the",
        "run broke no rule on bytes up to the crash, R counts as well: where the recovery of the broken",
        "state fails and that of the nearest correct state does not, else the first step that only it",
        "makes.",
        "",
        "C is what `tornpage explain --good` adds: where the engine with the bug and the one without part",
        "when they execute the same script up to the crash, and recover the same crashed image. Listed are",
        "the function that both have left right before, if they have (*behind*), and those under way. The",
        "column *by C*: the first of these that is a changed function.",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'---|' * len(_COLUMNS)}",
    ]
    lines += [f"| {' | '.join(_cells(row, '`'))} |" for row in score.rows]
    return "\n".join(lines) + "\n"


_COLUMNS = ("mutant", "changed", "cause", "A", "B", "R", "named", "meets in", "C", "by C")


def _title(score: ExplainedScore) -> str:
    return (
        f"{score.named} of {len(score.rows)}: a function that was changed is among the first {FRAMES} frames "
        f"of A, B or R; {score.met} with the function in which A and B meet. {score.contrasted} of "
        f"{len(score.rows)}: it is among those of C. {score.either}: of A, B, R or C"
    )


def _cells(row: ExplainedRow, quote: str = "") -> list[str]:
    """quote: around names."""
    cause = row.explained.cause if row.explained else None
    relied, parted = (_then_of(cause), _parted(cause)) if cause else ((), ())
    met = dict.fromkeys(one.frames[0].function for one in meetings(cause)) if cause else ()
    first = _first_of(cause) if cause else ()
    name, changed, both = (
        ", ".join(f"{quote}{one}{quote}" for one in cell) for cell in ([row.name], row.changed, met)
    )
    why = cause.kind.value if cause else row.error or row.why
    lost, then, way = (_functions(one, quote) for one in (first, relied, parted))
    parts = _parts(row.explained.contrast, quote) if row.explained else ""
    named = row.named or "no", both, parts, row.contrasted or "no"
    return [name, changed, why, lost, then, way, *named]


def _parts(contrast: Contrast | None, quote: str) -> str:
    """Where run and recovery part."""
    told = (("run", contrast.run), ("recovery", contrast.recovery)) if contrast else ()
    texts = []
    for what, one in told:
        if one is not None:
            under_way = f"{quote}{' ← '.join(one.stack[:FRAMES])}{quote}" if one.stack else ""
            behind = f"behind {quote}{one.behind}{quote}" if one.behind else ""
            texts.append(f"{what}: {', '.join(filter(None, (behind, under_way)))}")
    return "; ".join(texts) or ("data only" if contrast else "")


def _functions(operations: Iterable[Operation], quote: str) -> str:
    """The first frames of each operation once, and of who made what it brings."""

    def text(frames: Sequence[Frame]) -> str:
        return f"{quote}{' ← '.join(one.function for one in frames[:FRAMES])}{quote}"

    told = []
    for one in operations:
        changed = one.change.frames if one.change else ()
        told += [text(one.frames)] if one.frames else []
        told += [f"of {text(changed)}"] if changed else []
    return ", ".join(dict.fromkeys(told))
