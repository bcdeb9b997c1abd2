"""A new target file with a small store that works: something to change piece by piece."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tornpage.vocabulary.outputs import output
from tornpage.vocabulary.paths import data_folder

__all__ = ["Language", "Skeleton", "write_skeleton"]


class Language(StrEnum):
    """What the store is written in."""

    PYTHON = "python"
    C = "c"


@dataclass(frozen=True, slots=True)
class Skeleton:
    """file: the target file; build: what must be run first, "" if nothing."""

    file: Path
    build: str


_PROGRAMS: dict[Language, tuple[str, Sequence[str]]] = {
    Language.PYTHON: ("store.py", ("skeleton/store.py", "tornpage_mark.py")),
    Language.C: ("store", ("skeleton/store.c", "tornpage_mark.h")),
}
"""The program of the commands, and what is copied."""


def write_skeleton(name: str, language: Language, folder: Path) -> Skeleton:
    """Makes folder/NAME. ConfigError if it is there already."""
    marking = data_folder("marking")
    place = folder / name
    program, sources = _PROGRAMS[language]
    with output(place):
        place.mkdir()
    for source in sources:
        copied = Path(shutil.copy(marking / source, place))
        if copied.name == program:  # an installed package has no run bits
            copied.chmod(copied.stat().st_mode | 0o111)
    text = (marking / "skeleton" / "target.toml").read_text("utf-8")
    for word, value in (
        ("NAME", name),
        ("PROGRAM", program),
        ("LONG_LIVED", str(language is Language.PYTHON).lower()),
    ):
        text = text.replace(word, value)
    file = place / f"{name}.toml"
    file.write_text(text, "utf-8")
    build = f"cc -o {place}/store {place}/store.c" if language is Language.C else ""
    return Skeleton(file, build)
