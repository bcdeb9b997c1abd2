"""A store on a PostgreSQL server keeps what a file keeps, for many owners at once and over restarts."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import psycopg
import pytest
from builders import make_result, make_spec
from filled_store import ORIGIN, QUERIES, RULE, fill
from private_postgresql import PrivateServer, private_server

from tornpage.store.bugs import Novelty
from tornpage.store.copy import copy_runs
from tornpage.store.place import place_of
from tornpage.store.rows import GoldenRunRow
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError, MachineError

TABLES = (
    "runs",
    "bugs",
    "sightings",
    "findings",
    "trials",
    "cells",
    "coverage",
    "counters",
    "nights",
)


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    """Up before each test."""
    with private_server() as server:
        yield server


@pytest.fixture
def url(server: PrivateServer, request: pytest.FixtureRequest) -> str:
    """Of an empty database."""
    return server.database(f"t{crc32(request.node.name.encode())}")


def told(store: Store) -> list[object]:
    """All that a store answers."""
    found: list[object] = [store.overview(), store.bugs(), store.replays(), store.night(1)]
    for run in store.runs():
        found += [run, store.golden_runs(run.id), store.explorations(run.id)]
        found += [store.trial(run.id, row.number) for row in store.trials(run.id)]
        found += [(row.site, row.mask, row.bugs) for row in store.trials(run.id)]
        found += [store.bugs_of(run.id), store.explanations(run.id)]
    return found


def test_it_answers_what_a_file_answers(url: str, tmp_path: Path) -> None:
    """The same calls, the same answers; a bug that was fixed has come back."""
    answers = []
    for place in (place_of(tmp_path / "s.db"), place_of(url)):
        with Store(place) as store:
            fill(store)
        with Store(place, write=False) as store:
            answers.append(told(store))
            assert store.sightings(2)[2].novelty is Novelty.BACK
    assert answers[0] == answers[1]


def test_its_views_answer_the_same(url: str, tmp_path: Path) -> None:
    """Every view, and every example of docs/STORE.md."""
    queries = [*QUERIES, *(f"select * from {view}" for view in TABLES)]
    with Store(tmp_path / "s.db") as store:
        fill(store)
    with Store(place_of(url)) as store:
        fill(store)
    with sqlite3.connect(tmp_path / "s.db") as file, psycopg.connect(url) as db:
        for query in queries:
            rows = db.execute(query).fetchall()
            plain = [tuple(float(x) if hasattr(x, "as_tuple") else x for x in row) for row in rows]
            assert sorted(plain, key=repr) == sorted(file.execute(query).fetchall(), key=repr), (
                query
            )


def test_a_run_has_one_owner_who_is_named(url: str) -> None:
    """The second one is refused; when the first is gone it is welcome."""
    with Store(place_of(url)) as first, Store(place_of(url)) as second:
        run = first.begin_run("smoke", "engine", 1, 1, {}).id
        with pytest.raises(
            ConfigError, match=f"run {run} has a running owner.*process {os.getpid()} on"
        ):
            second.resume_run("smoke", "engine")
        with pytest.raises(ConfigError, match="owner"):
            second.delete_run(run)
    with Store(place_of(url)) as third:
        assert third.resume_run("smoke", "engine").id == run


def test_a_deleted_run_is_gone(url: str, tmp_path: Path) -> None:
    """With all that belongs to it, and with its lock; its bugs and the other run stay."""
    for place in (place_of(tmp_path / "s.db"), place_of(url)):
        with Store(place) as store:
            fill(store)
        with Store(place) as store:
            store.delete_run(1)
            with pytest.raises(ConfigError, match="no run 1"):
                store.own_run(1)
            assert ([run.id for run in store.runs()], list(store.trials(1))) == ([2], [])
            assert store.golden_runs(1) == []
            assert [bug.id for bug in store.bugs()] == [1, 2]


def test_owners_at_once_number_runs_and_bugs_once(url: str) -> None:
    """Eight of them find the same two bugs: every run has its own number, no bug is there twice."""
    with Store(place_of(url)):
        pass

    def work() -> None:
        with Store(place_of(url)) as store:
            run = store.begin_run("smoke", "engine", 1, 9, {}, ORIGIN).id
            store.put_golden_run(run, GoldenRunRow("a", True, "h", 9, 5, (RULE,), {}))
            for number in range(20):
                store.start_trial(run, make_spec(number), "page0", "none")
                store.finish_trial(run, make_result(number, broken=5))

    owners = [threading.Thread(target=work) for _ in range(8)]
    for owner in owners:
        owner.start()
    for owner in owners:
        owner.join()
    with Store(place_of(url), write=False) as store:
        assert [run.id for run in store.runs()] == list(range(1, 9))
        assert [(bug.runs, bug.count) for bug in store.bugs()] == [(8, 8), (8, 160)]
        seen = [store.sightings(run.id)[1].novelty for run in store.runs()]
    assert sorted(seen) == sorted([Novelty.NEW] + 7 * [Novelty.AGAIN])


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_loses_nothing(
    mode: str, url: str, server: PrivateServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """The owner waits, tells so, has its run again, and goes on; nobody else can take the run."""
    with Store(place_of(url)) as store:
        run = store.begin_run("smoke", "engine", 1, 9, {}, ORIGIN).id
        for number in range(6):
            store.start_trial(run, make_spec(number), "page0", "none")
            if number % 2:
                server.stop(mode)
                back = threading.Timer(1.0, server.start)
                back.start()
            store.finish_trial(run, make_result(number, broken=5))
        with Store(place_of(url)) as other, pytest.raises(ConfigError, match="owner"):
            other.resume_run("smoke", "engine")
        back.join()
    with Store(place_of(url), write=False) as store:
        assert store.finished_numbers(run) == set(range(6))
        assert [bug.count for bug in store.bugs()] == [6]
    said = capfd.readouterr().err
    assert said.count("waiting for it") == said.count("is back; nothing is lost") == 3


def test_a_server_that_stays_away_is_the_machines_failure(
    url: str, server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No verdict, and no endless wait."""
    monkeypatch.setattr("tornpage.store.database.AWAY_S", 1.0)
    with Store(place_of(url)) as store:
        run = store.begin_run("smoke", "engine", 1, 9, {}, ORIGIN).id
        server.stop()
        try:
            with pytest.raises(MachineError, match="is still unreachable"):
                store.start_trial(run, make_spec(0), "page0", "none")
        finally:
            server.start()


def test_reading_changes_nothing(url: str) -> None:
    """It is refused by the server; an empty database gets no tables."""
    with pytest.raises(ConfigError, match="no result database here"):
        Store(place_of(url), write=False)
    with Store(place_of(url)) as store:
        fill(store)
    with Store(place_of(url), write=False) as store, pytest.raises(MachineError, match="read-only"):
        store.set_verdict(1, "clean")


def test_another_version_is_refused(url: str) -> None:
    """A newer Tornpage has been there."""
    with Store(place_of(url)):
        pass
    with psycopg.connect(url) as db:
        db.execute("update tornpage_version set schema = 99")
    with pytest.raises(ConfigError, match="a store of schema 99"):
        Store(place_of(url))


@pytest.mark.parametrize("write", [True, False])
def test_a_store_of_schema_3_gets_what_it_lacks(write: bool, url: str) -> None:
    """Also from a command that only reads."""
    with Store(place_of(url)) as store:
        fill(store)
    with psycopg.connect(url) as db:
        db.execute("drop view explanations")
        db.execute("drop table explanation")
        db.execute("update tornpage_version set schema = 3")
    with Store(place_of(url), create=False, write=write) as store:
        assert len(store.runs()) == 2 and store.explanations(1) == {}
    with psycopg.connect(url) as db:
        assert db.execute("select * from explanations").fetchall() == []


def test_a_database_of_something_else_is_refused(url: str) -> None:
    """It gets no table of ours."""
    with psycopg.connect(url) as db:
        db.execute("create table customers (name text)")
    with pytest.raises(ConfigError, match="something else: it has a table customers"):
        Store(place_of(url))
    with psycopg.connect(url) as db:
        found = db.execute("select tablename from pg_tables where schemaname = 'public'")
        assert found.fetchall() == [("customers",)]


def test_what_cannot_be_reached_is_told(server: PrivateServer) -> None:
    """In one line, without a password."""
    for url in (
        f"postgresql://postgres:secret@/none?host={server.folder}",
        f"postgresql://postgres@/none?host={server.folder}&password=secret",
        "postgresql://x:y/z",
        "mysql://x/y",
    ):
        with pytest.raises(ConfigError) as caught:
            Store(place_of(url))
        assert "secret" not in str(caught.value)


def test_a_copy_is_the_same(url: str, tmp_path: Path) -> None:
    """There and back again, bytes of torn writes included; the same copy again adds nothing."""
    here, back = tmp_path / "s.db", tmp_path / "back.db"
    with Store(here) as store:
        fill(store)
        original = told(store)
    for _ in range(2):
        with Store(here, write=False) as source, Store(place_of(url)) as target:
            copied = copy_runs(source, target)
    assert (copied.runs, copied.there) == ({}, {1: 1, 2: 2})
    with Store(place_of(url), write=False) as source, Store(back) as target:
        assert copy_runs(source, target).runs == {1: 1, 2: 2}
        assert told(source) == told(target) == original


def test_copies_of_several_machines_meet(url: str, tmp_path: Path) -> None:
    """Runs get new numbers, and what both have found is one bug; a run without an end stays."""
    for name in "ab":
        with Store(tmp_path / name) as store:
            other = replace(ORIGIN, host=name)
            run = store.begin_run("smoke", "engine", 1, 1, {}, other).id
            store.start_trial(run, make_spec(0), "page0", "none")
            store.finish_trial(run, make_result(0, broken=5))
            store.finish_run(run)
            store.begin_run("smoke", "engine", 2, 1, {}, other)
        with Store(tmp_path / name, write=False) as source, Store(place_of(url)) as target:
            copied = copy_runs(source, target)
            assert copied.running == [2]
    with Store(place_of(url), write=False) as store:
        assert [run.origin.host for run in store.runs()] == ["a", "b"]
        (bug,) = store.bugs()
        assert (bug.runs, bug.count, bug.reproducer.name) == (2, 2, "1.0")
        assert store.trial(2, 0).bugs == (bug.id,)
