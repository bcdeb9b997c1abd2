"""A new campaign file: another campaign's values, with the meaning of every key above it. Keys that the other
one leaves out stand there as comments with their defaults.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from tornpage.plans.campaign import Campaign
from tornpage.vocabulary.documented import keys_of
from tornpage.vocabulary.named import toml_value

__all__ = ["skeleton"]

WIDTH = 110
OWN = ("name", "default")
"""Not for a new campaign: it is called as its file, and planted bugs are measured by others."""


def skeleton(like: Campaign) -> str:
    """The text of a file that runs as it is."""
    return "\n".join(_keys(like, OWN)).rstrip() + "\n"


def _keys(model: BaseModel, without: tuple[str, ...] = ()) -> Iterator[str]:
    given = model.model_dump(mode="json", exclude_defaults=True)
    for key in keys_of(type(model)):
        if key.name in without or (key.is_table and key.name not in given):
            continue
        yield from _comment(key.what)
        if key.is_table:
            yield from _table(key.name, given[key.name], getattr(model, key.name))
        elif key.name in given:
            yield f"{key.name} = {_toml(given[key.name])}"
        else:
            yield f"# {key.name} = {_toml(model.model_dump(mode='json')[key.name])}"
        yield ""


def _table(name: str, plain: Any, value: Any) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield f"[{name}]"
        yield from _keys(value)
    elif isinstance(value, Mapping):
        yield f"[{name}]"
        for key, inner in plain.items():
            yield f"{key if key.isidentifier() else toml_value(key)} = {_toml(inner)}"
    else:
        for number, inner in enumerate(value):
            yield f"[[{name}]]"
            yield from _keys(inner) if number == 0 else _rows(plain[number])


def _rows(plain: Mapping[str, Any]) -> Iterator[str]:
    """A further table of a kind that has been explained."""
    yield from (f"{key} = {_toml(value)}" for key, value in plain.items())
    yield ""


def _toml(value: Any) -> str:
    """A long list over several lines."""
    line = toml_value(value)
    if not isinstance(value, list) or len(line) < WIDTH:
        return line
    lines = [""]
    for item in value:
        text = _toml(item) + ","
        if lines[-1] and len(lines[-1]) + len(text) > WIDTH:
            lines.append("")
        lines[-1] += f" {text}" if lines[-1] else f"    {text}"
    return "\n".join(["[", *lines, "]"])


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
