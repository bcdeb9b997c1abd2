"""What the fault of a trial hit: the operation in the trace, the write of the golden run, and how it was
torn."""

from __future__ import annotations

from dataclasses import dataclass

from tornpage.faults.trace import (
    FAULT_KIND_MASK,
    FAULT_RULE_SHIFT,
    HEADER_SIZE,
    Event,
    FilePaths,
    Op,
    Trace,
)
from tornpage.live.golden_run import Baseline
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.model import Fault, FaultPlan, Site, TornWrite, WriteEvent

__all__ = ["Hit", "find_hit", "mask_of", "tears_nothing", "torn_write"]

_NAMED = frozenset((Op.OPEN, Op.RENAME, Op.LINK))
TORN_BYTES_MAX = 65536
"""Contents of a torn write beyond this are not kept in the result."""


@dataclass(frozen=True, slots=True)
class Hit:
    """The operation that the fault hit; write: that of the golden run, if it is one; site: what it was
    for."""

    event: Event
    write: WriteEvent | None
    site: Site | None

    @property
    def page_no(self) -> int | None:
        """If it is the write of a page."""
        page = self.write.facts.get("page") if self.write is not None else None
        return int(page) if page else None


def find_hit(
    trace: Trace, base: Baseline, plan: FaultPlan, target: Target, *, bare: bool = False
) -> Hit:
    """In the trace of a run whose fault fired. bare: it was recorded without contents."""
    # A killed run ends with its KILL, at the byte at which the golden run has the killed operation. What
    # comes behind another fault is not what the trial is about.
    start = base.contents.bare_start(trace.events_declared) if bare else None
    event = _first_hit(trace, start) if start is not None and len(plan.run) == 1 else None
    if event is None or event.seq != trace.events_declared:
        event = _first_hit(trace, HEADER_SIZE)
    if event is None:
        raise ChildError("the trace says that a fault fired, and does not show it")
    write = _write_hit(event, base, plan, target)
    return Hit(event, write, _site_of(trace, event, write, base, target))


def _write_hit(event: Event, base: Baseline, plan: FaultPlan, target: Target) -> WriteEvent | None:
    """The write of the golden run that was hit. Of a target whose operations come in no fixed order, the one
    that the plan names."""
    if Capability.DETERMINISTIC in target.capabilities:
        return base.by_seq.get(event.seq)
    rule = plan.run[min(event.flags >> FAULT_RULE_SHIFT, len(plan.run) - 1)]
    named = (w for w in base.golden_run.writes if (w.file, w.nth) == (rule.file, rule.nth))
    return next(named, None)


def _site_of(
    trace: Trace, event: Event, write: WriteEvent | None, base: Baseline, target: Target
) -> Site | None:
    if write is None:
        kind = event.flags & FAULT_KIND_MASK
        return Site.FILE_OP if kind in (Op.TRUNCATE, Op.RENAME, Op.UNLINK, Op.OPEN) else None
    if Capability.DETERMINISTIC in target.capabilities:
        return write.site
    name = _name_of(trace, event)  # of this run
    return target.site_of(name, event.offset, None, base.setting.page_size)


def _name_of(trace: Trace, event: Event) -> str:
    """What the file was called then."""
    paths = FilePaths()
    for earlier in trace.events(kinds=_NAMED):
        if earlier.seq > event.seq:
            break
        paths.see(trace, earlier)
    return paths[event.file]


def _first_hit(trace: Trace, start: int) -> Event | None:
    return next(trace.events(start, kinds=(Op.KILL, Op.FAULT)), None)


def tears_nothing(trace: Trace, hit: Event | None, faults: tuple[Fault, ...]) -> bool:
    """Whether a kill was to tear a write and left all of it. A mask "all" says that it is to."""
    damage = trace.damage(hit) if hit is not None and hit.kind == Op.KILL else None
    if damage is None or any(fault.sectors == "all" for fault in faults):
        return False
    return bool(damage.sectors) and set(damage.sectors) == {1}


def torn_write(trace: Trace, hit: Hit) -> TornWrite | None:
    """What became of the write that was hit, sector by sector; None: it was no write."""
    damage = trace.damage(hit.event)
    if damage is None:
        return None
    small = hit.event.length <= TORN_BYTES_MAX
    return TornWrite(
        path=hit.write.file if hit.write else "",
        offset=hit.event.offset,
        length=hit.event.length,
        sector=damage.sector,
        kept="".join("1" if state == 1 else "0" for state in damage.sectors),
        old=damage.old if small else b"",
        new=damage.new if small else b"",
    )


def mask_of(plan: FaultPlan) -> str:
    """How its fault hits, in a word."""
    if not plan.run:
        return ""
    fault = plan.run[0]
    if fault.bytes is not None:
        return f"bytes:{fault.bytes}"
    return fault.when if fault.sectors is None else fault.sectors
