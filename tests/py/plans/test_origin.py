"""What the store keeps of where a run comes from."""

from __future__ import annotations

import pytest

from tornpage.plans.origin import PACKAGE, PASSWORD, own_command


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("postgresql://lab:secret@db/tornpage", "postgresql://lab@db/tornpage"),
        ("--store=postgresql://:secret@/tornpage", "--store=postgresql://@/tornpage"),
        ("postgresql:///t?password=secret&host=db", "postgresql:///t?password=&host=db"),
        ("postgresql://lab@db:5432/tornpage", "postgresql://lab@db:5432/tornpage"),
        ("params.rows=48", "params.rows=48"),
    ],
)
def test_no_password_is_kept(word: str, kept: str) -> None:
    """Neither before the host nor among the parameters; all else of a command line stays."""
    assert PASSWORD.sub(r"\1\2", word) == kept


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (
            ["/usr/bin/tornpage", "run", "smoke", "--option", "a=b c"],
            "tornpage run smoke --option 'a=b c'",
        ),
        ([str(PACKAGE / "__main__.py"), "try", "x.toml"], "tornpage try x.toml"),
        (["/usr/bin/pytest", "-k", "smoke"], ""),
        (["/usr/lib/pytest/__main__.py", "-x"], ""),
        (["-c"], ""),
        ([""], ""),
    ],
)
def test_only_a_command_of_ours_is_kept_as_one(argv: list[str], command: str) -> None:
    """What pytest or a program was called with makes no run of `tornpage`."""
    assert own_command(argv) == command
