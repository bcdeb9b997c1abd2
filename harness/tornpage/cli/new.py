"""`tornpage new`: files to begin with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from tornpage.cli.options import JsonOption
from tornpage.plans.campaign import load_campaign
from tornpage.plans.skeleton import skeleton
from tornpage.targets.registry import DEFAULT_TARGET
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "campaign"]

EPILOG = (
    "Examples: [bold]tornpage new campaign mine[/] · tornpage new campaign mine --like powerloss · "
    "tornpage new campaign mine --like smoke --target sqlite"
)


def campaign(
    name: Annotated[str, typer.Argument(metavar="NAME", help="NAME.toml in this folder is made.")],
    like: Annotated[str, typer.Option(help="Whose values it starts with.")] = "smoke",
    target: Annotated[str, typer.Option(help="For which target.")] = DEFAULT_TARGET,
    json_output: JsonOption = False,
) -> int:
    """Writes a campaign file that runs as it is, with the meaning of every key."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise ConfigError(f"{name!r}: a campaign's name has letters, digits, _ and -")
    text = skeleton(load_campaign(like, find_paths().workloads, target))
    path = Path(f"{name}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigError(f"{path} exists already, and is left as it is") from error
    command = f"tornpage run {path}" + ("" if target == DEFAULT_TARGET else f" --target {target}")
    print(json.dumps({"file": str(path), "run": command}) if json_output else f"{path}: {command}")
    return 0
