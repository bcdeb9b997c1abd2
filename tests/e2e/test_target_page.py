"""docs/TARGETS.md alone is enough: what it shows is built from the page and fits; every key is told."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import campaigns_page
import pytest

from tornpage.campaigns.attempt import check_target
from tornpage.targets.command.file import Choice, Commands, Fetch, Promise, TargetFile
from tornpage.targets.registry import make_target
from tornpage.vocabulary.paths import ROOT, Paths, data_folder

PAGE = (ROOT / "docs" / "TARGETS.md").read_text("utf-8")
MARKING = ROOT / "marking"


def blocks(language: str) -> list[str]:
    """The fenced blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("language", ["python", "c"])
def test_the_store_of_the_page_fits(language: str, build: Path, tmp_path: Path) -> None:
    """Somebody who copies the blocks into files has a target; it is the skeleton."""
    (source,) = blocks(language)
    first, commands = blocks("toml")
    if language == "python":
        program = tmp_path / "store.py"
        program.write_text(source, "utf-8")
        program.chmod(0o755)
    else:
        (tmp_path / "store.c").write_text(source, "utf-8")
        shutil.copy(MARKING / "tornpage_mark.h", tmp_path)
        subprocess.run(["cc", "-o", "store", "store.c"], cwd=tmp_path, check=True, timeout=60)
        head, _, promise = first.replace("long_lived = true", "").partition("[commands]")
        first = head + commands + "[promise]" + promise.partition("[promise]")[2]
    (tmp_path / "mydb.toml").write_text(first, "utf-8")
    paths = Paths(build, data_folder("workloads"), data_folder("reports"), Path("out"))
    assert check_target(make_target(str(tmp_path / "mydb.toml"), paths.build)).commits == 30
    suffix = {"python": "py", "c": "c"}[language]
    assert source == (MARKING / "skeleton" / f"store.{suffix}").read_text("utf-8")


def test_every_key_is_told() -> None:
    """By the docstrings of the file's models."""
    for model in (TargetFile, Commands, Choice, Fetch, Promise):
        assert campaigns_page.table_of(model) in PAGE
        assert model.__doc__ and " ".join(model.__doc__.split())
