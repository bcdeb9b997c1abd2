"""Pages from templates: each is one file that needs nothing else, written in one step."""

from __future__ import annotations

import errno
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

__all__ = ["render_page", "render_part", "render_text", "replace_file"]

_PARTS = ("report", "timeline")
"""Files of style and script that each page has."""


def render_page(templates: Path, name: str, **data: object) -> str:
    """A template with its data. templates: the folder of the templates, their styles and scripts."""
    style, script = (
        Markup("".join((templates / f"{name}.{kind}").read_text("utf-8") for name in _PARTS))
        for kind in ("css", "js")
    )
    return _template(templates, name).render(style=style, script=script, **data)


def render_part(templates: Path, name: str, **data: object) -> Markup:
    """A part of a page, for another template."""
    return Markup(_template(templates, name).render(**data))


def render_text(templates: Path, name: str, **data: object) -> str:
    """A text that is no page: nothing of it is escaped."""
    return _template(templates, name, escaped=False).render(**data)


def _template(templates: Path, name: str, *, escaped: bool = True) -> jinja2.Template:
    return _environment(templates, escaped).get_template(name)


@cache
def _environment(templates: Path, escaped: bool) -> jinja2.Environment:
    """It keeps what it has compiled, which costs more than to render it, until the file changes."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=escaped,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not escaped,
    )
    environment.filters |= {"grouped": _grouped, "cell": _cell}
    return environment


def _grouped(number: Any) -> str:
    """1234567 -> 1,234,567."""
    return f"{number:,}"


def _cell(text: Any) -> str:
    """Of a table in Markdown."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def replace_file(path: Path, text: str) -> None:
    """A file that stood there, or a link, is replaced and not followed. OSError: something else stands there,
    a folder or a device; or it cannot be written, and nothing of it stays."""
    if path.exists() and not path.is_symlink() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it is there, and no file", str(path))
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    try:
        with fresh.open("x", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
