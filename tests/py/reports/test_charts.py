"""Charts of any number of series."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tornpage.reports.charts import COLOURS, LETTER, bar_chart, compared_chart, line_chart


@pytest.mark.parametrize("n", [1, COLOURS, COLOURS + 1, 3 * COLOURS])
def test_series_beyond_the_colours_take_the_first_again(n: int) -> None:
    """All are drawn, and those that have a colour of their own are in the legend."""
    series = {f"campaign {number}": [1.0, 2.0] for number in range(n)}
    names = tuple(series)[:COLOURS]
    for draw in (bar_chart, line_chart):
        chart = draw("runs", series, ["1", "2"], ["", "#2"])
        assert chart.series == names
        assert ElementTree.fromstring(chart.svg).tag.endswith("svg")
        assert f"var(--chart-{min(n, COLOURS)})" in chart.svg
    assert compared_chart("runs", series, ["1", "2"]).series == names


def shapes(svg: str, kind: str) -> list[tuple[dict[str, float], str]]:
    """Places and what is told of them."""
    found = ElementTree.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{kind}")
    return [
        ({key: float(value) for key, value in one.items() if key != "style"}, one[0].text or "")
        for one in found
    ]


def test_stacked_bars_stand_on_each_other() -> None:
    """As high as their values, one upon the other; what is 0 or absent is not drawn."""
    series = {"new": [1, 0, None], "again": [2, 3, 0]}
    bars = shapes(bar_chart("bugs", series, ["a", "b", "c"], [""] * 3).svg, "rect")
    assert [told for _, told in bars] == ["new, a: 1", "again, a: 2", "again, b: 3"]
    new, again, other = (place for place, _ in bars)
    assert new["x"] == again["x"] < other["x"]
    assert again["height"] == pytest.approx(2 * new["height"], abs=0.2)
    assert again["y"] + again["height"] == pytest.approx(new["y"], abs=0.2)
    assert other["y"] + other["height"] == pytest.approx(new["y"] + new["height"], abs=0.2)


def test_a_line_goes_on_where_there_is_no_value() -> None:
    """A dot per value, higher for more, and one line through them."""
    svg = line_chart("rate", {"s": [1.0, None, 4.25]}, ["a", "b", "c"], ["", "", "#c"]).svg
    (low, _), (high, told) = shapes(svg, "circle")
    assert told == "s, c: 4.25"
    assert low["cy"] > high["cy"] and low["cx"] < high["cx"]
    points = [f"{dot['cx']:.1f},{dot['cy']:.1f}" for dot in (low, high)]
    assert f'points="{" ".join(points)}"' in svg


def test_bars_that_lie_are_as_long_as_their_values() -> None:
    """In groups from the top to the bottom; whatever a label has in it is text."""
    series = {"published": [1.0, None], "engine": [0.5, 2.0]}
    svg = compared_chart("x", series, ["a <b> & c", "d"]).svg
    first, second, third = shapes(svg, "rect")
    assert [one[1] for one in (first, second, third)] == [
        "published, a <b> & c: 1",
        "engine, a <b> & c: 0.5",
        "engine, d: 2",
    ]
    widths = [one[0]["width"] for one in (first, second, third)]
    assert widths == pytest.approx([2 * widths[1], widths[1], 4 * widths[1]], abs=0.3)
    assert first[0]["y"] < second[0]["y"] < third[0]["y"]


@pytest.mark.parametrize("highest", [0, 0.003, 0.9, 1, 4, 7, 19.5, 350, 10_000, 123_456_789])
def test_guides_are_round_and_few(highest: float) -> None:
    """From 0 to the highest value or beyond, whatever it is."""
    svg = line_chart("rate", {"s": [highest, 0]}, ["a", "b"], ["", ""]).svg
    assert 2 <= svg.count("<line ") <= 6
    assert min(dot["cy"] for dot, _ in shapes(svg, "circle")) >= 0


@pytest.mark.parametrize("length", [51, 52, 90])
def test_a_long_label_stays_in_the_picture(length: int) -> None:
    """It is cut, with an ellipsis, and told as a whole where the pointer rests."""
    label = "a<" + "b" * (length - 2)
    svg = compared_chart("x", {"one": [1.0], "two": [2.0]}, [label]).svg
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    (shown,) = [one for one in texts if one.get("text-anchor") == "end"]
    text = shown.text or ""
    assert float(shown.get("x", "")) - LETTER * len(text) >= 0
    if length <= 51:
        assert (text, len(shown)) == (label, 0)
    else:
        assert text == f"{label[:50]}\N{HORIZONTAL ELLIPSIS}" and shown[0].text == label
