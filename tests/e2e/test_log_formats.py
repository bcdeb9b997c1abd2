"""The two formats of the redo log, from outside: chosen at creation, told, converted after a clean close."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = """create table t a:bigint b:char(40) primary a
insert_seq - t 1 500
set log_optimize_ddl on
add index t ib(b)
delete - t a=7
"""
IGNORED = "engine: warning: log_optimize_ddl is ignored"
EXIT_REFUSED = 3
DEADLINE_S = 60


def engine(build: Path, *args: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """The program's answer, whatever it is."""
    command = [build / "engine" / "engine", *args]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def status_of(build: Path, database: Path) -> str:
    """What `engine status` says of the format."""
    lines = engine(build, "status", str(database)).stdout.splitlines()
    return next(line.split()[-1] for line in lines if line.startswith("log format"))


def digest_of(build: Path, database: Path) -> list[str]:
    """The scanner's lines about tables; it has no finding."""
    done = engine(build, "check", str(database))
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "digest" in line]


def test_the_option_is_accepted_and_ignored(build: Path, tmp_path: Path) -> None:
    """With a 10.5 log a load is logged whatever log_optimize_ddl says; who sets it is told (MDEV-19747)."""
    database = str(tmp_path / "db")
    new = ("run", database, "-", "--option", "log_format=10.5")
    done = engine(build, *new, "--option", "log_optimize_ddl=on", "--crash", text=SCRIPT)
    assert done.returncode == 0
    assert done.stderr.count(IGNORED) == 2  # the option, the statement
    log = engine(build, "log", database, "--from", "8204").stdout
    assert "INDEX_LOAD" not in log and log.count("  INSERT ") > 1000
    assert IGNORED in engine(build, "recover", database, "--option", "log_optimize_ddl=off").stderr
    assert engine(build, "recover", database).stderr == ""


def test_old_format_says_nothing(build: Path, tmp_path: Path) -> None:
    """A 10.4 log heeds the option: no warning, INDEX_LOAD in the log."""
    database = str(tmp_path / "db")
    done = engine(
        build, "run", database, "-", "--option", "log_optimize_ddl=on", "--crash", text=SCRIPT
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "MLOG_INDEX_LOAD" in engine(build, "log", database, "--from", "8204").stdout


def test_conversion(build: Path, tmp_path: Path) -> None:
    """There and back, with the same rows; a log with changes refuses and stays as it was."""
    database = tmp_path / "db"
    assert engine(build, "run", str(database), "-", "--crash", text=SCRIPT).returncode == 0
    before = (database / "ib_logfile0").read_bytes()
    done = engine(build, "recover", str(database), "--option", "log_format=10.5")
    assert done.returncode == EXIT_REFUSED
    assert "error[unsupported]" in done.stderr and "may hold changes" in done.stderr
    assert (database / "ib_logfile0").read_bytes() == before
    assert engine(build, "recover", str(database)).returncode == 0
    rows = digest_of(build, database)
    for wanted in ("10.5", "10.4", "10.5"):
        done = engine(build, "recover", str(database), "--option", f"log_format={wanted}")
        assert done.returncode == 0, done.stderr
        assert (status_of(build, database), digest_of(build, database)) == (wanted, rows)
    more = engine(build, "run", str(database), "-", "--crash", text='insert - t a=1000 b="new"\n')
    assert more.returncode == 0
    assert engine(build, "recover", str(database)).returncode == 0
    assert status_of(build, database) == "10.5" and digest_of(build, database) != rows
