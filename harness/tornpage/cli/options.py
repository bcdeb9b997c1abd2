"""What several commands share: options, the code of a usage error."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from tornpage.plans.limits import BOUNDS, Bound, Limits
from tornpage.targets.option import DEFAULT_FS, FS, UNDER, disk_of
from tornpage.vocabulary.errors import ConfigError
from tornpage.workers.context import DEFAULT_JOBS

__all__ = [
    "DEFAULT_JOBS",
    "USAGE_ERROR",
    "Annotate",
    "AnnotateOption",
    "DebugFilesOption",
    "FailOn",
    "FailOnOption",
    "FetchOption",
    "FsOption",
    "JobsOption",
    "JsonOption",
    "JunitOption",
    "KeepOption",
    "OutOption",
    "StacksOption",
    "StoreOption",
    "TargetOptions",
    "TrialArgument",
    "options_of",
    "seconds_of",
    "with_limits",
]

USAGE_ERROR = 2
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Annotate(StrEnum):
    """Whose annotations are printed."""

    GITHUB = "github"
    NONE = "none"


class FailOn(StrEnum):
    """Which bugs make a failure."""

    ANY = "any"
    NEW = "new"


def _named(context: typer.Context, folder: Path) -> Path:
    """An option that a script left empty is no wish for the current folder. If its disk is full, main() says
    so."""
    if folder == Path():
        raise ConfigError(
            "--out: a folder, as out (or ./out); the current one is not meant to hold a store"
        )
    if context.obj is not None:
        context.obj["out"] = folder
    return folder


OutOption = Annotated[
    Path,
    typer.Option("--out", callback=_named, help="Folder of the result database and reports."),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PLACE",
        envvar="TORNPAGE_STORE",
        help="The result database, if not in --out: a file, or postgresql://...",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, last.")]
JunitOption = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", dir_okay=False, help="Write JUnit XML here."),
]
AnnotateOption = Annotated[
    Annotate | None,
    typer.Option(
        help="Annotations on standard error; left out: github inside a GitHub workflow, else none."
    ),
]
JobsOption = Annotated[int, typer.Option("--jobs", min=1, max=64, help="Worker processes.")]
KeepOption = Annotated[
    int | None, typer.Option(min=1, help="Afterwards, delete all but this many newest runs.")
]
TargetOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the target, or params.NAME."),
]
FsOption = Annotated[
    str | None,
    typer.Option(
        "--fs",
        metavar="NAME[,NAME]",
        help="Power loss: the file system of `tornpage list fs`, or several, each in turn.",
    ),
]
UnderOption = Annotated[
    str | None,
    typer.Option(
        "--under",
        metavar="NAME",
        help="Power loss: work on a real ext4, xfs or btrfs; its disk is what loses power.",
    ),
]
FetchOption = Annotated[bool, typer.Option("--fetch", help="First get what the target lacks.")]
StacksOption = Annotated[
    bool,
    typer.Option("--stacks/--no-stacks", help="Record the target's call stack of each operation."),
]
DebugFilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--debug-files",
        metavar="FOLDER",
        exists=True,
        file_okay=False,
        help="Folder of debug files by build id, like /usr/lib/debug or debuginfod; repeatable.",
    ),
]
FailOnOption = Annotated[
    FailOn,
    typer.Option(help="Exit code 1 for any bug, or only for new ones and those that came back."),
]
TrialArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="RUN.NUMBER of a trial, RUN.sNUMBER of a run without a fault.",
    ),
]


def seconds_of(option: str, text: str, *, bare: bool = True) -> float:
    """A time as 90s, 5m, 8h, or, if `bare` allows it, 90, in seconds. option: what it was given to, for the
    message. ConfigError."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smh]?)", text)
    seconds = float(found[1]) * UNITS[found[2]] if found and (bare or found[2]) else 0.0
    if seconds < 1:
        raise ConfigError(f"{option} {text!r}: a number and s, m or h, from 1s on, as 90s, 30m, 8h")
    return seconds


def _option(bound: Bound) -> Any:
    if bound.form:
        words = typer.Option(bound.option, metavar=bound.form, help=f"{bound.what}.")
        return Annotated[str | None, words]
    number = typer.Option(bound.option, min=bound.low, max=bound.high, help=f"{bound.what}.")
    return Annotated[int | None, number]


def with_limits(**defaults: int) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A command with an option for each limit in the place of its parameter `limits`, but for those that it
    takes by a parameter of its own. defaults: of some of them. The command raises ConfigError for what no
    limit may be."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        signature = inspect.signature(command, eval_str=True)
        own = signature.parameters
        options = {
            name: own["limits"].replace(
                name=name, annotation=_option(bound), default=defaults.get(name)
            )
            for name, bound in BOUNDS.items()
            if name not in own
        }

        @wraps(command)
        def limited(**given: Any) -> int:
            return command(limits=_limits({name: given.pop(name) for name in options}), **given)

        shown: list[inspect.Parameter] = []
        for one in own.values():
            shown += options.values() if one.name == "limits" else [one]
        limited.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        limited.__annotations__ = {one.name: one.annotation for one in shown}
        return limited

    return decorate


def _limits(given: Mapping[str, Any]) -> Limits:
    models, budget = given["models"], given["budget_s"]
    names = models.split(",") if models else ()
    if not all(names):
        raise ConfigError(f"--models {models!r}: names with a comma between them")
    seconds = None if budget is None else seconds_of("--budget", budget)
    return Limits.of({**given, "models": names, "budget_s": seconds})


def options_of(said: list[str] | None, fs: str | None, under: str | None = None) -> dict[str, str]:
    """What --option, --fs and --under say. ConfigError if it is no NAME=VALUE."""
    pairs = {}
    for pair in said or []:
        name, equals, value = pair.partition("=")
        if not name or not equals or not value:
            raise ConfigError(f"--option {pair!r}: expected NAME=VALUE, as doublewrite=off")
        pairs[name] = value
    pairs |= {FS: fs} if fs else {}
    pairs |= {UNDER: under} if under else {}
    if (disk := disk_of(pairs)) and pairs.setdefault(FS, DEFAULT_FS) != DEFAULT_FS:
        raise ConfigError(f"--under {disk} is a real file system: leave out --fs")
    return pairs
