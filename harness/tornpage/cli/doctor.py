"""`tornpage doctor`: is everything here that a run needs?"""

from __future__ import annotations

from typing import Annotated

import typer

from tornpage.cli.checks import show_checks
from tornpage.cli.options import JsonOption
from tornpage.lab.doctor import examine
from tornpage.lab.filesystem import qualify_file_systems
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "doctor"]

EPILOG = "Examples: [bold]tornpage doctor[/] · tornpage doctor --qualify-fs"


def doctor(
    qualify_fs: Annotated[
        bool,
        typer.Option(
            "--qualify-fs",
            help="Also check the promises of --fs on disks of ext4, xfs and btrfs that lose power.",
        ),
    ] = False,
    json_output: JsonOption = False,
) -> int:
    """Checks that everything a run needs is here, and says what to do if not."""
    paths = find_paths()
    checks = examine(paths)
    if qualify_fs:
        checks += qualify_file_systems(paths)
    return show_checks(checks, json_output)
