"""The redo records of a page, as they stand in the log of a database that nobody has recovered."""

from __future__ import annotations

from pathlib import Path

from tornpage.targets.target import Target

__all__ = ["RECORDS_MAX", "redo_of"]

RECORDS_MAX = 8
"""Of a page that are listed, the newest."""


def redo_of(target: Target, data: Path, space: str, page: str) -> tuple[list[str], str]:
    """From the checkpoint on, each with the LSNs of its group, and in words which they are, or why there
    are none."""
    command = target.log_command(data)
    if command is None:
        return [], "this target decodes none"
    child = command.run({})
    if child.exit_code != 0:
        return [], f"the log cannot be read: {child.last_line}"
    whose = f" space={space} page={page} "
    group, first, found = "", "", []
    for line in child.stdout.decode("ascii", "replace").splitlines():
        if not line.startswith(" "):
            group = line.strip()
            first = first or group
        elif whose in f"{line} ":
            found.append(f"{group} {line.strip().replace(whose.rstrip(), '')}")
    since = f"since the checkpoint, {first.partition('..')[0]}" if first else "in the log"
    if not found:
        return [], f"none {since}"
    more = f"{len(found)} {since}, the last" if len(found) > RECORDS_MAX else since
    return found[-RECORDS_MAX:], more
