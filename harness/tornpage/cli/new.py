"""`tornpage new`: files to start from."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from tornpage.cli.options import JsonOption
from tornpage.cli.terminal import print_object
from tornpage.plans.campaign import load_campaign
from tornpage.plans.skeleton import skeleton
from tornpage.targets.registry import (
    DEFAULT_TARGET,
    TARGET_FILE,
    campaign_parts,
    is_target_file,
    make_target,
    target_name,
)
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "campaign"]

EPILOG = (
    "Examples: [bold]tornpage new campaign mine[/] · tornpage new campaign mine --like powerloss · "
    "tornpage new campaign mine --like smoke --target sqlite"
)


def campaign(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Makes NAME.toml in this folder.")],
    like: Annotated[str, typer.Option(help="The campaign whose values it starts with.")] = "smoke",
    target: Annotated[
        str | None,
        typer.Option(help="Its target; default: that of the other campaign."),
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Writes a campaign file that runs as it is, with the meaning of every key."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise ConfigError(f"{name!r}: a campaign's name has letters, digits, _ and -")
    paths = find_paths()
    found = target_name(target or _family_target(like))
    make_target(found, paths.build, ready=False)
    values = load_campaign(like, paths.workloads, found)
    if target is not None or found != DEFAULT_TARGET:
        values = values.changed({"target": _as_written(target or found, found)})
    path = Path(f"{name}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(skeleton(values))
    except FileExistsError as error:
        raise ConfigError(f"{path} exists already, and is left as it is") from error
    command = f"tornpage run {path}"
    if json_output:
        return print_object({"file": str(path), "run": command})
    print(f"{path}: {command}")
    return 0


def _family_target(like: str) -> str:
    """Of a campaign by name: whose it is."""
    family = DEFAULT_TARGET if is_target_file(like) else campaign_parts(like)[1]
    return DEFAULT_TARGET if family == TARGET_FILE else family


def _as_written(target: str, name: str) -> str:
    """The key `target` of a campaign file in this folder. name: of that target, as target_name() finds it."""
    return os.path.relpath(name) if is_target_file(name) and not is_target_file(target) else target
