"""MariaDB 10.11 as Debian has it: nothing is found where nothing is wrong, and the control is.

Needs mariadbd, which `make setup` installs, and scratch that is not /dev/shm.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil
import pytest
from e2e_support import Tornpage

pytestmark = pytest.mark.skipif(
    shutil.which("mariadbd", path="/usr/sbin:/usr/bin") is None, reason="mariadbd is not installed"
)
JOBS = ("--jobs", "2")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Not on /dev/shm."""
    folder = Path(os.environ.get("TORNPAGE_TMP", tmp_path / "scratch"))
    folder.mkdir(exist_ok=True)
    return folder


def servers() -> list[psutil.Process]:
    """Of MariaDB, whoever's they are."""
    return [process for process in psutil.process_iter(["name"]) if process.name() == "mariadbd"]


def test_kills_find_nothing(scratch: Path, tornpage: Tornpage) -> None:
    """Around ADD INDEX, FORCE and DML; no server and no file is left behind."""
    before = {process.pid for process in servers()}
    answer = tornpage(
        "run", "smoke", "--target", "mariadb-10.11", "--trials", "60", *JOBS,
        TORNPAGE_TMP=str(scratch),
    )  # fmt: skip
    assert answer.code == 0, answer.text
    assert answer.data["exercised"] >= 40
    assert {"redo", "data_page", "system_page"} <= {*answer.data["by_site"]}
    assert {process.pid for process in servers()} <= before
    assert not list(scratch.glob("tornpage-*"))


def test_power_losses_find_nothing(scratch: Path, tornpage: Tornpage) -> None:
    """Depth 2 too: the power fails again while the server recovers."""
    answer = tornpage(
        "run", "powerloss", "--target", "mariadb-10.11", "--states", "150", *JOBS,
        TORNPAGE_TMP=str(scratch),
    )  # fmt: skip
    assert answer.code == 0, answer.text
    assert answer.data["counters"]["second_crash"] > 0


def test_without_doublewrite_torn_pages_are_found(scratch: Path, tornpage: Tornpage) -> None:
    """The control: the same server would not start again (I5 and I30)."""
    answer = tornpage(
        "run", "powerloss", "--target", "mariadb-10.11", "--states", "80", "--depth", "1", *JOBS,
        "--set", "doublewrite=off", TORNPAGE_TMP=str(scratch),
    )  # fmt: skip
    assert answer.code == 1, answer.text
    assert "corrupt" in answer.text
