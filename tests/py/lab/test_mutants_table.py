"""tests/mutants/mutants.toml against the engine: names, places, invariants, and a product without mutants."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from typing import Any

import pytest

from tornpage.vocabulary.paths import ROOT

ENGINE = ROOT / "engine"
TABLE = ROOT / "tests" / "mutants" / "mutants.toml"
MUTANTS: list[dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["mutant"]
NAMES = [mutant["name"] for mutant in MUTANTS]

USE = re.compile(r"\bMUTANT\(\s*(\w+)\s*\)")
MODELS = {"kill", "powerloss", "io_error", "nested", "config"}
REQUIRED = {"name", "bug", "mechanism", "module", "invariants", "models"}
PRODUCT = ROOT / "build" / "release" / "engine" / "engine"
PLANTED = ROOT / "build" / "mutants" / "engine" / "engine"


def uses() -> dict[str, set[str]]:
    """Name -> folders of engine/ that have a place of it. The macro's own header is no place."""
    found: dict[str, set[str]] = {}
    for path in sorted(ENGINE.rglob("*.[ch]")):
        if path.name == "mutant.h":
            continue
        for name in USE.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path.relative_to(ENGINE).parts[0])
    return found


def known_invariants() -> set[int]:
    """Numbers of the table in docs/INVARIANTS.md."""
    text = (ROOT / "docs" / "INVARIANTS.md").read_text(encoding="utf-8")
    return {int(number) for number in re.findall(r"^\| *I(\d+)\b", text, re.MULTILINE)}


def test_the_table_names_what_the_engine_has() -> None:
    """Every mutant has a place in the engine, every place a row; no name twice; enough of them."""
    assert len(set(NAMES)) == len(NAMES) >= 45
    assert uses().keys() == set(NAMES)


def test_the_build_reads_the_same_names() -> None:
    """CMake takes the names line by line; a row written otherwise would be lost without a word."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    assert [m[1] for line in lines if (m := re.fullmatch(r'name = "([a-z0-9_]+)"', line))] == NAMES


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_rows_are_complete(mutant: dict[str, Any]) -> None:
    """Fields, a mechanism of one sentence, known models and invariants, a folder with a place."""
    assert mutant.keys() - {"options", "workload"} == REQUIRED
    assert re.fullmatch(r"[A-Z].*[^.]\.", mutant["mechanism"]) and mutant["bug"]
    assert mutant["models"] and set(mutant["models"]) <= MODELS
    assert mutant["invariants"] and set(mutant["invariants"]) <= known_invariants()
    assert len(set(mutant["invariants"])) == len(mutant["invariants"])
    assert mutant["module"] in uses()[mutant["name"]]
    assert all(isinstance(value, str) for value in mutant.get("options", {}).values())


def test_the_judges_have_no_mutants() -> None:
    """The scanner and the programs' output stay as they are in every build."""
    judges = {"check", "page", "api"}
    assert not [name for name, folders in uses().items() if folders & judges]


def test_the_product_has_no_mutants() -> None:
    """Nothing in the release engine tells of a mutant, and the variable that selects one is not read."""
    if not PRODUCT.is_file():
        pytest.skip("build/release is not built")
    image = PRODUCT.read_bytes()
    assert [name for name in [*NAMES, "TORNPAGE_MUTANT"] if name.encode() in image] == []


def test_an_unknown_mutant_is_refused() -> None:
    """Exit code 2: a campaign must not run the unchanged engine by mistake."""
    if not PLANTED.is_file():
        pytest.skip("build/mutants is not built")

    def help_with(name: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"TORNPAGE_MUTANT": name}
        return subprocess.run(
            [PLANTED, "--help"], env=env, capture_output=True, text=True, check=False
        )

    refused = help_with("no_such_mutant")
    assert refused.returncode == 2 and refused.stderr == "engine: no mutant 'no_such_mutant'\n"
    assert help_with(NAMES[0]).returncode == help_with("").returncode == 0
