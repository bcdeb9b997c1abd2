"""The file systems whose promises power loss can be explored under: the explorer's table, and the option `fs`
that every target has; and those that every target file has: `recorder`, of a file system to record by, and
`under`, of a real one to work on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tornpage.faults.process import run_child
from tornpage.faults.recorder import Recorder
from tornpage.faults.under import DISK_SECTOR, DISKS
from tornpage.targets.option import DEFAULT_FS, FS, NO_DISK, RECORDER, UNDER, TargetOption, disk_of
from tornpage.targets.target import last_object
from tornpage.vocabulary.closest import unknown
from tornpage.vocabulary.errors import ConfigError, TargetError

__all__ = [
    "file_systems",
    "fs_arguments",
    "fs_option",
    "recorder_option",
    "require_fs",
    "under_option",
    "without_fs",
]

DEADLINE_S = 10.0


@cache
def file_systems(explorer: Path) -> Mapping[str, Mapping[str, Any]]:
    """By name, what each promises: `what` in a line, `names` that a crash keeps, what an `fsync` takes
    along, `size_first`, `replace_flushes`. The first is the usual one. Raises TargetError."""
    child = run_child([explorer, "--list-fs", "--json"], os.environ, DEADLINE_S)
    data = last_object(child.stdout)
    if child.exit_code != 0 or data is None:
        raise TargetError(f"{explorer} lists no file systems: {child.describe()}")
    return {item["name"]: item for item in data["file_systems"]}


def require_fs(explorer: Path, names: Sequence[str], where: str = "") -> None:
    """Raises ConfigError for a name that none has, TargetError. where: it stands, as a message begins."""
    known = file_systems(explorer)
    for name in names:
        if name not in known:
            raise ConfigError(where + unknown("file system", name, known))


def fs_option(explorer: Path, default: str = DEFAULT_FS) -> TargetOption:
    """The option of a target whose file does not say otherwise. Raises TargetError."""
    known = file_systems(explorer)
    what = "power loss: the file system whose promises hold"

    def check(value: str) -> str:
        return "" if value in known else unknown("file system", value, known)

    return TargetOption(FS, ", ".join(known), default, what, check)


def fs_arguments(
    explorer: Path, options: Mapping[str, str], default: str = DEFAULT_FS
) -> list[str]:
    """What tornpage-explore is told. The default needs no question: it is of the table, or check_ready() has
    asked. On a real file system what loses power is a disk. Raises ConfigError for a file system that there
    is not, TargetError."""
    if disk_of(options):
        return ["--fs", DEFAULT_FS, "--sector", str(DISK_SECTOR)]
    if FS in options:
        require_fs(explorer, [options[FS]])
    return ["--fs", options.get(FS, default)]


def without_fs(explorer: Path, options: Mapping[str, str]) -> dict[str, str]:
    """The options that the target itself is told. Raises ConfigError for a file system that there is not,
    TargetError."""
    if FS in options:
        require_fs(explorer, [options[FS]])
    return {name: value for name, value in options.items() if name != FS}


def recorder_option(default: Recorder) -> TargetOption:
    """The option of a target whose file says `default`."""

    def check(value: str) -> str:
        return "" if value in [*Recorder] else unknown("recorder", value, [*Recorder])

    what = "what records the store: a library in it, or a file system below it"
    return TargetOption(RECORDER, ", ".join(Recorder), default, what, check)


def under_option() -> TargetOption:
    """The option of every target file."""
    known = [NO_DISK, *DISKS]

    def check(value: str) -> str:
        return "" if value in known else unknown("real file system", value, known)

    what = (
        "power loss: the real file system that it works on, above a disk whose writes are recorded"
    )
    return TargetOption(UNDER, ", ".join(known), NO_DISK, what, check)
