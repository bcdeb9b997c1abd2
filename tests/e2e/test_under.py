"""Power loss of a disk that a real file system lies on: the same oracle judges, and no model of files is in
it."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_support import Tornpage, call
from test_target_file import changed, make

from tornpage.faults import under
from tornpage.faults.preload import preload_path
from tornpage.faults.under import DISK_FILE, DISK_SECTOR, why_no_disk
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import MissingError

NO_SYNC = ("        os.fsync(log)\n", "")


@pytest.fixture(
    params=[
        "ext4",
        pytest.param("xfs", marks=pytest.mark.extended),
        pytest.param("btrfs", marks=pytest.mark.extended),
    ]
)
def disk(request: pytest.FixtureRequest, build: Path) -> str:
    """Each of the file systems; skipped, with the reason, where there can be none."""
    name = str(request.param)
    if why := why_no_disk(preload_path(build), name):
        pytest.skip(why)
    return name


@pytest.fixture
def ext4(build: Path) -> None:
    """The same for one."""
    if why := why_no_disk(preload_path(build), "ext4"):
        pytest.skip(why)


def test_a_correct_store_is_clean(disk: str, tmp_path: Path) -> None:
    """Crashes of its recovery too, which includes that of the file system. The last line says what was under
    it."""
    file = make(tmp_path)
    limits = ["--states", "60", "--depth", "2"]
    told = call(tmp_path, "run", "powerloss", "--target", str(file), "--under", disk, *limits)
    assert told.returncode == 0, told.stdout + told.stderr
    assert f", under {disk}, " in told.stdout.splitlines()[-1]


def test_a_missing_fsync_is_found(disk: str, tmp_path: Path, tornpage: Tornpage) -> None:
    """As a lost commit, which its number shows again; what was kept of it is the disk."""
    broken = changed(make(tmp_path), "broken", NO_SYNC)
    limits = ["--states", "60", "--depth", "1"]
    told = tornpage("run", "powerloss", "--target", str(broken), "--under", disk, *limits)
    assert told.code == 1, told.text
    assert [bug["invariants"] for bug in told.data["bugs"]] == [[1]]
    trial = told.data["bugs"][0]["trial"]
    replay = tornpage("replay", trial, "--ask", "kept")
    assert replay.code == 1, replay.text
    report = tornpage("upstream", trial, str(tmp_path / "report"))
    assert report.code == 2 and "breaks a disk of" in report.text
    kept = [path for path in (tmp_path / "out").rglob(DISK_FILE) if path.parent.name == "data"]
    assert kept and all(path.stat().st_size % DISK_SECTOR == 0 for path in kept)


@pytest.mark.extended
@pytest.mark.usefixtures("ext4")
def test_one_recovery_process_for_each_disk(tmp_path: Path, tornpage: Tornpage) -> None:
    """Of a target that is not long-lived."""
    file = changed(make(tmp_path), "single")
    file.write_text(file.read_text("utf-8").replace("long_lived = true", ""), "utf-8")
    limits = ["--states", "40", "--depth", "1"]
    told = tornpage("run", "powerloss", "--target", str(file), "--under", "ext4", *limits)
    assert told.code == 0, told.text


@pytest.mark.extended
@pytest.mark.usefixtures("ext4")
def test_try_kills_without_it(tmp_path: Path, tornpage: Tornpage) -> None:
    """Its power losses are of the disk, its kills as ever."""
    words = ["--option", "under=ext4", "--states", "30", "--trials", "5"]
    told = tornpage("try", str(make(tmp_path)), *words)
    assert told.code == 0, told.text
    assert [one["under"] for one in told.data["looked_at"]] == ["ext4", ""]


def test_what_does_not_go_together(tmp_path: Path) -> None:
    """One line each, before anything runs."""
    file = str(make(tmp_path))
    for words, said in (
        (["powerloss", "--under", "ext4", "--fs", "xfs"], "leave out --fs"),
        (["powerloss", "--under", "zfs"], "zfs"),
        (
            ["powerloss", "--under", "ext4", "--option", "recorder=preload"],
            "recorder of a disk is fs",
        ),
        (["smoke", "--under", "ext4"], "no --under"),
    ):
        done = call(tmp_path, "run", words[0], "--target", file, *words[1:])
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_without_it_one_line_says_what_to_do(
    tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where mkfs is missing, and where nothing can be mounted."""
    target = make_target(str(make(tmp_path)), build)
    monkeypatch.setattr(under, "why_no_fs", lambda _program: "")
    monkeypatch.setattr(under, "PATH", "")
    why_no_disk.cache_clear()
    with pytest.raises(MissingError, match=r"under=xfs: there is no mkfs.xfs: apt-get install xfs"):
        target.check_needs({"under": "xfs"})
    mkfs = tmp_path / "mkfs.ext4"
    mkfs.write_text("#!/bin/sh\necho no >&2; exit 1\n", "utf-8")
    mkfs.chmod(0o755)
    monkeypatch.setattr(under, "PATH", str(tmp_path))
    with pytest.raises(MissingError, match=r"under=ext4: mkfs.ext4: no: it takes root"):
        target.check_needs({"under": "ext4"})
    why_no_disk.cache_clear()
