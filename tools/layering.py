"""Holds the includes of C against the layering of docs/ARCHITECTURE.md (`lint-imports` does it for Python).

Arrows point down only. A folder of `engine/` may include those before it in `ENGINE`, its program the marks
of a target too, `faults/` only itself, `disk/` the engine's base and its door to files, a folder of
`explorer/` those before it in `EXPLORER`, the disk's, the engine's, and of `faults/` the trace format and the
end of children. The scanner is an independent judge and may share page and log decoding only. Files of a
folder do not call each other in circles; what is left of that says `CIRCLES`. (`faults/` defines calls of
libc, which all of its files make.)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ["base", "os", "page", "log", "fil", "buf", "mtr", "fsp", "btr", "dict", "trx", "ddl"]
ENGINE += ["recv", "backup", "check", "api", "cli"]
EXPLORER = ["judge", "targets", "run", "tests"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

MAY_INCLUDE: dict[str, set[str]] = {
    **{f"engine/{name}": {f"engine/{one}" for one in ENGINE[:n]} for n, name in enumerate(ENGINE)},
    "engine/check": {"engine/base", "engine/os", "engine/page", "engine/log"},
    "engine/cli": {"marking", *(f"engine/{one}" for one in ENGINE[:-1])},
    "faults": set(),
    "disk": {"engine/base", "os/os.h"},
    **{
        f"explorer/{name}": {f"explorer/{one}" for one in EXPLORER[:n]}
        | {f"engine/{one}" for one in ENGINE}
        | {"disk", "faults/trace.h", "faults/children.h"}
        for n, name in enumerate(EXPLORER)
    },
}
"""By folder, the other folders whose headers it may include, and single headers."""


COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
DEFINED = re.compile(
    r"^(?!static\b|typedef\b|extern\b)\w[\w *]*?\b(\w+)(?:\([^;{}]*\)\s*\{| =)", re.MULTILINE
)
CIRCLES = {
    "engine/api": 2,
    "engine/cli": 2,
    "engine/fsp": 4,
    "engine/mtr": 2,
    "engine/trx": 5,
}
CIRCLES |= {"explorer/judge": 13, "explorer/targets/sqlite": 3}
"""By folder, how many of its files are in circles at most."""


@dataclass(frozen=True, slots=True)
class Include:
    """folder, target: of MAY_INCLUDE; header: as it is written."""

    file: Path
    folder: str
    header: str
    target: str


def folder_of(parts: tuple[str, ...]) -> str:
    """Of a path below the root."""
    return "/".join(parts[:2]) if parts[0] in ("engine", "explorer") else parts[0]


def includes(root: Path = ROOT) -> Iterator[Include]:
    """All of the sources that are layered, in the order of their paths."""
    for top in ("disk", "engine", "explorer", "faults"):
        for path in sorted((root / top).rglob("*.[ch]")):
            file = path.relative_to(root)
            folder = folder_of(file.parts)
            for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
                parts = Path(header).parts
                if len(parts) == 1:
                    target = folder
                else:
                    target = folder_of(("engine", *parts) if parts[0] in ENGINE else parts)
                yield Include(file, folder, header, target)


def violations(root: Path = ROOT) -> list[str]:
    """Each arrow that points the wrong way."""
    return [
        f"{one.file} includes {one.header}"
        for one in includes(root)
        if one.target != one.folder and not {one.target, one.header} & MAY_INCLUDE[one.folder]
    ]


def calls(folder: Path) -> dict[str, set[str]]:
    """By file of C, the others of its folder that define what it names."""
    texts = {path.name: COMMENT.sub(" ", path.read_text("utf-8")) for path in folder.glob("*.c")}
    home = {name: file for file, text in texts.items() for name in DEFINED.findall(text)}
    words = {
        file: set(re.findall(r"\w+", text)) - set(re.findall(r"(?m)^static [^(;=]*?(\w+)\(", text))
        for file, text in texts.items()
    }
    return {
        file: {home[one] for one in used & home.keys()} - {file} for file, used in words.items()
    }


def circle(uses: dict[str, set[str]]) -> list[str]:
    """The files that lead back to themselves."""

    def reach(file: str) -> set[str]:
        seen: set[str] = set()
        left = set(uses[file])
        while left:
            one = left.pop()
            seen.add(one)
            left |= uses[one] - seen
        return seen

    return sorted(file for file in uses if file in reach(file))


def circles(root: Path = ROOT, known: dict[str, int] = CIRCLES) -> list[str]:
    """Each folder that has more files in circles than are known."""
    tops = (root / top for top in ("disk", "engine", "explorer"))
    folders = sorted({path.parent for top in tops for path in top.rglob("*.c")})
    found = {str(one.relative_to(root)): circle(calls(one)) for one in folders}
    return [
        f"{folder}: {len(files)} files call each other in circles: {', '.join(files)}"
        for folder, files in found.items()
        if len(files) > known.get(folder, 0)
    ]


def main() -> int:
    """Prints them; 1 if there is one."""
    found = violations() + circles()
    for line in found:
        print(f"layering: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
