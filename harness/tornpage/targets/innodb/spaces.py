"""Whose file a path is: the space id that its pages must carry.

What is written to a file is no evidence of that, but for the first page of a new one, which comes before the
log names the file (10.2 to 10.5) and must agree with it afterwards.

    file                 space
    system tablespace    0
    found                its first page as it was found; if the log gives the name to others only, the newest
    new                  its FILE_CREATE; before that its first page, unless another file has that space
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tornpage.targets.innodb.records import Kind, Record

__all__ = ["SYSTEM", "Spaces", "Undo"]

SYSTEM = "ibdata1"
Undo = list[Callable[[], None]]
"""Takes back, from its end on, what a group of the log has said."""
NAMING = (Kind.FILE_CREATE, Kind.FILE_MODIFY, Kind.FILE_RENAME)


@dataclass(slots=True)
class Spaces:
    """Of one process, by path relative to the data directory."""

    _here: dict[str, int] = field(default_factory=lambda: {SYSTEM: 0})
    _found: dict[str, int | None] = field(default_factory=dict)
    _claimed: set[str] = field(default_factory=set)
    _created: dict[str, int] = field(default_factory=dict)
    _names: dict[str, list[int]] = field(default_factory=dict)

    def find(self, path: str, space: int | None) -> None:
        """It was there before. space: by its first page; None: that is not whole."""
        if path != SYSTEM:
            self._found[path] = space

    def of(self, path: str) -> int | None:
        """None: nothing tells."""
        if path not in self._here:
            space = self._created.get(path)
            if path in self._found:
                space = self._of_found(path)
            if space is None:
                return None
            self._here[path] = space
        return self._here[path]

    def _of_found(self, path: str) -> int | None:
        by_page, names = self._found[path], self._names.get(path, [])
        if not names or by_page in names:
            return by_page
        return names[-1]

    def claim(self, path: str, space: int) -> int | None:
        """The space of a new file by its first page; None: another file has it."""
        if space in self._here.values() or space in self._found.values():
            return None
        self._here[path] = space
        self._claimed.add(path)
        return space

    def name(self, record: Record, undo: Undo) -> str:
        """The durable log may name a file: what is wrong with that, or ""."""
        if record.kind not in NAMING:
            return ""
        paths = [_path(name) for name in record.name.split(b"\0", 1) if name]
        before = dict(self._created)

        def take_back() -> None:
            self._created = before
            for path in paths:
                if self._names.get(path):
                    self._names[path].pop()

        for path in paths:
            self._names.setdefault(path, []).append(record.space)
        undo.append(take_back)
        if record.kind is not Kind.FILE_CREATE or not paths:
            return ""
        path = paths[0]
        self._created[path] = record.space
        claimed = path in self._claimed
        self._claimed.discard(path)
        if claimed and self._here[path] != record.space:
            return f"{path} is of space {record.space}, its page 0 said {self._here[path]}"
        return ""

    def rename(self, old: str, new: str) -> None:
        """The file keeps its space."""
        space = self.of(old)
        claimed = old in self._claimed
        self.remove(old)
        self.remove(new)
        if space is not None:
            self._here[new] = space
        if claimed:
            self._claimed.add(new)

    def remove(self, path: str) -> None:
        """The name may be used again."""
        self._here.pop(path, None)
        self._found.pop(path, None)
        self._created.pop(path, None)
        self._names.pop(path, None)
        self._claimed.discard(path)


def _path(name: bytes) -> str:
    """As the recorder names it."""
    return name.rstrip(b"\0").decode(errors="replace").removeprefix("./")
