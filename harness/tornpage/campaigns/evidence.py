"""Writes down how a finding came about, beside its crashed image: the report shows it, also where the
programs are not at hand. Made once per kept image; it takes no part in a verdict.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tornpage.campaigns.kept import keep_recording
from tornpage.campaigns.pages import States, hurt_pages, page_view
from tornpage.campaigns.powerloss import Recording, lay_out_state
from tornpage.campaigns.timeline import live_phase, loss_phases
from tornpage.faults.image import remove_image
from tornpage.faults.trace import Trace
from tornpage.targets.target import Target
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.evidence import Evidence, Fate, PageView, Phase, Step
from tornpage.vocabulary.model import TrialResult, TrialSpec, Violation
from tornpage.workloads.workload import generate, page_size_of

__all__ = ["EVIDENCE", "keep_evidence", "keep_loss_evidence", "load_evidence"]

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
    size = page_size_of(spec.options)
    names = ["run", *(f"recover-{n + 1}" for n in range(len(spec.plan.recover)))]
    traces = [path for name in names if (path := result.image / f"{name}.trace").is_file()]
    site = result.site.value if result.site else ""
    phases = [
        live_phase(
            f"recovery {n}" if n else "run", Trace.load(path), target, size, "" if n else site
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
            pages = _views(states, wanted, result.violations, size, phases[0].sector, target)
    remove_image(work)
    _write(spec, phases, pages, result.image)


def keep_loss_evidence(
    spec: TrialSpec, result: TrialResult, target: Target, recording: Recording, scratch: Path
) -> None:
    """Of a power-loss state: what was durable and what had been written are states of the same crash point.
    One that the explorer cannot lay out again has none. The recording is kept too where no other run need
    equal it."""
    if result.image is None:
        return
    keep_recording(recording, result.image, target)
    work = scratch / f"evidence-{spec.number}"
    remove_image(work)
    work.mkdir()
    with contextlib.suppress(ChildError):
        states, phases = _loss_states(spec, target, recording, result.image / "data", work)
        size = page_size_of(spec.options)
        hurt = hurt_pages(states, size)
        pages = _views(states, hurt, result.violations, size, phases[-1].sector, target)
        _write(spec, phases, pages, result.image)
    remove_image(work)


def _loss_states(
    spec: TrialSpec, target: Target, recording: Recording, image: Path, work: Path
) -> tuple[States, tuple[Phase, ...]]:
    """ChildError if the explorer fails, or says nothing of the state."""
    *above, last = spec.plan.loss.split("/")
    states = States(work / "none-persisted", work / "all-persisted", image)
    for folder in (states.before, states.written):
        state = "/".join([*above, f"{last.split('.')[0]}.{folder.name}.0"])
        lay_out_state(spec, target, recording, state, folder)
    way = work / "way"
    lay_out_state(spec, target, recording, spec.plan.loss, work / "again", way)
    if not way.is_file():
        raise ChildError(f"the explorer says nothing of state {spec.plan.loss}")
    return states, loss_phases(way.read_text("utf-8").splitlines())


def load_evidence(image: Path | None) -> Evidence | None:
    """What was kept with an image; None if nothing was, or it is gone."""
    path = image / EVIDENCE if image is not None else None
    return from_json(Evidence, path.read_bytes()) if path is not None and path.is_file() else None


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


def _views(
    states: States,
    hurt: Sequence[tuple[str, int]],
    violations: Iterable[Violation],
    size: int,
    sector: int,
    target: Target,
) -> list[PageView]:
    """The pages that findings name, if they are hurt, before the others."""
    named = {(m[2], int(m[1])) for v in violations for m in _NAMED.finditer(v.what)}
    chosen = sorted(hurt, key=lambda place: place not in named)[:PAGES_MAX]
    return [page_view(states, path, page, size, sector, target) for path, page in chosen]


def _write(
    spec: TrialSpec, phases: Iterable[Phase], pages: Iterable[PageView], image: Path
) -> None:
    phases = tuple(phases)
    texts = generate(spec.workload, spec.params, spec.workload_seed).text.splitlines()
    lines = {step.line for phase in phases for step in phase.steps if step.line}
    last = max(lines, default=0)
    lines |= set(range(max(1, last - STATEMENTS_BEFORE), last + 1))
    statements = {n: texts[n - 1][:STATEMENT_MAX] for n in sorted(lines) if 0 < n <= len(texts)}
    found = Evidence(phases, tuple(pages), statements, page_size_of(spec.options))
    (image / EVIDENCE).write_text(to_json(found), "utf-8")
