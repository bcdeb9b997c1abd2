"""What commands write: folders that are missing are made, and a full disk is told in one sentence."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from called import called

from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.outputs import full_disk, output, told_full

FULL = SimpleNamespace(f_bavail=0, f_frsize=4096, f_files=9, f_favail=9)
NO_MORE_FILES = SimpleNamespace(f_bavail=1 << 30, f_frsize=4096, f_files=9, f_favail=0)
ENDLESS = SimpleNamespace(f_bavail=1 << 30, f_frsize=4096, f_files=0, f_favail=0)


def fill_disk(patch: pytest.MonkeyPatch, folder: Path, kind: SimpleNamespace = FULL) -> None:
    """Only that of this folder is full."""
    patch.setattr(os, "statvfs", lambda asked: kind if Path(asked) == folder else ENDLESS)


def test_missing_folders_are_made(tmp_path: Path) -> None:
    """As many as it takes."""
    place = tmp_path / "a" / "b" / "file"
    with output(place):
        place.write_text("x", "utf-8")
    assert place.read_text("utf-8") == "x"


def test_what_cannot_be_made_is_told_with_its_name(tmp_path: Path) -> None:
    """A file where a folder should be; what the system names no file of."""
    (tmp_path / "a").touch()
    with pytest.raises(ConfigError, match=f"^{tmp_path}/a: File exists"), output(tmp_path / "a/b"):
        raise AssertionError("its folder is a file")
    with pytest.raises(ConfigError, match=f"^{tmp_path}/c: Input/output"), output(tmp_path / "c"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(OSError, match="No space left") as caught, output(tmp_path / "c"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(tmp_path / "c")


@pytest.mark.parametrize("kind", [FULL, NO_MORE_FILES])
def test_the_folder_on_the_full_disk_is_named(
    kind: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one that has room; of one that is not there, what it would be in."""
    fill_disk(monkeypatch, tmp_path, kind)
    assert full_disk([Path("/")]) == ""
    told = full_disk([Path("/"), tmp_path / "none" / "of these"])
    assert told.startswith(f"{tmp_path} is on a full disk: free some space, or choose another")


def test_a_quota_is_told_as_it_is(tmp_path: Path) -> None:
    """The disk has room, and not for us."""
    error = OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), str(tmp_path / "file"))
    assert told_full(error, ()).startswith(f"{tmp_path}/file: Disk quota exceeded: free some space")


def test_a_store_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite calls that a disk I/O error, or what it likes."""
    place = Store(tmp_path / "s.db").place
    assert isinstance(place.failure("disk I/O error"), MachineError)
    assert str(place.failure("disk I/O error")) == f"{tmp_path}/s.db: disk I/O error"
    fill_disk(monkeypatch, tmp_path)
    assert str(place.failure("disk I/O error")).startswith(f"{tmp_path} is on a full disk: free")


def test_a_command_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names the folder, whichever step met it, although the system names no file."""

    def write(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tornpage.cli.runs.Store", write)
    monkeypatch.setattr("tornpage.cli.main._discard", lambda _stdout: None)
    fill_disk(monkeypatch, tmp_path / "there")
    (tmp_path / "there").mkdir()
    done = called(tmp_path, "runs", "--out", str(tmp_path / "there"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"tornpage: {tmp_path}/there is on a full disk: free some space")
    assert done.stderr.count("\n") == 1
