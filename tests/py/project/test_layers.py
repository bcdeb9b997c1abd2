"""Includes of C that point up are refused, and docs/ARCHITECTURE.md shows the layers that there are."""

from __future__ import annotations

from pathlib import Path

import layers_page
import pytest
from layering import violations


def test_the_drawings_are_what_make_docs_draws() -> None:
    """A new arrow between folders comes with the page."""
    text = layers_page.PAGE.read_text("utf-8")
    assert layers_page.page(text) == text
    assert text.count("flowchart") == 2


def test_an_arrow_that_another_way_has_is_left_out() -> None:
    """What is reached by way of a third folder is not drawn."""
    drawn = layers_page.drawing({"a/x": {"b", "c", "d"}, "b": {"d"}})
    assert "    a_x[a/x] --> b & c\n    b --> d\n" in drawn


@pytest.mark.parametrize(
    ("file", "header", "right"),
    [
        ("engine/log/log.c", "page/page.h", True),
        ("engine/log/log.c", "buf/buf.h", False),
        ("engine/check/check.c", "log/log.h", True),
        ("engine/check/check.c", "buf/buf.h", False),
        ("engine/api/api.c", "disk/image.h", False),
        ("faults/trace.c", "faults/real.h", True),
        ("faults/trace.c", "base/base.h", False),
        ("disk/image.c", "os/os.h", True),
        ("disk/image.c", "os/os_posix.h", False),
        ("explorer/judge/rules.c", "faults/trace.h", True),
        ("explorer/judge/rules.c", "faults/real.h", False),
        ("explorer/judge/rules.c", "explorer/run/run.h", False),
        ("explorer/run/run.c", "explorer/judge/rules.h", True),
        ("explorer/run/run.c", "run.h", True),
    ],
)
def test_includes_point_down(tmp_path: Path, file: str, header: str, right: bool) -> None:
    """What `make check` says of one include."""
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(f'#include <stdio.h>\n#include "{header}"\n', "ascii")
    assert violations(tmp_path) == ([] if right else [f"{file} includes {header}"])
