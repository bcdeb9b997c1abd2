"""What the sources say of their names is read when it is asked for."""

from __future__ import annotations

import subprocess
import sys
from enum import Enum

from pydantic import BaseModel

from tornpage.vocabulary.documented import keys_of, meanings

NO_PARSER = """
import ast

def parse(*_given, **_named):
    raise AssertionError("a source is read")

ast.parse = parse
import tornpage.workers.pool
from tornpage.cli.main import COMMANDS, root

for name in COMMANDS:
    root().commands[name]
"""


class Colour(Enum):
    """Members with and without a meaning."""

    RED = "r"
    """As blood,
    or a rose."""
    BLUE = "b"


class Base(BaseModel):
    """What another model has, too."""

    colour: Colour = Colour.RED
    """That of the base."""
    size: int
    """In bytes."""


class Derived(Base):
    """One key more, and another meaning."""

    size: int = 7
    """In pages."""
    name: str = ""


def test_meanings_are_found_behind_names() -> None:
    """Of members, and of keys: the model's own come before those of its base; without one it is empty."""
    assert meanings(Colour) == {"r": "As blood, or a rose."}
    found = {key.name: (key.what, key.default) for key in keys_of(Derived)}
    assert found == {
        "colour": ("That of the base.", "r"),
        "size": ("In pages.", "7"),
        "name": ("", "none"),
    }


def test_no_command_waits_for_it() -> None:
    """To start, neither the command nor a worker reads a source."""
    subprocess.run([sys.executable, "-P", "-c", NO_PARSER], check=True, timeout=120)
