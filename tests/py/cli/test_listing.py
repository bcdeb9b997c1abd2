"""What `tornpage list` prints on a narrow terminal and elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tornpage.campaigns.catalogue import KINDS, list_items
from tornpage.cli.listing import print_items
from tornpage.vocabulary.paths import find_paths


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_is_cut_at_80_columns(kind: str) -> None:
    """Every word of every item is there whole, in lines that fit; a wide terminal has a table."""
    items = list_items(kind, find_paths())
    pages = []
    for width in (80, 10_000):
        page = io.StringIO()
        print_items(Console(file=page, width=width), items)
        pages.append(page.getvalue())
    narrow, wide = pages
    assert max(map(len, narrow.splitlines())) <= 80 and "…" not in narrow
    words = set(narrow.replace(";", " ").replace(":", " ").split())
    for item in items:
        for text in (item.name, item.what, *item.facts.values()):
            assert set(text.replace(";", " ").replace(":", " ").split()) <= words, item.name
            assert text in wide
