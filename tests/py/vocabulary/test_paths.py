"""Campaigns, templates and the store's schema are found in a checkout and in what a wheel is made of."""

from __future__ import annotations

import filecmp
import json
import os
import subprocess
import sys
from pathlib import Path

from tornpage.vocabulary.paths import ROOT, data_folder

FOLDERS = ("workloads", "reports")
ASK = """
import json, pathlib, sys
import tornpage.vocabulary.paths as paths
from tornpage.store.store import Store
Store(pathlib.Path("new.db"))
found = paths.find_paths()
print(json.dumps([paths.__file__, *(str(p) for p in (found.workloads, found.templates, found.build))]))
"""


def test_a_checkout_has_its_own_folders() -> None:
    """Nothing is copied: a change of a campaign takes effect at once."""
    assert [data_folder(name) for name in FOLDERS] == [ROOT / name for name in FOLDERS]


def test_a_built_package_carries_them(tmp_path: Path) -> None:
    """The build step's result works alone: the same files, a store can be made, programs are looked for in
    the working directory."""
    built = tmp_path / "lib"
    command = [sys.executable, "setup.py", "-q", "build", "--build-lib", str(built)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    env = {key: value for key, value in os.environ.items() if key != "TORNPAGE_BUILD"}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=tmp_path,
        env={**env, "PYTHONPATH": str(built)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    module, workloads, templates, build = (Path(item) for item in json.loads(done.stdout))
    assert module.is_relative_to(built) and build == tmp_path / "build" / "release"
    for name, carried in zip(FOLDERS, (workloads, templates), strict=True):
        assert carried == built / "tornpage" / "data" / name
        assert files_of(carried) == files_of(ROOT / name) != []
        same, _, _ = filecmp.cmpfiles(carried, ROOT / name, files_of(carried), shallow=False)
        assert same == files_of(carried)
    page = built / "tornpage" / "data" / "docs" / "INVARIANTS.md"
    assert filecmp.cmp(page, ROOT / "docs" / "INVARIANTS.md", shallow=False)


def files_of(folder: Path) -> list[str]:
    """The files below a folder, by their paths in it."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
