"""What pyproject.toml says of the package agrees with the page on the work of others."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement

from tornpage import __version__
from tornpage.vocabulary.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGE = (ROOT / "THIRD_PARTY.md").read_text("utf-8")


def test_every_dependency_has_its_licence_on_the_page() -> None:
    """Each requirement is a row with its extra, and no row is left over."""
    wanted = {(Requirement(line).name, "") for line in PROJECT["dependencies"]}
    for extra, lines in PROJECT["optional-dependencies"].items():
        wanted |= {(Requirement(line).name, extra) for line in lines}
    table = PAGE.split("| package | extra | licence |")[1]
    rows = re.findall(r"^\| ([a-z0-9-]+) \| ([a-z]*) ?\| (?=\S)", table, re.M)
    assert sorted(rows) == sorted((name.lower(), extra) for name, extra in wanted)


def test_the_version_stands_in_one_place() -> None:
    """pyproject.toml and CMakeLists.txt have none, and the log of changes has a heading for it."""
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    assert re.search(r"project\([^)]*VERSION", (ROOT / "CMakeLists.txt").read_text("utf-8")) is None
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## {re.escape(__version__)} ", changes, re.M)
