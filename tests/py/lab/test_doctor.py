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


def test_real_file_systems_are_a_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not here has its remedy, and nothing needs it."""
    why = {"xfs": "there is no mkfs.xfs: apt-get install xfsprogs"}
    monkeypatch.setattr("tornpage.lab.doctor.why_no_disk", lambda _, name: why.get(name, ""))
    found = {one.name: one for one in examine(Paths(tmp_path, tmp_path, tmp_path, tmp_path))}
    assert found["--under ext4"].ok
    xfs = found["--under xfs"]
    assert (xfs.ok, xfs.needed) == (False, False)
    assert (xfs.seen, xfs.remedy) == ("there is no mkfs.xfs", "apt-get install xfsprogs")
