"""The writes of a recorded run, each with its site, and by which name a fault can aim at it again.

A plan says "the n-th write of a file". A store that commits by files of random names (mkstemp, fsync, rename)
has other names in every run: there it is "the n-th write of a pattern of names", which two fault-free runs
tell from the names that all runs have.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from tornpage.faults.aim import SECTOR
from tornpage.faults.trace import Event, FilePaths, Op, Trace
from tornpage.targets.target import Target
from tornpage.vocabulary.model import FaultKind, Site, WriteEvent

__all__ = ["Names", "list_operations", "list_writes", "names_of", "written_names"]

_LISTED = frozenset((Op.OPEN, Op.RENAME, Op.LINK, Op.WRITE, Op.FSYNC, Op.FDATASYNC, Op.MARK))
_TOLD = ("issue", "page_write")
"""Marks that list_writes() goes by."""
_SEPARATORS = "-._/"
"""What parts of a name end at: letters that random names have in common by chance are none of them."""
_SPECIAL = re.compile(r"[*?\[]")
"""To fnmatch."""


@dataclass(frozen=True, slots=True)
class Names:
    """stable: names of files that every run has; patterns: of the others."""

    stable: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    def aim(self, name: str) -> str:
        """What a plan calls the file."""
        if name in self.stable:
            return name
        for pattern in self.patterns:
            if fnmatch.fnmatchcase(name, pattern):
                return pattern
        folder = _parents(name)[0]
        return f"{_plain(folder)}/*" if folder else "*"

    def with_stable(self, names: Set[str]) -> Names:
        """The same, and these are stable too."""
        return Names(self.stable | names, self.patterns)


def written_names(trace: Trace) -> set[str]:
    """The names under which a run has written or synced files."""
    paths = FilePaths()
    names = set()
    for event in trace.events(kinds=_LISTED - {Op.MARK}):
        paths.see(trace, event)
        if event.kind in (Op.WRITE, Op.FSYNC, Op.FDATASYNC):
            names.add(paths[event.file])
    return names


def names_of(one: Set[str], other: Set[str], before: Set[str]) -> Names:
    """From the names that two fault-free runs have written, and those that were there before."""
    stable = (one & other) | before
    known = {folder for name in stable for folder in _parents(name)} | {""}
    drawn: dict[str, list[str]] = {}
    for name in sorted((one | other) - stable):
        folder = next(parent for parent in _parents(name) if parent in known)
        drawn.setdefault(folder, []).append(name.removeprefix(f"{folder}/") if folder else name)
    patterns = []
    for folder, names in sorted(drawn.items(), key=lambda item: (-len(item[0]), item[0])):
        patterns.append(f"{_plain(folder)}/{_pattern(names)}" if folder else _pattern(names))
    return Names(frozenset(stable), tuple(patterns))


def _parents(name: str) -> tuple[str, ...]:
    """The folders that it is in, the nearest first."""
    parts = name.split("/")[:-1]
    return tuple("/".join(parts[:count]) for count in range(len(parts), -1, -1))


def _pattern(names: list[str]) -> str:
    """What they have in common at both ends, whole parts of a name only."""
    first = _beginning(names)
    first = first[: max(first.rfind(one) for one in _SEPARATORS) + 1]
    last = _beginning([name[::-1] for name in names])[::-1]
    begins = [last.find(one) for one in _SEPARATORS if one in last]
    last = last[min(begins) :] if begins else ""
    if min(map(len, names)) < len(first) + len(last):
        last = ""
    return f"{_plain(first)}*{_plain(last)}"


def _beginning(names: list[str]) -> str:
    """The letters that all of them begin with."""
    least, most = min(names), max(names)
    same = (one == other for one, other in zip(least, most, strict=False))
    return least[: sum(itertools.takewhile(bool, same))]


def _plain(text: str) -> str:
    """As a pattern of itself."""
    return _SPECIAL.sub(lambda found: f"[{found[0]}]", text)


class _Counts:
    """How many operations of each aim there have been: as the preload does, all that a pattern matches."""

    def __init__(self, names: Names | None, trace: Trace) -> None:
        written = written_names(trace) if names is not None else ()
        self._aims = {name: names.aim(name) for name in written} if names is not None else {}
        self._patterns = {aim for name, aim in self._aims.items() if aim != name}
        self._counts: dict[str, int] = {}

    def aim(self, name: str) -> str:
        """What a plan calls the file."""
        return self._aims.get(name, name)

    def add(self, name: str) -> int:
        """Counts an operation; the number that a plan gives it."""
        aim = self.aim(name)
        aims = {one for one in self._patterns if fnmatch.fnmatchcase(name, one)} | {aim}
        for one in aims:
            self._counts[one] = self._counts.get(one, 0) + 1
        return self._counts[aim]

    def of(self, aim: str) -> int:
        """So many operations of an aim there were until now."""
        return self._counts.get(aim, 0)


def list_writes(
    target: Target,
    trace: Trace,
    page_size: int,
    *,
    issued: bool = False,
    unit: int = SECTOR,
    names: Names | None = None,
) -> list[WriteEvent]:
    """The writes of a run or a recovery, each with its site. issued: only those after the first
    statement was issued. unit: what the storage writes whole of a file that holds pages. names: of a target
    whose files may be called otherwise in the next run; None: they are not."""
    listing = _Listing(target, trace, page_size, issued, unit, names)
    for event in trace.events(kinds=_LISTED):
        listing.see(event)
    return [
        write if write.next_fsync <= listing.syncs.of(write.file) else replace(write, next_fsync=0)
        for write in listing.writes
    ]


_KINDS = {
    Op.READ: FaultKind.READ,
    Op.TRUNCATE: FaultKind.TRUNCATE,
    Op.RENAME: FaultKind.RENAME,
    Op.UNLINK: FaultKind.UNLINK,
    Op.SYNC_DIR: FaultKind.SYNC_DIR,
}
"""Operations other than writes that can be made to fail."""

READS_EVERY = 64
"""Of the reads of a file the first so many are listed, then one in so many: a run may have a million."""


def list_operations(
    target: Target, trace: Trace, page_size: int, *, issued: bool = False, unit: int = SECTOR
) -> Iterator[WriteEvent]:
    """What a run or a recovery reads, and does to sizes, names and folders; issued, unit: as of
    list_writes(). Of a rename either name counts in a plan; it is called by the old one. Failed ones are
    counted, not listed."""
    paths, counts, line = FilePaths(), Counter[tuple[FaultKind, str]](), 0
    for event in trace.events(kinds=frozenset((Op.OPEN, Op.LINK, Op.MARK, *_KINDS))):
        if event.kind == Op.MARK:
            if trace.tells(event, ("issue",)):
                line = int(trace.mark(event).facts["n"])
            continue
        kind = _KINDS.get(Op(event.kind))
        if kind is not None:
            names = _paths_of(trace, event, paths)
            counts.update((kind, name) for name in {*names})
            site: Site | None = Site.FILE_OP
            if kind is FaultKind.READ:
                site = target.site_of(names[0], event.offset, None, page_size)
            nth = counts[kind, names[0]]
            spared = kind is FaultKind.READ and nth > READS_EVERY and nth % READS_EVERY
            if (line or not issued) and event.result >= 0 and names[0] and site and not spared:
                yield WriteEvent(
                    nth=nth,
                    seq=event.seq,
                    file=names[0],
                    offset=0,
                    length=0,
                    site=site,
                    line=line,
                    next_fsync=0,
                    promised=unit,
                    kind=kind,
                )
        paths.see(trace, event)


def _paths_of(trace: Trace, event: Event, paths: FilePaths) -> tuple[str, ...]:
    if event.kind in (Op.READ, Op.TRUNCATE):
        return (paths[event.file],)
    return trace.renamed(event) if event.kind == Op.RENAME else (trace.text(event),)


class _Listing:
    """Goes through a trace. writes: those until now, each as if an fsync of its file were to come; syncs:
    those that came."""

    def __init__(
        self,
        target: Target,
        trace: Trace,
        page_size: int,
        issued: bool,
        unit: int,
        names: Names | None,
    ) -> None:
        self.writes: list[WriteEvent] = []
        self.syncs = _Counts(names, trace)
        self._counts = _Counts(names, trace)
        self._target, self._trace, self._page_size = target, trace, page_size
        self._issued, self._unit = issued, unit
        self._units: dict[str, int] = {}
        self._paths = FilePaths()
        self._line = 0
        self._facts: Mapping[str, str] | None = None
        """What the target has said of its next write."""

    def see(self, event: Event) -> None:
        """The next event."""
        if event.kind == Op.MARK:
            self._hear(event)
            return
        self._paths.see(self._trace, event)
        if event.kind in (Op.FSYNC, Op.FDATASYNC):
            self.syncs.add(self._paths[event.file])
        elif event.kind == Op.WRITE:
            self._write(event, self._paths[event.file])

    def _hear(self, event: Event) -> None:
        self._facts = None
        if not self._trace.tells(event, _TOLD):
            return
        mark = self._trace.mark(event)
        if mark.verb == "issue":
            self._line = int(mark.facts["n"])
        else:
            self._facts = mark.facts

    def _write(self, event: Event, file: str) -> None:
        """One of no bytes is counted, as a plan does, but there is nothing of it to keep or to lose."""
        nth = self._counts.add(file)
        if not event.length:
            return
        site = self._site(event, file)
        if site is not None:
            aim = self._counts.aim(file)
            self.writes.append(
                WriteEvent(
                    nth=nth,
                    seq=event.seq,
                    file=aim,
                    offset=event.offset,
                    length=event.length,
                    site=site,
                    line=self._line,
                    facts=self._facts or {},
                    next_fsync=self.syncs.of(aim) + 1,
                    unit=self._unit_of(file),
                    promised=self._unit,
                )
            )
        self._facts = None

    def _unit_of(self, file: str) -> int:
        if file not in self._units:
            self._units[file] = self._unit if self._target.holds_pages(file) else SECTOR
        return self._units[file]

    def _site(self, event: Event, file: str) -> Site | None:
        """None: it is not listed. No image has a file that was replaced, and no plan names it."""
        if not file or (self._issued and not self._line):
            return None
        data = self._trace.payload(event)[: event.length]
        return self._target.site_of(file, event.offset, self._facts, self._page_size, data)
