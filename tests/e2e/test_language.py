"""Two parsers, one language: the engine refuses what the harness refuses, and does what is predicted."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.oracle.state import read_tables
from tornpage.vocabulary.errors import WorkloadError
from tornpage.vocabulary.paths import ROOT
from tornpage.workloads.parse import parse_script
from tornpage.workloads.restart import RESTART_OPTIONS, Numbers, option_of

USAGE = 2
EXAMPLE = re.compile(r"^\| [a-z_]+ .*?\| `(.+?)` \||^\| status \| `(status)` \|", re.MULTILINE)
LONG = "n" * 63
TEXT = "x" * 16_000

GOOD = [
    "",
    "  # begin",
    "\tstatus ",
    "status\r",
    "begin index",
    "begin 1",
    f"drop table {LONG}",
    f'insert - t b="{TEXT}"',
    'insert - t b="" c="\\x00\\xfF\\"\\\\ =#"',
    "insert - t a=-9223372036854775808 b=9223372036854775807",
    "insert - t a=007",
    "insert_seq T1 t -5 -5",
    'update - t set=1 set set="set"',
    "purge all",
    "purge 2147483647",
    "at 1 checkpoint",
    "at 2147483647 checkpoint full",
    "at 3 clean",
    "at 16 evict",
    "create table t primary:bigint primary primary",
    "create table t a:char(255) b:char(01) primary b,a",
    "create table t a:bigint null b:varchar(16000) not null c:varchar(1) null primary a",
    "create table null not:bigint null null:bigint primary not",
    "insert - t a=null b=1 null=null",
    'insert - t b="ab"*5 c="x"*16000 d="abc"*1',
    "create table t " + " ".join(f"c{i}:bigint" for i in range(32)) + " primary c31",
    "add index t " + " ".join(f"i{i}(b)" for i in range(64)),
    "add unique index t i(b) j(c:3)",
    "add index unique i(b)",
    "start unique index t i(b)",
    "drop index unique i",
    "add index t i(" + ",".join(f"c{i}" for i in range(32)) + ")",
    "add index t i(b:3072,c,b)",
    "start index t i(b) i(b)",
    "add index t i(b) algorithm=copy lock=none",
    "add unique index t i(b) lock=shared algorithm=instant",
    "start index t i(b) algorithm=nocopy",
    "drop index t i lock=none",
    "rename column t a b",
    "rename column t a a algorithm=instant",
    "rename index t i j lock=shared algorithm=inplace",
    "drop index t algorithm",
    "rebuild table t",
    "rebuild table t algorithm=inplace lock=shared",
    "start rebuild t lock=none",
    "modify column t a varchar(16000) algorithm=copy lock=exclusive",
    "modify column t a bigint",
    "add column t a:bigint",
    'add column t a:varchar(9) null default="x y" first algorithm=copy lock=exclusive',
    "add column t default:bigint default=-5 after=default lock=none",
    "add column t a:char(3) not null default=null",
    "drop column t a algorithm=inplace",
    "start add column t a:bigint null after=b",
    "start drop column t a lock=none algorithm=inplace",
    "change primary t a",
    "change primary t a,b,a algorithm=copy lock=none",
    "start primary t b,a lock=exclusive",
    "step index t",
    "step index t 7",
    "step index t 7 2147483647",
    "scan t",
    "scan t i",
    "checkpoint full",
    "restart",
    "restart crash",
    "restart clean log_format=10.5 scrub=on",
    "restart log_optimize_ddl=OFF recv_memory=64K",
    "restart log_format=0",
    "restart crash schedule_seed=4294967295",
    "start backup b",
    "start backup 1 lock=none",
    "start backup lock lock=shared",
    "step backup b",
    "step backup b 2147483647",
    "finish backup b",
    "abort backup b",
]
BAD = [
    "nonsense",
    "create",
    "drop view t",
    '"begin"',
    "begin -",
    "begin a_b",
    "begin a b",
    f"begin {LONG}n",
    f"drop table {LONG}n",
    "drop table",
    "drop table t-1",
    "rename table t",
    "rename table t u v",
    "insert - t",
    "insert t a=1",
    "insert - t a=1 a=2",
    "insert - t a",
    "insert - t =1",
    "insert - t a=+1",
    "insert - t a=1_0",
    "insert - t a=",
    "insert - t a=--1",
    "insert - t a=9223372036854775808",
    "insert - t a=1 set b=2",
    f'insert - t b="{TEXT}x"',
    'insert - t b="x',
    'insert - t b="x\\',
    'insert - t b="x"y',
    'insert - t b="\\n"',
    'insert - t b="\\x1"',
    'insert - t b="\t"',
    'insert - t b="\x7f"',
    'status "',
    "insert_seq - t 5 4",
    "insert_seq - t 5",
    "update - t a=1",
    "update - t a=1 set",
    "update - t set b=1",
    "delete - t a=1 set",
    "select t",
    "create table t",
    "create table t a:bigint",
    "create table t a:bigint primary",
    "create table t primary a",
    "create table t a:bigint primary b",
    "create table t a:bigint primary a,a",
    "create table t a:bigint primary a,",
    "create table t a:bigint a:bigint primary a",
    "create table t a:bigint primary a b",
    "create table t a primary a",
    "create table t a:char(0) primary a",
    "create table t a:char(256) primary a",
    "create table t a:varchar(0) primary a",
    "create table t a:varchar(16001) primary a",
    "create table t a:varchar primary a",
    "create table t a:bigint not primary a",
    "create table t a:bigint not not null primary a",
    "create table t a:bigint null null primary a",
    "create table t null primary a",
    "insert - t a=NULL",
    "insert - t a=null1",
    'insert - t b=""*5',
    'insert - t b="a"*0',
    'insert - t b="a"*16001',
    'insert - t b="a"*',
    'insert - t b="a"*x',
    'insert - t b="a"*2 "b"',
    "create table t a:char() primary a",
    "create table t " + " ".join(f"c{i}:bigint" for i in range(33)) + " primary c0",
    "add index t",
    "add index t i",
    "add index t algorithm=copy",
    "add index t i(b) algorithm=",
    "add index t i(b) algorithm=fast",
    "add index t i(b) algorithm=COPY",
    "add index t i(b) algorithm=copy algorithm=copy",
    "add index t i(b) lock=none j(b)",
    "add index t i(b) lock=all",
    "drop index t i lock=",
    "drop table t lock=none",
    "modify column t a",
    "modify column t a varchar(16001)",
    "modify column t a:varchar(9)",
    "modify t a varchar(9)",
    "add column t a",
    "add column t a bigint",
    "add column t a:bigint default",
    "add column t a:bigint default=",
    'add column t a:char(3) default="x',
    "add column t a:bigint first default=1",
    "add column t a:bigint first after=b",
    "add column t a:bigint after=",
    "add column t a:bigint after=b-c",
    "add column t a:bigint b:bigint",
    "add column t a:bigint lock=none first",
    "drop column t",
    "drop column t a b",
    "start column t a:bigint",
    "start add t a:bigint",
    "start drop t a",
    "change primary t",
    "change primary t a,",
    "change primary t a:3",
    "change primary t a b",
    "change t a",
    "start primary t (a)",
    "change primary t " + ",".join(f"c{i}" for i in range(33)),
    "start drop column t",
    "rename column t a",
    "rename column t a b c",
    "rename index t",
    "rebuild t",
    "rebuild table",
    "rebuild table t u",
    "rebuild table t force",
    "start rebuild table t",
    "step rebuild t",
    "rename index t i j k=1",
    "add index t i(b",
    "add index t i()",
    "add index t (b)",
    "add index t i(b,)",
    "add index t i(b:)",
    "add index t i(b:0)",
    "add index t i(b:3073)",
    "add index t i(b) x",
    "add index t i(b)(c)",
    "add index t " + " ".join(f"i{i}(b)" for i in range(65)),
    "add index t i(" + ",".join(f"c{i}" for i in range(33)) + ")",
    "start index t",
    "start t i(b)",
    "step index",
    "step index t 0",
    "step index t x",
    "step index t 1 0",
    "step index t 1 2 3",
    "step index t 2147483648",
    "finish index",
    "finish index t i",
    "abort t",
    "abort index t 1",
    "purge",
    "purge 0",
    "purge all 1",
    "clean all",
    "at 0 evict",
    "at evict",
    "at 1",
    "at 1 flush",
    "at 1 clean 4",
    "at 1 evict full",
    "clean -1",
    "checkpoint fully",
    "flush",
    "flush log t",
    "flush table",
    "set log_optimize_ddl",
    "set log_optimize_ddl ON",
    "set off",
    "set speed on",
    "status now",
    "restart dirty",
    "restart clean crash",
    "restart scrub",
    "restart scrub=",
    "restart scrub=maybe",
    "restart scrub=on scrub=on",
    "restart speed=1",
    "restart page_size=4k",
    "restart extent_pages=8",
    "restart log_file_size=1m",
    "restart doublewrite=on",
    "restart atomic_write_unit=0",
    "restart flush_log_at_trx_commit=1",
    "restart crash log_format=10.5",
    "restart log_format=10.6",
    "restart buffer_pool_pages=31",
    "restart buffer_pool_pages=1k",
    "restart open_files=-2",
    "restart recv_memory=63k",
    "restart recv_memory=65g",
    "start backup",
    "start backup b lock=",
    "start backup b lock=none lock=none",
    "start backup b algorithm=copy",
    "start backup b/c",
    "step backup b 0",
    "step backup b 1 2",
    "step backup",
    "finish backup b 1",
    "abort backup",
    "scan t i j",
    " ".join(["status"] * 129),
]


def run(build: Path, folder: Path, text: str) -> subprocess.CompletedProcess[bytes]:
    """The engine on a script, in a directory of its own."""
    return subprocess.run(
        [build / "engine" / "engine", "run", "--json", folder, "-"],
        input=text.encode("ascii"),
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("good", [True, False])
def test_both_parsers_know_the_same_language(build: Path, tmp_path: Path, good: bool) -> None:
    """Each line alone, last in a script: both understand it, or both name its number."""
    for number, line in enumerate(GOOD if good else BAD):
        try:
            parse_script(f"# comment\n{line}\n")
            refused = ""
        except WorkloadError as error:
            refused = str(error)
        done = run(build, tmp_path / str(number), f"# comment\n{line}\n")
        assert (done.returncode == USAGE) is bool(refused) is not good, (line, refused, done)
        assert good or (refused.startswith("script line 2: ") and b"script line 2: " in done.stderr)


def test_a_restart_takes_what_the_engine_does(build: Path) -> None:
    """Names and values of all options, but those that a restart leaves alone."""
    done = subprocess.run(
        [build / "engine" / "engine", "options", "--json"], capture_output=True, check=True
    )
    fixed = {
        "page_size",
        "extent_pages",
        "log_file_size",
        "doublewrite",
        "flush_log_at_trx_commit",
        "atomic_write_unit",
        "undo_tablespaces",
    }
    options = {item["name"]: item["values"] for item in json.loads(done.stdout)["options"]}
    assert set(options) == {*RESTART_OPTIONS, *fixed}
    for name, values in RESTART_OPTIONS.items():
        for value in re.split(", | to ", options[name]):
            assert option_of(f"{name}={value}", {}) == (name, value)
        if isinstance(values, Numbers):
            for beyond in (values.least - 1, values.most + 1):
                with pytest.raises(ValueError, match=name):
                    option_of(f"{name}={beyond}", {})


def outcome(build: Path, folder: Path, text: str) -> dict[int, str]:
    """Error by line of the statements that failed; the others have succeeded."""
    done = run(build, folder, text)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["ok"], answer
    return {item["line"]: item["error"] for item in answer["failed"]}


def predicted(text: str) -> dict[int, str]:
    """The same by the oracle."""
    return {step.line: step.error for step in Oracle(parse_script(text)).steps if step.error}


def test_the_examples_of_the_document_run(build: Path, tmp_path: Path) -> None:
    """docs/SCRIPT.md, top to bottom, without a failure."""
    text = (ROOT / "docs" / "SCRIPT.md").read_text(encoding="utf-8")
    examples = [a or b for a, b in EXAMPLE.findall(text)]
    assert len(examples) > 25
    assert outcome(build, tmp_path / "db", "\n".join(examples) + "\n") == {}


def test_the_oracle_predicts_a_build_and_what_it_refuses(build: Path, tmp_path: Path) -> None:
    """Every statement on a table with and without a running build, by name."""
    table = "create table {} a:bigint b:char(9) c:bigint primary a\ninsert_seq - {} 1 90\n"
    tries = (
        "insert - t a=100\ninsert - t a=1\nupdate - t a=1 set c=2\nupdate - t a=999 set c=2\n"
        "delete - t a=7\nbegin X\ninsert_seq X t 200 210\ninsert - u a={0}\nselect t a=5\n"
        "scan t ib\nadd index t ib(b)\nstart index t ib(b)\nstart index u ib(b)\nstep index u 2 9\n"
        "abort index u\ndrop index t ib\nrename table t u\nrename table t v\nrename table v t\n"
        "rollback X\nset log_optimize_ddl on\nflush table t\ncreate table t k:bigint primary k\n"
        "step index t 2 9\nabort index t\nabort index t\nfinish index t\nstep index x\n"
    )
    text = table.format("t", "t") + table.format("u", "u") + tries.format(1000)
    text += "start index t ib(b) ic(c)\nstep index t 4 30\n" + tries.format(1001)
    text += "start index t ib(b) ic(c)\nstep index t 99 30\n" + tries.replace("abort", "finish", 2)
    text = text.replace("{0}", "1002")
    wanted = predicted(text)
    assert {"DB_TABLE_LOCKED", "DB_NOT_FOUND", "DB_ALREADY_EXISTS"} <= set(wanted.values())
    assert outcome(build, tmp_path / "db", text) == wanted


def test_the_oracle_predicts_backups(build: Path, tmp_path: Path) -> None:
    """Names that are taken, that no backup has, and the end of each; a finished one is prepared and has the
    state that the oracle says, which is not the last one."""
    text = (
        "create table t a:bigint b:char(9) c:bigint primary a\ninsert_seq - t 1 90\n"
        "step backup x\nfinish backup x\nabort backup x\nstart backup x\nstart backup x\nstart backup y\n"
        "step backup y 3\nstep backup x 3\ninsert_seq - t 100 120\nadd index t ib(b)\nabort backup x\n"
        "start backup x lock=none\ninsert - t a=200\nfinish backup x\nfinish backup x\n"
        "start backup z\nbegin T\ndelete T t a=1\nrename table t u\nfinish backup z\nstart backup z\n"
        "commit T\nrename table t u\nstart backup last\nstep backup last 1\n"
    )
    wanted = predicted(text)
    assert {"DB_NOT_FOUND", "DB_ALREADY_EXISTS"} <= set(wanted.values())
    assert outcome(build, tmp_path / "db", text) == wanted
    oracle = Oracle(parse_script(text))
    engine = build / "engine" / "engine"
    command = [engine, "recover", "--json", "--backups", tmp_path / "db"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    found = {item["name"]: item for item in json.loads(done.stdout)["backups"]}
    assert {backup.name for backup in oracle.backups.values()} == set(found) == {"x", "z"}
    for prefix, backup in oracle.backups.items():
        assert read_tables(found[backup.name]["check"]["tables"]) == oracle.states[prefix]
        assert oracle.states[prefix] != oracle.states[-1]


def test_a_backup_made_by_command(build: Path, tmp_path: Path) -> None:
    """A copy is refused until it is prepared, twice, and opened then; a target with files is refused."""
    text = "create table t a:bigint primary a\ninsert_seq - t 1 500\n"
    assert outcome(build, tmp_path / "db", text) == {}
    engine = build / "engine" / "engine"

    def call(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([engine, *words], capture_output=True, timeout=60, check=False)

    assert call("backup", tmp_path / "db", tmp_path / "copy").returncode == 0
    assert call("backup", tmp_path / "db", tmp_path / "copy").returncode == USAGE
    refused = call("recover", tmp_path / "copy")
    assert refused.returncode == 3 and b"error[backup-unprepared]" in refused.stderr
    for _ in range(2):
        done = call("prepare", tmp_path / "copy", "--check", "--json")
        assert done.returncode == 0
        assert json.loads(done.stdout)["check"]["tables"][0]["rows"] == 500
    assert outcome(build, tmp_path / "copy", "insert - t a=501\n") == {}
    assert call("prepare", tmp_path / "db").returncode == 6


def test_the_oracle_predicts_what_options_and_names_come_to(build: Path, tmp_path: Path) -> None:
    """Each statement that alters a table under each option, names that are taken or missing, and changes of
    rows under the names as they are then; the state is the oracle's."""
    lines = ["create table t a:bigint b:char(9) c:bigint primary a", "insert_seq - t 1 90"]
    lines += [
        "start rebuild t algorithm=copy",
        "step index t 1 40",
        "insert - t a=1",
        "abort index t",
    ]
    options = [f" algorithm={name}" for name in ("copy", "inplace", "nocopy", "instant")]
    options += [" algorithm=copy lock=none", " lock=none", " lock=shared", ""]
    for option in options:
        lines += [f"add index t i1(b) i2(c){option}", f"start index t i3(c){option}"]
        lines += ["finish index t", f"rename index t i2 i4{option}", "rename index t i4 i2"]
        lines += [f"drop index t i1{option}", f"drop index t i2{option}", "drop index t i3"]
        lines += [f"rebuild table t{option}", f"start rebuild t{option}", "step index t 2 20"]
        lines += ["insert - t a=500", "abort index t"]
        lines += [f"rename column t b d{option}", "rename column t d b"]
    lines += ["add index missing i(b) algorithm=instant", "add index t i1(b) i2(c)"]
    lines += ["rename index t i1 i2", "rename index t i1 PRIMARY", "rename index t PRIMARY i"]
    lines += ["rename index t i9 i", "rename column t a c", "rename column t x y"]
    lines += ["rename column t a a", "rename column u a b", "begin T", "insert T t a=100"]
    lines += [
        "rename column t a z",
        "rename index t i1 z",
        "rebuild table t",
        "commit T",
        "start rebuild t",
    ]
    lines += [
        "insert - t a=102",
        "select t a=100",
        "rebuild table t",
        "drop table t",
        "finish index t",
    ]
    lines += ["rebuild table u", "finish index t", "start index t i5(c)"]
    lines += ["rename column t a z", "rename index t i1 z", "abort index t"]
    lines += ["rename column t a z", "rename column t b a", 'insert - t z=101 a="x"']
    text = "\n".join([*lines, "rename index t i1 c", 'update - t z=5 set a="y"', "scan t c"]) + "\n"
    wanted = predicted(text)
    assert Counter(wanted.values())["DB_UNSUPPORTED"] > 10
    assert outcome(build, tmp_path / "db", text) == wanted
    done = subprocess.run(
        [build / "engine" / "engine", "check", "--json", tmp_path / "db"],
        capture_output=True,
        timeout=60,
        check=True,
    )
    tables = json.loads(done.stdout)["tables"]
    assert read_tables(tables) == Oracle(parse_script(text)).states[-1]


@pytest.mark.parametrize("commit", ["0", "1", "2"])
def test_the_oracle_predicts_what_a_restart_leaves(
    build: Path, tmp_path: Path, commit: str
) -> None:
    """Commits stay, whichever way the target ended and whenever a commit is written; transactions and
    builds end, and their names are free; the log has the format that was asked for last."""
    lines = ["create table t a:bigint b:char(9) c:bigint primary a", "insert_seq - t 1 90"]
    ways = ("crash", "clean log_format=10.5", "crash scrub=on", "clean log_format=10.4", "clean")
    for number, way in enumerate(ways):
        lines += ["start index t ib(b) lock=none", "begin T", f"insert T t a={200 + number}"]
        lines += [
            f"insert - t a={300 + number}",
            "step index t 2 20",
            f"create table u{number} a:bigint primary a",
        ]
        lines += [f"insert - u{number} a=1", f"restart {way}", "commit T", "finish index t"]
        lines += [
            f"insert - t a={400 + number}",
            "begin T",
            f"update T t a=1 set c={number}",
            "commit T",
        ]
    text = "\n".join(lines) + "\n"
    engine = build / "engine" / "engine"
    done = subprocess.run(
        [
            engine,
            "run",
            "--json",
            "--option",
            f"flush_log_at_trx_commit={commit}",
            tmp_path / "db",
            "-",
        ],
        input=text.encode("ascii"),
        capture_output=True,
        timeout=60,
        check=True,
    )
    answer = json.loads(done.stdout)
    oracle = Oracle(parse_script(text))
    assert {item["line"]: item["error"] for item in answer["failed"]} == {
        step.line: step.error for step in oracle.steps if step.error
    }
    status = answer["status"]
    assert (status["restarts"], status["log_converted"]) == (len(ways), 2)
    assert status["recv_trx_rolled_back"] >= 2 and status["recv_indexes_dropped"] >= 2
    checked = subprocess.run(
        [engine, "check", "--json", tmp_path / "db"], capture_output=True, check=True
    )
    assert read_tables(json.loads(checked.stdout)["tables"]) == oracle.states[-1]
