"""Whatever is asked of the command line, exit code 1 means violations: a mistake, a broken file or a full
disk is one line on stderr and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from called import called

from tornpage.store.store import Store

CROSS = "".join(f"o{n} = {[str(value) for value in range(8)]}\n" for n in range(4))
FILES: dict[str, bytes] = {
    "bytes.toml": b"\xff\xfe",
    "nested.toml": b"a = " + b"[" * 100_000,
    "enormous.toml": b"#" * (3 << 20),
    "crossed.toml": (
        'description = "x"\nworkload = "smoke"\ncrash_model = "kill"\ntrials = 1\nseed = 1\n'
        f'[cross]\n{CROSS}[[hit]]\nsites = ["redo"]\nmasks = ["none"]\n'
    ).encode(),
    "file": b"",
    "random/tornpage.db": bytes(range(256)) * 400,
    "folder/tornpage.db/file": b"",
    "mini/other.toml": b"",
}
CASES = [
    ("run smoke --seed 99999999999999999999999999", "--seed"),
    ("run smoke --seed 9223372036854775807 --trials 1", "--seed"),
    ("run smoke --trials 99999999999", "--trials"),
    ("run smoke --option params.rows=² --trials 1", "rows"),
    ("run smoke --option params.rows=99999999999999999999 --trials 1", "rows"),
    ("run smoke --option params.rows=1000000000 --trials 1", "params.rows"),
    ("run bytes.toml", "bytes.toml: not a TOML text file"),
    ("run nested.toml", "nested too deeply"),
    ("run enormous.toml", "larger than 1 MiB"),
    ("run crossed.toml", "more than 1000 configurations"),
    ("run smoke --trials 1 --out file", "file: File exists"),
    ("run smoke --trials 1 --out /proc/nothing", "/proc/nothing"),
    ("run powerloss --trials 5", "no --trials"),
    ("run powerloss --budget nan", "--budget"),
    ("run smoke --resume --states 5", "no --states"),
    ("report --out random", "not a result database"),
    ("report --out random --junit random", "is a directory"),
    ("report --out damaged", "result database"),
    ("report --out damaged --run 99999999999999999999999", "no run"),
    ("report --out folder", "tornpage.db: a folder, and not a result database"),
    ("run smoke --trials 1 --out folder", "tornpage.db: a folder, and not a result database"),
    ("try mini", "mini is a folder without mini.toml"),
    ("replay 99999999999999999999.1", "RUN.NUMBER"),
    ("replay ².1", "RUN.NUMBER"),
    ("show 1.1 --out file", "no result database"),
    ("bugs 1 --status new", "--status"),
    ("bugs --mark fixed", "--mark"),
    ("bugs 1 --reason fixed", "--reason"),
    ("nothing", "No such command"),
]


def call(folder: Path, *arguments: str, **streams: int) -> subprocess.CompletedProcess[bytes]:
    """The command line in a folder, as a process whose output or errors go elsewhere."""
    command = [sys.executable, "-P", "-m", "tornpage", *arguments]
    others = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(command, cwd=folder, timeout=120, check=False, **others)  # type: ignore[call-overload,no-any-return]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that is wrong in CASES."""
    folder = tmp_path_factory.mktemp("usage")
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    path = folder / "damaged" / "tornpage.db"
    with Store(path):
        pass
    tables = path.stat().st_size
    with Store(path) as store:
        for seed in range(200):
            store.begin_run("smoke", "engine", seed, 1, {"name": "x" * 100})
    data = bytearray(path.read_bytes())
    data[tables:] = b"\xaa" * (len(data) - tables)
    path.write_bytes(data)
    return folder


@pytest.mark.parametrize(("line", "told"), CASES, ids=[line for line, _ in CASES])
def test_a_mistake_is_one_line_and_exit_code_2(folder: Path, line: str, told: str) -> None:
    """It names what is wrong, and shows no traceback."""
    done = called(folder, *line.split(" "))
    said = done.stderr.splitlines()
    assert done.returncode == 2, said
    assert said[-1].startswith("tornpage: ") and told in said[-1], said
    assert "Traceback" not in done.stderr


def test_an_output_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Report and replay say which; the report's summary is printed all the same."""
    kills = "run smoke --trials 24 --scripts 1 --fault-free 0 --jobs 1 --option doublewrite=off"
    assert called(tmp_path, *kills.split()).returncode == 1
    page, images = tmp_path / "out" / "report-1.html", tmp_path / "out" / "replay"
    page.unlink()
    page.mkdir()
    images.touch()
    report = called(tmp_path, "report")
    assert report.returncode == 2 and "bug 1, " in report.stdout and "report: " not in report.stdout
    assert report.stderr.endswith("report-1.html: it is there, and no file\n")
    with Store(tmp_path / "out" / "tornpage.db", write=False) as store:
        trial = store.bugs()[0].reproducer.name
    replay = called(tmp_path, "replay", trial, "--ask", "run")
    assert replay.returncode == 2 and str(images.relative_to(tmp_path)) in replay.stderr
    assert replay.stderr.splitlines()[-1].startswith("tornpage: ")


def test_a_full_output_is_no_violation(folder: Path) -> None:
    """What cannot be printed is a failure, and not a finding."""
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = call(folder, "--version", stdout=full)
    finally:
        os.close(full)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"No space left" in done.stderr


@pytest.mark.parametrize("line", ["list options", "list options --json", "--help", "--version"])
def test_nobody_reads_the_output(folder: Path, line: str) -> None:
    """As in a pipe to head: the exit code is that of what was done."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = call(folder, *line.split(" "), stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_there_is_no_output(folder: Path) -> None:
    """Standard output is closed: there is nothing to print to, and that is no failure."""
    command = [sys.executable, "-P", "-m", "tornpage", "list", "options"]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(shell, cwd=folder, timeout=120, check=False, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")


def test_nobody_reads_the_errors(folder: Path) -> None:
    """A closed pipe changes no exit code."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert call(folder, "replay", "x", stderr=writer).returncode == 2
    finally:
        os.close(writer)


def test_debug_shows_the_traceback(folder: Path) -> None:
    """For those who mend it."""
    done = called(folder, "--debug", "report", "--out", "random")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("tornpage: ")


def test_a_mistake_is_no_run(tmp_path: Path) -> None:
    """An option that the engine does not know leaves nothing that --go-on would go on with."""
    done = called(tmp_path, "run", "smoke", "--trials", "1", "--option", "nope=1")
    assert done.returncode == 2 and "nope" in done.stderr
    assert not (tmp_path / "out" / "tornpage.db").exists()


def test_a_report_is_written_through_no_link(tmp_path: Path) -> None:
    """Somebody else's file at the end of a link stays as it is."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report-1.html").symlink_to(precious)
    few = ("--trials", "1", "--scripts", "1", "--fault-free", "0", "--jobs", "1")
    done = called(tmp_path, "run", "smoke", *few)
    assert done.returncode in (0, 3), done.stderr
    assert precious.read_text() == "mine"
    assert (tmp_path / "out" / "report-1.html").read_text().startswith("<!doctype html>")
