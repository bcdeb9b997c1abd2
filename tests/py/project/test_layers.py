"""Includes of C that point up are refused, and docs/ARCHITECTURE.md shows the layers that there are."""

from __future__ import annotations

from pathlib import Path

import layers_page
import pytest
from layering import circles, violations


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


def test_files_that_call_each_other_in_a_circle(tmp_path: Path) -> None:
    """Calls of three files make a circle, through data too; a comment, a text and a static name do not."""
    folder = tmp_path / "engine" / "log"
    folder.mkdir(parents=True)
    (folder / "a.c").write_text("int a(void)\n{\n    return *b;\n}\n", "ascii")
    (folder / "b.c").write_text("const int *const b = &c;\n", "ascii")
    (folder / "c.c").write_text(
        '/* a() */\nstatic int a(void)\n{\n}\nint c = X("a(b)");\n', "ascii"
    )
    assert circles(tmp_path, {}) == []
    (folder / "c.c").write_text("int c(void)\n{\n    return a();\n}\n", "ascii")
    assert circles(tmp_path, {"engine/log": 3}) == []
    found = circles(tmp_path, {"engine/log": 2})
    assert found == ["engine/log: 3 files call each other in circles: a.c, b.c, c.c"]
