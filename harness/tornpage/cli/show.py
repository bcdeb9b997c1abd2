"""`tornpage show`: what the database knows of a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tornpage.campaigns.fault_free import row_named, with_kept_image
from tornpage.causes.confirm import confirmed_lines, load_confirmed
from tornpage.cli.console import print_trial
from tornpage.cli.options import (
    DebugFilesOption,
    JsonOption,
    OutOption,
    StoreOption,
    TrialArgument,
)
from tornpage.cli.terminal import make_console, plain_printer, print_object
from tornpage.evidence.evidence import load_evidence
from tornpage.plans.origin import command_line
from tornpage.reports.dossier import cause_lines
from tornpage.reports.lanes import draw_way
from tornpage.reports.page import replace_file
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.cause import Explained
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.evidence import Evidence
from tornpage.vocabulary.model import Outcome, Source, TrialResult, TrialSpec
from tornpage.vocabulary.outputs import output
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "show"]

EPILOG = "Examples: [bold]tornpage show 3.117[/] · tornpage show 3.117 --svg crash.svg"


def show(
    trial: TrialArgument,
    debug_files: DebugFilesOption = None,
    svg: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the timeline as a picture, - for standard output."
        ),
    ] = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Prints what the database knows of a trial: plan, the write hit or what the power loss lost, verdict,
    what recovery did, the command that replays it, the results of `tornpage explain` and `tornpage
    confirm`."""
    place = place_in(out, store_place)
    row = with_kept_image(row_named(trial, place), out)
    folders = debug_files or ()
    with Store(place, write=False) as store:
        explained = store.explanations(row.run).get(trial)
    confirmed = load_confirmed(row.result.image) if row.result else None
    looks = svg is not None or json_output
    kept = load_evidence(row.result.image, folders) if row.result and looks else None
    if svg is not None:
        return _write_picture(svg, trial, kept, explained)
    if json_output:
        told = {"trial": trial, "spec": to_plain(row.spec), "result": to_plain(row.result)}
        more = {"evidence": to_plain(kept), "explanation": to_plain(explained)}
        more["confirmed"] = to_plain(confirmed)
        return print_object({**told, "bugs": list(row.bugs), **more})
    if row.result is None:
        print(f"trial {trial} was interrupted; its run goes on with --resume")
    else:
        line = command_line(f"tornpage replay {trial}", place.options)
        if _is_untold(row.spec, row.result):
            line = f"no image was kept; this plays it again and tells how it came about:\n{line}"
        console = make_console()
        print_trial(console, trial, row.spec, row.result, line, row.bugs, folders)
        for text in cause_lines(explained) if explained else ():
            plain_printer(console)(text)
        for text in confirmed_lines(confirmed) if confirmed else ():
            plain_printer(console)(text)
    return 0


def _write_picture(
    file: Path, trial: str, evidence: Evidence | None, explained: Explained | None
) -> int:
    """All lines of the picture, and nothing else. ConfigError: nothing was kept that it could be of."""
    if evidence is None or not evidence.phases:
        if ".s" in trial:
            raise ConfigError(
                f"{trial} is a run without a crash, and its operations were not kept: nothing to draw; "
                "`tornpage show` says what it breaks"
            )
        raise ConfigError(
            f"nothing was kept of {trial} that could be drawn: `tornpage replay {trial}` keeps it"
        )
    templates = find_paths().templates
    picture = draw_way(evidence, explained, templates, "way", f"Tornpage: trial {trial}")
    if file == Path("-"):
        print(picture)
    else:
        with output(file):
            replace_file(file, f"{picture}\n")
    return 0


def _is_untold(spec: TrialSpec, result: TrialResult) -> bool:
    """There is no timeline of it here: another trial, or script, with the same finding has it."""
    ruled = any(violation.source is Source.RULE for violation in result.violations)
    broken = result.outcome is Outcome.VIOLATION and (spec.plan.crashes or ruled)
    return broken and load_evidence(result.image) is None
