"""`tornpage bisect`: which commit of the target introduced a finding.

Exit codes: 0 one was found, 2 it cannot be tested, 3 the remaining commits could not be tested.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tornpage.campaigns.bisect import Step, bisect_find
from tornpage.campaigns.fault_free import row_named
from tornpage.cli.options import JsonOption, OutOption, StoreOption, TrialArgument
from tornpage.cli.terminal import print_object, say
from tornpage.store.place import place_in
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import DEFAULT_OUT

__all__ = ["EPILOG", "bisect"]

EPILOG = (
    "Examples: [bold]tornpage bisect 3.17 --good v1.2 --bad main --source ../kv -- make -j4[/] · "
    "tornpage bisect 3.17 --good v1.2 --bad main -- 'cd build && ninja mariadbd'"
)
NOTHING_FOUND = 3
SHOWN = 12
"""Characters of a hash."""


def bisect(
    trial: TrialArgument,
    good: Annotated[str, typer.Option(metavar="COMMIT", help="A commit without the finding.")],
    bad: Annotated[str, typer.Option(metavar="COMMIT", help="A later commit with it.")],
    build: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- BUILD...", help="The command that builds the target, run in the checkout."
        ),
    ] = None,
    source: Annotated[
        Path, typer.Option(metavar="DIR", help="The checkout of the target's sources.")
    ] = Path(),
    tries: Annotated[
        int, typer.Option(min=1, max=100, help="New runs per commit, where they decide.")
    ] = 1,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Finds the first commit that shows a finding: git bisect, with the finding's replay as the test. Commits
    that cannot be built, or that show another finding, are skipped. Afterwards the checkout is as before."""
    row = row_named(trial, place_in(out, store_place))
    if row.result is None or not row.result.violations:
        raise ConfigError(f"trial {trial} broke no invariant: there is nothing to look for")
    replay = [sys.executable, "-P", "-m", "tornpage", "replay", trial, "--json", "--out", str(out)]
    replay += ["--tries", str(tries)]
    replay += ["--store", store_place] if store_place else []
    found = bisect_find(trial, replay, source, (good, bad), build or [], _tell)
    code = 0 if found.first_bad else NOTHING_FOUND
    if json_output:
        return print_object(asdict(found), code)
    if found.first_bad:
        say(f"first bad commit: {found.first_bad} {found.subject}")
    else:
        names = ", ".join(one[:SHOWN] for one in found.candidates)
        say(f"the first bad commit is one of {names}: the others of them could not be asked")
    return code


def _tell(step: Step) -> None:
    say(f"{step.commit[:SHOWN]} {step.mark}: {step.subject} ({step.note})", sys.stderr)
