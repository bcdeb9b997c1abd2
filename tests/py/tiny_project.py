"""A project that is built as the sources are: each program is engine/main.c, and so is a test of ctest."""

from __future__ import annotations

from pathlib import Path

from tornpage.faults.preload import preload_path
from tornpage.faults.under import under_path
from tornpage.lab.mutant_build import wanted_programs
from tornpage.vocabulary.paths import STANDBY

PRESETS = """{"version": 6,
"configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}],
"buildPresets": [{"name": "release", "configurePreset": "release"}]}
"""
SOURCE = "/* A program. */\nint main(void)\n{\n    return 0;\n}\n"


def make_project(root: Path) -> Path:
    """Writes it to `root`, which it returns. Test main_returns_zero of ctest runs the program."""
    (root / "engine").mkdir(parents=True)
    (root / "CMakePresets.json").write_text(PRESETS, "utf-8")
    (root / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES C)\nenable_testing()\n"
        "add_subdirectory(engine)\n",
        "utf-8",
    )
    (root / "engine" / "main.c").write_text(SOURCE, "utf-8")
    lines = []
    for number, path in enumerate((*wanted_programs(), STANDBY, under_path(preload_path(Path())))):
        lines += [
            f"add_executable(p{number} main.c)",
            f"set_target_properties(p{number} PROPERTIES OUTPUT_NAME {path.name}",
            f"    RUNTIME_OUTPUT_DIRECTORY ${{PROJECT_BINARY_DIR}}/{path.parent})",
        ]
    lines += ["add_executable(checked main.c)", "add_test(NAME main_returns_zero COMMAND checked)"]
    (root / "engine" / "CMakeLists.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return root


def change(old: str, new: str, path: str = "engine/main.c") -> str:
    """A patch of the fourth line of main.c, or of the second one of a module of two lines."""
    if path == "engine/main.c":
        before, after, place = " int main(void)\n {\n", " }\n", "-2,4 +2,4"
        old, new = f"    {old}", f"    {new}"
    else:
        before, after, place = " # A module.\n", "", "-1,2 +1,2"
    return f"--- a/{path}\n+++ b/{path}\n@@ {place} @@\n{before}-{old}\n+{new}\n{after}"
