"""The Python API: what docs/API.md says runs as it stands, and findings are objects that replay."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from html import escape
from pathlib import Path
from typing import Any

import pytest
from private_postgresql import private_server

from tornpage import api
from tornpage.store.place import place_of
from tornpage.vocabulary.paths import BUILD_VARIABLE, ROOT

PAGE = (ROOT / "docs" / "API.md").read_text("utf-8")
SCRIPT = """
create table t a:bigint b:char(40) primary a
insert_seq - t 1 200
flush table t
insert_seq - t 201 300
"""


@pytest.fixture(autouse=True)
def programs(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those under test."""
    monkeypatch.setenv(BUILD_VARIABLE, str(build))


def test_the_page_names_every_name() -> None:
    """Fourteen names, each a row of the table, and no other."""
    rows = re.findall(r"^\| `(\w+)", PAGE, re.M)
    assert len(api.__all__) == 14
    assert sorted(rows) == sorted(api.__all__)


@pytest.mark.extended
def test_the_blocks_of_the_page_run(tmp_path: Path) -> None:
    """One after the other, as files in one folder; the first prints what the control found."""
    told = []
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)):
        (tmp_path / f"block{number}.py").write_text(block, "utf-8")
        done = subprocess.run(
            [sys.executable, f"block{number}.py"],
            cwd=tmp_path,
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, block + done.stderr
        told.append(done.stdout)
    assert len(told) == 3
    assert told[0].startswith("1 ") and told[0].endswith("\n40\n")
    assert "tornpage replay" in told[1]


@pytest.mark.extended
def test_a_finding_replays_and_shrinks(tmp_path: Path) -> None:
    """Without doublewrite a power loss tears a page; it comes again, and a smaller script has it too."""
    found = api.powerloss(
        "engine", SCRIPT, options={"doublewrite": "off"}, states=300, out=tmp_path
    )
    assert any(finding.invariant == 5 for finding in found), found
    again = api.replay(found[0].trial, out=tmp_path)
    assert again.answer == "reproduced" and again.same
    small = api.shrink(found[0].trial, budget_s=3, out=tmp_path)
    assert small.after.statements <= small.before.statements
    assert api.replay(small.shrunk, out=tmp_path).answer == "reproduced"


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["file", "server"])
def test_a_store_elsewhere(kind: str, tmp_path: Path) -> None:
    """Run, replay, shrink and frames on a store that is not in the folder of reports: in a file, and on a
    server, which the first run makes."""
    with private_server() if kind == "server" else nullcontext() as server:
        place = server.database("api") if server else str(tmp_path / "lab.db")
        given: dict[str, Any] = {"out": tmp_path / "out", "store": place}
        with pytest.raises(api.TornpageError):
            api.Store(place)
        found = api.powerloss("engine", SCRIPT, options={"doublewrite": "off"}, **given)
        assert found and found[0].replay.endswith(place_of(place).options)
        assert api.replay(found[0].trial, **given).answer == "reproduced"
        small = api.shrink(found[0].trial, budget_s=2, **given)
        assert api.replay(small.shrunk, **given).answer == "reproduced"
        store = api.Store(place)
        assert [facts.campaign for facts in store.runs()] == ["script", "shrink"]
        assert len(store.frame("findings", run=1)) == len(found)
    assert (tmp_path / "out" / "report-1.html").is_file()
    assert not (tmp_path / "out" / "tornpage.db").exists()


def test_a_clean_script_finds_nothing_and_no_script_is_no_pass(tmp_path: Path) -> None:
    """The engine as it is: an empty list. What cannot be judged raises."""
    assert api.powerloss("engine", SCRIPT, states=200, out=tmp_path) == []
    with pytest.raises(api.TornpageError):
        api.powerloss("engine", "no statement\n", out=tmp_path)
    with pytest.raises(api.TornpageError):
        api.Store(tmp_path / "nowhere")
    with pytest.raises(api.ConfigError):
        api.powerloss("no such target", SCRIPT, out=tmp_path)
    for kind in (api.ConfigError, api.MachineError, api.TargetError):
        assert issubclass(kind, api.TornpageError)


@pytest.mark.extended
def test_a_campaign_file_names_its_target(tmp_path: Path) -> None:
    """`target` of the file is what is tortured, for the command as for run(); a target that is given comes
    first."""
    text = (ROOT / "workloads" / "smoke-sqlite.toml").read_text("utf-8")
    file = tmp_path / "mine.toml"
    file.write_text('target = "sqlite"\n' + text, "utf-8")
    summary = api.run(file, trials=2, scripts=1, fault_free=0, out=tmp_path / "out", jobs=1)
    assert summary.run.target == "sqlite" and summary.finished == 2
    with pytest.raises(api.TornpageError):
        api.run(file, "engine", trials=2, scripts=1, fault_free=0, out=tmp_path / "out", jobs=1)


@pytest.mark.extended
def test_frames_hold_what_the_store_holds(tmp_path: Path) -> None:
    """One row per trial, run, bug and finding; counters are columns."""
    summary = api.run(
        "smoke",
        options={"doublewrite": "off"},
        trials=30,
        scripts=1,
        fault_free=0,
        out=tmp_path,
        jobs=1,
    )
    store = api.Store(tmp_path)
    trials = store.frame()
    assert len(trials) == 30 and trials["counters.batches"].sum() == summary.counters["batches"]
    assert list(trials["outcome"]).count("violation") == summary.broken > 0
    assert len(store.frame("findings")) == len(summary.findings)
    assert len(store.frame("bugs")) == len(summary.bugs) == len(store.bugs())
    assert list(store.frame("runs")["campaign"]) == ["smoke"]
    for shown, said in (
        (store.runs(), "smoke"),
        (store.runs()[0], "violations"),
        (store.bugs(), summary.bugs[0].bug.title),
        (summary.findings[0], summary.findings[0].replay),
        (summary, summary.bugs[0].headline),
    ):
        html = shown._repr_html_()  # type: ignore[attr-defined]
        assert escape(said) in html and "<table>" in html
    with pytest.raises(api.TornpageError, match="no table"):
        store.frame("nothing")
