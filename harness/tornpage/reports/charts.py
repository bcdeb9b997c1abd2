"""Charts as SVG elements in a page, in the colours and letters of its style sheet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["Chart", "bar_chart", "compared_chart", "line_chart"]

WIDTH = 720
HEIGHT = 240
MARGIN = 24
"""Around the plot: room for half a label."""
LETTER = 7
"""Of a label: about so wide."""
COLOURS = 6
"""Of the style sheet; a series beyond them takes the first again, and is not in the legend."""
STEPS = 4
ROW_HEIGHT = 16
"""Of a bar that lies."""
LETTERS_MAX = WIDTH // 2 // LETTER
"""Of a label beside a bar: it has half of the width."""
LABELS_MAX = 10
"""Labels under a chart that can be read."""

Series = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Chart:
    """svg: an element that can stand in a page as it is; series: its names, in the order of the colours."""

    title: str
    svg: Markup
    series: tuple[str, ...]


def bar_chart(title: str, series: Series, labels: Sequence[str], links: Sequence[str]) -> Chart:
    """Stacked bars of whole numbers, one per label; links: where a click on one leads, "" = nowhere."""
    tops = [0.0] * len(labels)
    highest = max(sum(value or 0 for value in one) for one in zip(*series.values(), strict=True))
    plot = _Plot(labels, _guides(highest, whole=True))
    for n, (name, values) in enumerate(series.items()):
        for at, value in enumerate(values):
            if value:
                low, tops[at] = tops[at], tops[at] + value
                high = plot.y(tops[at])
                place = {"x": plot.x(at + 0.1), "width": 0.8 * plot.slot, "y": high}
                place["height"] = plot.y(low) - high
                told = f"{name}, {labels[at]}: {_number(value)}"
                plot.parts.append(_shape("rect", place, n, told, links[at]))
    return _chart(title, plot.parts, HEIGHT, series)


def line_chart(title: str, series: Series, labels: Sequence[str], links: Sequence[str]) -> Chart:
    """A line per series over the labels; None: it has no value there, and the line goes on."""
    plot = _Plot(labels, _guides(_highest(series)))
    for n, (name, values) in enumerate(series.items()):
        path, dots = [], []
        for at, value in enumerate(values):
            if value is not None:
                x, y = plot.x(at + 0.5), plot.y(value)
                path.append(f"{x:.1f},{y:.1f}")
                told = f"{name}, {labels[at]}: {_number(value)}"
                dots.append(_shape("circle", {"cx": x, "cy": y, "r": 4}, n, told, links[at]))
        line = Markup('<polyline points="{}" style="fill: none; stroke: {}; stroke-width: 2"/>')
        plot.parts += [line.format(" ".join(path), _colour(n)), *dots]
    return _chart(title, plot.parts, HEIGHT, series)


def compared_chart(title: str, series: Series, labels: Sequence[str]) -> Chart:
    """Bars side by side, a group per label from the top to the bottom; None: there is no bar."""
    group = ROW_HEIGHT * (len(series) + 1)
    bottom = group * len(labels)
    left = MARGIN + LETTER * min(LETTERS_MAX, max(map(len, labels)))
    guides = _guides(_highest(series))
    scale = (WIDTH - left - MARGIN) / guides[-1]
    parts = []
    for guide in guides:
        x = left + guide * scale
        parts += [_line(x, 0, x, bottom), _text(x, bottom + ROW_HEIGHT, "middle", _number(guide))]
    for at, label in enumerate(labels):
        parts.append(_label(left - LETTER, group * (at + 0.5) + LETTER / 2, label))
        for n, (name, values) in enumerate(series.items()):
            if (value := values[at]) is not None:
                place = {"x": left, "y": group * at + ROW_HEIGHT * (n + 0.5)}
                place |= {"width": value * scale, "height": ROW_HEIGHT - 2}
                parts.append(_shape("rect", place, n, f"{name}, {label}: {_number(value)}"))
    return _chart(title, parts, bottom + MARGIN, series)


class _Plot:
    """Guides, and the labels below them. slot: how wide the place of a label is."""

    def __init__(self, labels: Sequence[str], guides: Sequence[float]) -> None:
        self._top = guides[-1]
        self._left = MARGIN + LETTER * max(len(_number(guide)) for guide in guides)
        self.slot = (WIDTH - self._left - MARGIN) / len(labels)
        self.parts: list[Markup] = []
        for guide in guides:
            y = self.y(guide)
            self.parts.append(_line(self._left, y, WIDTH - MARGIN, y))
            self.parts.append(_text(self._left - LETTER, y + 4, "end", _number(guide)))
        for at in range(0, len(labels), 1 + (len(labels) - 1) // LABELS_MAX):
            self.parts.append(_text(self.x(at + 0.5), HEIGHT - 4, "middle", labels[at]))

    def x(self, at: float) -> float:
        """Of a place among the labels: the left end of the first one is 0."""
        return self._left + self.slot * at

    def y(self, value: float) -> float:
        """Of a value."""
        return MARGIN / 2 + (HEIGHT - 1.5 * MARGIN) * (1 - value / self._top)


def _highest(series: Series) -> float:
    return max((value or 0 for values in series.values() for value in values), default=0)


def _guides(highest: float, *, whole: bool = False) -> list[float]:
    """About STEPS steps of 1, 2 or 5 times a power of ten, from 0 to the highest value or beyond."""
    wanted = (highest or 1) / STEPS
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next((power * n for n in (1, 2, 5) if power * n >= wanted), power * 10)
    step = max(step, 1) if whole else step
    return [step * n for n in range(max(1, math.ceil(highest / step)) + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.3g}"


def _colour(n: int) -> str:
    return f"var(--chart-{n % COLOURS + 1})"


def _chart(title: str, parts: Sequence[Markup], height: float, series: Series) -> Chart:
    start = (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" viewBox="0 0 {} {}">'
    )
    svg = Markup(f"{start}{{}}</svg>").format(title, WIDTH, height, Markup("").join(parts))
    return Chart(title, svg, tuple(series)[:COLOURS])


def _shape(kind: str, place: Mapping[str, float], n: int, told: str, link: str = "") -> Markup:
    """In the colour of series n, with what is told of it and where it leads."""
    where = " ".join(f'{name}="{value:.1f}"' for name, value in place.items())
    shape = Markup(f'<{kind} {where} style="fill: {_colour(n)}"><title>{{}}</title></{kind}>')
    shape = shape.format(told)
    return Markup('<a href="{}">{}</a>').format(link, shape) if link else shape


def _line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return Markup(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')


def _text(x: float, y: float, anchor: str, text: str) -> Markup:
    return Markup(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{{}}</text>').format(text)


def _label(x: float, y: float, text: str) -> Markup:
    """That ends at x; one that is too long is cut, and told as a whole."""
    if len(text) <= LETTERS_MAX:
        return _text(x, y, "end", text)
    whole = Markup("<title>{}</title>").format(text)
    cut = Markup("{}{}").format(text[: LETTERS_MAX - 1] + "\N{HORIZONTAL ELLIPSIS}", whole)
    return _text(x, y, "end", cut)
