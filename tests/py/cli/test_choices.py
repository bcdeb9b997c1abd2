"""What cannot be chosen is told before anything runs, with what was meant; what can be is completed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from called import called

from tornpage.cli.main import COMMANDS, root


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("run smokee", "no campaign 'smokee'; did you mean 'smoke'"),
        ("run qqq", "no campaign 'qqq'; there are: backup, "),
        ("run smoke --target sqlit", "no target 'sqlit'; did you mean 'sqlite'?"),
        ("run smoke --trails 3", "--trials"),
        (
            "run smoke --option doublewrit=off",
            "no option 'doublewrit'; did you mean 'doublewrite'?",
        ),
        ("run smoke --option doublewrite=offf", "doublewrite must be on or off, not 'offf'"),
        ("run smoke --option page_size=3k", "page_size"),
        ("run smoke --option params.seeed=3", "workload 'smoke': seeed: unknown key"),
        ("run smoke --target sqlite --option jornal_mode=wal", "did you mean 'journal_mode'?"),
        (
            "run smoke --target sqlite --option journal_mode=wall",
            "journal_mode=wall: wal or delete",
        ),
        ("run powerloss --models one-tornn", "no model 'one-tornn'; did you mean 'one-torn'?"),
        ("run powerloss --fs xfs,bttrfs", "no file system 'bttrfs'; did you mean 'btrfs'?"),
        ("run smoke --set doublewrite=off", "no such option: --set; did you mean '--option'?"),
        ("nightly smoke --option doublewrit=on", "did you mean 'doublewrite'?"),
        ("try mariadb-10.1", "no target 'mariadb-10.1'; did you mean 'mariadb-10.11'"),
        ("mutants --only dblwr_of", "no mutant 'dblwr_of'; did you mean 'dblwr_off'?"),
        ("list campaignz", "did you mean 'campaigns'?"),
        ("bugz", "'bugs'"),
    ],
)
def test_a_slip_of_the_pen_is_told_what_was_meant(line: str, told: str, tmp_path: Path) -> None:
    """In one line, before a process of the target runs, and without a run in the store."""
    done = called(tmp_path, *line.split())
    (said,) = done.stderr.splitlines()
    assert (done.returncode, told in said) == (2, True), said
    assert not (tmp_path / "out" / "index.html").exists()


def test_a_key_of_a_campaign_file_too(tmp_path: Path) -> None:
    """At its top level, and one that had another name below it."""
    for text, told in (
        ('descripton = "x"', "descripton: unknown key; did you mean 'description'"),
        ("[explore]\nseeds = 2", "explore.seeds: unknown key; did you mean 'scripts'?"),
    ):
        (tmp_path / "x.toml").write_text(text, "utf-8")
        assert told in called(tmp_path, "run", "x.toml").stderr


def test_the_help_of_a_flag_names_no_value() -> None:
    """Of any command."""
    for name in COMMANDS:
        command = root().commands[name]
        for one in [command, *getattr(command, "commands", {}).values()]:
            flags = [option for option in one.params if getattr(option, "is_flag", False)]
            assert all(flag.metavar == "" for flag in flags)


@pytest.mark.parametrize(
    ("words", "completed"),
    [("ru", ["run", "runs"]), ("run --fa", ["--fault-free", "--fail-on"]), ("target n", ["new"])],
)
def test_a_shell_completes_commands_and_options(words: str, completed: list[str]) -> None:
    """As `tornpage --install-completion` sets it up."""
    line = f"tornpage {words}"
    environment = {
        "_TORNPAGE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    program = Path(sys.executable).with_name("tornpage")
    done = subprocess.run(
        [program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == completed
