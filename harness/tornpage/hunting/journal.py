"""What the looks of a hunt came to, a line each, in a file: a hunt that goes on asks it in place of the
target, and comes to the same scripts.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.hunting.corpus import Seen
from tornpage.vocabulary.errors import ConfigError

__all__ = ["Entry", "Journal"]

FILE = "hunt.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """Of one look. kinds: of what it broke; run: in which that was kept, 0: none, it was known."""

    seen: Seen
    kinds: tuple[str, ...] = ()
    run: int = 0


class Journal:
    """The file of a folder. entries: of earlier parts of this hunt, in order."""

    def __init__(self, out: Path, key: str) -> None:
        """key: the same only where every look would be. ConfigError: the file is of another hunt."""
        out.mkdir(parents=True, exist_ok=True)
        self._file = out / FILE
        lines = self._file.read_bytes().splitlines(keepends=True) if self._file.exists() else []
        whole = [line for line in lines if line.endswith(b"\n")]  # the last one may be cut off
        if not whole:
            self._file.write_text(json.dumps({"hunt": key}) + "\n", "ascii")
        elif json.loads(whole[0]) != {"hunt": key}:
            raise ConfigError(
                f"{self._file} is of another hunt (seed, campaigns, options or programs differ): "
                "choose another --out, or delete the file"
            )
        else:
            os.truncate(self._file, sum(map(len, whole)))
        self.entries = [_entry(json.loads(line)) for line in whole[1:]]

    def put(self, entry: Entry) -> None:
        """The next one."""
        with self._file.open("a", encoding="ascii") as file:
            file.write(json.dumps(_plain(entry)) + "\n")


def _plain(entry: Entry) -> dict[str, Any]:
    seen = entry.seen
    data = {"marks": sorted(seen.marks), "work": seen.work, "states": seen.states}
    return {**data, "kinds": list(entry.kinds), "run": entry.run}


def _entry(data: dict[str, Any]) -> Entry:
    seen = Seen(frozenset(data["marks"]), data["work"], data["states"])
    return Entry(seen, tuple(data["kinds"]), data["run"])
