"""Holds the include and import graph against the layering of docs/ARCHITECTURE.md.

Arrows point down only. In C a folder of `engine/` may include those before it in `ENGINE`, `faults/` only
itself, a folder of `explorer/` those before it in `EXPLORER`, the engine's, and what is `FOR_ALL`. In Python
a folder of the harness may import those before it in `HARNESS`, and what a docstring says that is imported
is imported, and no more. The scanner is an independent judge and may share page and log decoding only.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ENGINE = ["base", "os", "page", "log", "fil", "buf", "mtr", "fsp", "btr", "dict", "trx", "ddl"]
ENGINE += ["recv", "backup", "check", "api", "cli"]
ONLY = {"check": {"base", "os", "page", "log", "check"}}
EXPLORER = ["image", "model", "judge", "targets", "run", "tests"]
FOR_ALL = {"faults/trace.h", "faults/children.h"}
MAY_IMPORT = re.compile(r"^May import: (.+)\.\Z", re.MULTILINE | re.DOTALL)
NOTHING = "nothing of the package"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

# From the bottom to the top: a folder imports from those before it only; inside it, a module those of earlier
# sets. Modules of one set do not import each other. The last entry is the package's own folder.
HARNESS = {
    "vocabulary": [
        {"documented", "errors", "evidence", "model", "seeds", "shown"},
        {"named"},
        {"codec", "invariants", "paths"},
    ],
    "faults": [
        {"sparse"},
        {"aim", "image", "limits", "plan", "preload", "process", "trace"},
        {"forkserver", "scratch", "stream"},
        {"audit"},
    ],
    "workloads": [
        {"restart", "script"},
        {"capacity", "parse", "rowlog", "shapes"},
        {"book"},
        {"phases"},
        {"builds", "defragment"},
        {"churn", "collisions", "online", "sessions", "smoke", "transport"},
        {"linkbench", "mix", "tpcc"},
        {"backups"},
        {"workload"},
    ],
    "oracle": [
        {"exports", "fingerprint", "promise", "rowlog", "state"},
        {"clients", "observed", "root", "rules", "table"},
        {"backups"},
        {"judgement", "oracle"},
        {"allowed"},
    ],
    "targets": [
        {
            "option",
            "engine.damage",
            "engine.stale_log",
            "innodb.page",
            "innodb.records",
            "bundled.statements",
        },
        {"innodb.old_records", "innodb.spaces"},
        {"innodb.log"},
        {"innodb.rules"},
        {"innodb.judge", "innodb.sites"},
        {"sqlite.options"},
        {"target", "sqlite.schema", "command.file", "command.skeleton"},
        {"filesystems"},
        {"engine.target", "sqlite.image", "sqlite.target", "command.target"},
        {"sqlite.driver", "registry", "bundled.server"},
        {"bundled.duckdb_store", "bundled.leveldb_store", "bundled.mariadb", "bundled.postgresql"}
        | {"bundled.sqlite_library"},
        {"bundled.mariadb_clients"},
    ],
    "store": [
        {"origin", "runlock", "schema", "sql"},
        {"bugs", "migrate", "rows", "migrations.env"},
        {"file", "server", "trials"},
        {"migrations.versions.version_2", "migrations.versions.version_3"}
        | {"migrations.versions.version_4", "migrations.versions.version_5", "place"},
        {"database"},
        {"memory"},
        {"store"},
        {"copy"},
    ],
    "reports": [
        {"cells", "charts", "night", "page", "sectors", "torn_matrix"},
        {"compared", "index", "summary"},
        {"verdict"},
        {"annotations", "difference", "dossier", "junit", "matrices"},
        {"report"},
    ],
    "campaigns": [
        {"audited", "contents", "limits", "stopped"},
        {"campaign", "journal", "recoveries", "writes"},
        {"census"},
        {"hit", "killed", "powerloss"},
        {"kept", "stage"},
        {"crash", "recovered"},
        {"verdict"},
        {
            "admission",
            "changes",
            "crew",
            "images",
            "origin",
            "pages",
            "portions",
            "shelf",
            "skeleton",
            "timeline",
            "trial",
        },
        {"catalogue", "control", "evidence", "fitting", "kept_verdict", "workers"},
        {"canaries", "parts"},
        {"slices"},
        {"lossrunner", "publish"},
        {"prune", "remote", "undisturbed"},
        {"cluster", "replay", "runner"},
        {"attempt", "recheck"},
        {"night"},
    ],
    "shrinking": [
        {"crashes", "ddmin"},
        {"crashes_live", "crashes_loss", "reduce"},
        {"shrink"},
    ],
    "lab": [
        {
            "doctor",
            "fetch",
            "filework",
            "fsprobes",
            "measured",
            "mutant_table",
            "randomkill",
            "source_copy",
        }
        | {"neighbour", "sql", "statements"},
        {
            "crash_rates",
            "doublewrite",
            "filesystem",
            "filled",
            "harness_table",
            "mutant_build",
            "qualify",
            "rig",
            "tryout",
        }
        | {"write_costs"},
        {"compression", "harness_tests", "hunt", "mutant_pool", "owner_rates"},
        {"seeds", "speed"},
        {"harness_mutants", "mutants", "shipped"},
        {"finds"},
    ],
    "cli": [
        {"options", "terminal"},
        {"console"},
        {"checks", "progress", "publish"},
        {
            "bench",
            "bugs",
            "diff",
            "doctor",
            "listing",
            "mutants",
            "new",
            "nightly",
            "pricing",
            "prune",
            "qualify",
        }
        | {"replay", "report", "run", "runs"}
        | {"show", "shrink", "store", "target"},
        {"attempt"},
        {"main"},
    ],
    "": [{"api"}, {"torture_items"}, {"pytest_plugin"}, {"__main__"}],
}


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
    """Includes that point up, or to more of the fault layer than the trace format and the end
    of children."""
    found = []
    for path in sorted((root / "explorer").rglob("*.[ch]")):
        layer = path.relative_to(root / "explorer").parts[0]
        below = set(EXPLORER[: EXPLORER.index(layer) + 1])
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            parts = target.split("/")
            own = len(parts) == 1 or (parts[0] == "explorer" and parts[1] in below)
            if not (own or parts[0] in ENGINE or target in FOR_ALL):
                found.append(f"{path.relative_to(root)} includes {target}")
    return found


def ranks() -> dict[str, int]:
    """Dotted name of every module of the harness -> its place in HARNESS."""
    layers = [
        {f"tornpage.{folder}.{module}" if folder else f"tornpage.{module}" for module in modules}
        for folder, sets in HARNESS.items()
        for modules in sets
    ]
    return {name: number for number, names in enumerate(layers) for name in names}


def imports(path: Path) -> set[str]:
    """Modules of the package that a module imports, by their dotted names; those, too, that it names in a
    text, to be imported when they are needed."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names |= {
                "." * node.level + module,
                *(f"{module}.{alias.name}" for alias in node.names),
            }
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and str(node.value).startswith("tornpage."):
            names.add(str(node.value))
    return {name for name in names if name.startswith(("tornpage.", "."))}


def known(path: Path) -> set[str]:
    """The same without packages and names inside modules."""
    return imports(path) & ranks().keys()


def harness_violations(root: Path) -> list[str]:
    """Imports that point up or sideways, modules without a rank, and ranks without a module."""
    rank = ranks()
    seen = set()
    found = []
    for path in sorted((root / "harness" / "tornpage").rglob("*.py")):
        file = path.relative_to(root)
        name = ".".join(file.with_suffix("").parts[1:])
        used = imports(path)
        if any(target.startswith(".") for target in used):
            found.append(f"{file} imports relatively")
        if path.name == "__init__.py":
            found += [f"{file} imports {target}" for target in sorted(used & rank.keys())]
        elif name not in rank:
            found.append(f"{file} has no rank in tools/layering.py")
        else:
            seen.add(name)
            found += [
                f"{file} imports {target}"
                for target in sorted(used & rank.keys())
                if rank[target] >= rank[name]
            ]
    return found + [f"{name} is ranked and does not exist" for name in sorted(rank.keys() - seen)]


def said(path: Path) -> set[str] | None:
    """Names in the last paragraph of a module's docstring, "May import: ..."; None if there is none."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    match = MAY_IMPORT.search(text)
    if match is None:
        return None
    return set() if match[1] == NOTHING else set(re.split(r",\s+", match[1]))


def statement_violations(root: Path) -> list[str]:
    """Docstrings that do not say what is imported: a module's by module, that of `__init__.py` by folder, of
    the modules beside it."""
    names = {name: name.split(".") for name in ranks()}
    found = []
    for path in sorted((root / "harness" / "tornpage").rglob("*.py")):
        file = path.relative_to(root)
        if path.name == "__init__.py":
            own = list(file.parts[1:-1])
            used = [names[name] for beside in path.parent.glob("*.py") for name in known(beside)]
            wanted = {".".join(parts[1:-1]) for parts in used if parts[: len(own)] != own}
        else:
            wanted = {names[name][-1] for name in known(path)}
        told = said(path)
        if told is None:
            found.append(f"{file} does not end its docstring with May import: ...")
        elif told != wanted:
            right = ", ".join(sorted(wanted)) or NOTHING
            found.append(
                f"{file} says that it may import {', '.join(sorted(told))}; it is: {right}"
            )
    return found


def main() -> int:
    """Prints each arrow that points the wrong way; 1 if there is one."""
    root = Path(__file__).resolve().parent.parent
    found = engine_violations(root) + fault_violations(root) + explorer_violations(root)
    found += harness_violations(root) + statement_violations(root)
    for line in found:
        print(f"layering: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
