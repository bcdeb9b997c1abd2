"""Targets that come along: all are listed, each fits where it is ready, what is missing is told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from e2e_support import Tornpage

from tornpage.campaigns.attempt import check_target
from tornpage.lab.fetch import fetch
from tornpage.targets.command.file import TargetFile
from tornpage.targets.registry import BUNDLED, TARGETS, make_target, target_names
from tornpage.vocabulary.errors import ConfigError, TornpageError

SMALL = (
    "berkeleydb",
    "kyoto",
    "leveldb",
    "leveldb-1.22",
    "lmdb",
    "redb",
    "rocksdb",
    "sqlite-3.7.2",
    "tdb",
)

GO = """
[ "$1 $3" = "-C build" ] || exit 1
while [ "$1" != -o ]; do [ "$1" = -C ] && from=$2; shift; done
echo "$from, cgo $CGO_ENABLED" >"$2"
"""
"""What `go -C FOLDER build ... -o PROGRAM .` leaves."""
CARGO = """
[ "$1" = build ] || exit 1
while [ $# -gt 0 ]; do
    case $1 in --manifest-path) from=$2 ;; --target-dir) to=$2 ;; --bin) name=$2 ;; --locked) how=l ;; esac
    shift
done
mkdir -p "$to/release/deps" && echo "$from, $how" >"$to/release/$name"
"""


def test_every_target_file_is_a_target(build: Path) -> None:
    """By its name, with options that have a default; its campaigns are those of target files."""
    names = {path.stem for path in BUNDLED.glob("*.toml")}
    assert {"mariadb-10.11", "mariadb-10.2", "postgresql", *SMALL} <= names
    assert {*names, *TARGETS} <= {*target_names()}
    for name in names:
        target = make_target(name, build, ready=False)
        assert target.name == name and target.what
        assert all(option.what for option in target.options())


@pytest.mark.parametrize("name", sorted(path.stem for path in BUNDLED.glob("*.toml")))
def test_every_store_is_seen_by_hand(name: str, build: Path) -> None:
    """By a text of a shell that names the crashed folder and no program of Tornpage; what it needs beside it
    is there, and the shell can read it."""
    by_hand = make_target(name, build, ready=False).by_hand({})
    assert '"$dir"' in by_hand.text and "-m tornpage" not in by_hand.text
    assert all(file.is_file() for file in by_hand.files.values())
    scripts = [file for file in by_hand.files.values() if file.suffix == ".sh"]
    for words in (["-c", by_hand.text], *([str(script)] for script in scripts)):
        subprocess.run(["/bin/sh", "-n", *words], check=True)


def test_what_is_missing_is_told_in_one_line(tmp_path: Path, tornpage: Tornpage) -> None:
    """With the command that gets it."""
    answer = tornpage(
        "run", "smoke", "--target", "sqlite-3.7.2", TORNPAGE_FETCHED=str(tmp_path / "none")
    )
    assert answer.code == 2, answer.text
    assert "tornpage target fetch sqlite-3.7.2" in answer.text.splitlines()[-1]


def test_what_is_missing_is_fetched(tmp_path: Path, tornpage: Tornpage) -> None:
    """With --fetch by the command that the message offers; what is there is not fetched again."""
    programs = tmp_path / "bin"
    programs.mkdir()
    client = programs / "apt-get"
    client.write_text(
        '#!/bin/sh\necho "$@" >>"$0.log"\ncase $2 in -y) mkdir "$4" ;; esac\n', "utf-8"
    )
    client.chmod(0o755)
    needed = tmp_path / "needed"
    commands = 'run = "/bin/true {dir}"\nrecover = "/bin/true"'
    (tmp_path / "own.toml").write_text(
        f'name = "own"\n[needs]\n"{needed}" = "apt-get install {needed}"\n[commands]\n{commands}\n',
        "utf-8",
    )
    run = ("run", "smoke", "--target", str(tmp_path / "own.toml"))
    path = f"{programs}:{os.environ['PATH']}"
    offered = tornpage(*run, PATH=path)
    assert offered.code == 2 and not needed.exists()
    last = offered.text.splitlines()[-1]
    assert last.endswith(f"target own needs needed: apt-get install {needed}, or --fetch does it")
    for _ in range(2):
        done = tornpage(*run, "--fetch", PATH=path)
        assert done.code == 2 and "needs" not in done.text, done.text
    log = Path(f"{client}.log").read_text("utf-8").splitlines()
    assert needed.is_dir() and log == ["-qq update", f"-qq -y install {needed}"]


def test_a_night_fetches_what_its_campaigns_need(tmp_path: Path, tornpage: Tornpage) -> None:
    """Of each of their targets, before it begins; without --fetch it offers to."""
    programs = tmp_path / "bin"
    programs.mkdir()
    client = programs / "apt-get"
    client.write_text('#!/bin/sh\ncase $2 in -y) mkdir "$4" ;; esac\n', "utf-8")
    client.chmod(0o755)
    needed = [tmp_path / f"needed-{name}" for name in "ab"]
    for name, need in zip("ab", needed, strict=True):
        (tmp_path / f"{name}.toml").write_text(
            f'name = "{name}"\n[needs]\n"{need}" = "apt-get install {need}"\n'
            '[commands]\nrun = "/bin/true {dir}"\nrecover = "/bin/true"\n',
            "utf-8",
        )
        (tmp_path / f"of-{name}.toml").write_text(
            f'description = "x"\nworkload = "own"\ncrash_model = "kill"\ntarget = "{name}.toml"\n'
            'trials = 2\nseed = 1\n[[hit]]\nsites = ["other"]\nmasks = ["none"]\n',
            "utf-8",
        )
    night = ("nightly", *(str(tmp_path / f"of-{name}.toml") for name in "ab"))
    path = f"{programs}:{os.environ['PATH']}"
    offered = tornpage(*night, PATH=path)
    assert offered.code == 2 and offered.text.splitlines()[-1].endswith("or --fetch does it")
    done = tornpage(*night, "--fetch", PATH=path)
    assert done.code == 2 and "needs needed" not in done.text, done.text
    assert all(need.is_dir() for need in needed)


def test_what_no_client_brings_is_not_offered(tmp_path: Path, tornpage: Tornpage) -> None:
    """A remedy in words is for a person, with --fetch too."""
    needed = tmp_path / "needed"
    (tmp_path / "own.toml").write_text(
        f'name = "own"\n[needs]\n"{needed}" = "pip it, or ask \'us"\n[commands]\n'
        'run = "/bin/true {dir}"\nrecover = "/bin/true"\n',
        "utf-8",
    )
    for more in ((), ("--fetch",)):
        told = tornpage("run", "smoke", "--target", str(tmp_path / "own.toml"), *more)
        assert told.code == 2
        last = told.text.splitlines()[-1]
        assert last.endswith("target own needs needed: pip it, or ask 'us"), last


@pytest.mark.parametrize("name", SMALL)
def test_a_library_fits(name: str, build: Path) -> None:
    """The recording equals the files, and two runs come to the same states."""
    try:
        target = make_target(name, build)
    except TornpageError as error:
        pytest.skip(str(error))
    assert check_target(target).repeatable


def test_a_fetch_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for a client that is not there nor for a target that needs none."""
    monkeypatch.setenv("TORNPAGE_FETCHED", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    commands = {"run": "run {dir}", "recover": "recover"}
    clients = (
        ({"maven": ["a:b:1"]}, "mvn"),
        ({"go": {"a": "go/a"}}, "go"),
        ({"cargo": {"a": "b"}}, "cargo"),
    )
    missing = [(wanted, f"^{client} is not installed") for wanted, client in clients]
    for wanted, told in (*missing, ({}, "fetches nothing")):
        file = TargetFile.model_validate({"name": "none", "commands": commands, "fetch": wanted})
        with pytest.raises(ConfigError, match=told):
            fetch(file, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_programs_are_built_from_what_lies_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of Go without C, so that they are static; those of a crate with what Cargo.lock names; nothing of
    the build stays."""
    clients = tmp_path / "bin"
    clients.mkdir()
    for name, script in (("go", GO), ("cargo", CARGO)):
        (clients / name).write_text(f"#!/bin/sh\n{script}", "ascii")
        (clients / name).chmod(0o755)
    monkeypatch.setenv("TORNPAGE_FETCHED", str(tmp_path / "fetched"))
    monkeypatch.setenv("PATH", f"{clients}:{os.environ['PATH']}")
    commands = {"run": "run {dir}", "recover": "recover"}
    wanted = {"go": {"a": "go/one"}, "cargo": {"b": "crate"}}
    file = TargetFile.model_validate({"name": "built", "commands": commands, "fetch": wanted})
    folder = fetch(file, tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]
    assert (folder / "a").read_text("utf-8") == f"{tmp_path}/go/one, cgo 0\n"
    assert (folder / "b").read_text("utf-8") == f"{tmp_path}/crate/Cargo.toml, l\n"


def test_mariadb_by_hand_reads_what_a_client_sees(tmp_path: Path) -> None:
    """Each table, but not that of an ALTER which the crash cut: the start of the server removes it."""
    tables = tmp_path / "data" / "t"
    tables.mkdir(parents=True)
    for name in ("t1", "#sql-alter-471f-3", "t2"):
        (tables / f"{name}.frm").touch()
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\nsed 's/^/ERROR that shows the statement: /'\n", "ascii")
    server.chmod(0o755)
    script = BUNDLED / "mariadb_by_hand.sh"
    words = ["/bin/sh", str(script), str(tables.parent), str(server), "", "", "none"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    statements = [line.rpartition(": ")[2].split(" INTO")[0] for line in said.splitlines()]
    assert statements == [
        "SELECT * FROM t.`t1`", "CHECK TABLE t.`t1` EXTENDED;",
        "SELECT * FROM t.`t2`", "CHECK TABLE t.`t2` EXTENDED;", "the server ended with 0",
    ]  # fmt: skip
