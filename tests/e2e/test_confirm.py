"""`tornpage confirm`: what a model of files has found, asked of the disk below a real file system."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from e2e_support import ONE_CONFIGURATION, Tornpage, call
from test_json import judged
from test_target_file import changed, make
from test_under import NO_SYNC, ext4

__all__ = ["ext4"]

UNNAMED = ("    os.fsync(os.open(folder, os.O_RDONLY))", "    os.fsync(log)")
FEW = ("--states", "60", "--depth", "1")


def found(file: Path, tornpage: Tornpage) -> str:
    """The trial of what a power loss on posix breaks in this store."""
    told = tornpage("run", "powerloss", "--target", str(file), "--option", "fs=posix", *FEW)
    assert told.code == 1, told.text
    return str(told.data["bugs"][0]["trial"])


@pytest.mark.usefixtures("ext4")
def test_a_missing_fsync_is_confirmed(tmp_path: Path, tornpage: Tornpage) -> None:
    """At the statement of the finding, and `show` tells it from then on, and so does a report."""
    trial = found(changed(make(tmp_path), "broken", NO_SYNC), tornpage)
    told = tornpage("confirm", trial, "--under", "ext4", "--states", "40")
    assert told.code == 1, told.text
    judged(told.data, "confirm")
    (disk,) = told.data["disks"]
    assert disk["here"] and disk["shown"] and disk["state"] and told.data["kept"]
    assert disk["what"].startswith("acknowledged commits are missing")
    assert 0 < disk["flush"] <= disk["flushes"]
    kept = tornpage("show", trial, "--json").data
    judged(kept, "show")
    assert kept["confirmed"]["disks"] == [disk]
    shown = call(tmp_path, "show", trial).stdout
    line = "on ext4: the same finding at the same statement, in "
    assert line in shown
    assert tornpage("upstream", trial, str(tmp_path / "report")).code == 0
    assert f"\n- {line}" in (tmp_path / "report" / "report.md").read_text("utf-8")


@pytest.mark.extended
@pytest.mark.usefixtures("ext4")
def test_what_ext4_promises_is_not(tmp_path: Path, tornpage: Tornpage) -> None:
    """A name that POSIX may lose is in the journal that an fsync of its file commits. Two recordings are
    asked, and it is kept that neither shows it."""
    trial = found(changed(make(tmp_path), "unnamed", UNNAMED), tornpage)
    words = ["--under", "ext4", "--states", "40", "--tries", "2"]
    told = tornpage("confirm", trial, *words)
    assert told.code == 0, told.text
    (disk,) = told.data["disks"]
    assert (disk["shown"], disk["other"], disk["missing"]) == (0, [], "")
    assert disk["states"] > 40
    assert f"on ext4: not in {disk['states']} states" in call(tmp_path, "show", trial).stdout


@pytest.mark.extended
def test_what_cannot_be_asked(tornpage: Tornpage) -> None:
    """One line each: a target without a disk, a trial that broke nothing, a file system that there is not."""
    words = [
        "--scripts",
        "1",
        "--fault-free",
        "0",
        "--states",
        "200",
        "--option",
        "doublewrite=off",
    ]
    told = tornpage("run", "powerloss", *ONE_CONFIGURATION, *words)
    assert told.code == 1, told.text
    trial = str(told.data["bugs"][0]["trial"])
    for asked, said in (
        ((trial,), "target engine cannot run on a real disk: only a target file can"),
        (("1.s0",), "trial 1.0 is no crash of a run: nothing to confirm"),
        ((trial, "--under", "ext5"), "ext5"),
    ):
        answer = tornpage("confirm", *asked)
        assert answer.code == 2
        assert said in answer.text


@pytest.mark.extended
def test_a_file_system_that_is_not_here(
    tmp_path: Path, tornpage: Tornpage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told why there is no answer, and exit code 2 says so: not that nothing was seen."""
    trial = found(changed(make(tmp_path), "broken", NO_SYNC), tornpage)
    monkeypatch.setattr(
        "tornpage.targets.command.target.why_no_disk", lambda *_: "there is no mkfs"
    )
    told = tornpage("confirm", trial, "--under", "ext4")
    assert told.code == 2, told.text
    assert told.data["disks"][0]["missing"] == "under=ext4: there is no mkfs"
    assert not told.data["kept"]
    shutil.rmtree(tmp_path / "out")
