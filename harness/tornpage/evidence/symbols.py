"""Functions and lines of calls: asked of llvm-symbolizer, eu-addr2line or addr2line, of the very files that
ran, which their build ids tell, or of their debug files.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tornpage.faults.process import run_child
from tornpage.faults.stacks import Call
from tornpage.vocabulary.errors import ChildError, ConfigError
from tornpage.vocabulary.evidence import Frame

__all__ = ["require_symbolizer", "symbols_of"]

TOOLS = (
    ("llvm-symbolizer", "--output-style=GNU"),
    ("eu-addr2line",),
    ("addr2line",),
)
"""Each with what makes it answer like the last one; the first that is there is asked."""
FLAGS = ("-a", "-f", "-C", "-i")
"""Addresses, functions, names as they are in the source, inlined functions too."""
DEADLINE_S = 120.0
ASKED_MAX = 2000
"""Addresses of one question."""
HEAD_BYTES = 1 << 16
"""A build id stands at the beginning of a file."""
SYSTEM_DEBUG = Path("/usr/lib/debug")
UNKNOWN = "??"
_CLONE = re.compile(r"(\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d+)?)+$")
"""What compilers append to the name of a function that they have made another one of."""
INLINED = " inlined at "
"""Of eu-addr2line, behind the name of a function."""


def require_symbolizer() -> None:
    """ConfigError if nothing here knows how to read symbols."""
    if _tool() is None:
        names = ", ".join(tool[0] for tool in TOOLS)
        raise ConfigError(f"functions and lines need one of {names}: apt install llvm")


def symbols_of(
    calls: Iterable[Call], folders: Sequence[Path] = ()
) -> Mapping[Call, tuple[Frame, ...]]:
    """The frames of each call, the innermost first: more than one where functions were inlined. folders: with
    debug files, as FOLDER/.build-id/ab/cdef.debug or FOLDER/BUILDID/debuginfo, beside those of the system and
    of debuginfod. What nobody knows has one frame, without a function."""
    by_module: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in dict.fromkeys(calls):
        by_module[call.module, call.build_id].append(call)
    found: dict[Call, tuple[Frame, ...]] = {}
    for (module, build_id), asked in by_module.items():
        file = _file_of(module, build_id, folders)
        named = _ask(file, asked) if file is not None else {}
        for call in asked:
            found[call] = named.get(call.offset) or (Frame("", "", 0, *_place(call)),)
    return found


def _place(call: Call) -> tuple[str, str, int]:
    return call.module, call.build_id, call.offset


def _tool() -> tuple[str, ...] | None:
    for name, *flags in TOOLS:
        path = shutil.which(name)
        if path is not None:
            return path, *flags
    return None


def _file_of(module: str, build_id: str, folders: Sequence[Path]) -> Path | None:
    """What has its symbols: its debug file, or the file itself if that is still the one that ran."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    fetched = Path(os.environ.get("DEBUGINFOD_CACHE_PATH") or cache / "debuginfod_client")
    if build_id:
        names = (f".build-id/{build_id[:2]}/{build_id[2:]}.debug", f"{build_id}/debuginfo")
        for folder in (*folders, SYSTEM_DEBUG, fetched):
            for name in names:
                if _has_id(folder / name, build_id):
                    return folder / name
    return Path(module) if module.startswith("/") and _has_id(Path(module), build_id) else None


def _has_id(file: Path, build_id: str) -> bool:
    """Whether it is the file with this build id; any file is, where there is none."""
    try:
        with file.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
    except OSError:
        return False
    text = bytes.fromhex(build_id)
    note = len(text).to_bytes(4, "little") + b"\x03\0\0\0GNU\0" + text
    return not build_id or note in head


def _ask(file: Path, calls: Sequence[Call]) -> dict[int, tuple[Frame, ...]]:
    """By offset."""
    tool = _tool()
    found: dict[int, tuple[Frame, ...]] = {}
    if tool is None:
        return found
    for start in range(0, len(calls), ASKED_MAX):
        some = {call.offset: call for call in calls[start : start + ASKED_MAX]}
        argv = [*tool, *FLAGS, "-e", str(file), *map(hex, some)]
        child = run_child(argv, os.environ, DEADLINE_S)
        if child.exit_code != 0:
            raise ChildError(f"{tool[0]} {file}: {child.describe()}")
        for offset, frames in _answers(child.stdout.decode("utf-8", "replace").splitlines()):
            call = some.get(offset)
            if call is not None:
                found[offset] = tuple(Frame(*frame, *_place(call)) for frame in frames)
    return found


def _answers(lines: Sequence[str]) -> Iterator[tuple[int, list[tuple[str, str, int]]]]:
    """Behind each address two lines per function: its name, and file:line."""
    starts = [n for n, line in enumerate(lines) if line.startswith("0x")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        told = [line for line in lines[start + 1 : end] if line]
        pairs = zip(told[::2], told[1::2], strict=False)
        named = (
            (_CLONE.sub("", name.partition(INLINED)[0]), place)
            for name, place in pairs
            if name != UNKNOWN
        )
        yield int(lines[start], 16), [(name, *_line_of(place)) for name, place in named]


def _line_of(text: str) -> tuple[str, int]:
    """Of "/a/b.c:12 (discriminator 3)", "/a/b.c:12:5" or "??:0"."""
    words = text.partition(" ")[0].split(":")
    file = words[0] if words[0] != UNKNOWN else ""
    number = words[1] if len(words) > 1 else ""
    return (file, int(number)) if file and number.isascii() and number.isdigit() else ("", 0)
