"""Do real file systems leave what is computed? Work is recorded twice: by what the program asks, and by what
the file system asks of its disk. Disks that lost power are mounted, and what they have is compared with the
states that the profile computes; and small programs ask each file system one question each.

It takes what `--under` takes; elsewhere it is left out, and says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tornpage.faults.preload import WHOLE, preload_environment, preload_path
from tornpage.faults.recorder import fs_path, why_no_fs
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.trace import Op, Trace
from tornpage.faults.under import why_no_disk
from tornpage.lab.doctor import Finding
from tornpage.lab.filework import Do, Operation, draw_work, steps_of, why_illegal
from tornpage.lab.fsprobes import PROBES, Probe
from tornpage.lab.realdisk import DiskCrash, crashed_files, disk_crashes, lay_out, run_on_disk
from tornpage.targets.filesystems import file_systems
from tornpage.targets.registry import explorer_path
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.paths import Paths
from tornpage.vocabulary.seeds import make_rng

__all__ = ["REAL", "Held", "ask", "qualify_file_system", "qualify_file_systems"]

REAL = {
    "ext4-ordered": "ext4,data=ordered",
    "ext4-writeback": "ext4,data=writeback",
    "ext4-nodelalloc": "ext4,nodelalloc",
    "xfs": "xfs",
    "btrfs": "btrfs",
}
"""By profile what is mounted. `posix` is none: it is what all of them keep."""
WORKS = 6
CRASHES = 12
"""Of the disk of each work, by draw."""
RIGHT_BEHIND = 4
LATER = 4
"""Crashes of the disk that each question is asked of: right behind the work, and by draw."""
CHANGES = (Op.WRITE, Op.FSYNC, Op.RENAME, Op.UNLINK, Op.SYNC_DIR)
CREATED = 1
"""Flag of an OPEN."""


@dataclass(frozen=True, slots=True)
class Held:
    """A profile by its name, what it is held against (of tornpage-under), and where."""

    name: str
    kind: str
    build: Path
    scratch: Path

    @property
    def row(self) -> Mapping[str, object]:
        """Of the explorer's table."""
        return file_systems(explorer_path(self.build))[self.name]


def qualify_file_systems(paths: Paths) -> list[Finding]:
    """For each profile one line, and one for each question: promised, seen."""
    if why := why_no_fs(fs_path(preload_path(paths.build))):
        return [Finding("file systems", True, f"left out: {why}")]
    with scratch_folder() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        all_held = [Held(name, kind, paths.build, scratch / name) for name, kind in REAL.items()]
        told = pool.map(qualify_file_system, all_held)
        return [finding for findings in told for finding in findings]


def qualify_file_system(held: Held) -> list[Finding]:
    """One line for the profile, and one for each question."""
    title = f"file system {held.name}"
    if why := why_no_disk(preload_path(held.build), held.kind):
        return [Finding(title, True, f"left out: {why}")]
    try:
        return [_crash_work(held, title), *(ask(held, probe) for probe in PROBES)]
    except ChildError as error:
        return [Finding(title, False, str(error), "no answer")]


# ---- work by draw, held against the computed states ----


@dataclass(slots=True)
class _Computed:
    """The computed states of a work, by model and by how many of its operations had ended."""

    held: Held
    trace: Path
    ends: Sequence[int]
    known: dict[tuple[str, int], Mapping[str, bytes]] = field(default_factory=dict)

    def files(self, model: str, ended: int) -> Mapping[str, bytes]:
        """ChildError."""
        seq = self.ends[ended]
        if (model, seq) not in self.known:
            image = self.trace.with_name("computed")
            state, fs = f"{seq}.{model}.0", ["--fs", self.held.name]
            lay_out(self.held.build, self.trace, state, image, fs)
            self.known[model, seq] = {path.name: path.read_bytes() for path in image.iterdir()}
        return self.known[model, seq]


def _crash_work(held: Held, title: str) -> Finding:
    crashes = lost = between = 0
    for seed in range(WORKS):
        work = draw_work(seed, renames=_in_order(held))
        for crash, found, least, most in _crashes_of(held, seed, work):
            begun, ended = work[: crash.issued], work[: crash.ended]
            problem = why_illegal(begun, ended, least, found, in_order=_in_order(held))
            if problem:
                seen = f"work {seed}, disk {crash.state}: no computed state: {problem}"
                return Finding(title, False, seen, "the profile is wrong")
            crashes += 1
            lost += found != most
            between += found not in (least, most)
    seen = f"{crashes} disks that lost power, each a state of fs = {held.name}"
    seen += f"; {lost} lost something, {between} of them not all that may be lost"
    return Finding(title, lost > 0, seen, "a crash that loses nothing says nothing")


def _in_order(held: Held) -> bool:
    """Names are one journal, as far as the profile says."""
    return held.row["fsync"] == "earlier names"


def _crashes_of(
    held: Held, seed: int, work: Sequence[Operation]
) -> list[tuple[DiskCrash, Mapping[str, bytes], Mapping[str, bytes], Mapping[str, bytes]]]:
    """Crashes of the work's disk, what each has left, and the computed states with least and most."""
    files = held.scratch / "files.trace"
    held.scratch.mkdir(exist_ok=True)
    env = preload_environment(preload_path(held.build), held.scratch / "work" / "disk", files, None)
    run = run_on_disk(
        held.build, held.kind, {}, steps_of(work), held.scratch / "work", {**env, **WHOLE}
    )
    computed = _Computed(held, files, _ends(work, Trace.load(files)))
    crashes = disk_crashes(run)
    drawn = make_rng(seed, "disks").sample(crashes, min(CRASHES, len(crashes)))
    return [
        (
            crash,
            crashed_files(run, crash),
            computed.files("none-persisted", crash.ended),
            computed.files("all-persisted", crash.ended),
        )
        for crash in drawn
    ]


def _ends(work: Sequence[Operation], trace: Trace) -> list[int]:
    """By how many operations had ended the number of the last event by then, 0: none."""
    events = [
        event.seq
        for event in trace.events()
        if event.kind in CHANGES or (event.kind == Op.OPEN and event.flags == CREATED)
    ]
    left = iter(events)
    ends = [0]
    for operation in work:
        ends.append(ends[-1] if operation.do is Do.PUSH else next(left))
    return ends


# ---- questions ----


def ask(held: Held, probe: Probe) -> Finding:
    """What is promised, and what some crashed disks answer. ChildError: one does not mount."""
    run = run_on_disk(held.build, held.kind, probe.before, probe.steps, held.scratch / "probe", {})
    behind = [crash for crash in disk_crashes(run) if crash.ended == len(probe.steps)]
    later = behind[RIGHT_BEHIND:]
    drawn = make_rng(0, probe.question).sample(later, min(LATER, len(later)))
    answers = {probe.answer(crashed_files(run, one)) for one in (*behind[:RIGHT_BEHIND], *drawn)}
    allowed = probe.allowed(held.row)
    seen = f"promised {' or '.join(sorted(allowed))}; seen {', '.join(sorted(answers))}"
    title = f"{held.name}: {probe.question}"
    return Finding(title, bool(answers) and answers <= allowed, seen, "the profile is wrong")
