"""Holds the include and import graph against the layering of docs/ARCHITECTURE.md.

Arrows point down only: in C a folder of `engine/` may include those before it in `ENGINE`, `faults/` nothing
but its own headers, a folder of `explorer/` those before it in `EXPLORER`, the engine's, and the trace format;
in Python a module of the harness may import those of earlier ranks. The scanner is
an independent judge and may share page and log decoding only.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ENGINE = ["base", "os", "page", "log", "fil", "buf", "mtr", "fsp", "btr", "dict", "trx", "ddl"]
ENGINE += ["recv", "check", "api", "cli"]
ONLY = {"check": {"base", "os", "page", "log", "check"}}
EXPLORER = ["image", "model", "judge", "targets", "run", "tests"]
TRACE = "faults/trace.h"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

# From the bottom to the top; modules of one rank do not import each other.
HARNESS = [
    {"errors", "image", "model", "seeds", "torn_matrix"},
    {"aim", "codec", "ddmin", "fingerprint", "paths", "plan", "process", "script", "trace"},
    {"campaign", "churn", "crashes", "doctor", "mutant_table", "oracle", "reduce", "rules"},
    {"qualify", "sqlite_schema", "store", "workload"},
    {"rules_log", "sqlite_image", "summary"},
    {"report", "rules_page", "rules_recovery", "sqlite_driver", "target"},
    {"invariants", "sqlite_target"},
    {"census", "randomkill", "targets"},
    {"powerloss", "trial"},
    {"lossrunner"},
    {"crashes_live", "crashes_loss", "hunt", "runner"},
    {"shrink"},
    {"console", "mutants"},
    {"cli"},
]


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


def explorer_violations(root: Path) -> list[str]:
    """Includes that point up, or to more of the fault layer than the trace format."""
    found = []
    for path in sorted((root / "explorer").rglob("*.[ch]")):
        layer = path.relative_to(root / "explorer").parts[0]
        below = set(EXPLORER[: EXPLORER.index(layer) + 1])
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            parts = target.split("/")
            own = len(parts) == 1 or (parts[0] == "explorer" and parts[1] in below)
            if not (own or parts[0] in ENGINE or target == TRACE):
                found.append(f"{path.relative_to(root)} includes {target}")
    return found


def imports(path: Path) -> set[str]:
    """Modules of the package that a module imports, by their last name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tornpage"):
            parts = (node.module or "").split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("tornpage.")}
    return names


def harness_violations(root: Path) -> list[str]:
    """Imports that point up or sideways, and modules without a rank."""
    rank = {name: number for number, names in enumerate(HARNESS) for name in names}
    found = []
    for path in sorted((root / "harness" / "tornpage").glob("*.py")):
        module = path.stem
        if module == "__init__":
            continue
        if module not in rank:
            found.append(f"harness/tornpage/{path.name} has no rank in tools/layering.py")
            continue
        found += [
            f"harness/tornpage/{path.name} imports {name}"
            for name in sorted(imports(path) & rank.keys())
            if rank[name] >= rank[module]
        ]
    return found


def main() -> int:
    """Prints each arrow that points the wrong way; 1 if there is one."""
    root = Path(__file__).resolve().parent.parent
    found = engine_violations(root) + fault_violations(root) + explorer_violations(root)
    found += harness_violations(root)
    for line in found:
        print(f"layering: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
