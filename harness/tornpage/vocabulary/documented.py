"""What the sources say of their own names: the docstrings behind the members of an enum, and the keys of a
pydantic model with their values, defaults and meanings. Lists, skeletons and pages take their texts from
here, so that each is written once.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic import BaseModel

__all__ = ["Key", "first_sentence", "keys_of", "meanings"]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a file. value: what may stand there; default: as it would be written, "" if it must be given;
    is_table: it is a table, or several."""

    name: str
    value: str
    default: str
    what: str
    is_table: bool


def first_sentence(thing: Any) -> str:
    """Of its docstring, in one line."""
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return text.partition(". ")[0].removesuffix(".")


def meanings(kind: type[Enum]) -> dict[str, str]:
    """By value of a member, the docstring behind it."""
    return {str(kind[name].value): text for name, text in _behind(kind).items()}


def _behind(kind: type) -> dict[str, str]:
    """By name, the docstrings behind the names of a class. Sources are read when they are asked for: every
    command would wait for it."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for item, behind in zip(body.body, body.body[1:], strict=False):
        if isinstance(item, ast.Assign | ast.AnnAssign) and isinstance(behind, ast.Expr):
            (target,) = item.targets if isinstance(item, ast.Assign) else [item.target]
            assert isinstance(target, ast.Name)
            found[target.id] = " ".join(str(ast.literal_eval(behind.value)).split())
    return found


def keys_of(model: type[BaseModel]) -> list[Key]:
    """The keys of a model whose attributes have docstrings, in its order."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    own = [kind for kind in model.__mro__[::-1] if issubclass(kind, BaseModel)]
    texts = {name: text for kind in own[1:] for name, text in _behind(kind).items()}
    return [
        Key(
            name=name,
            value=_value(field, definitions),
            default="" if name in schema.get("required", []) else _default(field.get("default")),
            what=texts.get(name, ""),
            is_table=_is_table(field, definitions),
        )
        for name, field in schema["properties"].items()
    ]


def _default(value: Any) -> str:
    if value in ("", [], {}, None):
        return "none"
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _value(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    schema = _resolved(schema, definitions)
    if "anyOf" in schema:
        parts = [part for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(_value(part, definitions) for part in parts)
    if "enum" in schema:
        return ", ".join(f"`{item}`" for item in schema["enum"])
    kind = schema["type"]
    if kind == "array":
        return f"list of: {_value(schema['items'], definitions)}"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"table of: {_value(inner, definitions)}" if inner else "table"
    name = {"integer": "number", "number": "number", "boolean": "`true`, `false`"}.get(kind, "text")
    limits = [str(schema[limit]) for limit in ("minimum", "maximum") if limit in schema]
    return f"{name}, {' to '.join(limits)}" if limits else name


def _is_table(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    schema = _resolved(schema, definitions)
    if "anyOf" in schema:
        return any(_is_table(part, definitions) for part in schema["anyOf"])
    inner = _resolved(schema.get("items", {}), definitions)
    return "object" in (schema.get("type"), inner.get("type"))


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference means."""
    reference = str(schema.get("$ref", ""))
    return definitions[reference.rpartition("/")[2]] if reference else schema
