"""`tornpage target`: a target file to start from, and its conformance test."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tornpage.campaigns.attempt import check_target, may_go_below
from tornpage.cli.needs import with_needs
from tornpage.cli.options import FetchOption, JsonOption, options_of
from tornpage.cli.terminal import print_object, say
from tornpage.lab.fetch import fetch
from tornpage.live.admission import Admission
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.targets.command.target import CommandTarget
from tornpage.targets.registry import TARGET_FILE, family_of, make_target, target_name
from tornpage.vocabulary.errors import ConfigError, GoldenRunError, UnseenError
from tornpage.vocabulary.paths import find_paths
from tornpage.vocabulary.shown import one_line

__all__ = [
    "CHECK_EPILOG",
    "FETCH_EPILOG",
    "NEW_EPILOG",
    "audit_text",
    "check",
    "get",
    "new",
    "target_file",
]

NEW_EPILOG = "Examples: [bold]tornpage target new mydb[/] · tornpage target new mydb --language c"
CHECK_EPILOG = (
    "Examples: [bold]tornpage target check mydb/mydb.toml[/] · "
    "tornpage target check mariadb-10.11 --option page_size=16k"
)
FETCH_EPILOG = "Example: [bold]tornpage target fetch leveldb-1.22[/]"


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Makes the folder NAME.")],
    language: Annotated[Language, typer.Option(help="Language of the store.")] = Language.PYTHON,
    json_output: JsonOption = False,
) -> int:
    """Writes a target file with a small store that works."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise ConfigError(f"{name!r}: a target's name has letters, digits, _ and -")
    made = write_skeleton(name, language, Path())
    command = f"tornpage try {made.file}"
    if json_output:
        print_object({"file": str(made.file), "build": made.build, "run": command})
    else:
        print("\n".join(filter(None, [f"{made.file}", made.build, command])))
    return 0


def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A target file, or the name of one.")],
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="An option of the target."),
    ] = None,
    fetch_needs: FetchOption = False,
    json_output: JsonOption = False,
) -> int:
    """Checks that a target file fits. If it does not, verdicts on its crash states mean nothing."""
    build = find_paths().build
    target = with_needs(fetch_needs, lambda: make_target(target_file(file), build))
    chosen = options_of(options, None)
    try:
        seen = with_needs(fetch_needs, lambda: check_target(target, chosen))
    except UnseenError as error:
        if not may_go_below(target, chosen):
            raise
        raise GoldenRunError(
            f"{error}; --option recorder=fs records it by a file system"
        ) from error
    if json_output:
        return print_object({"ok": True, **asdict(seen)})
    text = (
        f"{file} fits: {seen.commits} commits, {seen.writes} writes and {seen.syncs} syncs recorded, "
        f"the recording equals the files, {audit_text(seen)}, and recovery comes to the last state"
    )
    for counter, count in seen.counters.items():
        text += f"; {counter} {count}"
    if not seen.repeatable:
        text += "; two runs reach different states, so a kill is judged by what its own run printed"
    say(text)
    return 0


def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A target, or a target file.")],
    json_output: JsonOption = False,
) -> int:
    """Gets what a target needs from registries: PyPI, Maven, another release of Debian, Go, crates."""
    target = make_target(target_name(name), find_paths().build, ready=False)
    if not isinstance(target, CommandTarget):
        raise ConfigError(f"{name!r} has no target file, and nothing to fetch")
    folder = fetch(target.file, target.path.parent)
    if json_output:
        return print_object({"folder": str(folder)})
    print(folder)
    return 0


def audit_text(seen: Admission) -> str:
    """Whether all that changes files is known to be in the recording."""
    compared = seen.audited.compared
    text = f"at {compared.acknowledgements:,} of {compared.of:,} acknowledgements too; {left_text(seen)}"
    if seen.audited.missing:
        reason = seen.audited.missing
        return f"{text}not audited: {reason}: a call that the recorder does not see stays unseen"
    seen_too = f"nor in {seen.audited.recoveries} recoveries"
    return f"{text}an audit has seen no other call that changes them, {seen_too}"


def left_text(seen: Admission) -> str:
    """What its run left behind, and who ended that; "" if nothing."""
    if not seen.left:
        return ""
    names = Counter(seen.left).items()
    told = ", ".join(f"{one_line(name)} ({count})" for name, count in names)
    return f"run left processes behind, which were ended with it: {told}; "


def target_file(text: str) -> str:
    """The full name of what must be a target file, or have one, whose states are observed. ConfigError."""
    name = target_name(text)
    if family_of(name) != TARGET_FILE:
        make_target(name, find_paths().build, ready=False)  # unknown?
        raise ConfigError(
            f"{text!r} is judged by Tornpage's model: tornpage run smoke --target {text}"
        )
    return name
