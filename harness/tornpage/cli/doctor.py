"""`tornpage doctor`: is everything here that a run needs?

May import: codec, doctor, options, paths, qualify.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tornpage.cli.options import USAGE_ERROR, JsonOption
from tornpage.lab.doctor import Finding, examine
from tornpage.lab.qualify import qualify
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "doctor"]

EPILOG = "Examples: [bold]tornpage doctor[/] · tornpage doctor --qualify"


def doctor(
    with_fio: Annotated[
        bool, typer.Option("--qualify", help="Let fio judge the fault layer too (some seconds).")
    ] = False,
    json_output: JsonOption = False,
) -> int:
    """Checks that everything a run needs is here, and says what to do if not."""
    paths = find_paths()
    findings: list[Finding] = [*examine(paths)]
    if with_fio:
        console = Console(stderr=True, quiet=json_output)
        findings += qualify(paths, lambda name: console.print(f"qualify: {name}", highlight=False))
    if json_output:
        print(json.dumps({"ok": all(f.ok for f in findings), "checks": to_plain(findings)}))
    else:
        table = Table("check", "", "seen", "remedy")
        for finding in findings:
            mark = "[green]ok[/]" if finding.ok else "[red]bad[/]"
            table.add_row(
                finding.name, mark, escape(finding.seen), "" if finding.ok else finding.remedy
            )
        Console().print(table)
    return 0 if all(finding.ok for finding in findings) else USAGE_ERROR
