"""`tornpage confirm`: a finding on a real file system.

Exit codes: 1 one shows it, 0 none does, 2 it cannot be asked.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tornpage.campaigns.fault_free import row_named, with_kept_image
from tornpage.causes.confirm import Confirmed, confirm_trial, confirmed_lines, keep_confirmed
from tornpage.cli.options import JobsOption, JsonOption, OutOption, StoreOption, TrialArgument
from tornpage.cli.terminal import make_console, plain_printer, print_object, say
from tornpage.faults.under import DISKS
from tornpage.store.place import place_in
from tornpage.vocabulary.closest import unknown
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "confirm"]

EPILOG = (
    "Examples: [bold]tornpage confirm 3.117[/] · "
    "tornpage confirm 3.117 --under ext4,xfs --states 2000 --tries 5"
)


def confirm(
    trial: TrialArgument,
    under: Annotated[
        str, typer.Option(metavar="NAME[,NAME]", help="The real file systems to try.")
    ] = ",".join(DISKS),
    states: Annotated[
        int,
        typer.Option(
            min=2, help="States of the disk per recording, half of them at the finding's crash."
        ),
    ] = 400,
    tries: Annotated[
        int, typer.Option(min=1, max=100, help="At most this many recordings, until one shows it.")
    ] = 1,
    jobs: JobsOption = 1,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Repeats the run of a finding on real file systems: does a disk that loses power at the same place show
    it too (exit code 1), or not (0)? The result is kept with the finding."""
    names = under.split(",")
    for name in names:
        if name not in DISKS:
            raise ConfigError(f"--under: {unknown('real file system', name, DISKS)}")
    row = with_kept_image(row_named(trial, place_in(out, store_place)), out)
    with make_console(stderr=True, quiet=json_output).status(f"trial {trial}") as status:
        found = confirm_trial(row, find_paths(), names, states, tries, jobs, status.update)
    image = row.result.image if row.result else None
    has_image = image is not None and image.is_dir()
    kept = has_image and found.is_answered
    if kept:
        assert image is not None, "it is a folder"
        keep_confirmed(found, image)
    code = _exit_code(found)
    if json_output:
        return print_object({"trial": trial, **to_plain(found), "kept": kept}, code)
    show = plain_printer(make_console())
    show(f"trial {trial}: {found.finding}")
    for line in confirmed_lines(found):
        show(line)
    if not has_image:
        say(f"not kept: no image was kept of {trial}; tornpage replay {trial} makes one")
    return code


def _exit_code(found: Confirmed) -> int:
    if not found.is_answered:
        return 2
    return 1 if found.is_shown else 0
