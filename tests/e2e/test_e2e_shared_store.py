"""Campaigns with their store on a PostgreSQL server: the same verdicts, also over a restart of it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_support import DEADLINE_S, PYTHON, call, verdicts
from private_postgresql import PrivateServer, private_server

from tornpage.store.place import place_of
from tornpage.store.store import Store

pytestmark = pytest.mark.extended

SMALL = ["--scripts", "1", "--fault-free", "0", "--jobs", "1", "--option", "doublewrite=off"]


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    """Up before each test."""
    with private_server() as server:
        yield server


def test_all_commands_work_on_it(server: PrivateServer, tmp_path: Path) -> None:
    """A run, its report, bugs, diff, show and replay; the same verdicts as in a file and in a copy."""
    url = server.database("commands")
    run = ["run", "smoke", "--trials", "24", *SMALL]
    done = call(tmp_path, *run, "--json", "--store", url)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert call(tmp_path, *run, "--out", "file").returncode == 1
    assert call(tmp_path, *run, "--store", url).returncode == 1
    for line in (["runs"], ["bugs"], ["report"], ["show", told["bugs"][0]["trial"]]):
        done = call(tmp_path, *line, "--store", url)
        assert done.returncode == (1 if line == ["report"] else 0), done.stderr
    same = call(tmp_path, "diff", "1", "2", "--store", url)
    assert (same.returncode, "still there: bug 1" in same.stdout) == (0, True), same.stderr
    replayed = call(tmp_path, "replay", told["bugs"][0]["trial"], "--store", url)
    assert (replayed.returncode, "the same verdict" in replayed.stdout) == (1, True)
    assert not (tmp_path / "out" / "tornpage.db").exists()
    assert call(tmp_path, "store", "copy", url, "copy.db").returncode == 0
    outcomes = []
    for place in (url, str(tmp_path / "file"), str(tmp_path / "copy.db")):
        with Store(place_of(place), write=False) as store:
            rows = [(row.spec, row.site, row.mask, row.bugs) for row in store.trials(1)]
            found = [row.result.violations for row in store.trials(1) if row.result]
            outcomes.append((rows, found, store.golden_runs(1), store.bugs()[0].fingerprint))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_restart_in_the_middle_of_a_run(server: PrivateServer, tmp_path: Path) -> None:
    """It waits, says so, and comes to the same end as a run without one."""
    url = server.database("restart")
    line = [*PYTHON, "run", "smoke", "--trials", "60", *SMALL, "--store", url]
    with subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as owner:
        deadline = time.monotonic() + DEADLINE_S
        while verdicts(url) < 5:
            assert owner.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        server.stop("immediate")
        assert owner.poll() is None
        server.start()
        _, errors = owner.communicate(timeout=DEADLINE_S)
    assert owner.returncode == 1, errors
    assert "is away" in errors and "nothing is lost" in errors
    assert call(tmp_path, "run", "smoke", "--trials", "60", *SMALL, "--store", url).returncode == 1
    with Store(place_of(url), write=False) as store:
        restarted, plain = (list(store.trials(run)) for run in (1, 2))
        assert [row.bugs for row in restarted] == [row.bugs for row in plain]
        assert store.run(1).state == "finished"
        assert len(restarted) == 60
