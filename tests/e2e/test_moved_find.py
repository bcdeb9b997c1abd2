"""A finding in a file: exported here, imported into another folder and store, and there it is shown, replayed
and made smaller; a file that means harm is refused and leaves nothing behind."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from called import called
from e2e_support import Tornpage

from tornpage.faults.trace import Trace
from tornpage.targets.command.skeleton import Language, write_skeleton

pytestmark = pytest.mark.extended

POWER = "run powerloss --states 60 --depth 1 --jobs 1 --fault-free 0"
KILLS = "run smoke --trials 8 --jobs 1 --fault-free 0"
DIFFERENT = "{1200 + os.urandom(1)[0] % 64}"
"""Of a record: no run equals another."""

Members = dict[str, tuple[tarfile.TarInfo, bytes]]


def store_without_fsync(folder: Path, width: str) -> Path:
    """The store that comes along. Its acknowledged commits are not synced, and a torn line is taken for a
    whole one: power losses and kills find it."""
    file = write_skeleton("kv", Language.PYTHON, folder).file
    program = file.parent / "store.py"
    text = program.read_text("utf-8")
    for old, new in (
        ("{n:01200}", f"{{n:0{width}}}"),
        ("        os.fsync(log)\n", ""),
        ("key, value = line.split()[1:]", "key, value = (line.split()[1:] + ['k', '0'])[:2]"),
        ("if line != line_of(line[9:-1]):", "if False:"),
    ):
        assert old in text
        text = text.replace(old, new)
    program.write_text(text, "utf-8")
    return file


def told(folder: Path, line: str, code: int = 0) -> dict[str, Any]:
    """What a command says with --json."""
    done = called(folder, *line.split(), "--json")
    assert done.returncode == code, done.stdout + done.stderr
    data: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return data


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two exported findings, power.tar.zst and kill.tar.zst. Nothing else of where they were
    found is left."""
    folder = tmp_path_factory.mktemp("found")
    there = folder / "there"
    there.mkdir()
    target = store_without_fsync(there, DIFFERENT)
    for name, command in (("power", POWER), ("kill", KILLS)):
        answer = told(there, f"{command} --target {target} --out {name}", 1)
        trial = answer["bugs"][0]["trial"]
        if name == "power":
            told(there, f"explain {trial} --out {name}")
        packed = told(there, f"export {trial} {folder / name}.tar.zst --out {name}")
        assert packed["files"] > 3 and packed["size"] < packed["unpacked"]
    shutil.rmtree(there)
    return folder


def contents(file: Path) -> Members:
    """All members by name, in their order."""
    data = zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes())
    members: Members = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            content = archive.extractfile(member)
            members[member.name] = (member, content.read() if content else b"")
    return members


def packed(members: Members, file: Path, behind: bytes = b"") -> Path:
    """An archive of them."""
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for member, content in members.values():
            archive.addfile(member, io.BytesIO(content))
    file.write_bytes(zstandard.ZstdCompressor().compress(room.getvalue() + behind))
    return file


def with_member(members: Members, name: str, content: bytes, told_of: str = "") -> None:
    """One more, or another one, of which find.json tells; told_of: under this name."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    members[name] = (member, content)
    with_fact(members, lambda find: find["files"].update({told_of or name: len(content)}))


def with_fact(members: Members, change: Callable[[dict[str, Any]], object]) -> None:
    """find.json, changed."""
    find = json.loads(members["find.json"][1])
    change(find)
    text = json.dumps(find).encode()
    members["find.json"][0].size = len(text)
    members["find.json"] = (members["find.json"][0], text)


@pytest.mark.parametrize("name", ["power", "kill"])
def test_a_find_is_shown_and_replayed_elsewhere(name: str, found: Path, tmp_path: Path) -> None:
    """With the target that came along; imported twice it is there once; its bug is one of that store. The
    folder may be moved then."""
    imported = told(tmp_path, f"import {found / name}.tar.zst")
    again = told(tmp_path, f"import {found / name}.tar.zst")
    trial = imported["trial"]
    assert (imported["there"], again["there"], again["trial"]) == (False, True, trial)
    assert imported["differs"] == "" and Path(imported["own_target"]).is_file()
    shown = told(tmp_path, f"show {trial}")
    assert shown["result"]["outcome"] == "violation" and shown["bugs"] == imported["bugs"]
    why = shown["explanation"]
    assert (why is not None) == (name == "power")
    assert why is None or "store.log" in why["cause"]["lost"][0]["path"]
    asked = told(tmp_path, f"replay {trial} --ask kept", 1)
    of = [one.partition(":")[0] for one in asked["kept"]]
    assert of[0] == "the kept image, recovered again" and len(of) == (2 if name == "power" else 1)
    assert all("broken" in one for one in asked["kept"]) and not asked["other_finding"], asked
    (tmp_path / "out").rename(tmp_path / "moved")
    assert told(tmp_path, f"replay {trial} --out moved", 1)["answer"] == "reproduced"
    assert called(tmp_path, "upstream", trial, "told", "--out", "moved").returncode == 0
    page = called(tmp_path, "report", "--run", trial.partition(".")[0], "--out", "moved")
    assert page.returncode == 1 and "in no" not in page.stderr, page.stderr


def test_a_power_loss_is_shrunk_elsewhere(found: Path, tmp_path: Path) -> None:
    """Beginning with its own recording, of which the state is one; so the smaller one is replayed too."""
    trial = told(tmp_path, f"import {found}/power.tar.zst")["trial"]
    shrunk = told(tmp_path, f"shrink {trial} --budget 5s")
    assert shrunk["after"]["lost_sectors"] <= shrunk["before"]["lost_sectors"]
    asked = told(tmp_path, f"replay {shrunk['shrunk']} --ask kept", 1)
    assert all("broken" in one for one in asked["kept"]) and asked["kept"], asked
    assert not asked["other_finding"]


def test_a_find_is_replayed_on_a_build_of_ones_own(found: Path, tmp_path: Path) -> None:
    """--target: the same store with its recovery mended is clean; another store is refused."""
    own = store_without_fsync(tmp_path, DIFFERENT)
    program = own.parent / "store.py"
    mended = program.read_text("utf-8").replace("if False:", "if line != line_of(line[9:-1]):")
    program.write_text(mended, "utf-8")
    imported = told(tmp_path, f"import {found}/kill.tar.zst --target {own}")
    assert "run" in imported["differs"] and imported["own_target"] == ""
    assert told(tmp_path, f"replay {imported['trial']} --ask kept")["note"] == "fixed?"
    text = own.read_text("utf-8").replace('fs = "posix"', 'fs = "posix"\nrun_deadline_s = 50')
    own.write_text(text.replace("./store.py recover", "./store.py recover more"), "utf-8")
    refused = called(tmp_path, "import", f"{found}/power.tar.zst", "--target", str(own))
    assert refused.returncode == 2 and "is another target than kv@" in refused.stderr


def test_a_find_of_a_target_with_a_name(tmp_path: Path, tornpage: Tornpage) -> None:
    """The bundled engine: a kill, and a rule that a run without a fault broke; no program comes along."""
    few = ("--trials", "6", "--scripts", "1", "--fault-free", "0")
    run = tornpage("run", "smoke", *few, "--option", "doublewrite=off")
    assert run.code == 1, run.text
    for bug in run.data["bugs"]:
        trial = bug["replay"].split()[-3]
        file = tmp_path / f"{trial}.tar.zst"
        assert tornpage("export", trial, str(file)).code == 0
        other = tmp_path / trial
        imported = tornpage("import", str(file), out=other).data
        assert imported["own_target"] == "" and imported["differs"] == ""
        again = tornpage("replay", imported["trial"], out=other)
        assert again.data["answer"] == "reproduced" and again.data["same_verdict"], again.text


def test_what_cannot_be_exported(tmp_path: Path, tornpage: Tornpage) -> None:
    """No finding; one of which nothing was kept names another one; a file that is there stays."""
    few = ("--trials", "30", "--scripts", "1", "--fault-free", "0")
    assert tornpage("run", "smoke", *few, "--option", "doublewrite=off").code == 1
    file = tmp_path / "find.tar.zst"
    trials = {n: tornpage("show", f"1.{n}").data["result"] for n in range(30)}
    clean = next(n for n, result in trials.items() if result["outcome"] != "violation")
    answer = tornpage("export", f"1.{clean}", str(file))
    assert answer.code == 2 and "broke no invariant" in answer.text
    bare = [n for n, one in trials.items() if one["violations"] and one["image"] is None]
    answer = tornpage("export", f"1.{bare[0]}", str(file))
    assert answer.code == 2 and "shows the same and has one" in answer.text
    kept = next(n for n, one in trials.items() if one["image"] is not None)
    file.write_text("mine", "ascii")
    answer = tornpage("export", f"1.{kept}", str(file))
    assert answer.code == 2 and "exists already" in answer.text
    assert file.read_text("ascii") == "mine"
    answer = tornpage("export", f"1.{kept}", str(tmp_path / "none" / "find.tar.zst"))
    assert answer.code == 2 and "none: no such folder" in answer.text
    assert not (tmp_path / "none").exists()


def absolute(members: Members) -> None:
    with_member(members, "/tmp/tornpage-escaped", b"x")


def parent(members: Members) -> None:
    with_member(members, "image/../../escaped", b"x")


def told_otherwise(members: Members) -> None:
    with_member(members, "image/more", b"x", "image/other")


def link(members: Members) -> None:
    with_member(members, "image/link", b"")
    members["image/link"][0].type = tarfile.SYMTYPE
    members["image/link"][0].linkname = "/etc/passwd"


def hard_link(members: Members) -> None:
    with_member(members, "image/link", b"")
    members["image/link"][0].type = tarfile.LNKTYPE
    members["image/link"][0].linkname = "image/data/store.log"


def device(members: Members) -> None:
    with_member(members, "image/null", b"")
    members["image/null"][0].type = tarfile.CHRTYPE


def long_header(members: Members) -> None:
    with_member(members, "image/pax", b"x" * 100_000)
    members["image/pax"][0].type = tarfile.XHDTYPE


def bomb(members: Members) -> None:
    with_fact(members, lambda find: find["files"].update({"image/bomb": 1 << 50}))


def larger_than_told(members: Members) -> None:
    with_member(members, "image/big", b"\0" * 4096)
    with_fact(members, lambda find: find["files"].update({"image/big": 1}))


def without_image(members: Members) -> None:
    for name in [name for name in members if name.startswith("image/data/")]:
        del members[name]


def without_the_telling(members: Members) -> None:
    for name in [name for name in members if name.startswith("image/recording/allowed")]:
        del members[name]
        with_fact(members, lambda find, name=name: find["files"].pop(name))  # type: ignore[misc]


def other_format(members: Members) -> None:
    with_fact(members, lambda find: find.update({"format": 2, "version": "9.0"}))


def no_format(members: Members) -> None:
    with_fact(members, lambda find: find.clear())


def more_keys(members: Members) -> None:
    with_fact(members, lambda find: find.update({"hook": "rm"}))


def other_place(members: Members) -> None:
    facts = json.loads(members["image/recording/recording.json"][1])
    text = json.dumps({**facts, "at": "/home/someone/tornpage-x/data"}).encode()
    with_member(members, "image/recording/recording.json", text)


def file_of_ours(members: Members) -> None:
    with_fact(members, lambda find: find["spec"]["params"].update({"path": "/etc/passwd"}))


def target_of_ours(members: Members) -> None:
    with_fact(members, lambda find: find.update({"target": "/tmp/evil.toml"}))


def state_of_a_shell(members: Members) -> None:
    with_fact(members, lambda find: find["spec"]["plan"].update({"loss": "1.x.0; rm"}))


def program_of_theirs(members: Members) -> None:
    with_fact(members, lambda find: find["spec"]["options"].update({"program": "/bin/sh"}))


def option_of_nobody(members: Members) -> None:
    with_fact(members, lambda find: find["spec"]["options"].update({"nothing": "1"}))


def trace_outside(members: Members) -> None:
    """Of the same length, so that the recording stays one: names in it lead out."""
    trace = members["image/recording/trace"][1]
    assert b"store.log\0" in trace
    with_member(members, "image/recording/trace", trace.replace(b"store.log\0", b"../re.log\0"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (absolute, "'/tmp/tornpage-escaped' is none of a finding"),
        (parent, "'image/../../escaped' is none of a finding"),
        (told_otherwise, "image/more: find.json does not have it so"),
        (link, "image/link: a link, a device or what no finding has"),
        (hard_link, "image/link: a link, a device or what no finding has"),
        (device, "image/null: a link, a device or what no finding has"),
        (long_header, "image/pax: a link, a device or what no finding has"),
        (bomb, "it holds 1,125,8"),
        (larger_than_told, "image/big: find.json does not have it so"),
        (without_image, "is missing"),
        (without_the_telling, "image/recording/allowed is missing"),
        (other_format, "has format 2, and this Tornpage reads 1: use Tornpage 9.0"),
        (no_format, "find.json names no format: it is none of Tornpage's"),
        (more_keys, "hook"),
        (other_place, "wants to be recovered in /home/someone/tornpage-x/data"),
        (file_of_ours, "params.path: a file that is not in it"),
        (target_of_ours, "target: neither a name nor in it"),
        (state_of_a_shell, "plan.loss: no state"),
        (program_of_theirs, "it was found with program=/bin/sh: --option program=PATH names"),
        (option_of_nobody, "target target/kv.toml: no option 'nothing'"),
        (trace_outside, "trace names '../re.log', which is outside of its folder"),
    ],
)
def test_a_file_that_means_harm_is_refused(
    change: Callable[[Members], None], said: str, found: Path, tmp_path: Path
) -> None:
    """In one line that says why; nothing is made then, no folder and no store."""
    members = contents(found / "power.tar.zst")
    change(members)
    file = packed(members, tmp_path / "bad.tar.zst")
    done = called(tmp_path, "import", str(file), "--out", "out")
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["bad.tar.zst"]


def test_a_file_that_is_damaged_is_refused(found: Path, tmp_path: Path) -> None:
    """Cut, with a bit turned, with something behind its end, or nothing of the kind. What a turned bit hits
    is chance: a name, say, and then a file is missing."""
    good = (found / "power.tar.zst").read_bytes()
    turned = bytearray(good)
    turned[len(good) // 2] ^= 1
    file = tmp_path / "bad.tar.zst"
    file.write_bytes(turned)
    done = called(tmp_path, "import", str(file), "--out", "out")
    assert done.returncode == 2 and f"{file}: " in done.stderr, done.stderr
    checked = good[:-1] + bytes([good[-1] ^ 1])  # in the checksum, whatever lies in the middle
    for data in (good[: len(good) // 2], checked, b"", b"PK\3\4 some other file"):
        file.write_bytes(data)
        done = called(tmp_path, "import", str(file), "--out", "out")
        assert done.returncode == 2 and f"{file}: cut, damaged, or no finding" in done.stderr
    packed(contents(found / "power.tar.zst"), file, b"more")
    done = called(tmp_path, "import", str(file), "--out", "out")
    assert done.returncode == 2 and "something follows behind its end" in done.stderr, done.stderr
    packed(contents(found / "power.tar.zst"), file)
    assert told(tmp_path, f"import {file} --out out")["there"] is False
    recording = next((tmp_path / "out" / "images").glob("*/*/recording/trace"))
    assert Trace.load(recording).events_declared > 0
