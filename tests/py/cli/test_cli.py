"""The command line as such; what its commands do is tested with real trials in tests/e2e."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from called import called

from tornpage.cli.options import seconds_of
from tornpage.cli.target import audit_text
from tornpage.live.admission import Admission, Audited
from tornpage.live.stopped import Compared
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError


def test_version_is_that_of_the_installed_package() -> None:
    """`python -m tornpage --version` prints one line and ends with 0."""
    command = [sys.executable, "-m", "tornpage", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"tornpage {importlib.metadata.version('tornpage')}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--check", "--as-shipped"), "--check runs nothing"),
        (("--check", "--table", "TABLE"), "--check runs nothing"),
        (("--check", "--as-shipped", "--table", "TABLE"), "--check runs nothing"),
        (("--table", "TABLE"), "--table needs --as-shipped"),
        (("--seeds", "2"), "--seeds needs --as-shipped"),
        (("--as-shipped", "--states", "9"), "--states and --kills limit a plain search"),
        (("--check", "--kills", "0"), "--states and --kills limit a plain search"),
        (("--as-shipped", "--only", "dblwr_off", "--table", "TABLE"), "--table needs --as-shipped"),
        (("--harness", "--as-shipped"), "--harness runs tests"),
        (("--harness", "--states", "9"), "--harness runs tests"),
        (("--explain", "--as-shipped"), "--explain runs the default campaigns"),
        (("--seed", "2"), "--seed and --count need --explain"),
        (("--explain", "--count", "9000"), "--count 9000: there are"),
        (("--explain", "--only", "dblwr_off", "--table", "TABLE"), "--only names mutants"),
        (("--harness", "--only", "junit_known_bugs_pass", "--table", "TABLE"), "--table needs all"),
    ],
)
def test_mutants_refuses_what_it_would_leave_out(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    """One line, exit code 2, and no table is written."""
    table = tmp_path / "BUGS.md"
    words = [word.replace("TABLE", str(table)) for word in arguments]
    done = called(tmp_path, "mutants", *words, "--out", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith(f"tornpage: {message}")
    assert not table.exists()


@pytest.mark.parametrize("command", ["run smoke", "nightly smoke", "runs", "report"])
def test_an_empty_out_is_not_the_current_folder(command: str, tmp_path: Path) -> None:
    """One line, exit code 2, and nothing is written."""
    done = called(tmp_path, *command.split(), "--out", "")
    assert (done.returncode, done.stderr.startswith("tornpage: --out: ")) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["run smoke", "nightly smoke"])
def test_resume_makes_no_store(command: str, tmp_path: Path) -> None:
    """A mistyped --out has nothing to go on with, and gets nothing."""
    out = tmp_path / "oot"
    done = called(tmp_path, *command.split(), "--resume", "--out", str(out))
    assert (done.returncode, "no result database here" in done.stderr) == (2, True), done.stderr
    assert not out.exists()


def test_an_interrupt_while_the_command_is_loaded(tmp_path: Path) -> None:
    """Ctrl-C in the first moment: exit code 130, one line and no traceback."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n", "utf-8")
    words = [sys.executable, "-m", "tornpage", "--version"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (130, "tornpage: interrupted; nothing had begun\n")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("60s", 60), ("5m", 300), ("2h", 7200), ("1.5", 1.5)]
)
def test_times(text: str, seconds: float) -> None:
    """A number, and its unit."""
    assert seconds_of("--budget", text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0.5s", "-5m", "5d", "nan", "1e3", "m", "1 h"])
def test_other_times_are_refused(text: str) -> None:
    """With the option's name."""
    with pytest.raises(ConfigError, match="--budget"):
        seconds_of("--budget", text)


def test_a_damaged_store_is_one_line_without_sql(tmp_path: Path) -> None:
    """The words of the database; the statement that met the damage helps nobody."""
    place = tmp_path / "tornpage.db"
    with Store(place):
        pass
    with contextlib.closing(sqlite3.connect(place)) as database:
        (size,) = database.execute("pragma page_size").fetchone()
        (root,) = database.execute(
            "select rootpage from sqlite_master where name = 'run'"
        ).fetchone()
        database.execute("pragma wal_checkpoint(truncate)")
    with place.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\x5a" * size)
    done = called(tmp_path, "runs", "--out", str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "malformed" in done.stderr
    assert "select" not in done.stderr.lower()


@pytest.mark.parametrize(
    "line",
    [
        "show 99999999999999999999.0",
        "show 1.9223372036854775808",
        "replay 1.s99999999999999999999",
        "report --run 99999999999999999999",
        "report --run 9223372036854775808",
        "bugs 99999999999999999999",
        "bugs 9223372036854775808 --mark known",
        "diff 99999999999999999999 1",
        "explain --run 99999999999999999999",
        "run smoke --seed 99999999999999999999",
    ],
)
def test_a_number_that_no_database_holds_is_refused(line: str, tmp_path: Path) -> None:
    """In one line, as any other that is not there."""
    with Store(tmp_path / "out" / "tornpage.db"):
        pass
    done = called(tmp_path, *line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "Error" not in done.stderr, done.stderr


LOST = """
import signal, sys
from tornpage import __main__
from tornpage.cli import main

class Dying:
    def __del__(self):
        signal.raise_signal(signal.{signal})  # Python raises nothing in here

def command():
    Dying()
    signal.pause()

main._call = command
__main__.main()
"""


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_that_python_would_lose_comes_again(number: str, code: int) -> None:
    """It was met in a callback of the garbage collection: without a traceback, the command ends."""
    command = [sys.executable, "-c", LOST.format(signal=number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, "tornpage: interrupted; nothing is kept\n")


def test_a_group_without_a_command_says_so(tmp_path: Path) -> None:
    """Its help on standard output, and what is wrong in one line."""
    done = called(tmp_path, "bench")
    assert (done.returncode, done.stderr) == (2, "tornpage: a command is missing\n")
    assert "doublewrite" in done.stdout


@pytest.mark.parametrize(
    "error",
    ["ImportError('libx.so: failed to map\\nsegment')", "MemoryError()", "OSError(12, 'no')"],
)
def test_what_cannot_be_loaded_is_a_failure_of_the_harness(error: str) -> None:
    """No finding (exit code 1), and no traceback: one line and exit code 2."""
    code = f"""
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "tornpage.cli.main":
            raise {error}
sys.meta_path.insert(0, Broken())
from tornpage.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"tornpage: could not be loaded: {error.partition('(')[0]}")


def test_an_admission_without_an_audit_says_why() -> None:
    """Never silently: the reason stands in the line of `check` and `try`."""
    audited = Audited("Operation not permitted", Compared(1000, 3000), 0)
    seen = Admission(1, 1, 1, 1, 1, True, {}, audited)
    told = audit_text(seen)
    assert told.startswith(
        "at 1,000 of 3,000 acknowledgements too; not audited: Operation not permitted"
    )
    told = audit_text(replace(seen, audited=replace(audited, missing="", recoveries=4)))
    assert "not audited" not in told and told.endswith("nor in 4 recoveries")


def test_what_a_run_has_left_is_told() -> None:
    """By program, each once, with how many there were."""
    audited = Audited("", Compared(1, 1), 1)
    seen = Admission(1, 1, 1, 1, 1, True, {}, audited, ("cat", "sleep", "sleep"))
    said = "run left processes behind, which were ended with it: cat (1), sleep (2); an audit has"
    assert said in audit_text(seen)
