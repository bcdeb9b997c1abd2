"""The store keeps every finished verdict, whatever happens to the harness."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from builders import make_result, make_spec

from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Outcome


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
    assert [row.result is None for row in rows] == [False, True]
    assert rows[0].result == make_result(0, broken=5)
    assert rows[0].spec == make_spec(0)


def test_only_verdicts_count_as_finished(tmp_path: Path) -> None:
    """A trial that was started, or at which the harness failed, is run again on resumption."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store)
        for number in range(3):
            store.start_trial(run, make_spec(number), "page0", "none")
        store.finish_trial(run, make_result(0))
        store.finish_trial(run, make_result(1, outcome=Outcome.HARNESS_ERROR))
        assert store.finished_numbers(run) == {0}


def test_unfinished_run_is_found_until_it_is_finished(tmp_path: Path) -> None:
    """--resume finds the newest interrupted run of its campaign and no finished one."""
    with Store(tmp_path / "s.db") as store:
        old, new = begin(store), begin(store)
        assert store.unfinished_run("smoke", "engine").id == new
        store.finish_run(new)
        assert store.unfinished_run("smoke", "engine").id == old
        store.finish_run(old)
        with pytest.raises(ConfigError, match="no interrupted run of smoke"):
            store.unfinished_run("smoke", "engine")


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    """A store of another version is neither read nor changed."""
    with Store(tmp_path / "s.db"):
        pass
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("update schema_version set version = 99")
    with pytest.raises(ConfigError, match="schema version 99"):
        Store(tmp_path / "s.db")


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    """Bytes that are not a database give one clear error."""
    path = tmp_path / "s.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(ConfigError, match="not a result store"):
        Store(path)


def test_a_missing_store_is_not_made_for_reading(tmp_path: Path) -> None:
    """Reading commands leave no empty store behind."""
    with pytest.raises(ConfigError, match="no result store"):
        Store(tmp_path / "s.db", create=False)
    assert not (tmp_path / "s.db").exists()
