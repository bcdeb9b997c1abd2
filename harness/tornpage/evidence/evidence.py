"""Writes down how a finding came about, beside its crashed image: the report shows it, also where the
programs are not at hand. Made once per kept image; it takes no part in a verdict.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tornpage.evidence.pages import States, hurt_pages, page_view
from tornpage.evidence.rows import with_rows
from tornpage.evidence.stacks import named_anew, with_stacks
from tornpage.evidence.timeline import live_phase, recorded_steps
from tornpage.faults.image import remove_image
from tornpage.faults.trace import Trace
from tornpage.live.golden_run import TOLD
from tornpage.live.kept import load_crash
from tornpage.targets.target import Target
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.evidence import Evidence, Fate, PageView, Phase, Step
from tornpage.vocabulary.model import TrialResult, TrialSpec, Violation
from tornpage.workloads.workload import generate

__all__ = [
    "EVIDENCE",
    "evidence_of",
    "keep_evidence",
    "load_evidence",
    "page_views",
    "write_evidence",
]

EVIDENCE = "evidence.json"
"""Its name in the folder of a kept image."""
PAGES_MAX = 4
STATEMENTS_BEFORE = 8
"""Statements before the one in flight that are told."""
STATEMENT_MAX = 120
_NAMED = re.compile(r"page (\d+) of ([\w./-]+)")


def keep_evidence(spec: TrialSpec, result: TrialResult, target: Target, scratch: Path) -> None:
    """Of a live trial, from the recordings that lie with its image. Nothing if it has no image."""
    if result.image is None:
        return
    size = target.judge_setting(spec.options).page_size
    names = ["run", *(f"recover-{n + 1}" for n in range(len(spec.plan.recover)))]
    traces = [path for name in names if (path := result.image / f"{name}.trace").is_file()]
    site = result.site.value if result.site else ""
    phases = [
        with_stacks(
            live_phase(
                f"recovery {n}" if n else "run", Trace.load(path), target, size, "" if n else site
            ),
            path,
        )
        for n, path in enumerate(traces)
    ]
    work = scratch / f"evidence-{spec.number}"
    hit = _last_hurt(phases[0])
    pages: Sequence[PageView] = ()
    if hit is not None and hit.op == "write":
        states = _live_states(traces[0], hit, result.image / "data", work)
        here = [(hit.path, hit.offset // size)] if states is not None else []
        if states is not None:
            wanted = hurt_pages(states, size) or here
            pages = page_views(
                states,
                wanted,
                result.violations,
                size,
                phases[0].sector,
                target,
                result.image / "data",
            )
    found = evidence_of(spec, target, phases, pages, size)
    if not spec.plan.recover and result.image.joinpath("data").is_dir() and traces:
        crash = load_crash(result.image)
        place = (crash.at if crash is not None else None) or work / "recovered"
        told, data = result.image / TOLD, result.image / "data"
        found = with_rows(
            found, spec, target, recorded_steps(Trace.load(traces[0])), told, data, place
        )
    remove_image(work)
    write_evidence(found, result.image)


def load_evidence(image: Path | None, debug_files: Sequence[Path] = ()) -> Evidence | None:
    """What was kept with an image; None if nothing was, or it is gone. debug_files: folders in which what its
    call stacks did not know is looked up now; ConfigError if nothing here can."""
    path = image / EVIDENCE if image is not None else None
    if path is None or not path.is_file():
        return None
    found = from_json(Evidence, path.read_bytes())
    return named_anew(found, debug_files) if debug_files else found


def _last_hurt(phase: Phase) -> Step | None:
    hurt = [step for step in phase.steps if step.fate in (Fate.TORN, Fate.LOST)]
    return hurt[-1] if hurt else None


def _live_states(trace: Path, hit: Step, image: Path, work: Path) -> States | None:
    """The file that was hit, with the bytes of the write taken back, whole, and as the crash left them.
    None where the recording has no contents of it."""
    recorded = Trace.load(trace)
    damages = (recorded.damage(event) for event in recorded.events() if event.seq == hit.seq)
    damage = next(filter(None, damages), None)
    if damage is None or not damage.new or not (image / hit.path).is_file():
        return None
    states = States(work / "before", work / "written", work / "after")
    for folder, contents in zip(states.folders(), (damage.old, damage.new, b""), strict=True):
        path = folder / hit.path
        path.parent.mkdir(parents=True)
        shutil.copyfile(image / hit.path, path)
        with path.open("r+b") as file:
            file.seek(hit.offset)
            file.write(contents)
    return states


def page_views(
    states: States,
    hurt: Sequence[tuple[str, int]],
    violations: Iterable[Violation],
    size: int,
    sector: int,
    target: Target,
    image: Path,
) -> list[PageView]:
    """The pages that findings name, if they are hurt, before the others. image: as the crash left it."""
    named = {(m[2], int(m[1])) for v in violations for m in _NAMED.finditer(v.what)}
    chosen = sorted(hurt, key=lambda place: place not in named)[:PAGES_MAX]
    return [page_view(states, path, page, size, sector, target, image) for path, page in chosen]


def evidence_of(
    spec: TrialSpec,
    target: Target,
    phases: Iterable[Phase],
    pages: Iterable[PageView],
    size: int,
) -> Evidence:
    """With the text of the last statements. size: bytes of a page."""
    phases = tuple(phases)
    texts = generate(spec.workload, spec.params, spec.workload_seed).text.splitlines()
    lines = {step.line for phase in phases for step in phase.steps if step.line}
    last = max(lines, default=0)
    lines |= set(range(max(1, last - STATEMENTS_BEFORE), last + 1))
    statements = {n: texts[n - 1][:STATEMENT_MAX] for n in sorted(lines) if 0 < n <= len(texts)}
    return Evidence(phases, tuple(pages), statements, size, wrappers=target.wrappers)


def write_evidence(evidence: Evidence, image: Path) -> None:
    """Into the folder of a kept image."""
    (image / EVIDENCE).write_text(to_json(evidence), "utf-8")
