"""Holds the includes of C against the layering of docs/ARCHITECTURE.md (`lint-imports` does it for Python).

Arrows point down only. A folder of `engine/` may include those before it in `ENGINE`, `faults/` only
itself, `disk/` what is `FOR_DISK`, a folder of `explorer/` those before it in `EXPLORER`, the disk's, the
engine's, and what is `FOR_ALL`. The scanner is an independent judge and may share page and log decoding only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ENGINE = ["base", "os", "page", "log", "fil", "buf", "mtr", "fsp", "btr", "dict", "trx", "ddl"]
ENGINE += ["recv", "backup", "check", "api", "cli"]
ONLY = {"check": {"base", "os", "page", "log", "check"}}
EXPLORER = ["judge", "targets", "run", "tests"]
FOR_DISK = re.compile(r"disk/|base/|os/os\.h$")
FOR_ALL = {"faults/trace.h", "faults/children.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def engine_violations(root: Path) -> list[str]:
    """Includes that point up, or that the scanner must not have."""
    found = []
    for path in sorted((root / "engine").rglob("*.[ch]")):
        layer = path.relative_to(root / "engine").parts[0]
        allowed = ONLY.get(layer, set(ENGINE[: ENGINE.index(layer) + 1]))
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            folder = target.split("/")[0] if "/" in target else layer
            if folder not in allowed:
                found.append(f"{path.relative_to(root)} includes {target}")
    return found


def fault_violations(root: Path) -> list[str]:
    """Includes of anything but the fault layer's own headers: it is loaded into any program."""
    found = []
    for path in sorted((root / "faults").rglob("*.[ch]")):
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if not target.startswith("faults/"):
                found.append(f"{path.relative_to(root)} includes {target}")
    return found


def disk_violations(root: Path) -> list[str]:
    """Includes of anything but its own headers, the engine's base and its door to files."""
    found = []
    for path in sorted((root / "disk").rglob("*.[ch]")):
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if "/" in target and not FOR_DISK.match(target):
                found.append(f"{path.relative_to(root)} includes {target}")
    return found


def explorer_violations(root: Path) -> list[str]:
    """Includes that point up, or to more of the fault layer than the trace format and the end
    of children."""
    found = []
    for path in sorted((root / "explorer").rglob("*.[ch]")):
        layer = path.relative_to(root / "explorer").parts[0]
        below = set(EXPLORER[: EXPLORER.index(layer) + 1])
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            parts = target.split("/")
            own = len(parts) == 1 or (parts[0] == "explorer" and parts[1] in below)
            if not (own or parts[0] in {"disk", *ENGINE} or target in FOR_ALL):
                found.append(f"{path.relative_to(root)} includes {target}")
    return found


def main() -> int:
    """Prints each arrow that points the wrong way; 1 if there is one."""
    root = Path(__file__).resolve().parent.parent
    found = engine_violations(root) + fault_violations(root)
    found += disk_violations(root) + explorer_violations(root)
    for line in found:
        print(f"layering: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
