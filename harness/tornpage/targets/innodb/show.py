"""What a page and the log of MariaDB say of themselves, in the words of `engine page` and `engine log`.

python -m tornpage.targets.innodb.show page FILE NUMBER SIZE     one JSON object
python -m tornpage.targets.innodb.show log FOLDER                records from the checkpoint on, by group
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

from tornpage.targets.innodb.log import LOG_FILE, open_log
from tornpage.targets.innodb.page import TYPE_INDEX, Checksum, read_page

__all__ = ["log_lines", "main", "page_facts"]

_LINKS = {"prev": (8, ">I"), "next": (12, ">I")}
_INDEX = {
    "n_dir_slots": (38, ">H"), "heap_top": (40, ">H"), "n_heap": (42, ">H"), "free": (44, ">H"),
    "garbage": (46, ">H"), "last_insert": (48, ">H"), "n_recs": (54, ">H"), "max_trx_id": (56, ">Q"),
    "level": (64, ">H"), "index_id": (66, ">Q"),
}  # fmt: skip
_SPACE = {"size": (46, ">I"), "free_limit": (50, ">I"), "flags": (54, ">I")}
"""Fields by their offset and form, of each page, of an index page, of the first page of a tablespace."""


def page_facts(data: bytes) -> dict[str, Any]:
    """data: a whole page."""
    page = read_page(data)
    verdict = {Checksum.WRONG: "bad checksum", Checksum.ZERO: "zeros"}.get(page.checksum, "ok")
    (kind,) = struct.unpack_from(">H", data, 24)
    fields = _LINKS | (_INDEX if kind == TYPE_INDEX else _SPACE if page.type == "fsp" else {})
    facts = {name: struct.unpack_from(form, data, at)[0] for name, (at, form) in fields.items()}
    head = {"ok": page.whole, "page": page.number, "space": page.space, "header_only": True}
    return {
        **head,
        "verdict": verdict,
        "type": page.type,
        "lsn": page.lsn,
        "checksum": page.checksum,
        **facts,
    }


def log_lines(data: bytes) -> list[str]:
    """data: of the log file. ValueError: it is of no format that is known."""
    log = open_log(bytearray(data))
    if log is None:
        raise ValueError("a log of no format that is known")
    lines = []
    for group in log.groups(log.checkpoint()):
        lines.append(f"{group.start}..{group.end}")
        lines += [f"  {one.kind} space={one.space} page={one.page}" for one in group.records]
    return lines


def main() -> int:
    """Exit code 1: there is nothing to show, and standard error says why."""
    what, place, *numbers = sys.argv[1:]
    try:
        if what == "page":
            number, size = map(int, numbers)
            with Path(place).open("rb") as file:
                file.seek(number * size)
                print(json.dumps(page_facts(file.read(size))))
        else:
            print("\n".join(log_lines((Path(place) / LOG_FILE).read_bytes())))
    except (OSError, ValueError, struct.error) as error:
        print(f"{place}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
