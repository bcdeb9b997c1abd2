"""Checks of the surroundings, as they are printed: what was seen, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from tornpage.cli.options import USAGE_ERROR
from tornpage.cli.terminal import make_console, print_object
from tornpage.lab.doctor import Finding
from tornpage.vocabulary.codec import to_plain

__all__ = ["show_checks"]


def show_checks(checks: Sequence[Finding], json_output: bool) -> int:
    """Prints all of them. The exit code: 0 if all is well."""
    good = all(check.ok for check in checks if check.needed)
    if json_output:
        print_object({"ok": good, "checks": to_plain(checks)}, 0 if good else USAGE_ERROR)
    else:
        table = Table("check", "", "seen", "remedy")
        for check in checks:
            wrong = "[red]bad[/]" if check.needed else "[yellow]no[/]"
            mark = "[green]ok[/]" if check.ok else wrong
            remedy = "" if check.ok else check.remedy
            table.add_row(check.name, mark, escape(check.seen), escape(remedy))
        make_console().print(table)
    return 0 if good else USAGE_ERROR
