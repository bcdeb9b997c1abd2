"""In a checkout, campaigns, templates and programs are found in its own folders. tests/e2e/test_wheel.py has
where an installed wheel finds them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tornpage.vocabulary.paths import (
    BUILD_VARIABLE,
    ROOT,
    data_folder,
    filesystem_of,
    find_paths,
    is_on_shm,
    tmpfs_folder,
)


def test_a_checkout_has_its_own_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is copied: a change of a campaign takes effect at once."""
    monkeypatch.delenv(BUILD_VARIABLE, raising=False)
    for name in ("workloads", "reports", "marking"):
        assert data_folder(name) == ROOT / name
    assert find_paths().build == ROOT / "build" / "release"


def test_the_file_system_of_a_folder() -> None:
    """That of the mount which is nearest above it."""
    assert filesystem_of(Path("/proc/self/fd")) == "proc"
    assert filesystem_of(Path("/dev/shm/none")) == "tmpfs"


def test_where_dev_shm_does_not_serve_another_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TORNPAGE_TMP comes first, then that of temporary files; one on /dev/shm is passed over."""
    monkeypatch.delenv("TORNPAGE_TMP", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/dev/shm")
    assert not is_on_shm(tmpfs_folder(on_shm=False))
    assert is_on_shm(tmpfs_folder())
    monkeypatch.setenv("TORNPAGE_TMP", str(tmp_path))
    assert tmpfs_folder(on_shm=False) == tmp_path == tmpfs_folder()
