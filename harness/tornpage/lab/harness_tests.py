"""Runs tests in a copy of the sources, and says which of them failed: an assertion that does not hold is
something else than tests that could not run.
"""

from __future__ import annotations

import json
import os
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from tornpage.faults.preload import preload_path
from tornpage.faults.process import ChildResult
from tornpage.faults.under import under_path
from tornpage.lab.harness_table import Killer
from tornpage.lab.mutant_build import wanted_programs
from tornpage.lab.source_copy import SourceCopy, printed, run_tool
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import BUILD_VARIABLE, STANDBY

__all__ = ["TestsBroken", "build_for", "failed_test"]

DEADLINE_S = 900.0
"""Of one line of tests; they take less than a minute of an idle machine."""
STATES = 5000
"""Power-loss states of a hunt."""
_TOLD = re.compile(r"(?:add_test|set_tests_properties)\((?:\[=\[)?([^\]\s]+)")
_NOT_HANDED_ON = re.compile(rf"PYTEST_.*|PYTHON.*|{BUILD_VARIABLE}")

_FINDER = """import sys
from importlib.machinery import PathFinder


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [{folder!r}]) if name == "tornpage" else None


sys.meta_path.insert(0, Finder)
"""


class TestsBroken(ConfigError):
    """Tests could not be run, or did not come to an answer."""

    __test__ = False


def build_for(killer: Killer, copy: SourceCopy) -> None:
    """Builds what its tests start. Raises BuildFailed."""
    if killer.runner == "ctest":
        copy.build(_ctest_targets(killer.arguments[0], copy))
    else:
        under = under_path(preload_path(Path()))
        copy.build((*wanted_programs(), STANDBY, under))


def failed_test(killer: Killer, copy: SourceCopy) -> str:
    """Runs its tests, for which the copy is built; the name of the first one that failed, "" if all passed.
    Raises TestsBroken if one could not be run, did not end, or there is none."""
    if killer.runner == "ctest":
        return _ctest(killer.arguments[0], copy)
    if killer.runner == "pytest":
        return _pytest(killer.arguments, copy)
    return _campaign(killer.arguments[0], copy)


def _environment(copy: SourceCopy) -> Mapping[str, str]:
    """Ours, with the package of the copy and what is built there. An editable install finds its package
    before PYTHONPATH is searched, so that a finder goes in front of it, in every Python that is started."""
    first = copy.build_folder / "python"
    first.mkdir(parents=True, exist_ok=True)
    package = copy.folder / "harness"
    (first / "sitecustomize.py").write_text(_FINDER.format(folder=str(package)), encoding="utf-8")
    own = {name: text for name, text in os.environ.items() if not _NOT_HANDED_ON.fullmatch(name)}
    return {**own, "PYTHONPATH": f"{first}{os.pathsep}{package}"}


def _run(command: list[str], copy: SourceCopy) -> ChildResult:
    done = run_tool(command, copy.folder, _environment(copy), DEADLINE_S)
    if done.timed_out:
        raise TestsBroken(f"{' '.join(command)}: no answer after {DEADLINE_S:.0f} s")
    return done


def _last_lines(done: ChildResult) -> str:
    return "; ".join(line.strip() for line in printed(done)[-3:])


# -- ctest ------------------------------------------------------------------------------------------


def _ctest_command(pattern: str, copy: SourceCopy) -> list[str]:
    return ["ctest", "--test-dir", str(copy.build_folder), "--no-tests=error", "-R", pattern]


def _ctest_targets(pattern: str, copy: SourceCopy) -> list[str]:
    """The files of the build folder that the tests name in their commands and environments."""
    copy.configure()
    done = _run([*_ctest_command(pattern, copy), "--show-only=json-v1"], copy)
    try:
        tests = json.loads(done.stdout)["tests"]
    except (ValueError, KeyError) as error:
        raise TestsBroken(f"ctest -R {pattern}: {_last_lines(done)}") from error
    if not tests:
        raise TestsBroken(f"ctest -R {pattern}: no such test")
    names = {str(test["name"]) for test in tests}
    inside = re.compile(re.escape(f"{copy.build_folder}/") + r"([^\s;:,=\"]+)")
    found: set[str] = set()
    for file in copy.build_folder.rglob("CTestTestfile.cmake"):  # ctest itself tells what is built
        for line in file.read_text(encoding="utf-8").splitlines():
            told = _TOLD.match(line)
            if told is not None and told[1] in names:
                found.update(inside.findall(line))
    return sorted(found)


def _ctest(pattern: str, copy: SourceCopy) -> str:
    answer = copy.build_folder / "harness-tests.xml"
    answer.unlink(missing_ok=True)
    command = [*_ctest_command(pattern, copy), "--stop-on-failure", "--output-on-failure"]
    done = _run([*command, "--output-junit", str(answer)], copy)
    cases = _cases(answer)
    for case in cases:
        if case.get("status") == "fail":
            return _named(case.get("name", ""), "\n".join(printed(done)))
    if done.exit_code != 0 or not any(case.get("status") == "run" for case in cases):
        raise TestsBroken(f"ctest -R {pattern}: {_last_lines(done)}")
    return ""


def _named(test: str, output: str) -> str:
    """A test program with the test inside it, as cmocka and unittest tell of it."""
    inner = re.search(r"\[  FAILED  \] (\w+)|^(?:FAIL|ERROR): (\w+) ", output, re.MULTILINE)
    return f"{test}: {inner[1] or inner[2]}" if inner and (inner[1] or inner[2]) else test


# -- pytest -----------------------------------------------------------------------------------------


def _pytest(paths: tuple[str, ...], copy: SourceCopy) -> str:
    answer = copy.build_folder / "harness-tests.xml"
    answer.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider"]
    done = _run([*command, "--junitxml", str(answer), *paths], copy)
    if done.exit_code == 0:
        return ""
    for case in _cases(answer) if done.exit_code == 1 else []:
        if case.find("failure") is not None:
            return f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
    raise TestsBroken(f"pytest {' '.join(paths)}: {_last_lines(done)}")


def _cases(answer: Path) -> list[ET.Element]:
    try:
        return list(ET.fromstring(answer.read_bytes()).iter("testcase"))
    except (OSError, ET.ParseError):
        return []


# -- a hunt -----------------------------------------------------------------------------------------


def _campaign(mutant: str, copy: SourceCopy) -> str:
    command = [sys.executable, "-m", "tornpage", "mutants", "--only", mutant, "--json"]
    done = _run([*command, "--kills", "0", "--states", str(STATES)], copy)
    if done.exit_code not in (0, 1):
        raise TestsBroken(f"campaign {mutant}: {_last_lines(done)}")
    return f"{mutant} is not caught" if done.exit_code == 1 else ""
