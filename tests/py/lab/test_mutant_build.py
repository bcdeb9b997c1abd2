"""The builder of mutants, on a project of one file per program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tiny_project import SOURCE, change, make_project

from tornpage.lab.mutant_build import MutantBuilder, wanted_programs
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.source_copy import BuildFailed
from tornpage.vocabulary.errors import ConfigError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project that builds the programs of the engine target."""
    return make_project(tmp_path / "root")


def mutant(name: str, old: str, new: str) -> Mutant:
    """A patch of one line of main.c."""
    diff = change(old, new)
    return Mutant(
        mutant=name, bug="x", mechanism="It errs.", invariants=(1,), models=("kill",), diff=diff
    )


def test_programs_differ_by_the_patch_and_nothing_else(root: Path, tmp_path: Path) -> None:
    """Each patch meets the unchanged sources; the sources themselves are never written."""
    builder = MutantBuilder(root, tmp_path / "mutants")
    codes = []
    for code in (3, 4):
        build = builder.build(mutant(f"m{code}", "return 0;", f"return {code};"))
        assert all((build / path).is_file() for path in wanted_programs())
        codes.append(subprocess.run([build / wanted_programs()[0]], check=False).returncode)
    assert codes == [3, 4]
    assert (root / "engine" / "main.c").read_text("utf-8") == SOURCE
    assert (tmp_path / "mutants" / "src" / "engine" / "main.c").read_text("utf-8") == SOURCE


def test_programs_are_kept_until_sources_or_patch_change(root: Path, tmp_path: Path) -> None:
    """The key tells; a copy that an interrupted build left patched does no harm."""
    one = mutant("one", "return 0;", "return 1;")
    builder = MutantBuilder(root, tmp_path / "mutants")
    program = builder.build(one) / wanted_programs()[0]
    made = program.stat().st_mtime_ns
    assert MutantBuilder(root, tmp_path / "mutants").build(one) / wanted_programs()[0] == program
    assert program.stat().st_mtime_ns == made
    assert builder.key(one) != builder.key(mutant("one", "return 0;", "return 2;"))
    (root / "engine" / "main.c").write_text(f"/* more */\n{SOURCE}", "utf-8")
    (tmp_path / "mutants" / "src" / "engine" / "main.c").write_text("broken", "utf-8")
    changed = MutantBuilder(root, tmp_path / "mutants")
    assert builder.is_built(one) and not changed.is_built(one)
    assert changed.build(one) / wanted_programs()[0] == program
    assert program.stat().st_mtime_ns != made and not builder.is_built(one)


def test_all_patches_that_do_not_apply_are_named(root: Path, tmp_path: Path) -> None:
    """Not only the first."""
    builder = MutantBuilder(root, tmp_path / "mutants")
    good = mutant("good", "return 0;", "return 1;")
    wrong = [mutant(name, "return 7;", "return 1;") for name in ("stale", "older")]
    builder.check_patches([good])
    with pytest.raises(ConfigError, match=r"2 patches(.|\n)*stale: (.|\n)*older: ") as error:
        builder.check_patches([wrong[0], good, wrong[1]])
    assert "good" not in str(error.value)
    with pytest.raises(ConfigError, match="stale: the patch does not apply"):
        builder.build(wrong[0])


def test_a_patch_that_does_not_compile_is_named_with_its_error(root: Path, tmp_path: Path) -> None:
    """And leaves neither programs nor a changed copy behind."""
    builder = MutantBuilder(root, tmp_path / "mutants")
    with pytest.raises(BuildFailed, match=r"bad: does not compile: .*nowhere"):
        builder.build(mutant("bad", "return 0;", "return nowhere;"))
    assert not (tmp_path / "mutants" / "bin" / "bad").exists()
    builder.build(mutant("good", "return 0;", "return 1;"))


def test_the_functions_that_a_patch_changes(root: Path, tmp_path: Path) -> None:
    """By the sources that it applies to, which stay as they are."""
    builder = MutantBuilder(root, tmp_path / "mutants")
    assert builder.changed(mutant("one", "return 0;", "return 1;")) == ("main",)
    assert (tmp_path / "mutants" / "src" / "engine" / "main.c").read_text("utf-8") == SOURCE
    with pytest.raises(ConfigError, match="two: the patch does not apply"):
        builder.changed(mutant("two", "return 7;", "return 1;"))
