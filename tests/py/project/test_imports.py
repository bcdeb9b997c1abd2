"""The contracts in pyproject.toml refuse imports that point up or sideways, and modules without a place."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tornpage.vocabulary.paths import ROOT

PACKAGE = ROOT / "harness" / "tornpage"
WRONG = [
    ("faults/plan", "import tornpage.oracle.rules", "tornpage.oracle.rules"),
    ("store/sql", "def f():\n    from tornpage.store import store", "tornpage.store.store"),
    ("cli/show", "from tornpage.cli import run", "tornpage.cli.run"),
    ("oracle/__init__", "import tornpage.reports.verdict", "tornpage.reports.verdict"),
    ("targets/sqlite/schema", "import tornpage.targets.sqlite.driver", "tornpage.targets.sqlite.driver"),
    ("targets/engine/target", "import tornpage.targets.sqlite.driver", "tornpage.targets.sqlite.driver"),
    ("live/trial", "import tornpage.targets.engine.target", "tornpage.targets.engine.target"),
    ("reports/summary", "import tornpage.targets.engine.target", "tornpage.targets.engine.target"),
    ("store/bugs", "import tornpage.targets.innodb.judge", "tornpage.targets.innodb.judge"),
    ("targets/engine/damage", "import tornpage.targets.target", "tornpage.targets.target"),
    ("targets/sqlite/schema", "import tornpage.targets.target", "tornpage.targets.target"),
    ("lab/placeless", "", ""),
    ("placeless", "", ""),
]  # fmt: skip
"""A module, what it has besides, and what it imports by that; "": it has no place."""


def copied(folder: Path) -> Path:
    """The package and its contracts, to be changed."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(PACKAGE, folder / "tornpage", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """What `make check` runs, on the copy; without the import hook of an editable install (-S)."""
    program = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [sys.executable, "-S", program, "--no-logo", "--no-cache"],
        cwd=root,
        env={"PYTHONPATH": f"{root}:{sysconfig.get_path('purelib')}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_package_keeps_its_contracts(tmp_path: Path) -> None:
    """And all of it is looked at."""
    said = lint(copied(tmp_path))
    assert said.returncode == 0, said.stdout
    modules = sum(1 for path in PACKAGE.rglob("*.py") if (path.parent / "__init__.py").exists())
    assert f"Analyzed {modules} files" in said.stdout


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of all that is wrong at once."""
    root = copied(tmp_path_factory.mktemp("imports"))
    for module, line, _imported in WRONG:
        with (root / "tornpage" / f"{module}.py").open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    said = lint(root)
    assert said.returncode == 1, said.stdout
    return said.stdout


@pytest.mark.parametrize(("module", "line", "imported"), WRONG)
def test_what_points_up_or_sideways_is_refused(
    module: str, line: str, imported: str, refused: str
) -> None:
    """Between folders and inside one, in a function too; and a module that is new is to be placed."""
    name = f"tornpage.{module.removesuffix('/__init__').replace('/', '.')}"
    told = rf"- +{name} -> {imported} \(l" if line else rf"- {name}$"
    assert re.search(told, refused, re.MULTILINE), refused


def test_packages_import_nothing() -> None:
    """An `__init__.py` is a docstring, and the version: `python -m` on a module loads what it needs."""
    for path in PACKAGE.rglob("__init__.py"):
        parts = ast.walk(ast.parse(path.read_text("utf-8")))
        assert not [part for part in parts if isinstance(part, ast.Import | ast.ImportFrom)], path


def test_modules_are_named_in_texts_by_the_command_line_alone() -> None:
    """What is imported by its name in a text, no contract sees: the commands, which are loaded when
    called."""
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
    }
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for part in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(part, ast.Constant) and part.value in modules
    }
    assert naming <= {"cli/main.py"}


def test_every_folder_has_its_contract() -> None:
    """A new one needs an order of its modules."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    ordered = [one for each in tool["contracts"] for one in each.get("containers", ())]
    folders = [path.parent.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("__init__.py")]
    assert sorted(ordered) == sorted(".".join(folder.parts) for folder in folders)
