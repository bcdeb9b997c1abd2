"""The store keeps every finished verdict, whatever happens to the harness."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec
from sqlalchemy import event

from tornpage.store import trials
from tornpage.store.origin import Origin
from tornpage.store.rows import GoldenRunRow
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError, MachineError, TornpageError
from tornpage.vocabulary.model import Outcome, Violation


def begin(store: Store, trials: int = 3) -> int:
    """A run to add trials to."""
    return store.begin_run("smoke", "engine", 1, trials, {"name": "smoke"}).id


def test_verdict_survives_an_owner_that_never_closes(tmp_path: Path) -> None:
    """A finished trial is there for the next owner although the first one was never closed."""
    first = Store(tmp_path / "s.db")
    run = begin(first)
    first.start_trial(run, make_spec(0), "page0", "none")
    first.finish_trial(run, make_result(0, broken=5))
    first.start_trial(run, make_spec(1), "page0", "none")
    with Store(tmp_path / "s.db") as second:
        rows = list(second.trials(run))
        whole = second.trial(run, 0)
    assert [row.result is None for row in rows] == [False, True]
    assert whole.result == make_result(0, broken=5)
    assert whole.spec == rows[0].spec == make_spec(0)


def test_only_verdicts_count_as_finished(tmp_path: Path) -> None:
    """A trial that was started, or at which the harness failed, is run again on resumption."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store)
        for number in range(3):
            store.start_trial(run, make_spec(number), "page0", "none")
        store.finish_trial(run, make_result(0))
        store.finish_trial(run, make_result(1, outcome=Outcome.HARNESS_ERROR))
        assert store.finished_numbers(run) == {0}


def test_a_trial_is_two_transactions(tmp_path: Path) -> None:
    """Its row before it starts; its verdict, with what it took."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store)
        store.add_seconds(run, 1)
        commits = []
        event.listen(store._engine, "commit", lambda _db: commits.append(1))
        for number in range(3):
            store.start_trial(run, make_spec(number), "page0", "none")
            store.finish_trial(run, make_result(number), 0.5)
        assert len(commits) == 6
        assert store.run(run).seconds == 2.5


def finish(store: Store, run: int, number: int, outcome: Outcome = Outcome.CLEAN) -> None:
    """A trial with its verdict."""
    store.start_trial(run, make_spec(number), "page0", "none")
    store.finish_trial(run, make_result(number, outcome))


def test_interrupted_run_is_found_until_it_is_finished(tmp_path: Path) -> None:
    """--resume finds the newest interrupted run of its campaign, and a finished one until it has its
    verdict."""
    with Store(tmp_path / "s.db") as store:
        old, new = begin(store, 1), begin(store, 1)
    with Store(tmp_path / "s.db") as store:
        assert store.resume_run("smoke", "engine").id == new
        finish(store, new, 0)
        assert store.finish_run(new).state == "finished"
        assert store.resume_run("smoke", "engine").id == new, "it died before its verdict"
        store.set_verdict(new, "clean")
        store.fail_run(new)
        assert store.run(new).state == "finished"
        assert store.resume_run("smoke", "engine").id == old
        store.fail_run(old)
        with pytest.raises(ConfigError, match="no interrupted run of smoke"):
            store.resume_run("smoke", "engine")


def test_a_run_of_a_night_goes_on_with_its_night(tmp_path: Path) -> None:
    """Alone it would be resumed under limits that are not the night's."""
    with Store(tmp_path / "s.db") as store:
        night = store.begin_night({}, Origin()).id
        run = store.begin_run("smoke", "engine", 1, 3, {"name": "smoke"}, night=night).id
        assert store.run(run).night == night
        assert not store.has_unfinished("smoke", "engine")
        with pytest.raises(ConfigError, match="no interrupted run of smoke"):
            store.resume_run("smoke", "engine")
        alone = begin(store)
        assert store.resume_run("smoke", "engine").id == alone


def test_a_run_is_finished_with_all_its_verdicts_only(tmp_path: Path) -> None:
    """A trial that is missing, or at which the harness failed, leaves the run to be resumed."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store, 2)
        finish(store, run, 0)
        assert store.finish_run(run).state == "running"
        finish(store, run, 1, Outcome.HARNESS_ERROR)
        assert store.finish_run(run).state == "running"
        finish(store, run, 1)
        assert store.finish_run(run).state == "finished"
        lost = begin(store, 0)
        assert store.finish_run(lost, explorations=1).state == "running"
        store.put_exploration(lost, "a", {})
        assert store.finish_run(lost, explorations=1).state == "finished"


def test_trials_are_read_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left out where a page ends, and each has its own bugs."""
    monkeypatch.setattr(trials, "PAGE", 2)
    with Store(tmp_path / "s.db") as store:
        run = begin(store, 7)
        for number in range(7):
            store.start_trial(run, make_spec(number), "page0", "none")
            store.finish_trial(run, make_result(number, broken=5 if number % 2 else None))
        rows = list(store.trials(run))
    assert [row.number for row in rows] == list(range(7))
    assert [len(row.bugs) for row in rows] == [0, 1, 0, 1, 0, 1, 0]


def test_a_run_that_has_come_to_its_end_is_not_stopped(tmp_path: Path) -> None:
    """The time was up behind its last crash: it is held to what it claims."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store, 0)
        assert store.finish_run(run).state == store.stop_run(run).state == "finished"
        assert store.stop_run(begin(store)).state == "stopped"


def test_a_verdict_is_never_replaced(tmp_path: Path) -> None:
    """A second owner, or the same trial started again, changes nothing of a violation that is stored."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store, 1)
        store.start_trial(run, make_spec(0), "page0", "none")
        store.finish_trial(run, make_result(0, broken=5))
        store.start_trial(run, make_spec(0), "redo", "all")
        store.finish_trial(run, make_result(0))
        row = store.trial(run, 0)
    assert row.result == make_result(0, broken=5)
    assert (row.site, row.mask) == ("page0", "none")


def test_a_run_has_one_owner(tmp_path: Path) -> None:
    """The second one is refused and told the first one's pid; when the first is gone it is welcome."""
    with Store(tmp_path / "s.db") as first, Store(tmp_path / "s.db") as second:
        run = begin(first)
        with pytest.raises(
            ConfigError, match=rf"run {run} has a running owner: process {os.getpid()}"
        ):
            second.resume_run("smoke", "engine")
    with Store(tmp_path / "s.db") as third:
        for _ in range(2):  # the owner itself may ask again
            assert third.resume_run("smoke", "engine").id == run
    assert [path.name for path in tmp_path.glob("*.lock")] == []


def test_a_link_is_another_name_and_no_other_store(tmp_path: Path) -> None:
    """A run has one owner under whatever name; with a hard link there would be two logs: refused."""
    (tmp_path / "other").mkdir()
    path, link = tmp_path / "s.db", tmp_path / "other" / "link.db"
    link.symlink_to(path)
    with Store(path) as first:
        run = begin(first)
        with (
            Store(link) as second,
            pytest.raises(ConfigError, match="has a running owner"),
        ):
            second.own_run(run)
    assert [one.name for one in (tmp_path / "other").iterdir()] == ["link.db"]
    os.link(path, tmp_path / "other" / "hard.db")
    with pytest.raises(ConfigError, match="another name"):
        Store(tmp_path / "other" / "hard.db")
    with Store(path, write=False) as reader:
        assert reader.run(run).id == run


def test_another_golden_run_is_refused(tmp_path: Path) -> None:
    """The verdicts of a run belong to the golden runs with which it began."""
    golden_run = GoldenRunRow("a", True, "h1", 10, 5, (Violation(3, "x"),), {"reads": 1})
    with Store(tmp_path / "s.db") as store:
        run = begin(store)
        store.put_golden_run(run, golden_run)
        store.put_golden_run(run, golden_run)
        with pytest.raises(ConfigError, match="trace hash h2, and had h1"):
            store.put_golden_run(run, replace(golden_run, hash="h2"))
        assert store.golden_runs(run) == [golden_run]


def test_a_store_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    """Killed at any moment of the creation of a store, the next one makes it."""
    steps = range(0, 200, 12)
    code = (
        "import sqlite3, sys, os, signal\n"
        "from pathlib import Path\n"
        "from tornpage.store.store import Store\n"
        "def count():\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return 0\n"
        "connect = sqlite3.connect\n"
        "def watched(*a, **k):\n"
        "    db = connect(*a, **k); db.set_progress_handler(count, 20); return db\n"
        "sqlite3.connect = watched\n"
        "for left in map(int, sys.argv[2:]):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        Store(Path(sys.argv[1], f'{left}.db'))\n"
        "        os._exit(0)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), *map(str, steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert {int(line) for line in done.stdout.split()} == {0, -signal.SIGKILL}
    for step in steps:
        with Store(tmp_path / f"{step}.db") as store:
            assert store.runs() == []


def test_contents_are_blobs(tmp_path: Path) -> None:
    """A torn write of 1 kB takes its two contents, and no more text for them."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store, 1)
        store.start_trial(run, make_spec(0), "page0", "none")
        store.finish_trial(run, make_result(0, broken=5))
    with sqlite3.connect(tmp_path / "s.db") as db:
        ((size,),) = db.execute("select length(result) from trial")
        ((old, new),) = db.execute("select old, new from contents")
    assert size < 1000 and (len(old), len(new)) == (1024, 1024)


def test_reading_changes_nothing(tmp_path: Path) -> None:
    """A store opened to be read is not written, in a folder that cannot be written either."""
    path = tmp_path / "s.db"
    with Store(path) as store:
        run = begin(store, 1)
        finish(store, run, 0)
    before = path.read_bytes()
    with Store(path, write=False) as store:
        assert [row.number for row in store.trials(run)] == [0]
        with pytest.raises(MachineError, match="readonly"):
            store.fail_run(run)
    assert path.read_bytes() == before


def test_a_deleted_run_is_gone(tmp_path: Path) -> None:
    """With its trials; the others stay. One whose owner lives is not deleted."""
    with Store(tmp_path / "s.db") as store:
        old, new = begin(store, 1), begin(store, 1)
        finish(store, old, 0)
        finish(store, new, 0)
    with Store(tmp_path / "s.db") as store:
        store.delete_run(old)
        assert [run.id for run in store.runs()] == [new]
        assert [row.number for row in store.trials(new)] == [0]
        assert list(store.trials(old)) == []
        store.resume_run("smoke", "engine")
        with Store(tmp_path / "s.db") as other, pytest.raises(ConfigError, match="owner"):
            other.delete_run(new)


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    """Bytes that are not a database give one clear error."""
    path = tmp_path / "s.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(ConfigError, match="not a result database"):
        Store(path)


def test_a_missing_store_is_not_made_for_reading(tmp_path: Path) -> None:
    """Reading commands leave no empty store behind."""
    with pytest.raises(ConfigError, match="no result database"):
        Store(tmp_path / "s.db", create=False)
    assert not (tmp_path / "s.db").exists()


def test_settings_keep_their_order(tmp_path: Path) -> None:
    """It decides which script has which number, and what the label of a script is."""
    settings = {"vary": {"z,y": ["1,2"], "b": ["3"]}, "cross": {"q": ["on"], "a": ["off"]}}
    with Store(tmp_path / "tornpage.db") as store:
        run = store.begin_run("x", "engine", 1, 1, settings)
        assert json.dumps(store.run(run.id).settings) == json.dumps(settings)


DAMAGE = {
    "settings": ("update run set settings = '{'", lambda store: store.run(1)),
    "a result": ("update trial set result = '{\"nimber\": 1}'", lambda store: store.trial(1, 0)),
    "a summary": (
        "insert into exploration values (1, 'a', '[')",
        lambda store: store.explorations(1),
    ),
    "counters": ("update golden_run set counters = '{,}'", lambda store: store.golden_runs(1)),
    "a bug": ("update bug set invariants = '[5'", lambda store: store.bugs()),
    "text": ("update run set campaign = cast(x'ff31' as text)", lambda store: store.runs()),
    "pages": ("", lambda store: list(store.trials(1))),
}


@pytest.mark.parametrize("where", DAMAGE)
def test_damage_is_told_with_the_name_of_the_store(where: str, tmp_path: Path) -> None:
    """Whatever cannot be read any more: the cause, the file, and what to do."""
    path = tmp_path / "s.db"
    with Store(path) as store:
        run = begin(store)
        store.put_golden_run(
            run, GoldenRunRow("a", True, "h1", 10, 5, (Violation(3, "x"),), {"reads": 1})
        )
        store.start_trial(run, make_spec(0), "page0", "none")
        store.finish_trial(run, make_result(0, broken=5))
    sql, read = DAMAGE[where]
    with sqlite3.connect(path) as db:
        if sql:
            db.execute(sql)
        else:
            (root,) = db.execute(
                "select rootpage from sqlite_master where name = 'trial'"
            ).fetchone()
            (size,) = db.execute("pragma page_size").fetchone()
            db.execute("pragma wal_checkpoint(truncate)")
    db.close()
    if not sql:
        data = bytearray(path.read_bytes())
        data[(root - 1) * size : root * size] = b"\xff" * size
        path.write_bytes(data)
    with Store(path, write=False) as store, pytest.raises(TornpageError) as told:
        read(store)
    assert str(path) in str(told.value) and "damaged" in str(told.value)
