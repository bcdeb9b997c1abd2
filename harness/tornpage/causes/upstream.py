"""`tornpage upstream`: a folder with a report for the tracker of an engine, the files of the crash, and a
program that shows the finding where there is no Tornpage. That program is run here, and what it prints is in
the report.
"""

from __future__ import annotations

import difflib
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tornpage.causes.cause import words_of
from tornpage.causes.confirm import confirmed_lines, load_confirmed
from tornpage.causes.explain import explain_trial
from tornpage.causes.laid_out import FRAMES_SHOWN, LaidOut, lay_out_cause, lay_out_kept
from tornpage.evidence.evidence import load_evidence
from tornpage.faults.image import remove_image
from tornpage.faults.process import run_child
from tornpage.faults.scratch import scratch_folder
from tornpage.oracle.fingerprint import without_model
from tornpage.plans.origin import origin_under, program_hashes
from tornpage.reports.upstream import Call, FindReport, Script, report_text, script_text
from tornpage.store.origin import OURS, Origin
from tornpage.store.rows import Run, TrialRow
from tornpage.targets.option import UNDER, disk_of
from tornpage.targets.registry import explorer_path, identity_of, make_target
from tornpage.targets.target import STATEMENTS, ByHand, Target
from tornpage.vocabulary.cause import Explained
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.evidence import Evidence, Fate
from tornpage.vocabulary.model import Source, TrialSpec, Violation
from tornpage.vocabulary.outputs import output
from tornpage.vocabulary.paths import Paths
from tornpage.workloads.workload import generate

__all__ = ["Reported", "report_upstream"]

REPORT = "report.md"
SCRIPT = "see.sh"
PROGRAM = "program"
STATEMENTS_SHOWN = 20
SAID_LINES = 30
LINE_MAX = 200
PACKAGE = """
name=$(dpkg-query --search "$1" 2>/dev/null | cut -d: -f1) &&
    [ "$name" ] && dpkg-query --show --showformat '${Package} ${Version}' "$name"
"""
PACKAGE_DEADLINE_S = 10.0
CLEAN = {"PYTHONDONTWRITEBYTECODE": "1"}
BESIDES_S = 60.0
"""Of a program, for what it does besides the recovery."""


@dataclass(frozen=True, slots=True)
class Reported:
    """trial: ID; report, script: the files; explained: whether the cause is in it; crashed, whole: what
    the program printed of the crashed files and of those with nothing lost, None where there are none."""

    trial: str
    report: Path
    script: Path
    explained: bool
    crashed: str
    whole: str | None


def report_upstream(
    row: TrialRow,
    run: Run,
    paths: Paths,
    folders: Sequence[Path],
    place: Path,
    known: Explained | None,
    tell: Callable[[str], None],
) -> Reported:
    """Makes the folder `place`. folders: with debug files; known: what was explained of it before; tell:
    hears how far it is. ConfigError: it breaks no state, or a disk, nothing was kept of it, or the folder is
    there."""
    name = f"{row.run}.{row.number}"
    violations = row.result.violations if row.result is not None else ()
    broken = [one for one in violations if one.source is Source.STATE]
    if not broken or not row.spec.plan.crashes:
        name = name if row.spec.plan.crashes else f"{row.run}.s{row.number}"
        raise ConfigError(
            f"trial {name} breaks no state: a report needs a crash that does; `tornpage bugs` names some"
        )
    if disk := disk_of(row.spec.options):
        raise ConfigError(
            f"trial {name} breaks a disk of {disk}, and a report needs files: run it without {UNDER}, then "
            f"`tornpage confirm` asks {disk}"
        )
    if place.exists():
        raise ConfigError(f"{place} exists already: name another folder")
    target = make_target(row.spec.target, paths.build)
    explained, unexplained = known, ""
    if known is None:
        explained, unexplained = _explained(row, paths, folders, tell)
    with output(place), _made_beside(place) as part:
        tell("the files of the crash")
        with scratch_folder(target.on_shm) as scratch:
            if explained is not None and explained.cause.lost and "/" not in row.spec.plan.loss:
                cause, explorer = explained.cause, explorer_path(paths.build.resolve())
                found = lay_out_cause(row, cause, target, explorer, folders, part, scratch)
            else:
                found = lay_out_kept(row, part)
        report = _Report(row, run, target, paths, folders, part, broken)
        crashed, whole = report.write(found, explained, unexplained, tell)
    return Reported(name, place / REPORT, place / SCRIPT, explained is not None, crashed, whole)


@contextmanager
def _made_beside(place: Path) -> Iterator[Path]:
    """A folder that becomes `place` when it is whole. What a killed call has left of its own goes."""
    part = place.with_name(f"{place.name}.part")
    remove_image(part)
    part.mkdir()
    try:
        yield part
        part.rename(place)
    finally:
        remove_image(part)


def _explained(
    row: TrialRow, paths: Paths, folders: Sequence[Path], tell: Callable[[str], None]
) -> tuple[Explained | None, str]:
    try:
        return explain_trial(row, paths, folders, tell), ""
    except ConfigError as error:
        return None, str(error)


@dataclass(frozen=True, slots=True)
class _Report:
    """broken: what the trial breaks."""

    row: TrialRow
    run: Run
    target: Target
    paths: Paths
    folders: Sequence[Path]
    place: Path
    broken: Sequence[Violation]

    def write(
        self,
        found: LaidOut,
        explained: Explained | None,
        unexplained: str,
        tell: Callable[[str], None],
    ) -> tuple[str, str | None]:
        """Puts the program beside the files, runs it, and writes the report. What the program printed of the
        crashed files, and of those with nothing lost."""
        result = self.row.result
        assert result is not None, "it breaks a state"
        evidence = load_evidence(result.image, self.folders) or Evidence()
        kept = load_confirmed(result.image)
        name = self.target.what or identity_of(self.target).partition("@")[0]
        title = f"{name}: {without_model(self.broken[0].what)}"
        by_hand = self.target.by_hand(self.row.spec.options)
        self._put_program(title, by_hand, found)
        tell("the program that shows it")
        crashed = self._said()
        whole = self._said("whole") if found.change else None
        shown, differs = _told(crashed, whole)
        work = self._work(found.line or max(evidence.statements, default=0))
        report = FindReport(
            title=title,
            findings=tuple(
                dict.fromkeys(f"I{one.invariant}: {without_model(one.what)}" for one in self.broken)
            ),
            cause=explained.sentence if explained else "",
            unexplained=unexplained,
            versions=_versions(self.target, self.row.spec.options),
            options=self.row.spec.options,
            command=by_hand.work,
            work=tuple(line[:LINE_MAX] for line in work[-STATEMENTS_SHOWN:]),
            statements=len(work),
            crash=_crash_in_words(self.row.spec, explained),
            calls=found.calls or tuple(_kept_calls(evidence)),
            answer=result.answer,
            rows=evidence.rows,
            rows_more=evidence.rows_more,
            rows_note=evidence.rows_note,
            file_systems=found.file_systems,
            confirmed=tuple(confirmed_lines(kept)) if kept is not None else (),
            smaller=found.smaller,
            crashed=_end(crashed),
            whole=shown,
            differs=differs,
            found=f"Found by Tornpage {self.run.origin.version}, campaign {self.run.campaign}, "
            f"seed {self.run.seed}, on {self.run.origin.started[:10]}.",
        )
        file = self.place / REPORT
        file.write_text(report_text(self.paths.templates, report), "utf-8")
        return "\n".join(crashed), None if whole is None else "\n".join(whole)

    def _put_program(self, title: str, by_hand: ByHand, found: LaidOut) -> None:
        for name, source in by_hand.files.items():
            copy = self.place / PROGRAM / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
            copy.chmod(source.stat().st_mode & 0o777)
        script = Script(
            title=title.replace("\n", " "),
            files=found.files,
            change=found.change,
            at=str(found.at or ""),
            text=by_hand.text,
            program=PROGRAM if by_hand.files else "",
        )
        (self.place / SCRIPT).write_text(script_text(self.paths.templates, script), "utf-8")

    def _said(self, *words: str) -> list[str]:
        """What the program prints, which is run as anybody runs it."""
        deadline = self.target.recover_command(self.place, self.row.spec.options).deadline_s
        script = self.place.resolve() / SCRIPT
        shell = ["/bin/sh", "-c", 'exec /bin/sh "$@" 2>&1', "sh", str(script), *words]
        home = {name: os.environ[name] for name in ("PATH", "HOME", "USER") if name in os.environ}
        child = run_child(shell, {**home, **CLEAN}, deadline + BESIDES_S)
        remove_image(self.place / "work")
        text = child.stdout.decode("utf-8", "replace").replace(str(script.parent), ".")
        lines = [line[:LINE_MAX] for line in text.splitlines()]
        ended = [] if child.exit_code == 0 else [f"({child.describe()})"]
        return [*lines, *ended]

    def _work(self, last: int) -> list[str]:
        """The statements up to this one, which are in a file as well."""
        spec = self.row.spec
        lines = generate(spec.workload, spec.params, spec.workload_seed).text.splitlines()[:last]
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            (self.place / STATEMENTS).write_text(text, "utf-8")
        return lines


def _end(lines: Sequence[str]) -> tuple[str, ...]:
    """The last of what the program printed."""
    more = len(lines) - SAID_LINES
    return (*([f"... {more} lines more"] if more > 0 else []), *lines[-SAID_LINES:])


def _told(
    crashed: Sequence[str], whole: Sequence[str] | None
) -> tuple[tuple[str, ...] | None, bool]:
    """What it printed of the whole files, and False; if that is long, how it differs, and True."""
    if whole is None or len(whole) <= SAID_LINES:
        return None if whole is None else tuple(whole), False
    lines = difflib.unified_diff(crashed, whole, n=0, lineterm="")
    changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    more = len(changed) - SAID_LINES
    return (*changed[:SAID_LINES], *([f"... {more} lines more"] if more > 0 else [])), True


def _versions(target: Target, options: Mapping[str, str]) -> Mapping[str, str]:
    """Of the machine, and of the target's own programs."""
    files = {**target.programs(), **target.chosen_programs(options)}
    origin = origin_under(Origin(programs=program_hashes(target)), target, options)
    told = {"system": platform.platform()}
    told |= {"revision": origin.revision} if origin.revision else {}
    for name in sorted({*files} - OURS):
        told[name] = f"{files[name]}, {_package_of(files[name])}XXH3-64 {origin.programs[name]}"
    return told


def _package_of(file: Path) -> str:
    """As "mariadb-server-core 1:10.11.19-0+deb12u1, ", where Debian's package manager knows it."""
    child = run_child(["/bin/sh", "-c", PACKAGE, "sh", str(file)], os.environ, PACKAGE_DEADLINE_S)
    told = child.stdout.decode("utf-8", "replace").strip()
    return f"{told}, " if child.exit_code == 0 and told else ""


def _crash_in_words(spec: TrialSpec, explained: Explained | None) -> str:
    how = "The power fails" if spec.plan.loss else "The process is killed"
    if explained is None or not explained.cause.lost:
        return f"{how} after the last of these calls, and leaves the files as they are here."
    at = f"after operation {spec.plan.loss.partition('.')[0]}" if spec.plan.loss else "later"
    return (
        f"{how} {at} of the recorded run; these calls before it are those that matter. All calls up to "
        "there are in the files, but what is marked lost or torn."
    )


def _kept_calls(evidence: Evidence) -> Iterator[Call]:
    """The last operations before the crash, as they were told with its image."""
    for phase in evidence.phases[-1:]:
        for step in phase.steps:
            if step.fate is not Fate.MARK:
                frames = tuple(map(str, step.stack))[:FRAMES_SHOWN]
                yield Call(step.seq, words_of(step), step.fate.value, frames=frames)
