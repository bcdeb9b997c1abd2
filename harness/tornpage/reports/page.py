"""Pages from templates: each is one file that needs nothing else, written in one step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

__all__ = ["render_page", "replace_file"]


def render_page(templates: Path, name: str, **data: object) -> str:
    """A template with its data. templates: the folder of the templates and of report.css."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["grouped"] = _grouped
    style = Markup((templates / "report.css").read_text(encoding="utf-8"))
    return environment.get_template(name).render(style=style, **data)


def _grouped(number: Any) -> str:
    """1234567 -> 1,234,567."""
    return f"{number:,}"


def replace_file(path: Path, text: str) -> None:
    """Whatever stood there, a link too, is replaced and not followed."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with fresh.open("x", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)
