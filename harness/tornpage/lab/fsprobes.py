"""Small programs that ask a file system one question each: what is there after a crash? The answer is one of
a few words; which of them a profile allows follows from its row of `tornpage-explore --list-fs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tornpage.lab.realdisk import Step

__all__ = ["PROBES", "Probe"]

Row = Mapping[str, Any]
"""Of a file system: names, fsync, size_first, replace_flushes."""
Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Probe:
    """question: of a table; before: files that are there first; steps: what a crash follows; answer: of the
    files that it left; allowed: by the profile's row."""

    question: str
    before: Files
    steps: tuple[Step, ...]
    answer: Callable[[Files], str]
    allowed: Callable[[Row], frozenset[str]]


def _write(name: str, offset: int, fill: str, count: int) -> Step:
    return Step("write", name, "", offset, fill.encode() * count)


def _sync(name: str) -> Step:
    return Step("fdatasync", name)


def _rename(name: str, to: str) -> Step:
    return Step("rename", name, to)


_SYNC_DIR = Step("sync_dir")
_RENAMED = {"a": b"a" * 4096, "log": b"o" * 8192}
_OTHER = (_write("other", 0, "x", 128), _sync("other"))
"""A commit of the journal, if there is one, that is no business of the files that are asked for."""


def _kept(files: Files) -> str:
    return "kept" if "b" in files and "a" not in files else "lost"


def _old_or_new(files: Files) -> str:
    text = files.get("cur", b"")
    if text == b"o" * 5000:
        return "old"
    return "new" if text == b"n" * 5000 else f"{len(text)} bytes, not all there"


def _grown(files: Files) -> str:
    text = files["f"]
    if text == b"o" * 128:
        return "nothing"
    if text == b"o" * 128 + b"n" * 128:
        return "all"
    return "zeros" if text[128:].count(0) == len(text) - 128 else "old bytes"


def _flag(files: Files) -> str:
    flag, counter = files["f"][0:1] == b"n", files["f"][100:101] == b"n"
    return {(False, False): "neither", (True, False): "the first", (True, True): "both"}.get(
        (flag, counter), "the second alone"
    )


def _rewritten(files: Files) -> str:
    text = files["f"]
    if text == b"o" * 8192:
        return "old"
    if not text:
        return "empty"
    if text == b"n" * 100:
        return "new"
    return "zeros" if set(text) == {0} else "a mixture"


def _direct(files: Files) -> str:
    text = files["f"]
    return {b"o" * 4096: "lost", b"n" * 4096: "kept"}.get(text, "torn")


def _reserved(files: Files) -> str:
    text = files["f"]
    if text == b"o" * 128:
        return "nothing"
    return "zeros" if set(text[128:]) == {0} else "old bytes"


def _growth(row: Row) -> frozenset[str]:
    more = {"never": (), "zeros in the last block": ("zeros",), "zeros": ("zeros",)}
    return frozenset({"nothing", "all", *more.get(row["size_first"], ("zeros", "old bytes"))})


def _replaced(row: Row) -> frozenset[str]:
    if row["replace_flushes"]:
        return frozenset({"old", "new"})
    whole = set() if row["size_first"] == "never" else {"5000 bytes, not all there"}
    return frozenset({"old", "new", "0 bytes, not all there"} | whole)


_EITHER = frozenset({"kept", "lost"})

PROBES = (
    Probe(
        "a rename, then bytes of another file overwritten and synced",
        _RENAMED,
        (_rename("a", "b"), _write("log", 0, "n", 4096), _sync("log")),
        _kept,
        lambda _row: _EITHER,
    ),
    Probe(
        "a rename, then another file appended to and synced",
        _RENAMED,
        (_rename("a", "b"), _write("log", 8192, "n", 4096), _sync("log")),
        _kept,
        lambda row: frozenset({"kept"}) if row["fsync"] == "earlier names" else _EITHER,
    ),
    Probe(
        "a rename, then the file itself appended to and synced",
        _RENAMED,
        (_rename("a", "b"), _write("b", 4096, "n", 128), _sync("b")),
        _kept,
        lambda row: _EITHER if row["fsync"] == "nothing" else frozenset({"kept"}),
    ),
    Probe(
        "a rename, then the folder synced",
        _RENAMED,
        (_rename("a", "b"), _SYNC_DIR),
        _kept,
        lambda _row: frozenset({"kept"}),
    ),
    Probe(
        "an append of 128 bytes",
        {"f": b"o" * 128},
        (_write("f", 128, "n", 128), *_OTHER),
        _grown,
        _growth,
    ),
    Probe(
        "a new file renamed over an old one, then the folder synced",
        {"cur": b"o" * 5000},
        (_write("new", 0, "n", 5000), _rename("new", "cur"), _SYNC_DIR),
        _old_or_new,
        _replaced,
    ),
    Probe(
        "a file cut to nothing and written anew",
        {"f": b"o" * 8192},
        (Step("truncate", "f"), _write("f", 0, "n", 100), *_OTHER),
        _rewritten,
        lambda row: frozenset(
            {"old", "new", "empty"} | (set() if row["size_first"] == "never" else {"zeros"})
        ),
    ),
    Probe(
        "two writes to one sector",
        {"f": b"o" * 4096},
        (_write("f", 0, "n", 1), Step("push", "f"), _write("f", 100, "n", 1), *_OTHER),
        _flag,
        lambda _row: frozenset({"neither", "the first", "both"}),
    ),
    Probe(
        "a write through O_DIRECT",
        {"f": b"o" * 4096},
        (Step("direct", "f", data=b"n" * 4096),),
        _direct,
        lambda _row: _EITHER | {"torn"},
    ),
    Probe(
        "a write through O_DSYNC",
        {"f": b"o" * 4096},
        (Step("dsync", "f", data=b"n" * 4096),),
        _direct,
        lambda _row: frozenset({"kept"}),
    ),
    Probe(
        "space reserved behind the end, with a new size",
        {"f": b"o" * 128},
        (Step("reserve", "f", offset=65536), *_OTHER),
        _reserved,
        lambda _row: frozenset({"nothing", "zeros"}),
    ),
)
