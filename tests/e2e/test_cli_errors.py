"""The `engine` program in front of everything that is not a sound database: one clear line, a documented exit
code, and nothing changed by commands that only read and by refusals.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

DEADLINE_S = 60
PAGE = 4096
OK, FINDINGS, USAGE, REFUSED, IO, LOCKED, NO_DATABASE, NEEDS_RECOVERY = range(8)
SCRIPT = """create table t a:bigint b:char(20) primary a
insert_seq - t 1 300
add index t ib(b)
create table u a:bigint primary a
insert - u a=1
"""
READ_ONLY = ("check", "log", "status")


@dataclass(frozen=True, slots=True)
class Done:
    """One finished call of the program."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Engine:
    """The program. Whatever happens, its exit code is a documented one."""

    program: Path

    def __call__(self, *arguments: str | Path, stdin: str = "", user: int | None = None) -> Done:
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=DEADLINE_S,
            check=False,
            user=user,
        )
        assert 0 <= done.returncode <= NEEDS_RECOVERY, (arguments, done.returncode, done.stderr)
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def engine(build: Path) -> Engine:
    """The program under test."""
    return Engine(build / "engine" / "engine")


@pytest.fixture(scope="session")
def images(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A database closed cleanly, and one that was let go in the middle of a transaction."""
    folder = tmp_path_factory.mktemp("images")
    clean, crashed = folder / "clean", folder / "crashed"
    assert engine("run", clean, "-", stdin=SCRIPT).code == OK
    more = SCRIPT + "begin x\ninsert_seq x u 10 90\nflush log\n"
    assert engine("run", crashed, "-", "--crash", stdin=more).code == OK
    return {"clean": clean, "crashed": crashed}


@pytest.fixture
def clean(images: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the clean database."""
    return shutil.copytree(images["clean"], tmp_path / "db")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(done: Done, code: int, *words: str) -> None:
    """It ended with this code, said one line with these words, and printed no result."""
    assert done.code == code, done
    assert done.err.startswith("engine: ") and len(done.err.splitlines()) == 1, done.err
    assert all(word in done.err for word in words), done.err


# ---- what is no database ----


@pytest.mark.parametrize("command", [*READ_ONLY, "recover"])
def test_no_such_directory(engine: Engine, tmp_path: Path, command: str) -> None:
    """A missing directory is named, and not created."""
    refused(engine(command, tmp_path / "none"), NO_DATABASE, "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", [*READ_ONLY, "recover"])
def test_empty_directory(engine: Engine, tmp_path: Path, command: str) -> None:
    """An empty directory is no database, and stays empty."""
    (tmp_path / "db").mkdir()
    refused(engine(command, tmp_path / "db"), NO_DATABASE, "not a data directory")
    assert contents(tmp_path / "db") == {}


@pytest.mark.parametrize("command", [*READ_ONLY, "recover", "run"])
def test_foreign_directory(engine: Engine, tmp_path: Path, command: str) -> None:
    """Somebody else's files are left alone, also by `run`, which creates databases."""
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "letter.txt").write_text("Dear reader")
    before = contents(folder)
    done = engine(command, folder, "-") if command == "run" else engine(command, folder)
    refused(done, NO_DATABASE, "not a data directory")
    assert contents(folder) == before


@pytest.mark.parametrize("command", [*READ_ONLY, "recover", "run"])
def test_file_for_directory(engine: Engine, tmp_path: Path, command: str) -> None:
    """A file where a directory is expected."""
    (tmp_path / "db").write_text("x")
    done = engine(command, tmp_path / "db", *(["-"] if command == "run" else []))
    refused(done, done.code, "db")
    assert done.code in (NO_DATABASE, IO)
    assert (tmp_path / "db").read_text() == "x"


@pytest.mark.parametrize("command", [*READ_ONLY, "recover", "run"])
def test_log_missing(engine: Engine, clean: Path, command: str) -> None:
    """Data files without a redo log are never taken for an empty place (I30)."""
    (clean / "ib_logfile0").unlink()
    before = contents(clean)
    done = engine(command, clean, *(["-"] if command == "run" else []))
    refused(done, REFUSED, "error[log-missing]: redo log missing")
    assert contents(clean) == before


# ---- damaged files ----


def test_page_size_option(engine: Engine, clean: Path) -> None:
    """A page size other than the directory's is refused, and nothing is converted."""
    before = contents(clean)
    for name, value in (("page_size", "16k"), ("log_file_size", "8m")):
        option = ("--option", f"{name}={value}")
        refused(engine("run", clean, "-", *option), USAGE, name, "in this directory")
        refused(engine("recover", clean, *option), USAGE, name, "in this directory")
    assert contents(clean) == before


@pytest.mark.parametrize("command", [*READ_ONLY, "recover", "run"])
def test_log_header_damaged(engine: Engine, clean: Path, command: str) -> None:
    """A damaged header of the redo log names the file."""
    log = clean / "ib_logfile0"
    data = bytearray(log.read_bytes())
    data[9] ^= 1
    log.write_bytes(data)
    before = contents(clean)
    done = engine(command, clean, *(["-"] if command == "run" else []))
    refused(done, REFUSED, "error[log-damaged]: ib_logfile0", "damaged")
    assert contents(clean) == before


@pytest.mark.parametrize("command", [*READ_ONLY, "recover"])
def test_log_cut(engine: Engine, clean: Path, command: str) -> None:
    """A redo log that is too short is refused."""
    os.truncate(clean / "ib_logfile0", 100_000)
    before = contents(clean)
    refused(engine(command, clean), REFUSED, "error[log-damaged]: ib_logfile0", "cut")
    assert contents(clean) == before


@pytest.mark.parametrize("name", ["ibdata1", "t.ibd"])
def test_data_file_cut(engine: Engine, clean: Path, name: str) -> None:
    """A data file that lost its end is refused by recovery and found by the scan."""
    os.truncate(clean / name, (clean / name).stat().st_size - PAGE)
    before = contents(clean)
    done = engine("check", clean)
    assert (done.code, done.err) == (FINDINGS, "") and name in done.out
    assert contents(clean) == before
    refused(engine("recover", clean), REFUSED, f"error[file-short]: {name}", "cut short")


def test_data_file_missing(engine: Engine, clean: Path) -> None:
    """A table's file is gone: the scan finds it, recovery names it."""
    (clean / "t.ibd").unlink()
    done = engine("check", clean)
    assert (done.code, done.err) == (FINDINGS, "") and "table t" in done.out
    refused(engine("recover", clean), REFUSED, "error[file-missing]: ", "t.ibd", "missing")
    answer = json.loads(engine("recover", clean, "--json").out)
    assert (answer["ok"], answer["error"], answer["refusal"]) == (
        False,
        "DB_UNRECOVERABLE",
        "file-missing",
    )


def test_page(engine: Engine, clean: Path) -> None:
    """`page`: damaged, beyond the end, cut, no page size to be found, no file, no number."""
    table = clean / "t.ibd"
    data = bytearray(table.read_bytes())
    assert engine("page", table, "1").code == OK
    data[PAGE + 100] ^= 0x10
    table.write_bytes(data)
    before = contents(clean)
    done = engine("page", table, "1")
    assert (done.code, done.err) == (FINDINGS, "") and "bad checksum" in done.out
    refused(engine("page", table, "100000"), USAGE, "beyond the end")
    refused(engine("page", table, "x"), USAGE, "page number")
    refused(engine("page", table, "-1"), USAGE)
    refused(engine("page", clean / "none.ibd", "0"), NO_DATABASE, "none.ibd")
    refused(engine("page", clean, "0"), engine("page", clean, "0").code, "db")
    refused(engine("page", table, "0", "--page-size", "5k"), USAGE, "page_size")
    refused(engine("page", clean / "ib_logfile0", "0"), REFUSED, "--page-size")
    assert contents(clean) == before
    os.truncate(table, PAGE + 7)
    refused(engine("page", table, "1"), REFUSED, "cut off")
    os.truncate(table, 0)
    refused(engine("page", table, "0"), REFUSED, "--page-size")


# ---- scripts and options ----


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("frobnicate t", ("frobnicate",)),
        ('insert - t a=1 b="' + "x" * 20_000 + '"', ("16000",)),
        ("insert - t a=99999999999999999999", ()),
        ('insert - t b="open', ()),
        ('insert - t b="\\xZZ"', ()),
        ("create table t a:char(0) primary a", ()),
        ("create table t a:bigint", ()),
        ("add index t i(", ()),
        ("purge many", ()),
        ("insert - " + "t" * 5000 + " a=1", ()),
        ("\x01\x7f", ()),
    ],
)
def test_script_line(engine: Engine, clean: Path, line: str, words: tuple[str, ...]) -> None:
    """A wrong line is named by its number, and nothing before it was executed."""
    before = contents(clean)
    script = f"# comment\n\ninsert - t a=4711\n{line}\ninsert - t a=4712\n"
    done = engine("run", clean, "-", stdin=script)
    refused(done, USAGE, "script line 4", *words)
    assert contents(clean) == before


def test_script_missing(engine: Engine, tmp_path: Path) -> None:
    """No script: no directory either."""
    refused(engine("run", tmp_path / "db", tmp_path / "none.txt"), USAGE, "none.txt")
    assert not (tmp_path / "db").exists()


def test_statement_fails(engine: Engine, clean: Path) -> None:
    """What fails at run time is reported with its line, and the script goes on."""
    script = "insert - t a=1\ninsert - none a=1\ndrop table t\ndrop table t\n"
    done = engine("run", clean, "-", "--json", stdin=script)
    result = json.loads(done.out.splitlines()[-1])
    assert done.code == OK and result["ok"]
    assert [(f["line"], f["error"]) for f in result["failed"]] == [
        (1, "DB_DUPLICATE_KEY"),
        (2, "DB_NOT_FOUND"),
        (4, "DB_NOT_FOUND"),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "DB"],
        ["run", "DB", "-", "more"],
        ["run", "DB", "-", "--sett", "x=1"],
        ["run", "DB", "-", "--option"],
        ["run", "DB", "-", "--option", "page_size"],
        ["run", "DB", "-", "--option", "page_size=5000"],
        ["run", "DB", "-", "--option", "page_size=99999999999999999999"],
        ["run", "DB", "-", "--option", "dblwr_pages=-1"],
        ["run", "DB", "-", "--option", "nothing=1"],
        ["run", "DB", "-", "--option", "doublewrite=maybe"],
        ["check", "DB", "--check"],
        ["log", "DB", "--from", "x"],
        ["status", "DB", "-x"],
        ["frobnicate", "DB"],
        ["page", "DB/t.ibd"],
    ],
)
def test_usage(engine: Engine, tmp_path: Path, arguments: list[str]) -> None:
    """Wrong arguments: one line, exit code 2, and no directory appears."""
    folder = tmp_path / "db"
    refused(engine(*[a.replace("DB", str(folder)) for a in arguments]), USAGE)
    assert not folder.exists()


def test_no_arguments(engine: Engine) -> None:
    """Without arguments: how to use it, with the exit codes."""
    done = engine()
    assert done.code == USAGE and "Exit codes" in done.err


def test_log_from(engine: Engine, clean: Path) -> None:
    """`log --from` a place where no group starts, or where no log is."""
    for lsn in ("1", "8191", "9223372036854775807"):
        refused(engine("log", clean, "--from", lsn), REFUSED, lsn)


# ---- other processes, permissions ----


def test_locked(engine: Engine, clean: Path) -> None:
    """While another process has the directory open, everybody is refused and nothing is changed."""
    with (clean / "engine.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = contents(clean)
        for command in (*READ_ONLY, "recover"):
            refused(engine(command, clean), LOCKED, "in use")
        refused(engine("run", clean, "-"), LOCKED, "in use")
        assert contents(clean) == before
    assert engine("check", clean).code == OK


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can reach: pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_read_only(engine: Engine, images: dict[str, Path], open_folder: Path) -> None:
    """A directory without write permission: reading works, the rest is an I/O error that names the file."""
    folder = shutil.copytree(images["clean"], open_folder / "db")
    reachable = Engine(Path(shutil.copy(engine.program, open_folder / "engine")))
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    nobody = 65534 if os.geteuid() == 0 else None
    before = contents(folder)
    for command in READ_ONLY:
        assert reachable(command, folder, user=nobody).code == OK
    assert reachable("page", folder / "t.ibd", "1", user=nobody).code == OK
    refused(reachable("recover", folder, user=nobody), IO, "Permission denied")
    refused(reachable("run", folder, "-", user=nobody), IO, "Permission denied")
    folder.chmod(0o755)
    assert contents(folder) == before


# ---- hostile bytes ----


def mutate(folder: Path, rnd: random.Random) -> None:
    """One change of one file."""
    path = rnd.choice([p for p in sorted(folder.iterdir()) if p.name != "engine.lock"])
    data = bytearray(path.read_bytes())
    kind = rnd.randrange(6)
    if kind == 0 or not data:
        os.truncate(path, rnd.randrange(len(data) + 1))
        return
    if kind == 1:
        path.unlink()
        return
    for _ in range(rnd.randrange(1, 8)):
        at = rnd.randrange(min(len(data), 2048 if kind < 4 else len(data)))
        value = rnd.choice([0, 1, 255, rnd.randrange(256)])
        data[at : at + 4] = struct.pack(">I", rnd.choice([value, 0xFFFFFFFF, value << 24]))
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(40))
def test_hostile(engine: Engine, images: dict[str, Path], tmp_path: Path, seed: int) -> None:
    """Any bytes: a documented code, at most one line on stderr, JSON where it was asked for, and the commands
    that only read have only read."""
    rnd = random.Random(seed)
    folder = shutil.copytree(images[rnd.choice(["clean", "crashed"])], tmp_path / "db")
    for _ in range(rnd.randrange(1, 4)):
        mutate(folder, rnd)
    before = contents(folder)
    calls: list[list[str | Path]] = [[command, folder] for command in READ_ONLY]
    calls += [["page", path, str(n)] for path in sorted(folder.iterdir()) for n in (0, 1, 7)]
    for call in calls:
        for extra in ([], ["--json"]):
            done = engine(*call, *extra)
            if done.code not in (OK, FINDINGS, NEEDS_RECOVERY):
                refused(done, done.code)
            assert done.code != IO and (
                done.err == "" or done.code in (USAGE, REFUSED, NO_DATABASE)
            )
            if extra and done.out:
                json.loads(done.out.splitlines()[-1])
    assert contents(folder) == before
    done = engine("recover", folder, "--check", "--json")
    assert json.loads(done.out.splitlines()[-1])["ok"] == (done.code in (OK, FINDINGS))
