"""The SQLite target's parts: schema, driver, digest, generator, command lines."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from sqlite_reader import examine, read_shapes

from tornpage.faults.process import ChildResult
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.state import read_tables
from tornpage.plans.origin import program_hashes
from tornpage.store.origin import Origin
from tornpage.targets.registry import family_of, make_target
from tornpage.targets.sqlite.driver import DATABASE, Driver, check_script
from tornpage.targets.target import Capability
from tornpage.vocabulary.errors import ConfigError, WorkloadError
from tornpage.vocabulary.model import Site, Violation
from tornpage.vocabulary.paths import find_paths
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import Script, Verb
from tornpage.workloads.workload import generate

SCRIPT = """create table t1 a:bigint b:char(10) c:bigint primary a
create table u k:char(5) n:bigint primary k,n
insert - t1 a=-1 b="alpha  " c=5
insert - t1 b="alps" c=-9223372036854775808
add index t1 ib(b:3) ic(c,b)
insert_seq - t1 3 5
insert - u k="x" n=9
"""


def run(folder: Path, text: str) -> dict[int, str]:
    """Runs a script on folder/main.db; errors by line."""
    script = parse_script(text)
    check_script(script)
    db = sqlite3.connect(folder / DATABASE, isolation_level=None)
    try:
        driver = Driver(db)
        results = {item.line: driver.execute(item) for item in script.statements}
    finally:
        db.close()
    return {line: error for line, error in results.items() if error}


def errors_of(oracle: Oracle) -> dict[int, str]:
    """What the model predicts."""
    return {step.line: step.error for step in oracle.steps if step.error}


def same_as_model(folder: Path, text: str) -> bool:
    """State and errors of a script on SQLite equal the model's."""
    oracle = Oracle(parse_script(text))
    failed = run(folder, text)
    answer = examine(folder)
    assert answer["ok"], answer
    assert not answer["check"]["findings"]
    assert read_tables(answer["check"]["tables"]) == oracle.states[-1]
    return failed == errors_of(oracle)


def test_digest_is_the_models(tmp_path: Path) -> None:
    """BIGINT and CHAR, negative and left-out keys, prefix and multi-column indexes, both kinds of tables."""
    assert same_as_model(tmp_path, SCRIPT)


def test_errors_are_the_models(tmp_path: Path) -> None:
    """Every error that a script may provoke has the engine's name, and the statement changed nothing."""
    text = SCRIPT + "\n".join(
        [
            "insert - t1 a=3",
            'insert - u k="x" n=9',
            "insert_seq - t1 1 4",
            'update - t1 a=99 set b="none"',
            "delete - t1 a=99",
            "select t1 a=99",
            "scan t1 nothing",
            "drop index t1 nothing",
            "add index t1 ib(b)",
            "add index t1 x(b) x(c)",
            "create table u k:bigint primary k",
            "rename table t1 u",
            "drop table nothing",
            "insert - nothing a=1",
        ]
    )
    failed = run(tmp_path, text)
    assert failed == errors_of(Oracle(parse_script(text)))
    assert len(failed) == 14
    state = read_tables(examine(tmp_path)["check"]["tables"])
    assert state == Oracle(parse_script(SCRIPT)).states[-1]


def test_transactions_and_ddl_follow_the_model(tmp_path: Path) -> None:
    """Rollback, an error inside a transaction, indexes through drop, rename and a second such table."""
    text = SCRIPT + "\n".join(
        [
            "begin A",
            'update A t1 a=3 set b="kept"',
            "insert A t1 a=3",
            "commit A",
            "begin B",
            "delete B t1 a=3",
            "rollback B",
            "drop index t1 ic",
            "add index t1 ic(c)",
            "rename table t1 t2",
            "create table t1 a:bigint b:char(3) primary a",
            "add index t1 ib(b)",
            'insert - t1 a=1 b="x"',
            "checkpoint full",
            "purge all",
            "flush table t1",
        ]
    )
    assert same_as_model(tmp_path, text)


def test_unique_indexes_follow_the_model(tmp_path: Path) -> None:
    """SQLite refuses the same rows and the same builds, and reads its unique indexes back."""
    text = SCRIPT + "\n".join(
        [
            "add unique index t1 ub(b:2) uc(c)",
            'update - t1 a=-1 set b="be"',
            "delete - t1 a=3",
            "delete - t1 a=4",
            "update - t1 a=5 set c=7",
            "add unique index t1 ub(b:2) uc(c)",
            'insert - t1 a=9 b="alpha" c=9',
            'insert - t1 a=9 b="zeta" c=9',
            'update - t1 a=9 set b="be"',
        ]
    )
    assert same_as_model(tmp_path, text)


@pytest.mark.parametrize("seed", range(6))
def test_generated_scripts_run_as_the_model_says(tmp_path: Path, seed: int) -> None:
    """sqlite_smoke fits one writer, has errors on purpose, and SQLite agrees with the oracle on all of it."""
    script = generate("sqlite_smoke", {}, seed)
    check_script(script)
    assert same_as_model(tmp_path, script.text)
    verbs = {item.verb for item in script.statements}
    assert {Verb.ROLLBACK, Verb.CHECKPOINT, Verb.ADD_INDEX, Verb.DROP_INDEX} <= verbs
    assert (tmp_path / DATABASE).stat().st_size < 1 << 20
    assert generate("sqlite_smoke", {}, seed).text == script.text


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["begin A", "begin B"], "transaction A is open"),
        (["begin A", "insert - t a=1"], "transaction A is open"),
        (["begin A", "checkpoint"], "transaction A is open"),
        (["begin A", "drop table t"], "transaction A is open"),
        (["begin A", "commit B"], "transaction A is open"),
        (["insert A t a=1"], "transaction A is not open"),
        (['insert - t b="\\xff"'], "printable ASCII"),
        (["create table sqlite_x a:bigint primary a"], "cannot be a name"),
        (['create table t"x a:bigint primary a'], "cannot parse"),
    ],
)
def test_scripts_that_do_not_fit_are_refused(lines: list[str], problem: str) -> None:
    """With the line number, and before anything was executed."""
    with pytest.raises(WorkloadError, match=f"line {len(lines)}: .*{problem}"):
        check_script(parse_script("\n".join(lines)))


def test_the_engines_smoke_does_not_fit() -> None:
    """It keeps several transactions open."""
    with pytest.raises(WorkloadError, match="one writer"):
        check_script(generate("smoke", {}, 1))


def damage(folder: Path, sql: str) -> None:
    """Changes the database behind the driver's back."""
    db = sqlite3.connect(folder / DATABASE)
    db.executescript("PRAGMA writable_schema = ON;" + sql)
    db.close()


def test_an_index_that_disagrees_is_a_finding(tmp_path: Path) -> None:
    """I10, from integrity_check; a database that cannot be read is a refusal in SQLite's words."""
    run(tmp_path, SCRIPT)
    damage(
        tmp_path, "UPDATE sqlite_schema SET sql = replace(sql, ',3)', ',4)') WHERE name LIKE 'ib%'"
    )
    findings = examine(tmp_path)["check"]["findings"]
    assert {item["invariant"] for item in findings} == {10}
    (tmp_path / DATABASE).write_bytes(b"not a database, by no means" * 100)
    answer = examine(tmp_path)
    assert (answer["ok"], answer["error"]) == (False, "SQLITE_NOTADB")


def test_foreign_values_and_schemas_are_refused(tmp_path: Path) -> None:
    """What the script language cannot have stored is damage."""
    run(tmp_path, SCRIPT)
    damage(tmp_path, "UPDATE t1 SET b = 'longer than ten' WHERE a = 3")
    assert examine(tmp_path)["error"] == "MISFIT"
    damage(tmp_path, "UPDATE t1 SET b = '' WHERE a = 3; CREATE TABLE x(a REAL)")
    assert "REAL" in examine(tmp_path)["message"]


def test_no_database_is_an_empty_one(tmp_path: Path) -> None:
    """As for every program that opens a file that is not there."""
    assert examine(tmp_path)["check"]["tables"] == []


def test_schema_tells_the_script_again(tmp_path: Path) -> None:
    """Columns, keys and indexes are read back as the script named them."""
    run(tmp_path, SCRIPT)
    db = sqlite3.connect(tmp_path / DATABASE)
    t1, u = read_shapes(db)
    db.close()
    assert [(column.name, column.length) for column in t1.columns] == [
        ("a", 0),
        ("b", 10),
        ("c", 0),
    ]
    assert [(index.name, index.columns) for index, _ in t1.indexes] == [
        ("ib", (("b", 3),)),
        ("ic", (("c", 0), ("b", 0))),
    ]
    assert (u.name, u.primary) == ("u", ("k", "n"))


TARGET = make_target("sqlite", Path("/b"), ready=False)


def child(code: int | None, stdout: str = "", stderr: str = "", signal: int = 0) -> ChildResult:
    """A child that ended like this."""
    return ChildResult(code, signal, False, 0.1, 0, 0, stdout.encode(), stderr.encode())


def test_commands_check_their_options() -> None:
    """Options become arguments, numbers are free; unknown ones are the user's error."""
    options = {"journal_mode": "delete", "cache_size": "77"}
    command = TARGET.run_command(Path("/d"), Path("/s"), options)
    told = command.argv[command.argv.index("tornpage.targets.sqlite.driver") :]
    assert told[1:] == (
        *("/d", "/s", "--journal-mode=delete", "--synchronous=full", "--page-size=4096"),
        *("--cache-size=77", "--wal-autocheckpoint=1000"),
    )
    wrong = {
        "journal_mode": "truncate",
        "synchronous": "on",
        "cache_size": "x",
        "doublewrite": "off",
    }
    for name, value in wrong.items():
        with pytest.raises(ConfigError, match=name):
            TARGET.run_command(Path("/d"), Path("/s"), {name: value})


def test_the_model_is_its_oracle() -> None:
    """It runs scripts, always with the same writes, and has campaigns of its own."""
    assert TARGET.capabilities == {Capability.ACKS, Capability.DETERMINISTIC, Capability.EXPLORE}
    assert (family_of("sqlite"), family_of("sqlite-modes")) == ("sqlite", "command")
    assert TARGET.parse_run(child(0, '{"ok": true, "failed": [], "status": {"page_size": 512}}')).ok


@pytest.mark.parametrize("name", ["sqlite", "sqlite-modes"])
def test_sqlite_is_told_by_its_library(name: str) -> None:
    """A run goes on with the same SQLite only."""
    target = make_target(name, find_paths().build)
    assert "libsqlite3" in target.programs()["libsqlite3.so.0"].name
    assert "libsqlite3.so.0" in program_hashes(target)


def test_our_own_programs_are_no_build_of_sqlite() -> None:
    """Another Python, verifier or explorer leaves SQLite what it is; another library does not."""
    hashes = program_hashes(make_target("sqlite", find_paths().build))
    build = Origin(programs=hashes).build
    assert {"python", "verifier", "explorer", "libsqlite3.so.0"} <= hashes.keys()
    for name in ("python", "verifier", "explorer"):
        assert Origin(programs={**hashes, name: "0"}).build == build
    assert Origin(programs={**hashes, "libsqlite3.so.0": "0"}).build != build


def test_recovery_answers() -> None:
    """State, findings and what was there to recover from; refusals; everything else is neither."""
    check = {
        "needs_recovery": False,
        "findings": [
            {"invariant": 11, "path": "main.db", "page": None, "what": "Page 9 is never used"}
        ],
        "tables": [],
    }
    left = {"journal": 0, "wal": 1}
    whole = {"ok": True, "counters": left, "check": check}
    answer = TARGET.parse_recovery(child(0, json.dumps(whole) + "\n"))
    assert (answer.ok, answer.state, answer.recovered) == (True, {}, True)
    assert answer.findings == (Violation(11, "Page 9 is never used", path="main.db"),)
    assert answer.counters == left
    nothing = json.dumps(whole | {"counters": {"journal": 0, "wal": 0}})
    assert TARGET.parse_recovery(child(0, nothing + "\n")).recovered is False
    refusal = {"ok": False, "message": "malformed"}
    answer = TARGET.parse_recovery(child(0, json.dumps(refusal) + "\n"))
    assert (answer.ok, answer.refused, answer.message) == (False, True, "malformed")
    texts = {"ok": True, "counters": left, "state": {}}
    wrong = ("{}\n", json.dumps(texts) + "\n", json.dumps({"ok": True, "check": check}) + "\n")
    for result in (child(None, signal=11), *(child(0, text) for text in wrong)):
        answer = TARGET.parse_recovery(result)
        assert not answer.ok and not answer.refused


@pytest.mark.parametrize(
    ("file", "offset", "site"),
    [
        ("main.db", 100, Site.PAGE0),
        ("main.db", 4096, Site.DATA_PAGE),
        ("main.db-wal", 0, Site.CHECKPOINT_HEADER),
        ("main.db-wal", 32, Site.REDO),
        ("main.db-journal", 512, Site.ROLLBACK_JOURNAL),
        ("main.db-shm", 0, None),
    ],
)
def test_sites(file: str, offset: int, site: Site | None) -> None:
    """By file; the shared memory file is no part of an image."""
    assert TARGET.site_of(file, offset, None, 4096) is site


def test_skipped_statements_are_acknowledged(tmp_path: Path) -> None:
    """Housekeeping of the engine is no error."""
    script = Script.of(
        parse_script("purge all\nclean 3\nset log_optimize_ddl on\nstatus").statements
    )
    assert run(tmp_path, script.text) == {}
