"""Runs as JUnit XML: a suite per run, in it a case per configuration of the fault-free runs, per cell of a
kill campaign, per configuration of a power-loss one, and per claim.

A bug is a failure of every case that shows it, with its fingerprint and the line that replays it; what the
harness failed at is an error; a case that was not exercised, or whose control found nothing, and a claim that
was not kept, is skipped with the reason, and so is one whose bugs make no failure (BugSeen.fails).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from tornpage.reports.cells import CellCount, Example
from tornpage.reports.summary import BugSeen, Summary, judged_states
from tornpage.reports.verdict import looked_at, verdict_of
from tornpage.vocabulary.model import Outcome, config_of

__all__ = ["NO_FRAMES", "render_junit"]

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NO_FRAMES: Mapping[int, Sequence[str]] = {}
"""Nobody has looked for them."""
_UNSURE = (Outcome.HARNESS_ERROR, Outcome.UNSTABLE)
_IDLE = (Outcome.NOT_EXERCISED, Outcome.VACUOUS)


@dataclass(slots=True)
class _Case:
    """A test case. bugs: with how one of its trials shows each; skipped: why, "" if it was run."""

    group: str
    name: str
    seconds: float = 0.0
    bugs: list[tuple[BugSeen, Example]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    skipped: str = ""


def render_junit(
    summaries: Sequence[Summary],
    frames: Mapping[int, Sequence[str]] = NO_FRAMES,
    *,
    only_news: bool = False,
) -> bytes:
    """The file, in UTF-8. frames: of the broken operations of bugs, by their numbers; only_news: bugs that
    were known before are no failures."""
    root = ET.Element("testsuites", name="tornpage")
    for summary in summaries:
        root.append(_suite(summary, frames, only_news))
    ET.indent(root)
    file = io.BytesIO()
    ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    return file.getvalue() + b"\n"


def _suite(summary: Summary, frames: Mapping[int, Sequence[str]], only_news: bool) -> ET.Element:
    run, origin = summary.run, summary.run.origin
    cases = [_element(case, frames, only_news) for case in _cases(summary)]
    suite = ET.Element(
        "testsuite",
        name=_text(f"{run.campaign} on {run.target}"),
        tests=str(len(cases)),
        failures=str(sum(len(case.findall("failure")) > 0 for case in cases)),
        errors=str(sum(len(case.findall("error")) > 0 for case in cases)),
        skipped=str(sum(len(case.findall("skipped")) > 0 for case in cases)),
        time=f"{run.seconds:.3f}",
        timestamp=origin.started,
        hostname=_text(origin.host),
    )
    properties = ET.SubElement(suite, "properties")
    facts = {"run": str(run.id), "seed": str(run.seed), "command": origin.command}
    facts |= {
        "verdicts": summary.trace_hash,
        "verdict": verdict_of(summary, only_news=only_news).line,
    }
    for name, value in {**facts, **dict(_looked_at(summary))}.items():
        if not value:
            continue
        ET.SubElement(properties, "property", name=name, value=_text(value))
    suite.extend(cases)
    return suite


def _looked_at(summary: Summary) -> Iterator[tuple[str, str]]:
    """What the suite is about, as text."""
    for name, value in looked_at(summary).to_json().items():
        yield name, "; ".join(value) if isinstance(value, list) else str(value)


def _cases(summary: Summary) -> Iterator[_Case]:
    group = summary.run.campaign
    yield _Case(group, "all verdicts", errors=[summary.missing] if summary.missing else [])
    bugs = {seen.bug.id: seen for seen in summary.bugs}
    for cell in summary.run_cells:
        yield _of_cell(f"{group}.{cell.config}", "fault-free runs", cell, bugs)
    if summary.explored:
        yield from _explorations(summary, bugs)
    else:
        for cell in summary.cells:
            name = f"{cell.site} {cell.mask}"
            case = _of_cell(f"{group}.{cell.config}", name, cell, bugs)
            case.skipped = case.skipped or _unproved(summary, cell.config)
            yield case
    for site in summary.uncovered_sites:
        yield _Case(group, f"site {site}", skipped="no trial hit it")
    yield from _claims(summary, "claims", summary.claims_missed, "no recovery took this path")
    missed = summary.run_claims_missed
    yield from _claims(summary, "run_claims", missed, "no fault-free run came to it")


def _of_cell(group: str, name: str, cell: CellCount, bugs: dict[int, BugSeen]) -> _Case:
    shown = [(bugs[bug], how) for bug, how in sorted(cell.bugs.items())]
    case = _Case(group, name, cell.seconds, shown)
    case.errors = _unsure([cell])
    if not cell.outcomes[Outcome.CLEAN] and not case.bugs and not case.errors:
        reasons = [cell.reasons[outcome] for outcome in _IDLE if outcome in cell.reasons]
        case.skipped = "; ".join(reasons) or "no trial was exercised"
    return case


def _explorations(summary: Summary, bugs: dict[int, BugSeen]) -> Iterator[_Case]:
    """One case per configuration: its explorations together. A cell there is a broken state."""
    for config in sorted({config_of(label) for label in summary.explored}):
        parts = [part for label, part in summary.explored.items() if config_of(label) == config]
        cells = [cell for cell in summary.cells if cell.config == config]
        shown = {bug: how for cell in reversed(cells) for bug, how in cell.bugs.items()}
        seconds = sum(float(part.get("seconds", 0)) for part in parts)
        case = _Case(f"{summary.run.campaign}.{config}", "crash states", seconds)
        case.bugs = [(bugs[bug], how) for bug, how in sorted(shown.items())]
        case.errors = _unsure(cells)
        judged = any(judged_states(part) for part in parts)
        case.skipped = _unproved(summary, config) if judged else "no crash state was judged"
        yield case


def _unproved(summary: Summary, config: str) -> str:
    """Why a configuration in which nothing was found proves nothing, "" if it does."""
    examined = summary.run.origin.examined
    if examined is None or config not in examined.blind:
        return ""
    return "control: on a disk that ignores every fsync no state of it broke the promise"


def _unsure(cells: Iterable[CellCount]) -> list[str]:
    """What the harness, or something that does not repeat, left without a verdict."""
    return [
        f"{cell.outcomes[outcome]} {outcome}, first {cell.reasons.get(outcome, 'without a reason')}"
        for cell in cells
        for outcome in _UNSURE
        if cell.outcomes[outcome]
    ]


def _claims(summary: Summary, key: str, missed: Sequence[str], why: str) -> Iterator[_Case]:
    for name in summary.run.settings.get(key, []):
        skipped = why if name in missed else ""
        yield _Case(summary.run.campaign, f"{key}: {name}", skipped=skipped)


def _element(case: _Case, frames: Mapping[int, Sequence[str]], only_news: bool) -> ET.Element:
    element = ET.Element(
        "testcase",
        classname=_text(f"tornpage.{case.group}"),
        name=_text(case.name),
        time=f"{case.seconds:.3f}",
    )
    failing = [(seen, how) for seen, how in case.bugs if seen.fails(only_news)]
    for seen, how in failing:
        failure = ET.SubElement(
            element, "failure", type=_invariants(seen), message=_text(seen.headline)
        )
        failure.text = _text(_details(seen, how, frames.get(seen.bug.id, ())))
    for error in case.errors:
        ET.SubElement(element, "error", type="harness", message=_text(error)).text = _text(error)
    if not failing and not case.errors and (case.skipped or case.bugs):
        message = case.skipped or "; ".join(seen.headline for seen, _ in case.bugs)
        ET.SubElement(element, "skipped", message=_text(message))
    return element


def _invariants(seen: BugSeen) -> str:
    return ", ".join(f"I{number}" for number in seen.bug.invariants)


def _details(seen: BugSeen, how: Example, frames: Sequence[str]) -> str:
    lines = [
        how.what,
        f"fingerprint: {seen.bug.fingerprint}",
        f"invariants: {_invariants(seen)}, by {how.source}, {seen.sighting.count} times in the run",
        f"shown here by: {how.trial}",
        f"replay: {seen.replay}",
        *frames,
    ]
    return "\n".join(lines)


def _text(text: str) -> str:
    r"""With what XML cannot hold as \xNN."""
    return _NO_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
