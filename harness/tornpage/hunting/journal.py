"""What the looks of a hunt came to, a line each, in a file: a hunt that goes on asks it in place of the
target, and comes to the same scripts.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from tornpage.hunting.corpus import Seen
from tornpage.store.runlock import RunLock
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError

__all__ = ["Entry", "Journal"]

FILE = "hunt.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """Of one look. kinds: of what it broke; run: in which its script was explored again and is kept, 0: none,
    what it broke was known; lost: that run did not show it; refused: the target could not run the script."""

    seen: Seen
    kinds: tuple[str, ...] = ()
    run: int = 0
    lost: bool = False
    refused: bool = False


class Journal:
    """The file of a folder, of one owner at a time. entries: of earlier parts of this hunt, in order."""

    def __init__(self, out: Path, key: str) -> None:
        """key: the same only where every look would be. ConfigError: the file is of another hunt, or another
        process is at it."""
        out.mkdir(parents=True, exist_ok=True)
        self.file = out / FILE
        self._lock = RunLock(self.file.with_suffix(".lock"), f"the hunt in {out}")
        try:
            self.entries = self._entries(key)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Another process may go on."""
        self._lock.release()

    def _entries(self, key: str) -> list[Entry]:
        lines = self.file.read_bytes().splitlines(keepends=True) if self.file.exists() else []
        whole = [line for line in lines if line.endswith(b"\n")]  # the last one may be cut off
        if not whole:
            self.file.write_text(json.dumps({"hunt": key}) + "\n", "ascii")
        elif json.loads(whole[0]) != {"hunt": key}:
            raise ConfigError(
                f"{self.file} is of another hunt (seed, campaigns, options or programs differ): "
                "choose another --out, or delete the file"
            )
        else:
            os.truncate(self.file, sum(map(len, whole)))
        return [from_json(Entry, line) for line in whole[1:]]

    def put(self, entry: Entry) -> None:
        """The next one."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(to_json(entry) + "\n")
