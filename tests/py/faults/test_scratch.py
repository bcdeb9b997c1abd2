"""Scratch folders: held by a lock, recognised by it, and nothing else is ever removed."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage.faults.scratch import LOCK, SEMAPHORES, scratch_folder


@pytest.fixture(autouse=True)
def _parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORNPAGE_TMP", str(tmp_path))


def test_removed_at_the_end(tmp_path: Path) -> None:
    """A scratch folder is there while it is used, and gone afterwards, whatever lies in it."""
    with scratch_folder() as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "file").write_text("x")
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_folder_stays(tmp_path: Path) -> None:
    """Folders that merely look like ours are not touched, nor what a link of our name leads to."""
    foreign = tmp_path / "tornpage-20261120-night"
    foreign.mkdir()
    (foreign / "precious").write_text("x")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (tmp_path / "tornpage-link").symlink_to(elsewhere)
    with scratch_folder():
        pass
    assert (foreign / "precious").exists()
    assert (elsewhere / LOCK).exists()


def test_a_living_owner_keeps_its_folder(tmp_path: Path) -> None:
    """Two owners at once leave each other alone, also where pids tell nothing."""
    with scratch_folder() as mine:
        code = "from tornpage.faults.scratch import scratch_folder\nwith scratch_folder(): pass"
        subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
        assert (mine / LOCK).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_owner_leaves_nothing_for_long(tmp_path: Path) -> None:
    """The next owner removes what a killed one left."""
    code = (
        "import os, signal\nfrom tornpage.faults.scratch import scratch_folder\n"
        "with scratch_folder(): os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ))
    assert done.returncode < 0
    assert len(list(tmp_path.iterdir())) == 1
    with scratch_folder():
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_semaphores_of_a_killed_pool_go_with_its_folder(tmp_path: Path) -> None:
    """Also where the tracker that should remove them was killed with the owner."""
    code = (
        "import multiprocessing, os, signal\n"
        "from tornpage.faults.scratch import scratch_folder\n"
        "with scratch_folder():\n"
        "    lock = multiprocessing.get_context('spawn').Lock()\n"
        "    os.killpg(0, signal.SIGKILL)"
    )
    env = dict(os.environ)
    subprocess.run([sys.executable, "-c", code], check=False, env=env, start_new_session=True)
    (left,) = tmp_path.iterdir()
    assert len(list(SEMAPHORES.glob(f"sem.{left.name}-*"))) == 1
    with scratch_folder() as folder:
        assert list(SEMAPHORES.glob(f"sem.{left.name}-*")) == []
        lock = multiprocessing.get_context("spawn").Lock()
        assert len(list(SEMAPHORES.glob(f"sem.{folder.name}-*"))) == 1
        del lock
    assert list(SEMAPHORES.glob(f"sem.{folder.name}-*")) == []


def test_a_signal_at_the_end_leaves_nothing(tmp_path: Path) -> None:
    """It waits until the folder is removed, and ends the owner then."""
    code = (
        "import os, shutil, signal, sys\nfrom tornpage.faults.scratch import scratch_folder\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "remove = shutil.rmtree\n"
        "def interrupted(*arguments, **options):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    remove(*arguments, **options)\n"
        "shutil.rmtree = interrupted\n"
        "with scratch_folder(): pass"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ))
    assert done.returncode == 7
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_folder_is_no_pattern(tmp_path: Path) -> None:
    """One that is called `tornpage-*` and whose owner is gone takes nobody's semaphores along."""
    with scratch_folder() as folder:
        lock = multiprocessing.get_context("spawn").Lock()
        odd = tmp_path / "tornpage-*"
        odd.mkdir()
        (odd / LOCK).touch()
        with scratch_folder():
            assert not odd.exists()
        assert len(list(SEMAPHORES.glob(f"sem.{folder.name}-*"))) == 1
        del lock
