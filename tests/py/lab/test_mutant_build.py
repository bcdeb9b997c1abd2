"""The builder of mutants, on a project of one file per program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tornpage.faults.process import LAUNCHER
from tornpage.lab.mutant_build import BuildFailed, MutantBuilder
from tornpage.lab.mutant_table import Mutant
from tornpage.targets.registry import TARGETS
from tornpage.vocabulary.errors import ConfigError

PRESETS = """{"version": 6,
"configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}],
"buildPresets": [{"name": "release", "configurePreset": "release"}]}
"""
SOURCE = "/* A program. */\nint main(void)\n{\n    return 0;\n}\n"


def programs() -> list[Path]:
    """The target's, the engine first, and the launcher, below a build folder."""
    return [*TARGETS["engine"](Path()).programs().values(), LAUNCHER]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project that builds the programs of the engine target."""
    root = tmp_path / "root"
    (root / "engine").mkdir(parents=True)
    (root / "CMakePresets.json").write_text(PRESETS, "utf-8")
    (root / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES C)\nadd_subdirectory(engine)\n",
        "utf-8",
    )
    (root / "engine" / "main.c").write_text(SOURCE, "utf-8")
    lines = []
    for number, path in enumerate(programs()):
        lines += [
            f"add_executable(p{number} main.c)",
            f"set_target_properties(p{number} PROPERTIES OUTPUT_NAME {path.name}",
            f"    RUNTIME_OUTPUT_DIRECTORY ${{PROJECT_BINARY_DIR}}/{path.parent})",
        ]
    (root / "engine" / "CMakeLists.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return root


def mutant(name: str, old: str, new: str) -> Mutant:
    """A patch of one line of main.c."""
    diff = (
        "--- a/engine/main.c\n+++ b/engine/main.c\n@@ -2,4 +2,4 @@\n int main(void)\n {\n"
        f"-    {old}\n+    {new}\n }}\n"
    )
    return Mutant(
        mutant=name, bug="x", mechanism="It errs.", invariants=(1,), models=("kill",), diff=diff
    )


def test_programs_differ_by_the_patch_and_nothing_else(root: Path, tmp_path: Path) -> None:
    """Each patch meets the unchanged sources; the sources themselves are never written."""
    builder = MutantBuilder(root, tmp_path / "mutants")
    codes = []
    for code in (3, 4):
        build = builder.build(mutant(f"m{code}", "return 0;", f"return {code};"))
        assert all((build / path).is_file() for path in programs())
        codes.append(subprocess.run([build / programs()[0]], check=False).returncode)
    assert codes == [3, 4]
    assert (root / "engine" / "main.c").read_text("utf-8") == SOURCE
    assert (tmp_path / "mutants" / "src" / "engine" / "main.c").read_text("utf-8") == SOURCE


def test_programs_are_kept_until_sources_or_patch_change(root: Path, tmp_path: Path) -> None:
    """The key tells; a copy that an interrupted build left patched does no harm."""
    one = mutant("one", "return 0;", "return 1;")
    builder = MutantBuilder(root, tmp_path / "mutants")
    program = builder.build(one) / programs()[0]
    made = program.stat().st_mtime_ns
    assert MutantBuilder(root, tmp_path / "mutants").build(one) / programs()[0] == program
    assert program.stat().st_mtime_ns == made
    assert builder.key(one) != builder.key(mutant("one", "return 0;", "return 2;"))
    (root / "engine" / "main.c").write_text(f"/* more */\n{SOURCE}", "utf-8")
    (tmp_path / "mutants" / "src" / "engine" / "main.c").write_text("broken", "utf-8")
    changed = MutantBuilder(root, tmp_path / "mutants")
    assert builder.is_built(one) and not changed.is_built(one)
    assert changed.build(one) / programs()[0] == program
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
