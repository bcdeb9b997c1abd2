"""`tornpage explain`: causes that are known, of stores with a bug that was planted, and of the engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from html import unescape
from pathlib import Path
from unittest.mock import patch

import pytest
from called import called
from e2e_support import ONE_CONFIGURATION, Tornpage

from tornpage.api import Store, explain
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.vocabulary.errors import MachineError
from tornpage.vocabulary.paths import ROOT

NO_FSYNC = ("        os.fsync(log)\n", "")
FEW_ROWS = ("--option", "params.rows=24")
SMALL = ("--scripts", "1", "--fault-free", "0", *FEW_ROWS)
TORN = {
    "powerloss": ("--states", "200", *ONE_CONFIGURATION, *FEW_ROWS, "--option", "doublewrite=off"),
    "smoke": ("--trials", "20", *SMALL, "--option", "doublewrite=off"),
}
"""Runs in which a torn page is not repaired, by their campaign."""
Change = tuple[str, str]


@pytest.fixture
def broken_store(tmp_path: Path) -> Callable[[Change], Path]:
    """The target file of the skeleton's store with one change."""

    def make(change: Change) -> Path:
        skeleton = write_skeleton("mykv", Language.PYTHON, tmp_path)
        store = skeleton.file.parent / "store.py"
        text = store.read_text("utf-8")
        assert change[0] in text
        store.write_text(text.replace(*change), "utf-8")
        return skeleton.file

    return make


def test_a_missing_fsync(broken_store: Callable[[Change], Path], tornpage: Tornpage) -> None:
    """The write that was acknowledged too early, and that with it durable all is right, from the recording
    that was kept."""
    file = broken_store(NO_FSYNC)
    assert tornpage("run", "powerloss", "--target", str(file), "--states", "60").code == 1
    found = tornpage("explain", "1.0")
    assert found.code == 0, found.text
    cause = found.data["cause"]
    assert cause["kind"] == "acknowledged" and cause["acknowledged"] > 0
    assert len(cause["lost"]) == 1 and "store.log" in cause["lost"][0]["what"]
    assert cause["counterfactuals"][0] == {
        "what": "With it durable",
        "right": True,
        "otherwise": False,
    }
    assert "No fsync of store.log came between them" in found.data["sentence"]
    assert found.data["recording"] == "kept" and found.data["probes"] > 1
    shown = tornpage("show", "1.0").data
    kept = {
        name: found.data[name]
        for name in ("sentence", "cause", "recording", "probes", "steps", "contrast")
    }
    assert shown["explanation"] == kept
    (lost,) = cause["lost"]
    (step,) = [one for one in shown["evidence"]["phases"][0]["steps"] if one["seq"] == lost["seq"]]
    assert lost["frames"] == step["stack"] and "store.py" in step["stack"][0]["file"]
    refused = tornpage("explain", "1.0", "--good", ".")
    assert refused.code == 2 and "there is no --good of another target" in refused.text


@pytest.mark.extended
def test_what_is_kept_is_shown_wherever_the_finding_is(
    broken_store: Callable[[Change], Path], tornpage: Tornpage, tmp_path: Path
) -> None:
    """In words by `show`, on the page of the bug, to programs; a store that cannot be written is no reason
    not to explain."""
    file = broken_store(NO_FSYNC)
    assert tornpage("run", "powerloss", "--target", str(file), "--states", "60").code == 1
    assert tornpage("show", "1.0").data["explanation"] is None
    found = explain("1.0", out=tmp_path / "out")
    assert Store(tmp_path / "out").explanations() == {"1.0": found}
    words = called(tmp_path, "show", "1.0").stdout
    assert "No fsync of store.log came between them" in " ".join(words.split())
    assert f"  lost:          {found.cause.lost[0].what}" in words
    assert tornpage("report").code == 1
    page = (tmp_path / "out" / "report-1.html").read_text("utf-8")
    assert "<h3>Why" in page and found.sentence in unescape(page)
    with patch("tornpage.cli.explain.Store", side_effect=MachineError("disk full")):
        again = tornpage("explain", "1.0")
    assert again.code == 0 and again.data["sentence"] == found.sentence
    assert "the explanation of 1.0 is not kept: disk full" in again.text


@pytest.mark.parametrize(
    "campaign", ["powerloss", pytest.param("smoke", marks=pytest.mark.extended)]
)
def test_a_torn_page(campaign: str, tornpage: Tornpage, tmp_path: Path) -> None:
    """Without doublewrite a page write must not be torn, by a power loss or by a kill in the middle of it. It
    is told with who changed the page, and where recovery refuses it."""
    assert tornpage("run", campaign, *TORN[campaign]).code == 1
    found = tornpage("explain", "1.0")
    assert found.code == 0, found.text
    cause = found.data["cause"]
    assert cause["kind"] == "torn" and len(cause["lost"]) == 1 and cause["beside"] == []
    assert all(one["right"] for one in cause["counterfactuals"])
    assert found.data["recording"] == "made anew"
    assert any(frame["file"].endswith(".c") for frame in cause["lost"][0]["frames"])
    change = cause["lost"][0]["change"]
    assert change["what"].startswith(("the records of LSN", "a change without a record"))
    assert not change["frames"][0]["function"].startswith(("probe_", "log_append", "mtr_commit"))
    shown = called(tmp_path, "explain", "1.0").stdout
    assert f"  made by:       {change['what']}" in shown
    parting = cause["parting"]
    assert "refusal=torn-page" in parting["fails"]["what"] and parting["blames"]
    assert any("recv" in frame["file"] for frame in parting["fails"]["frames"])
    assert f"  fails at:      {parting['fails']['what']}" in shown


@pytest.mark.extended
@pytest.mark.parametrize("campaign", TORN)
def test_a_build_does_not_part_from_itself(
    campaign: str, tornpage: Tornpage, tmp_path: Path
) -> None:
    """Neither in the run up to the crash nor in the recovery of its image; it is kept like the rest."""
    assert tornpage("run", campaign, *TORN[campaign]).code == 1
    found = tornpage("explain", "1.0", "--good", str(ROOT))
    assert found.code == 0, found.text
    told = found.data["contrast"]
    assert (told["run"], told["recovery"], told["good"]) == (None, None, str(ROOT))
    assert tornpage("show", "1.0").data["explanation"]["contrast"] == told
    assert "differs in data only" in " ".join(called(tmp_path, "show", "1.0").stdout.split())


@pytest.mark.extended
def test_a_crash_of_a_recovery(tornpage: Tornpage, tmp_path: Path) -> None:
    """The operation of the recovery that must not be torn, with the stack of who made it there."""
    limit = ("--states", "200", "--depth", "2", *SMALL, "--option", "doublewrite=off")
    assert tornpage("run", "powerloss", *limit).code == 1
    with closing(sqlite3.connect(tmp_path / "out" / "tornpage.db")) as store:
        nested = "SELECT trial FROM trials WHERE mask LIKE '%/%.one-%' ORDER BY number"
        trial, *_ = store.execute(nested).fetchone()
    found = tornpage("explain", trial, "--good", str(ROOT))
    assert found.code == 0, found.text
    cause = found.data["cause"]
    assert "after a crash of the recovery of state" in found.data["sentence"]
    assert (found.data["contrast"]["run"], found.data["contrast"]["recovery"]) == (None, None)
    assert cause["kind"] == "torn" and len(cause["lost"]) == 1
    assert any(frame["file"].endswith(".c") for frame in cause["lost"][0]["frames"])


@pytest.mark.extended
def test_causes_that_are_alike_are_one(tornpage: Tornpage) -> None:
    """Pages of several kinds are torn, and the same lines of the engine write them, those of a batch."""
    assert tornpage("run", "powerloss", *TORN["powerloss"]).code == 1
    found = tornpage("explain", "--run", "1", "--of-each", "3")
    pairs = found.data["pairs"]
    assert sum(len(pair["trials"]) for pair in pairs) + len(found.data["unexplained"]) == 3
    (pair,) = pairs
    assert pair["kind"] == "torn" and "buf_batch_write_page" in pair["lost"]


@pytest.mark.extended
def test_the_causes_of_a_run(broken_store: Callable[[Change], Path], tornpage: Tornpage) -> None:
    """The line of the store that must be durable before the acknowledgement."""
    file = broken_store(NO_FSYNC)
    assert tornpage("run", "powerloss", "--target", str(file), "--states", "60").code == 1
    found = tornpage("explain", "--run", "1")
    assert found.code == 0, found.text
    (pair,) = found.data["pairs"]
    assert pair["kind"] == "acknowledged" and pair["trials"] == ["1.0"] and pair["bugs"] == [1]
    assert tornpage("show", "1.0").data["explanation"]["cause"]["kind"] == "acknowledged"
    assert "store.py:" in pair["lost"]


def test_what_is_not_explained(tornpage: Tornpage) -> None:
    """One line each, which says why and what else there is."""
    assert tornpage("run", "smoke", "--trials", "4", *SMALL).code in (0, 3)
    clean = tornpage("explain", "1.0")
    assert clean.code == 2 and "broke no invariant: nothing to explain" in clean.text
    assert tornpage("explain", "1.77").code == 2
    assert tornpage("explain", "seven").code == 2
    assert "ID of a trial, or --run" in tornpage("explain").text
    assert "no broken state" in tornpage("explain", "--run", "1").text
