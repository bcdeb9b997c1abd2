"""`tornpage doctor`: is everything here that a run needs?

May import: checks, doctor, options, paths.
"""

from __future__ import annotations

from tornpage.cli.checks import show_checks
from tornpage.cli.options import JsonOption
from tornpage.lab.doctor import examine
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "doctor"]

EPILOG = "Example: [bold]tornpage doctor[/]"


def doctor(json_output: JsonOption = False) -> int:
    """Checks that everything a run needs is here, and says what to do if not."""
    return show_checks(examine(find_paths()), json_output)
