"""Causes of a run are one where the same lines of code are behind them, and apart where others are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from tornpage.causes.pairs import explain_run
from tornpage.store.store import Store
from tornpage.vocabulary.cause import Cause, Explained, Kind, Operation
from tornpage.vocabulary.evidence import Frame
from tornpage.vocabulary.paths import Paths

WRITERS = ("batch", "single", "batch", "single", "batch")
"""Functions that write the pages that are torn, by trial."""


def torn(seq: int, writer: str) -> Cause:
    """One write is, behind a wrapper that all have."""
    frames = (Frame("write_home", "dblwr.c", 7), Frame(writer, f"{writer}.c", 9))
    lost = Operation(seq, "write", "t1.ibd", f"page {seq}", "data_page", 0, frames)
    return Cause(Kind("torn"), "torn page", (lost,), (), None, 0, None, (), ())


def test_the_lines_of_code_tell_causes_apart() -> None:
    """Not the page; the most frequent comes first."""
    rows = [SimpleNamespace(run=1, number=n, bugs=(1,)) for n in range(len(WRITERS))]

    def explained(row: Any, *_: object) -> Explained:
        return Explained("", torn(row.number, WRITERS[row.number]), "kept", 1)

    with (
        patch("tornpage.causes.pairs._chosen", return_value=rows),
        patch("tornpage.causes.pairs.with_kept_image", side_effect=lambda row, _: row),
        patch("tornpage.causes.pairs.explain_trial", side_effect=explained),
    ):
        store = cast("Store", SimpleNamespace(run=lambda _: None))
        paths = cast("Paths", None)
        found = explain_run(
            store, 1, paths, Path(), (), 9, lambda _: None, lambda _name, _found: None
        )
    assert [pair.trials for pair in found.pairs] == [("1.0", "1.2", "1.4"), ("1.1", "1.3")]
    assert ["batch" in pair.lost for pair in found.pairs] == [True, False]
