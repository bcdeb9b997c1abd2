"""Charts of any number of series."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tornpage.reports.charts import COLOURS, bar_chart, compared_chart, line_chart


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
