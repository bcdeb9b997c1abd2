"""Where a run comes from: what makes its verdicts, by hash: a run goes on with the same programs only."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import xxhash

from tornpage import __version__
from tornpage.faults.process import launcher_path
from tornpage.plans.campaign import Campaign
from tornpage.store.origin import OURS, Origin
from tornpage.targets.registry import identity_of
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import TargetError
from tornpage.vocabulary.paths import BUILD_VARIABLE

__all__ = [
    "command_line",
    "difference",
    "harness_hash",
    "origin_of",
    "origin_under",
    "own_command",
    "program_hashes",
    "without_password",
]

COMMAND = "tornpage"
GIT_DEADLINE_S = 5.0
PART_BYTES = 1 << 20
"""A program may be larger than memory."""
PASSWORD = re.compile(r"((?<=://)[^/:@]*):[^/@]*(?=@)|([?&](?:ssl)?password=)[^&]*")
"""In a URL, before its host or among its parameters."""
PACKAGE = Path(__file__).resolve().parents[1]


def origin_of(campaign: Campaign, target: Target, command: str = "") -> Origin:
    """Of a run that starts now. campaign: as its file has it, before any option changed it; command: that
    makes such a run, "" = that of this process, if it is one."""
    programs = program_hashes(target)
    programs["campaign"] = campaign.content
    return Origin(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        host=platform.node(),
        version=__version__,
        command=command or own_command(sys.argv),
        target=identity_of(target),
        programs=programs,
        revision=_revision(target),
    )


def origin_under(origin: Origin, target: Target, options: Mapping[str, str]) -> Origin:
    """The origin of a run with these options of the target, which may name programs."""
    chosen = target.chosen_programs(options)
    if not chosen:
        return origin
    hashes = {name: _hash([path]) for name, path in sorted(chosen.items())}
    revision = _described(next(iter(chosen.values())).resolve().parent)
    return replace(origin, programs={**origin.programs, **hashes}, revision=revision)


def _revision(target: Target) -> str:
    """Of the sources of the target's own programs."""
    own = [path for name, path in target.programs().items() if name not in OURS]
    return _described(own[0].parent) if own else ""


@cache
def _described(folder: Path) -> str:
    """What Git calls the checkout that a folder is in, with "-dirty" if files in it have been changed; "" if
    it is in none, or that is not to be learned in time."""
    command = [
        "git",
        "-C",
        str(folder),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ]
    try:
        done = subprocess.run(command, capture_output=True, timeout=GIT_DEADLINE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def own_command(argv: Sequence[str]) -> str:
    """The command line of a process that is `tornpage`, without passwords; "" of any other, as pytest."""
    program = Path(argv[0])
    ours = program.name == COMMAND or program == PACKAGE / "__main__.py"
    return shlex.join([COMMAND, *map(without_password, argv[1:])]) if ours else ""


def without_password(word: str) -> str:
    """A word of a command line without one."""
    return PASSWORD.sub(r"\1\2", word)


def program_hashes(target: Target) -> dict[str, str]:
    """Of all that makes the verdicts on a target, by a short name."""
    files = {**target.programs(), "launcher": launcher_path()}
    programs = {name: _hash([path]) for name, path in sorted(files.items())}
    return {**programs, "harness": harness_hash()}


def harness_hash() -> str:
    """Of the code of this package: verdicts of other code do not count."""
    files = (f"{folder}/{name}" for folder, _, names in os.walk(PACKAGE) for name in names)
    return _hash(Path(file) for file in sorted(files) if file.endswith((".c", ".py", ".sql")))


def command_line(line: str, store: str) -> str:
    """A command of ours with what makes it find these programs from anywhere else, and a store. store: the
    options that name it, "" where none are needed."""
    chosen = os.environ.get(BUILD_VARIABLE)
    variables = [f"{BUILD_VARIABLE}={shlex.quote(str(Path(chosen).resolve()))}"] if chosen else []
    return " ".join([*variables, line, *([store] if store else [])])


def difference(old: Origin, new: Origin) -> str:
    """Names of what is not the same any more, "" if all is."""
    names = sorted({*old.programs, *new.programs})
    return ", ".join(name for name in names if old.programs.get(name) != new.programs.get(name))


def _hash(paths: Iterable[Path]) -> str:
    digest = xxhash.xxh3_64()
    for path in paths:
        try:
            with path.open("rb") as file:
                while part := file.read(PART_BYTES):
                    digest.update(part)
        except OSError as error:
            raise TargetError(f"{path}: {error.strerror}") from error
    return digest.hexdigest()
