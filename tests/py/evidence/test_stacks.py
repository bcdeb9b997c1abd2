"""Frames of an operation: functions and lines, of the target's own code."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_stacks import FakeStacks
from fake_trace import FakeTrace

from tornpage.evidence.stacks import FULL, frames_of, named_anew, with_stacks
from tornpage.evidence.symbols import TOOLS, require_symbolizer, symbols_of
from tornpage.faults.stacks import Call
from tornpage.faults.trace import FLAG_OVERFLOW
from tornpage.powerloss.evidence import stacked_recovery
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.evidence import Evidence, Fate, Frame, Phase, Step

SOURCE = """\
static inline __attribute__((always_inline)) int inlined(int n)
{
    __asm__ volatile("store_place: nop");
    return n * 3;
}

int store_save(int n)
{
    return inlined(n) + 1;
}
"""


class Built:
    """A library of SOURCE with its debug file, and the file that is left without."""

    def __init__(self, folder: Path) -> None:
        source = folder / "store.c"
        source.write_text(SOURCE)
        self.whole = folder / "whole.so"
        flags = ["-shared", "-fPIC", "-O1", "-g", "-Wl,--build-id=sha1"]
        subprocess.run(["cc", *flags, "-o", self.whole, source], check=True)
        self.bare = folder / "bare.so"
        subprocess.run(["objcopy", "--strip-all", self.whole, self.bare], check=True)
        self.debug = folder / "debug"
        subprocess.run(["objcopy", "--only-keep-debug", self.whole, self.debug], check=True)
        notes = subprocess.run(
            ["readelf", "-n", self.whole], check=True, capture_output=True, text=True
        ).stdout
        self.build_id = notes.partition("Build ID: ")[2].split()[0]
        names = subprocess.run(
            ["nm", "-n", self.whole], check=True, capture_output=True, text=True
        ).stdout
        start = next(line for line in names.splitlines() if line.endswith(" store_place"))
        self.offset = int(start.split()[0], 16)

    def call(self, file: Path) -> Call:
        """Inside of both functions."""
        return Call(str(file), self.build_id, self.offset)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Once for all."""
    return Built(tmp_path_factory.mktemp("symbols"))


@pytest.mark.parametrize("tool", [tool[0] for tool in TOOLS])
def test_each_tool_tells_function_and_line(
    built: Built, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them is there; inlined functions stand before the one that they are in."""
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    (tmp_path / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    call = built.call(built.whole)
    frames = symbols_of([call])[call]
    assert [frame.function for frame in frames] == ["inlined", "store_save"]
    assert [(Path(frame.file).name, frame.line) for frame in frames] == [
        ("store.c", 3),
        ("store.c", 9),
    ]


def test_debug_files_are_found_by_build_id(built: Built, tmp_path: Path) -> None:
    """As the system lays them out, and as debuginfod does; of a file without symbols. One with another build
    id is not asked."""
    call = built.call(built.bare)
    assert [frame.function for frame in symbols_of([call])[call]] in ([""], ["store_save"])
    system = tmp_path / "system" / ".build-id" / built.build_id[:2]
    system.mkdir(parents=True)
    shutil.copyfile(built.debug, system / f"{built.build_id[2:]}.debug")
    fetched = tmp_path / "fetched" / built.build_id
    fetched.mkdir(parents=True)
    shutil.copyfile(built.debug, fetched / "debuginfo")
    for folder in (tmp_path / "system", tmp_path / "fetched"):
        assert symbols_of([call], [folder])[call][-1].line == 9
    (fetched / "debuginfo").write_bytes(built.debug.read_bytes().replace(b"GNU\0", b"GNX\0"))
    assert symbols_of([call], [tmp_path / "fetched"])[call][-1].line == 0


def test_another_file_than_the_one_that_ran_tells_nothing(built: Built) -> None:
    """Its build id is another: functions at these addresses would be wrong."""
    call = Call(str(built.whole), "cd" * 20, built.offset)
    (frame,) = symbols_of([call])[call]
    assert frame == Frame("", "", 0, str(built.whole), "cd" * 20, built.offset)
    assert str(frame) == f"whole.so+{built.offset:#x}"


def test_no_tool_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: Built) -> None:
    """With what to do; what is not asked for expressly stays an offset."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="one of llvm-symbolizer, eu-addr2line, addr2line"):
        require_symbolizer()
    call = built.call(built.whole)
    assert [frame.function for frame in symbols_of([call])[call]] == [""]


def test_only_own_code_is_told(built: Built, tmp_path: Path) -> None:
    """The C library is nobody's; an operation without a stack has no frames."""
    libc = Call("/lib/x86_64-linux-gnu/libc.so.6", "", 0x27249)
    call = built.call(built.whole)
    trace = FakeStacks().stack(3, libc, call, libc).beside(tmp_path / "trace")
    found = frames_of(trace, [2, 3])
    assert set(found) == {3}
    assert [str(frame) for frame in found[3]] == [
        "inlined store.c:3",
        "store_save store.c:9",
    ]


def test_what_only_passes_calls_on_is_left_out(built: Built, tmp_path: Path) -> None:
    """Up to the first other frame, by function or by file; not all of a stack."""
    call = built.call(built.whole)
    trace = FakeStacks().stack(1, call).beside(tmp_path / "trace")
    outer = ["store_save store.c:9"]
    whole = ["inlined store.c:3", *outer]
    for wrappers, left in (["inl*"], outer), (["*/store.c"], whole), (["store_*"], whole):
        assert [str(frame) for frame in frames_of(trace, [1], wrappers=wrappers)[1]] == left


def test_python_tells_its_frames(built: Built, tmp_path: Path) -> None:
    """In place of those of its interpreter; what was called from Python stands before them."""
    text = 'Stack:\n  File "/s/store.py", line 7 in commit\n  File "x", line 1 in <module>\n'
    python = Call("/usr/lib/libpython3.11.so.1.0", "", 0x10)
    sqlite = Call(
        "/usr/lib/python3.11/lib-dynload/_sqlite3.cpython-311-x86_64-linux-gnu.so", "", 0x20
    )
    call = built.call(built.whole)
    trace = FakeStacks().stack(1, call, sqlite, python, text=text).stack(2, python, text=text)
    found = frames_of(trace.beside(tmp_path / "trace"), [1, 2])
    told = ["commit store.py:7", "<module> x:1"]
    assert [str(frame) for frame in found[1]] == [
        "inlined store.c:3",
        "store_save store.c:9",
        *told,
    ]
    assert [str(frame) for frame in found[2]] == told


def test_frames_are_named_anew_with_debug_files(built: Built, tmp_path: Path) -> None:
    """What was kept of a stripped program, once its debug file is there; what has a line stays."""
    kept = Frame("save", "other.c", 4, "/other", "", 5)
    bare = Frame("", "", 0, str(built.bare), built.build_id, built.offset)
    place = tmp_path / built.build_id
    place.mkdir()
    shutil.copyfile(built.debug, place / "debuginfo")
    step = Step(1, "write", "f", Fate.LOST, stack=(bare, kept))
    known = Evidence((Phase("run", "killed", 512, (step,)),))
    (phase,) = named_anew(known, [tmp_path]).phases
    assert [str(frame) for frame in phase.steps[0].stack] == [
        "inlined store.c:3",
        "store_save store.c:9",
        "save other.c:4",
    ]


def test_names_of_cpp_are_short() -> None:
    """Without their parameters."""
    frame = Frame("fil_space_t::flush_low()", "/src/storage/fil0fil.cc", 512, "/usr/sbin/mariadbd")
    assert str(frame) == "fil_space_t::flush_low fil0fil.cc:512"
    assert str(Frame("pwrite_all", "", 0, "/usr/bin/store")) == "pwrite_all store"


def test_a_sync_that_began_before_a_write_had_ended_is_told(tmp_path: Path) -> None:
    """With how long before; not one that began behind it, of another file, or of a write that is durable."""
    nowhere = Call("", "", 0)
    recorded = FakeTrace().open("f").open("g").write("f", 0, 512).fsync("g").fsync("f").fsync("f")
    trace = tmp_path / "trace"
    trace.write_bytes(recorded.data())
    log = FakeStacks()
    times = {3: (1000, 50_000), 4: (900, 51_000), 5: (38_000, 52_000), 6: (60_000, 61_000)}
    for seq, (began, ended) in times.items():
        log.at(seq, began, ended, nowhere)
    log.beside(trace)
    for fate, said in ((Fate.LOST, "fsync 5 began 12 us before this ended"), (Fate.DURABLE, "")):
        steps = (Step(3, "write", "f", fate, length=512),)
        told = with_stacks(Phase("run", "", 512, steps), trace)
        assert [step.sync for step in told.steps] == [said]


@pytest.mark.parametrize(("flags", "said"), [(0, "killed"), (FLAG_OVERFLOW, f"killed; {FULL}")])
def test_a_full_log_is_told(flags: int, said: str, tmp_path: Path) -> None:
    """Beside the crash: operations without a stack are then no riddle."""
    trace = tmp_path / "trace"
    trace.write_bytes(FakeTrace().open("f").write("f", 0, 512).data())
    FakeStacks(flags).stack(1, Call("", "", 0)).beside(trace)
    steps = (Step(2, "write", "f", Fate.LOST, length=512),)
    assert with_stacks(Phase("run", "killed", 512, steps), trace).how == said


def test_a_recovery_inside_the_explorer_is_told_from_its_first_operation() -> None:
    """However many there are: no trace of it has what its way leaves out."""
    events = [
        {"seq": seq, "op": "write", "path": "f", "fate": "durable", "issued": 0}
        for seq in range(1, 201)
    ]
    way = {"level": 2, "model": "kill", "waiting": 0, "sector": 512, "events": events}
    told = stacked_recovery(json.dumps(way), Path("/bin/true"))
    assert (told.name, [step.seq for step in told.steps]) == ("recovery 1", [*range(1, 201)])
