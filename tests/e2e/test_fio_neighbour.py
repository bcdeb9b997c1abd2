"""fio beside campaigns changes no verdict; fio replays what was recorded, on any folder."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from e2e_support import DEADLINE_S, PYTHON, call

from tornpage.faults.scratch import scratch_folder
from tornpage.store.store import Store
from tornpage.vocabulary.paths import data_folder

pytestmark = pytest.mark.extended

ROWS = 3000


@pytest.fixture
def scratch() -> Iterator[Path]:
    """On tmpfs, and nobody else's."""
    with scratch_folder() as folder:
        place = folder / "tmp"
        place.mkdir()
        yield place


@pytest.mark.parametrize(
    "line",
    [
        ["smoke", "--trials", "24", "--fault-free", "2", "--option", "doublewrite=off"],
        ["powerloss", "--states", "200", "--depth", "1", "--fault-free", "0"],
    ],
)
def test_contention_changes_no_verdict(line: list[str], scratch: Path, tmp_path: Path) -> None:
    """The same rows, bugs and golden runs; fio and its files are gone afterwards."""
    stores = []
    for out, options in (("plain", []), ("beside", ["--contention"])):
        sizes = ("--scripts", "1", "--jobs", "1", "--out", out)
        done = call(tmp_path, "run", *line, *sizes, *options, TORNPAGE_TMP=str(scratch))
        assert done.returncode in (0, 1, 3), done.stderr
        with Store(tmp_path / out / "tornpage.db", write=False) as store:
            rows = list(store.trials(1))
            verdicts = [row.result and (row.result.outcome, row.result.violations) for row in rows]
            planned = [(row.number, row.spec, row.site, row.mask, row.bugs) for row in rows]
            explored = {
                config: {key: said[key] for key in ("states", "distinct", "broken") if key in said}
                for config, said in store.explorations(1).items()
            }
            stores.append((planned, verdicts, store.golden_runs(1), explored, done.returncode))
    assert stores[0] == stores[1]
    assert not [name for name in (tmp_path / "beside").iterdir() if "neighbour" in name.name]
    assert list(scratch.iterdir()) == []
    jobs = str(data_folder("workloads") / "fio" / "neighbour.fio")
    assert not [one for one in psutil.process_iter() if jobs in _words(one)]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_contention_without_fio_is_refused(tmp_path: Path) -> None:
    """Exit code 2, before anything runs."""
    done = subprocess.run(
        [*PYTHON, "run", "smoke", "--contention"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, "fio is not installed" in done.stderr) == (2, True), done.stderr


def test_the_skip_of_doublewrite_is_priced(scratch: Path, tmp_path: Path) -> None:
    """Both recordings write the same log and the same pages home. The skip saves the area, and the fsync that
    ends a batch with copies."""
    line = ["bench", "doublewrite", "--dir", ".", "--rows", str(ROWS), "--rounds", "2", "--json"]
    done = call(tmp_path, *line, "--iologs", "logs", TORNPAGE_TMP=str(scratch))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    every, skipping = found["replays"]
    assert skipping["area"] == 0 < every["area"] == every["bytes"] - skipping["bytes"]
    assert every["area"] >= ROWS * 765, "every page of rows went there"
    assert all(seconds > 0 for one in (every, skipping) for seconds in one["seconds"])
    assert found["bytes_saved"] == pytest.approx(every["area"] / every["bytes"])
    logs = [_lines(tmp_path / "logs" / f"{name}.iolog") for name in ("every", "skipping")]
    saved = {(name, verb) for name, verb, *_ in logs[0] - logs[1]}
    assert saved == {("5-ib_dblwr", "write"), ("5-ib_dblwr", "sync"), ("6-t.ibd", "sync")}
    assert not logs[1] - logs[0]
    assert [path.name for path in tmp_path.iterdir()] == ["logs"], "nothing is left on the disk"


def _lines(path: Path) -> Counter[tuple[str, ...]]:
    """Writes and syncs of a log for fio."""
    lines = [tuple(line.split()) for line in path.read_text("ascii").splitlines()[1:]]
    return Counter(line for line in lines if line[1] in ("write", "sync", "datasync"))
