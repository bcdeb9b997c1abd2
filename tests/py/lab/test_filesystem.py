"""What the qualification of a file system says of its crashed disks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tornpage.lab import filesystem
from tornpage.lab.filesystem import Held, ask
from tornpage.lab.fsprobes import Probe
from tornpage.lab.realdisk import DiskCrash

HELD = Held("ext4-ordered", "ext4", Path("build"), Path("scratch"))
ROW = {"fsync": "earlier names"}
LEAST = {"a": b""}
MOST = {"a": b"1" * 8}


@pytest.fixture(autouse=True)
def _row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "explorer_path", lambda _build: None)
    monkeypatch.setattr(filesystem, "file_systems", lambda _explorer: {HELD.name: ROW})


@pytest.mark.parametrize(
    ("found", "illegal", "fine"),
    [([MOST], "", False), ([MOST, LEAST], "", True), ([], "", False), ([LEAST], "torn", False)],
    ids=["nothing lost", "something lost", "no disk", "no computed state"],
)
def test_disks_that_lost_nothing_say_nothing(
    found: list[dict[str, bytes]], illegal: str, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is computed would have room for them."""
    crash = DiskCrash("1.none-persisted.0", 1, 1)
    crashes = [(crash, files, LEAST, MOST) for files in found]
    monkeypatch.setattr(filesystem, "_crashes_of", lambda *_: crashes)
    monkeypatch.setattr(filesystem, "why_illegal", lambda *_args, **_named: illegal)
    told = filesystem._crash_work(HELD, "file system")
    assert told.ok is fine
    assert (illegal or f"{len(crashes) * filesystem.WORKS} disks") in told.seen


@pytest.mark.parametrize(
    ("answers", "fine"),
    [(["kept"], True), (["kept", "lost"], False), (["lost"], False), ([], False)],
)
def test_a_question_is_answered_by_disks_behind_the_work(
    answers: list[str], fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer is a promised one, and there is one; disks of before the end are not asked."""
    behind = [DiskCrash(answer, 1, 1) for answer in answers]
    monkeypatch.setattr(filesystem, "run_on_disk", lambda *_: None)
    monkeypatch.setattr(filesystem, "disk_crashes", lambda _run: [DiskCrash("lost", 0, 1), *behind])
    monkeypatch.setattr(filesystem, "crashed_files", lambda _run, crash: crash)
    probe = Probe(
        "is it kept?",
        {},
        (cast(Any, "a step"),),
        lambda crash: cast(Any, crash).state,
        lambda _row: frozenset({"kept"}),
    )
    assert ask(HELD, probe).ok is fine
