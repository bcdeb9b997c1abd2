"""Where the recovery of a broken state goes another way than that of a right one: both are recorded, with
call stacks where the recorder takes them, and the first thing is told that only one of them does, and the
other nowhere. How often it does what, to which pages and in which place of the log is no such thing: there
the states differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.causes.cause import operation_of
from tornpage.evidence.stacks import stack_frames
from tornpage.faults.image import fill_image, remove_image
from tornpage.faults.preload import BARE
from tornpage.faults.stacks import CallStack, Note, StackLog, stacks_path
from tornpage.faults.trace import FilePaths, Op, Trace, parse_mark
from tornpage.targets.target import Capability, Recorded, Target
from tornpage.vocabulary.cause import Operation, Parting
from tornpage.vocabulary.errors import ChildError, TraceError
from tornpage.vocabulary.evidence import Fate, Step

__all__ = ["Deed", "Recoveries", "deeds_of"]

WAYS = ("name", "op", "why", "err", "refusal")
"""Facts of a note that say which way is gone, not where."""
ERROR = "error"
"""Note of a failure, where it is told first."""
NAMED = (Op.OPEN, Op.UNLINK, Op.SYNC_DIR, Op.MKDIR)
"""Operations with a path of their own."""
PLACED = (Op.READ, Op.WRITE, Op.SYNC_RANGE, Op.TRUNCATE, Op.FALLOCATE)


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that a recovery does: an operation, reads too, or what it says of itself. what: it is, by
    its kind; where nobody takes stacks, of which file."""

    told: Operation
    stack: CallStack | None
    what: tuple[str, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What is the same where another recovery does it, by the same calls."""
        return (self.what, self.stack.calls, self.stack.text) if self.stack else (self.what,)


class Recoveries:
    """Of states of one recording."""

    def __init__(
        self,
        target: Target,
        options: Mapping[str, str],
        at: Path | None,
        scratch: Path,
        folders: Sequence[Path],
    ) -> None:
        """at: where images are recovered, as of Recording; folders: with debug files."""
        self._target, self._options, self._at = target, options, at
        self._scratch, self._folders = scratch, folders

    def parting(self, broken: Path, right: Path, than: str) -> Parting | None:
        """broken, right: images; than: in what the right one is another, in words. None: both go the same
        way, as far as can be told."""
        one, other = self._deeds(broken), self._deeds(right)
        if not one or not other:
            return None
        again = one if self._repeats else self._deeds(broken)
        known = {deed.key for deed in one} & {deed.key for deed in again}
        each_time = [deed for deed in one if deed.key in known]
        goes, instead = self._first(each_time, other), self._first(other, [*one, *again])
        fails = self._first([deed for deed in reversed(each_time) if deed.told.op == ERROR], other)
        return Parting(than, goes, instead, fails) if goes or instead else None

    @property
    def _repeats(self) -> bool:
        """A recovery does each time the same."""
        return Capability.DETERMINISTIC in self._target.capabilities

    def _first(self, deeds: Sequence[Deed], others: Sequence[Deed]) -> Operation | None:
        """That is not among the others."""
        known = {deed.key for deed in others}
        deed = next((one for one in deeds if one.key not in known), None)
        if deed is None:
            return None
        frames = stack_frames({0: deed.stack}, self._folders, self._target.wrappers)
        return replace(deed.told, frames=frames.get(0, ()))

    def _deeds(self, image: Path) -> list[Deed]:
        """None of a recovery that could not be recorded."""
        data = self._at or self._scratch / "recovered"
        trace = self._scratch / "recovery.trace"
        data.mkdir(exist_ok=True)
        try:
            fill_image(image, data)
            command = self._target.recover_command(data, self._options)
            how = Recorded(data, trace, self._options, stacks=True)
            self._target.recorded(command, how).run(BARE)
            return list(deeds_of(Trace.load(trace), StackLog.load(trace)))
        except (ChildError, TraceError):
            return []
        finally:
            remove_image(data)
            if self._at is not None:
                data.mkdir()
            for file in (trace, stacks_path(trace)):
                file.unlink(missing_ok=True)


def deeds_of(trace: Trace, log: StackLog | None) -> Iterator[Deed]:
    """In their order: a note stands behind the last event that had ended."""
    notes = deque(log.notes if log else ())
    for step in _operations(trace):
        while notes and notes[0].event < step.seq:
            yield _noted(notes.popleft(), log)
        stack = log.of(step.seq) if log else None
        yield Deed(operation_of(step), stack, (step.op,) if stack else (step.op, step.path))
    yield from (_noted(note, log) for note in notes)


def _operations(trace: Trace) -> Iterator[Step]:
    """Reads too; marks are notes where somebody takes stacks."""
    paths = FilePaths()
    for event in trace.events():
        paths.see(trace, event)
        if event.kind in (Op.MARK, Op.CLOSE):
            continue
        path = trace.text(event) if event.kind in NAMED else paths[event.file]
        to = ""
        if event.kind in (Op.RENAME, Op.LINK):
            path, to = trace.renamed(event)
        op = Op(event.kind).name.lower()
        place = (event.offset, event.length) if event.kind in PLACED else (0, 0)
        yield Step(event.seq, op, path, Fate.KEPT, to, *place)


def _noted(note: Note, log: StackLog | None) -> Deed:
    assert log is not None, "its note"
    mark = parse_mark(note.text.encode())
    what = f"{note.text} (behind operation {note.event})"
    way = (f"{name}={mark.facts[name]}" for name in WAYS if name in mark.facts)
    told = Operation(note.event, mark.verb, "", what, "", 0)
    return Deed(told, log.stack(note.stack), (mark.verb, *way))
