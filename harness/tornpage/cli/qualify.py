"""`tornpage qualify`: does the fault layer do what it says?"""

from __future__ import annotations

from tornpage.cli.checks import show_checks
from tornpage.cli.options import JsonOption
from tornpage.cli.terminal import make_console
from tornpage.lab import qualify as lab
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "qualify"]

EPILOG = "Example: [bold]tornpage qualify --json[/]"


def qualify(json_output: JsonOption = False) -> int:
    """Has fio check the fault layer: it must find every fault, and nothing else."""
    console = make_console(stderr=True, quiet=json_output)
    checks = lab.qualify(
        find_paths(), lambda name: console.print(f"qualify: {name}", highlight=False)
    )
    return show_checks(checks, json_output)
