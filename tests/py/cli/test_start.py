"""What a call of the command line loads: the command that it names, and what that needs."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

from tornpage.cli.main import COMMANDS, root

LOADED = """
import sys
from tornpage.cli.main import main
sys.argv[1:] = {words}
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules, file=sys.stderr)
"""
LIBRARIES = {"dask", "distributed", "jinja2", "psycopg", "pydantic", "pymysql"}
LIBRARIES |= {"rich", "sqlalchemy"}


@cache
def loaded(*words: str) -> frozenset[str]:
    """Modules that a call has loaded when it ends."""
    command = [sys.executable, "-P", "-c", LOADED.format(words=list(words))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return frozenset(done.stderr.split())


def own(modules: frozenset[str]) -> set[str]:
    """Those of the package, but for the packages themselves."""
    return {name for name in modules if name.count(".") > 1 and name.startswith("tornpage.")}


def test_the_version_loads_no_command_and_no_library() -> None:
    """But the one that parses arguments."""
    seen = loaded("--version")
    assert not LIBRARIES & seen
    assert own(seen) == {
        "tornpage.workers.context",
        "tornpage.plans.limits",
        "tornpage.cli.main",
        "tornpage.cli.options",
        "tornpage.faults.process",
        "tornpage.store.origin",
        "tornpage.targets.option",
        "tornpage.vocabulary.errors",
        "tornpage.vocabulary.paths",
    }


@pytest.mark.parametrize(
    ("kind", "most"), [("invariants", 385), ("campaigns", 390), ("targets", 460)]
)
def test_a_list_loads_what_it_lists(kind: str, most: int) -> None:
    """Invariants and campaigns nothing of what a target or a workload is made of. The bounds are a tenth
    above what there is."""
    seen = loaded("list", kind)
    assert len(seen) <= most
    families = {name.split(".")[1] for name in own(seen)}
    assert not {"lab", "live", "powerloss", "reports"} & families
    if kind != "targets":
        assert not {"oracle", "workloads"} & families
        assert "tornpage.plans.campaign" not in seen


def test_a_list_loads_no_store_and_no_report() -> None:
    """What is only read from the sources needs no database, no template and nothing that runs a campaign."""
    seen = loaded("list", "campaigns")
    assert not {"dask", "distributed", "jinja2", "psycopg", "sqlalchemy"} & seen
    commands = {name for name in own(seen) if name.startswith("tornpage.cli.")}
    assert commands == {
        f"tornpage.cli.{name}" for name in ("listing", "main", "options", "terminal")
    }
    assert not {
        name for name in own(seen) if name.startswith(("tornpage.lab", "tornpage.shrinking"))
    }


@pytest.mark.parametrize("command", ["run", "report"])
def test_a_run_loads_no_other_command(command: str) -> None:
    """Nor what speaks to a server."""
    seen = loaded(command, "--help")
    assert "sqlalchemy.dialects.sqlite" in seen
    assert not {"sqlalchemy.dialects.postgresql", "psycopg", "distributed"} & seen
    assert not {f"tornpage.cli.{name}" for name in ("attempt", "bench", "mutants", "shrink")} & seen
    assert not {"tornpage.lab.mutants", "tornpage.shrinking.shrink"} & seen


def test_help_and_a_mistake_know_all_commands() -> None:
    """Whatever is loaded later: each name is listed, and a slip of the pen is told the right one."""
    group = root()
    assert list(group.commands) == list(COMMANDS)
    for name in COMMANDS:
        command = group.commands[name]
        assert command.name == name
        assert command.get_short_help_str(limit=200)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tornpage", "replya"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "replay" in done.stderr
