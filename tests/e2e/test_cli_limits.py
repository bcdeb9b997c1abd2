"""The `engine` program and limits: few descriptors, small files, scripts without an end."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

DEADLINE_S = 60
OK, USAGE, IO = 0, 2, 4


@dataclass(frozen=True, slots=True)
class Limited:
    """The program under one limit of the system."""

    program: Path
    limit: int
    value: int

    def __call__(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["prlimit", f"--{self._name()}={self.value}", "--", self.program, *arguments],
            capture_output=True,
            encoding="utf-8",
            timeout=DEADLINE_S,
            check=False,
        )

    def _name(self) -> str:
        return {resource.RLIMIT_NOFILE: "nofile", resource.RLIMIT_FSIZE: "fsize"}[self.limit]


@pytest.fixture(scope="session")
def program(build: Path) -> Path:
    """The program under test."""
    return build / "engine" / "engine"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder on tmpfs: thousands of fsyncs cost nothing there."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TORNPAGE_TMP", "/dev/shm")) as name:
        yield Path(name)


def test_more_tables_than_descriptors(program: Path, folder: Path) -> None:
    """1,200 tables are created, recovered, checked and opened again with 64 descriptors."""
    engine = Limited(program, resource.RLIMIT_NOFILE, 64)
    script, db = folder / "script", folder / "db"
    script.write_text(
        "".join(f"create table t{i} a:bigint primary a\ninsert - t{i} a={i}\n" for i in range(1200))
    )
    last = folder / "last"
    last.write_text("scan t1199\n")
    done = engine("run", db, script, "--crash", "--option", "log_file_size=4m")
    assert done.returncode == OK, done.stderr
    done = engine("recover", db, "--check")
    assert done.returncode == OK and " 0 findings" in done.stdout, (done.stdout[-200:], done.stderr)
    done = engine("run", db, last)
    assert done.returncode == OK and "1 rows" in done.stdout, done.stderr


def test_endless_script(program: Path, tmp_path: Path) -> None:
    """A script that does not end is refused in bounded memory and time, and nothing is created."""
    db = tmp_path / "db"
    done = subprocess.run(
        [program, "run", db, "/dev/zero"],
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == USAGE
    assert done.stderr == "engine: script /dev/zero is longer than 67108864 bytes\n"
    assert not db.exists()


def test_file_size_limit(program: Path, folder: Path) -> None:
    """A file that may not grow (RLIMIT_FSIZE) is an I/O error with a message, not an end by a signal; without
    the limit everything that was acknowledged is there again."""
    db, script, last = folder / "db", folder / "script", folder / "last"
    script.write_text(
        "create table t a:bigint b:char(200) primary a\n"
        + "".join(f"insert - t a={i}\n" for i in range(40000))
    )
    last.write_text("scan t\n")
    limited = Limited(program, resource.RLIMIT_FSIZE, 2 << 20)
    done = limited("run", db, script, "--acks")
    assert done.returncode == IO, (done.returncode, done.stderr)
    assert "failed: File too large" in done.stderr and len(done.stderr.splitlines()) == 1
    acked = done.stdout.count("ack ") - 1
    engine = Limited(program, resource.RLIMIT_FSIZE, 1 << 30)
    done = engine("run", db, last)
    assert done.returncode == OK, done.stderr
    rows = int(done.stdout.split(" rows")[0].split()[-1])
    assert 0 < acked <= rows <= acked + 1
