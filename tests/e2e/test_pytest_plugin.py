"""The pytest plugin: campaign files are items, findings are remembered, options of pytest work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from private_postgresql import private_server

from tornpage.store.place import place_of
from tornpage.store.store import Store
from tornpage.vocabulary.paths import BUILD_VARIABLE, ROOT

pytestmark = pytest.mark.extended

pytest_plugins = ["pytester"]

EXAMPLE = ROOT / "examples" / "pytest"
SCRIPT = """
create table t a:bigint b:char(40) primary a
insert_seq - t 1 200
flush table t
insert_seq - t 201 300
"""
CAMPAIGN = f"""
description = "one script, with and without the doublewrite buffer"
workload = "inline"
crash_model = "power_loss"
seed = 1
params.script = \"\"\"{SCRIPT}\"\"\"
[cross]
doublewrite = ["on", "off"]
[explore]
states = 60
"""


@pytest.fixture
def project(
    build: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """An empty project that uses the programs under test."""
    monkeypatch.setenv(BUILD_VARIABLE, str(build))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """pytest in a process of its own."""
    return project.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def shell(line: str) -> int:
    """Exit code of a line that a person would type, from anywhere."""
    return subprocess.run(
        line,
        shell=True,
        cwd="/",
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        timeout=120,
        check=False,
    ).returncode


def test_the_example_is_collected(project: pytest.Pytester) -> None:
    """An item per configuration, which -k chooses from. (test_ci_recipes.py runs them.)"""
    shutil.copytree(EXAMPLE, project.path, dirs_exist_ok=True)
    run(project, "--collect-only", "-q", "-k", "wal").stdout.fnmatch_lines(
        ["sqlite.torture.toml::journal_mode-wal", "1/4 tests collected (3 deselected)*"]
    )


def test_a_finding_is_told_remembered_and_played_first(project: pytest.Pytester) -> None:
    """The control fails with its finding, a smaller script and a line that replays it; the next session plays
    that and nothing else of the item; --lf takes only this item; ignored, it does not fail any more."""
    project.path.joinpath("dw.torture.toml").write_text(CAMPAIGN, "ascii")
    first = project.runpytest_subprocess("--torture-shrink", "3")
    first.assert_outcomes(passed=1, failed=1)
    told = first.stdout.str()
    assert re.search(r"statements, shrunk to [0-9]+:", told) and "create table" in told
    assert "Traceback" not in told
    (line,) = set(re.findall(r"replay: (.*tornpage replay .*)", told))
    assert shell(line) == 1
    again = project.runpytest_subprocess("--lf")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*still there, bug 1: *"])
    trial = re.search(r"replay ([0-9.]+)", line)
    assert trial is not None
    only = run(project, "--torture-replay", trial[1])
    only.assert_outcomes(failed=1, deselected=1)
    only.stdout.fnmatch_lines([f"trial {trial[1]} reproduced"])
    assert run(project, "--torture-replay", "77.1").ret == pytest.ExitCode.USAGE_ERROR
    out = shlex.quote(str(project.path / ".tornpage"))
    assert shell(f"tornpage bugs 1 --mark ignored --reason control --out {out}") == 0
    run(project, "-k", "off").assert_outcomes(passed=1, deselected=1)


def test_a_failing_fixture_tells_what_it_found(project: pytest.Pytester) -> None:
    """The findings a line each; the smallest script, the crash in words, what was expected and what
    recovered, and a line that plays it. A test that passes, or fails before it finds anything, has none."""
    project.makepyfile(
        f"SCRIPT = {SCRIPT!r}\n"
        "def test_torn(torture):\n"
        "    assert torture.powerloss('engine', SCRIPT, options={'doublewrite': 'off'}) == []\n"
        "def test_expected(torture):\n"
        "    assert torture.powerloss('engine', SCRIPT, options={'doublewrite': 'off'})\n"
        "def test_other(torture):\n"
        "    assert torture.found\n"
    )
    done = run(project, "--torture-shrink", "2")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(
        [
            "*findings, and none was expected:",
            "*- torture -*",
            "bug 1: * of *",
            "  I5 at *: *",
            "  4 statements, shrunk to *:",
            "    create table t *",
            "  crash: power loss, state *",
            "  run, its last operations:",
            "*torn    write *",
            "*crash   power loss, *",
            "  page * of *:",
            "    verdict: expected ok, recovered bad checksum",
            "replay: *tornpage replay *",
        ]
    )
    told = done.stdout.str()
    assert told.count("- torture -") == 1
    (line,) = set(re.findall(r"replay: (.*tornpage replay .*)", told))
    assert shell(line) == 1


def test_a_shared_store_remembers_for_all(project: pytest.Pytester) -> None:
    """What one project has found in a campaign file, another plays first, by the store on a server; the line
    that is told replays it from there. A fixture's runs are there too."""
    with private_server() as server:
        url = server.database("tests")
        project.path.joinpath("dw.torture.toml").write_text(CAMPAIGN, "ascii")
        project.makepyfile(
            f"def test_it(torture):\n    torture.powerloss('engine', {SCRIPT!r}, states=20)\n"
        )
        options = ("--torture-store", url, "--torture-shrink", "0")
        run(project, *options, "--torture-out", "one").assert_outcomes(passed=2, failed=1)
        again = run(project, *options, "--torture-out", "two", "dw.torture.toml")
        again.assert_outcomes(passed=1, failed=1)
        again.stdout.fnmatch_lines(["*still there, bug 1: *"])
        (line,) = set(re.findall(r"replay: (.*tornpage replay .*)", again.stdout.str()))
        assert line.endswith(place_of(url).options) and shell(line) == 1
        trial = re.search(r"replay ([0-9.]+)", line)
        assert trial is not None
        run(project, *options, "--torture-replay", trial[1]).assert_outcomes(failed=1, deselected=2)
        with Store(place_of(url), write=False) as store:
            names = {facts.campaign for facts in store.runs()}
        assert any("test_it" in name for name in names) and len(names) > 2
    assert not list(project.path.rglob("tornpage.db"))


def test_cells_seed_and_budget(project: pytest.Pytester) -> None:
    """An item per cell; the seed is that of the option; a short time ends early and is no failure."""
    text = CAMPAIGN.replace('"power_loss"', '"kill"').replace("[explore]\nstates = 60", "")
    hits = 'trials = 12\n{}\n[[hit]]\nsites = ["redo", "doublewrite"]\nmasks = ["none", "all"]\n'
    head, table = text.split("params.script")
    file = project.path / "kills.torture.toml"
    file.write_text(
        head + hits.split("{}")[0] + "params.script" + table + hits.split("{}")[1], "ascii"
    )
    done = run(project, "--torture-cells", "-v", "-k", "doublewrite-on", "--torture-seed", "7")
    assert done.parseoutcomes()["deselected"] == 4 and done.ret == 0, done.stdout.str()
    done.stdout.fnmatch_lines(["*::doublewrite-on-redo-none PASSED*"])
    from tornpage.api import Store

    assert {facts.seed for facts in Store(project.path / ".tornpage").runs()} == {7}
    short = run(project, "--torture-budget", "1", "-k", "on")
    assert short.ret == 0, short.stdout.str()


def test_what_is_wrong_is_one_line(project: pytest.Pytester) -> None:
    """A campaign file that is none is an error of its collection, with file and key."""
    project.path.joinpath("bad.torture.toml").write_text("seed = 1\n", "ascii")
    done = run(project)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*bad.torture.toml: description: Field required"])
    assert "Traceback" not in done.stdout.str()
