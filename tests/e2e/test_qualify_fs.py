"""`tornpage doctor --qualify-fs`: profiles are held against disks of real file systems that lost power."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.faults.preload import preload_path
from tornpage.faults.under import DISKS, why_no_disk
from tornpage.lab import filesystem
from tornpage.lab.filesystem import REAL, Held, ask, qualify_file_system, qualify_file_systems
from tornpage.lab.fsprobes import PROBES
from tornpage.lab.realdisk import Step, crashed_files, disk_crashes, run_on_disk
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.paths import Paths, find_paths

OLD, NEW = b"o" * 4096, b"n" * 4096


@pytest.fixture
def paths() -> Paths:
    """Of this checkout."""
    return find_paths()


@pytest.fixture
def disks(build: Path) -> None:
    """Skipped, with the reason, where there can be none."""
    for kind in DISKS:
        if why := why_no_disk(preload_path(build), kind):
            pytest.skip(why)


@pytest.mark.extended
@pytest.mark.usefixtures("disks")
def test_nothing_computed_is_contradicted(paths: Paths) -> None:
    """By any of them, and every question has an answer; what the disks had lost is not nothing."""
    found = qualify_file_systems(paths)
    assert not [finding for finding in found if not finding.ok]
    asked = [f"{name}: {probe.question}" for name in REAL for probe in PROBES]
    assert sorted(asked) == sorted(one.name for one in found if "; seen " in one.seen)
    held = [f"file system {name}" for name in REAL]
    assert sorted(held) == sorted(one.name for one in found if "disks that lost" in one.seen)


@pytest.mark.parametrize(
    ("profile", "kind", "question", "seen"),
    [
        ("xfs", "ext4,data=ordered", "an append of 128 bytes", "zeros"),
        (
            "ext4-ordered",
            "btrfs",
            "a rename, then another file appended to and synced",
            "lost",
        ),
    ],
)
@pytest.mark.usefixtures("disks")
def test_a_profile_that_claims_more_is_told(
    paths: Paths, tmp_path: Path, profile: str, kind: str, question: str, seen: str
) -> None:
    """Held against a file system that gives less, by the question that parts them."""
    (probe,) = (one for one in PROBES if one.question == question)
    told = ask(Held(profile, kind, paths.build, tmp_path / "held"), probe)
    assert not told.ok
    assert seen in told.seen.rpartition("seen ")[2].split(", ")


@pytest.mark.usefixtures("disks")
def test_crashes_of_a_disk(paths: Paths, tmp_path: Path) -> None:
    """A write that nobody flushed is there or lost; one that has been synced is there. Steps are counted by
    what the disk had been asked for."""
    steps = [Step("direct", "a", data=NEW), Step("write", "b", data=NEW), Step("fsync", "b")]
    files = {"a": OLD, "b": OLD}
    run = run_on_disk(paths.build, "ext4", files, steps, tmp_path / "run", {})
    crashes = disk_crashes(run)
    assert all(one.ended <= one.issued <= one.ended + 1 for one in crashes)
    first = [crashed_files(run, one)["a"] for one in crashes if one.ended in (1, 2)]
    assert {OLD, NEW} == set(first)
    synced = [one for one in crashes if one.ended == len(steps)]
    assert synced and crashed_files(run, synced[0]) == {"a": NEW, "b": NEW}


def test_without_a_disk_one_line_says_why(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all of them, where none can be recorded; of one, where that is missing."""
    monkeypatch.setattr(filesystem, "why_no_fs", lambda _program: "no /dev/fuse")
    (told,) = qualify_file_systems(paths)
    assert (told.ok, told.seen) == (True, "left out: no /dev/fuse")
    monkeypatch.setattr(filesystem, "why_no_fs", lambda _program: "")
    monkeypatch.setattr(filesystem, "why_no_disk", lambda _preload, kind: f"no {kind}")
    told_each = [(one.name, one.seen) for one in qualify_file_systems(paths)]
    assert told_each == [(f"file system {name}", f"left out: no {REAL[name]}") for name in REAL]


def test_a_disk_that_does_not_mount_is_no_success(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its profile is told, with the disk."""

    def refuse(*_: object) -> None:
        raise ChildError(
            "the disk of state 7.subset.0: exit code 126: ext4: Structure needs cleaning"
        )

    monkeypatch.setattr(filesystem, "why_no_disk", lambda _preload, _kind: "")
    monkeypatch.setattr(filesystem, "run_on_disk", refuse)
    (told,) = qualify_file_system(Held("xfs", "xfs", paths.build, tmp_path / "held"))
    assert (told.name, told.ok) == ("file system xfs", False)
    assert "7.subset.0" in told.seen
