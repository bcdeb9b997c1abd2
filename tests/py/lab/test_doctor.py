"""The doctor is not content with what does not work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tornpage.faults.preload import preload_path
from tornpage.lab.doctor import examine
from tornpage.vocabulary.paths import Paths


@pytest.mark.parametrize(
    ("source", "seen"), [(None, "missing or empty"), ("int nothing;", "does nothing")]
)
def test_a_library_that_is_none_is_bad(tmp_path: Path, source: str | None, seen: str) -> None:
    """An empty file, and a library that can be loaded and has nothing of ours."""
    library = preload_path(tmp_path)
    library.parent.mkdir()
    library.touch()
    if source is not None:
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=source, text=True, check=True)
    found = examine(Paths(tmp_path, tmp_path, tmp_path, tmp_path))
    (preload,) = [finding for finding in found if finding.name == "preload"]
    assert not preload.ok
    assert seen in preload.seen
