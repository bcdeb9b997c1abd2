"""Charts as SVG in the page, in the colours of its style sheet. pygal (LGPL) is loaded when the first
one is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

__all__ = ["Chart", "bar_chart", "compared_chart", "line_chart"]

WIDTH = 720
HEIGHT = 240
COLOURS = 6
"""Of the style sheet; a series beyond them takes the first again, and is not in the legend."""
STEPS = 4
ROW_HEIGHT = 16
"""Of a bar that lies."""
LABELS_MAX = 20
"""Labels under a chart that can be read."""


@dataclass(frozen=True, slots=True)
class Chart:
    """svg: an element that can stand in a page as it is; series: its names, in the order of the colours."""

    title: str
    svg: Markup
    series: tuple[str, ...]


def bar_chart(
    title: str,
    series: Mapping[str, Sequence[float | None]],
    labels: Sequence[str],
    links: Sequence[str],
) -> Chart:
    """Stacked bars of whole numbers, one per label; links: where a click on one leads, "" = nowhere."""
    import pygal

    highest = max(sum(value or 0 for value in one) for one in zip(*series.values(), strict=True))
    step = max(1, round(highest / STEPS))
    whole = {"y_labels": list(range(0, int(highest) + step + 1, step))}
    return _drawn(
        pygal.StackedBar(**_settings(title, len(series)), **whole), title, series, labels, links
    )


def line_chart(
    title: str,
    series: Mapping[str, Sequence[float | None]],
    labels: Sequence[str],
    links: Sequence[str],
) -> Chart:
    """A line per series over the labels; None: it has no value there, and the line goes on."""
    import pygal

    more = {"allow_interruptions": False, "dots_size": 4, "stroke_style": {"width": 2}}
    chart = pygal.Line(**_settings(title, len(series)), **more)
    return _drawn(chart, title, series, labels, links)


def compared_chart(
    title: str, series: Mapping[str, Sequence[float | None]], labels: Sequence[str]
) -> Chart:
    """Bars side by side, a group per label from the top to the bottom; None: there is no bar."""
    import pygal

    settings = {
        **_settings(title, len(series)),
        "height": 60 + ROW_HEIGHT * (len(series) + 1) * len(labels),
    }
    upwards = {name: values[::-1] for name, values in series.items()}
    chart = pygal.HorizontalBar(**settings)
    return _drawn(chart, title, upwards, labels[::-1], [""] * len(labels))


def _settings(title: str, series: int) -> dict[str, Any]:
    """pygal makes further colours of those that it has, and cannot of names: it gets one for each series."""
    from pygal.style import Style

    style = Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--dim)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--line)",
        guide_stroke_color="var(--line)",
        major_guide_stroke_color="var(--line)",
        colors=tuple(f"var(--chart-{n % COLOURS + 1})" for n in range(series)),
        opacity="1",
        font_family="inherit",
        label_font_size=12,
        major_label_font_size=12,
    )
    return {
        "style": style,
        "js": [],
        "width": WIDTH,
        "height": HEIGHT,
        "margin": 8,
        "show_legend": False,
        "show_minor_x_labels": False,
        "min_scale": 2,
        "max_scale": 5,
        "include_x_axis": True,
        "value_formatter": _number,
        "no_data_text": f"{title}: none",
    }


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _drawn(
    chart: Any,
    title: str,
    series: Mapping[str, Sequence[float | None]],
    labels: Sequence[str],
    links: Sequence[str],
) -> Chart:
    chart.uuid = re.sub(r"[^a-z0-9]+", "-", title.lower())  # pygal's own is random
    chart.x_labels = list(labels)
    chart.x_labels_major = list(labels[:: 1 + len(labels) // LABELS_MAX])
    for name, values in series.items():
        chart.add(name, [_point(*one) for one in zip(values, labels, links, strict=True)])
    svg = Markup(_plain(chart.render_tree()))  # pygal escapes its texts
    return Chart(title, svg, tuple(series)[:COLOURS])


def _point(value: float | None, label: str, link: str) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"value": value, "label": label, **({"xlink": link} if link else {})}


def _plain(root: Any) -> str:
    """The element without scripts and comments, which a page from a file has no use for."""
    for parent in list(root.iter()):
        for child in list(parent):
            if not isinstance(child.tag, str) or child.tag.rpartition("}")[2] == "script":
                parent.remove(child)
    text = ElementTree.tostring(root, encoding="unicode")
    return text.replace("ns0:", "").replace("xmlns:ns0=", "xmlns=")
