"""JSON for the frozen data classes of model.py: plain dictionaries out, typed objects back in.

Enums become their values, tuples lists, paths strings, bytes base64. Reading is strict: an unknown or
missing key is an error, so that an old store is noticed instead of misread.

May import: errors.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from tornpage.vocabulary.errors import ConfigError

__all__ = ["from_json", "to_json"]

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Turns a value into what json.dumps() takes: dict, list, str, int, float, bool or None."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (str, int)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(getattr(value, name)) for name in _field_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Path):
        return str(value)
    raise ConfigError(f"{type(value).__name__} has no JSON form")


def from_json(cls: type[T], data: Any) -> T:
    """Builds a `cls` (a data class of model.py) from what to_json() made of one.

    Raises ConfigError naming the field when a key is unknown or missing, or a value has another type.
    """
    return typing.cast(T, _read(cls, data, cls.__name__))


@functools.cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _read(hint: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin is typing.Union or origin is types.UnionType:
        return _read_union(hint, data, where)
    if origin is tuple:
        return _read_tuple(hint, data, where)
    if origin is not None and issubclass(origin, Mapping):
        key_hint, value_hint = typing.get_args(hint)
        _expect(isinstance(data, Mapping), where, "an object", data)
        return {
            _read_key(key_hint, key): _read(value_hint, item, f"{where}.{key}")
            for key, item in data.items()
        }
    return _read_scalar(hint, data, where)


def _read_union(hint: Any, data: Any, where: str) -> Any:
    options = typing.get_args(hint)
    if data is None:
        _expect(type(None) in options, where, "a value", data)
        return None
    rest = [option for option in options if option is not type(None)]
    for option in rest:
        if isinstance(option, type) and type(data) is option:
            return data
    return _read(rest[0], data, where)


def _read_tuple(hint: Any, data: Any, where: str) -> tuple[Any, ...]:
    _expect(isinstance(data, (list, tuple)), where, "a list", data)
    args = typing.get_args(hint)
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(_read(args[0], item, f"{where}[{i}]") for i, item in enumerate(data))
    _expect(len(args) == len(data), where, f"{len(args)} items", data)
    return tuple(
        _read(arg, item, f"{where}[{i}]")
        for i, (arg, item) in enumerate(zip(args, data, strict=True))
    )


def _read_key(hint: Any, key: str) -> Any:
    return int(key) if hint is int else key


def _read_scalar(hint: Any, data: Any, where: str) -> Any:
    if hint is Any:
        return data
    if dataclasses.is_dataclass(hint):
        return _read_dataclass(typing.cast(type, hint), data, where)
    if issubclass(hint, enum.Enum):
        try:
            return hint(data)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
    if hint is bytes:
        _expect(isinstance(data, str), where, "base64 text", data)
        return base64.b64decode(data)
    if issubclass(hint, Path):
        _expect(isinstance(data, str), where, "a path", data)
        return Path(data)
    if hint is float and type(data) is int:
        return float(data)
    _expect(type(data) is hint, where, hint.__name__, data)
    return data


def _read_dataclass(cls: type, data: Any, where: str) -> Any:
    _expect(isinstance(data, Mapping), where, "an object", data)
    names = _field_names(cls)
    unknown = sorted(set(data) - set(names))
    if unknown:
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}")
    missing = sorted(set(names) - set(data))
    if missing:
        raise ConfigError(f"{where}: missing key {missing[0]!r}")
    hints = _hints(cls)
    return cls(**{name: _read(hints[name], data[name], f"{where}.{name}") for name in names})


def _expect(ok: bool, where: str, what: str, data: Any) -> None:
    if not ok:
        raise ConfigError(f"{where}: expected {what}, found {type(data).__name__}")
