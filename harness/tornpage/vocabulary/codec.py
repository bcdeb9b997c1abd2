"""JSON for the frozen data classes: text out, typed objects back in, and plain values for `--json`; and TOML
files that people write, as typed objects.

Reading is strict: an unknown key or a value of another type is an error, so that what another version wrote
is noticed instead of misread; a missing key takes its default. Bytes are base64.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from pydantic_core import to_json as write
from pydantic_core import to_jsonable_python as plain

from tornpage.vocabulary.closest import meant
from tornpage.vocabulary.errors import ConfigError, DamagedError
from tornpage.vocabulary.named import parse_toml, read_toml_text

__all__ = ["first_error", "from_json", "read_toml", "to_json", "to_plain"]

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def to_json(value: Any) -> str:
    """One line of JSON."""
    try:
        return write(value, bytes_mode="base64").decode("utf-8")
    except PydanticSerializationError as error:
        raise ConfigError(str(error)) from error


def to_plain(value: Any) -> Any:
    """The same as dict, list, str, int, float, bool or None, for a larger object."""
    try:
        return plain(value, bytes_mode="base64")
    except PydanticSerializationError as error:
        raise ConfigError(str(error)) from error


def from_json(cls: type[T], text: str | bytes) -> T:
    """Builds a `cls` from what to_json() made of one. Raises DamagedError naming the field that is unknown,
    missing, or of another type."""
    try:
        return typing.cast(T, _adapter(typing.cast(Hashable, cls)).validate_json(text, strict=True))
    except ValidationError as error:
        raise DamagedError(first_error(error, getattr(cls, "__name__", str(cls)))) from error


def read_toml(cls: type[M], path: Path, what: str, base: str = "", **given: Any) -> M:
    """The file as a `cls`. what: it is meant to be, as "campaign"; base: the key by which it names another of
    its folder that has what it leaves out; given: keys that it may leave out. Raises ConfigError naming file
    and key."""
    try:
        told = parse_toml(read_toml_text(path, what))
        name = told.get(base) if base else None
        if isinstance(name, str) and name:
            below = parse_toml(read_toml_text(path.parent / name, what))
            if below.get(base):
                raise ConfigError(f"{path}: {base}: {name} has one itself")
            told = _merged(below, told)
        return cls.model_validate({**given, **told})
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(error, known=cls.model_fields)}") from error
    except ValueError as error:  # no TOML
        raise ConfigError(f"{path}: {error}") from error


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Of tables each key by itself; of one with `values`, an option, all of it."""
    both = {
        name: _merged(below[name], value)
        for name, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(name), dict) and "values" not in value
    }
    return {**below, **above, **both}


def first_error(error: ValidationError, *outer: str, known: Iterable[str] = ()) -> str:
    """The first finding as "outer.place.of.the.key: what is wrong"; a key that there is not comes before one
    that is missing. known: keys that there are at the top."""
    found = error.errors(include_url=False)
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    where = ".".join([*outer, *(str(part) for part in first["loc"])])
    what = first["msg"]
    if first["type"] == "extra_forbidden":
        key = ".".join(map(str, first["loc"]))
        what = f"unknown key{meant(key, known if len(first['loc']) == 1 else ())}"
    elif first["type"] == "value_error":  # a validator of ours: its words alone
        what = str(first["ctx"]["error"])
    return f"{where}: {what}" if where else what


@functools.cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)
