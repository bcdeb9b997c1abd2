"""MariaDB 10.11 as Debian has it: nothing is found where nothing is wrong, and the control is.

Needs mariadbd, which `make setup-all` installs, and scratch that is not /dev/shm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from e2e_support import Answer, Tornpage

from tornpage.campaigns.attempt import check_target
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.paths import tmpfs_folder

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(
        shutil.which("mariadbd", path="/usr/sbin:/usr/bin") is None,
        reason="mariadbd is not installed",
    ),
]
JOBS = ("--jobs", "2")
REPEATED = ("--option", "fsync=repeated")
"""Without what docs/FINDS.md tells of checkpoints, which is there or not by chance."""
FOLDERS = ("--option", "fsync=folders")
"""Nor of names: which statement was the last one acknowledged is a matter of the states."""

TORN = {("torn", "write", "", 0), ("torn", "write", ".ibd", 0)}
UNLINKED = {("lost", "unlink", ".frm", 0), ("lost", "unlink", ".ibd", 0)}
TOLD = {
    "# InnoDB: Corrupted page # of datafile # could not be found in the doublewrite buffer": TORN,
    "(#, 'Table # is corrupted. Please drop the table and recreate.')": TORN,
    '(#, "Incorrect information in file: #)': UNLINKED,
    '(#, "Table # doesn\'t exist in engine")': UNLINKED,
}
"""What docs/FINDS.md tells of this server, by title, and what a crash must have done for it to be that.
A few states of some hundred show one: which ones is a matter of what the server happens to write."""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Not on /dev/shm, and with a way to it for the user that a server of root's becomes."""
    with TemporaryDirectory(prefix="tornpage-mariadb-", dir=os.environ.get("TORNPAGE_TMP")) as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


BUNDLED = Path(__file__).parents[2] / "harness" / "tornpage" / "targets" / "bundled"
BOUND = 10 << 20
"""innodb_max_undo_log_size, in bytes."""


def damage(shown: Answer) -> set[tuple[str, str, str, int]]:
    """What the power losses of a state have done: fate, operation, the end of the name, offset."""
    phases = shown.data["evidence"]["phases"]
    return {
        (step["fate"], step["op"], Path(step["path"]).suffix, step["offset"])
        for phase in phases
        for step in phase["steps"]
    }


def assert_told(answer: Answer, tornpage: Tornpage) -> None:
    """Nothing is found but what docs/FINDS.md tells."""
    assert answer.code == (1 if answer.data["bugs"] else 0), answer.text
    for bug in answer.data["bugs"]:
        assert bug["title"] in TOLD, answer.text
        assert TOLD[bug["title"]] & damage(tornpage("show", bug["trial"])), answer.text


def mariadb_command(*words: str | Path) -> None:
    """One of the commands of the target file, without a recorder."""
    command = [sys.executable, "-m", "tornpage.targets.bundled.mariadb", *map(str, words)]
    env = {**os.environ, "PYTHONPATH": str(BUNDLED.parents[3] / "marking")}
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, timeout=120)


def servers(scratch: Path) -> list[int]:
    """Of MariaDB, with data in this folder: others of the machine are nobody's business here."""
    return [
        process.pid
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] == "mariadbd"
        and str(scratch) in " ".join(process.info["cmdline"] or [])
    ]


@pytest.mark.parametrize("name", ["mariadb-10.11", "postgresql"])
def test_a_server_works_below_a_folder_that_is_closed(
    name: str, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the mask of new files is; also for root, whom a server may refuse to run as."""
    try:
        target = make_target(name, build)
    except TornpageError as error:
        pytest.skip(str(error))
    with TemporaryDirectory(prefix="tornpage-closed-", dir=tmpfs_folder(False)) as closed:
        monkeypatch.setenv("TORNPAGE_TMP", closed)
        mask = os.umask(0o077)
        try:
            seen = check_target(target)
        finally:
            os.umask(mask)
    assert seen.commits > 0 and not seen.audited.missing


def test_kills_find_nothing(scratch: Path, tornpage: Tornpage) -> None:
    """Around ADD INDEX, FORCE and DML; no server and no file is left behind."""
    answer = tornpage(
        "run", "smoke", "--target", "mariadb-10.11", "--trials", "60", *JOBS,
        *REPEATED, TORNPAGE_TMP=str(scratch),
    )  # fmt: skip
    assert answer.code == 0, answer.text
    assert answer.data["exercised"] >= 40
    assert {"redo", "data_page", "system_page"} <= {*answer.data["by_site"]}
    assert servers(scratch) == []
    assert not list(scratch.glob("tornpage-*"))


def test_power_losses_find_nothing_else(scratch: Path, tornpage: Tornpage) -> None:
    """Depth 2 too: the power fails again while the server recovers."""
    answer = tornpage(
        "run", "powerloss", "--target", "mariadb-10.11", "--states", "150", *JOBS,
        *FOLDERS, TORNPAGE_TMP=str(scratch),
    )  # fmt: skip
    assert_told(answer, tornpage)
    assert answer.data["counters"]["second_crash"] > 0


def test_a_rename_without_its_folder_is_found(scratch: Path, tornpage: Tornpage) -> None:
    """What FOLDERS hides: an acknowledged ALTER or RENAME TABLE is not there, or its table cannot be read."""
    answer = tornpage(
        "run", "powerloss", "--target", "mariadb-10.11", "--states", "60", "--scripts", "1", "--depth", "1",
        "--models", "none-persisted", *JOBS, *REPEATED, TORNPAGE_TMP=str(scratch),
    )  # fmt: skip
    assert answer.code == 1, answer.text
    assert {n for bug in answer.data["bugs"] for n in bug["invariants"]} <= {1, 2, 3, 30}


def test_undo_tablespaces_are_truncated(scratch: Path, tornpage: Tornpage) -> None:
    """`undo=truncated`: both are beyond the bound at first, and cut to it by the work; nothing is lost
    but what docs/FINDS.md tells of the first page."""
    data = scratch / "data"
    data.mkdir()
    lines = scratch / "lines"
    lines.write_text("UPDATE t1 SET a = a + 1\nDO SLEEP(0.2)\n" * 10, "ascii")
    undo = ("--undo", "truncated")
    mariadb_command("prepare", data, BUNDLED / "mariadb-tables.sql", *undo)
    files = [data / "undo001", data / "undo002"]
    assert all(file.stat().st_size > BOUND for file in files)
    mariadb_command("run", data, lines, *undo)
    assert all(file.stat().st_size <= BOUND for file in files)
    answer = tornpage(
        "run", "powerloss", "--target", "mariadb-10.11", "--states", "50", "--depth", "1", *JOBS,
        *FOLDERS, "--option", "undo=truncated", TORNPAGE_TMP=str(scratch),
    )  # fmt: skip
    assert_told(answer, tornpage)
    assert answer.data["exercised"] == 50


def test_without_doublewrite_torn_pages_are_found(scratch: Path, tornpage: Tornpage) -> None:
    """The control: the same server does not start again; nor does it where somebody starts it by hand on what
    a report brings along, which it does if nothing is lost."""
    answer = tornpage(
        "run", "powerloss", "--target", "mariadb-10.11", "--states", "80", "--depth", "1", *JOBS,
        *FOLDERS, "--option", "doublewrite=off", TORNPAGE_TMP=str(scratch),
    )  # fmt: skip
    assert answer.code == 1, answer.text
    assert any(30 in bug["invariants"] for bug in answer.data["bugs"]), answer.text
    made = tornpage("upstream", "1.0", str(scratch / "report"), TORNPAGE_TMP=str(scratch))
    assert made.code == 0 and made.data["explained"], made.text
    crashed = made.data["crashed"]  # which page is torn first is chance; its refusal is a finding
    titles = [re.escape(bug["title"]).replace(r"\#", ".+") for bug in answer.data["bugs"]]
    assert any(re.search(title, crashed) for title in titles), (titles, crashed)
    assert "the server ended with 1" in crashed
    whole = made.data["whole"].splitlines()
    assert whole[0].startswith("t1: ") and whole[-1] == "the server ended with 0"
