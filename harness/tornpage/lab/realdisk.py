"""Small programs on a real file system whose disk is recorded, and what that file system has when the disk
loses power: the disks of `--under` (docs/FAULT_MODEL.md), asked by the harness itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.image import copy_image, remove_image
from tornpage.faults.preload import WHOLE, preload_path
from tornpage.faults.process import run_child
from tornpage.faults.recorder import control_name, fs_environment, fs_path
from tornpage.faults.trace import Op, Trace
from tornpage.faults.under import DISK_SECTOR, make_disk, mounted_run, under_path
from tornpage.live.journal import read_journal
from tornpage.targets.option import DEFAULT_FS
from tornpage.targets.registry import explorer_path
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.paths import data_folder

__all__ = [
    "DiskCrash",
    "DiskRun",
    "Step",
    "crashed_files",
    "disk_crashes",
    "lay_out",
    "run_on_disk",
]

DEADLINE_S = 60.0
PATH = {"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"}
WRITES = (Op.WRITE, Op.FALLOCATE)
FLUSHES = (Op.FSYNC, Op.FDATASYNC)
BEHIND_WRITES = ("none-persisted.0", "all-persisted.0", "subset.0", "subset.1")
BEHIND_FLUSH = ("all-persisted.0",)
"""States of a crash; nothing waits behind a flush."""

PROGRAM = """
import ctypes, json, mmap, os, sys
folder, work, os.environ["TORNPAGE_CONTROL"] = sys.argv[1:]
from tornpage_mark import ack, issue, mark
os.chdir(folder)
fds = {}
def fd(name, flags=0):
    if (name, flags) not in fds:
        fds[name, flags] = os.open(name, os.O_RDWR | os.O_CREAT | flags)
    return fds[name, flags]
def moved(name, to):
    return {(to if n == name else n, flags): fd for (n, flags), fd in fds.items() if n != to}
def pages(data):
    memory = mmap.mmap(-1, len(data))
    memory[:] = data
    return memory
files, steps = json.load(open(work))
for name, data in files.items():
    os.pwrite(fd(name), bytes.fromhex(data), 0)
if ctypes.CDLL(None).syncfs(os.open(".", os.O_RDONLY)) != 0: raise OSError("syncfs")
mark("ready")
for n, (do, name, to, offset, data) in enumerate(steps, 1):
    data = bytes.fromhex(data)
    issue(n)
    if do == "create": fd(name)
    elif do == "write": os.pwrite(fd(name), data, offset)
    elif do == "direct": os.pwrite(fd(name, os.O_DIRECT), pages(data), offset)
    elif do == "dsync": os.pwrite(fd(name, os.O_DSYNC), data, offset)
    elif do == "fsync": os.fsync(fd(name))
    elif do == "fdatasync": os.fdatasync(fd(name))
    elif do == "push": os.posix_fadvise(fd(name), 0, 0, os.POSIX_FADV_DONTNEED)
    elif do == "truncate": os.ftruncate(fd(name), offset)
    elif do == "reserve": os.posix_fallocate(fd(name), 0, offset)
    elif do == "rename": os.rename(name, to); fds = moved(name, to)
    elif do == "unlink": os.unlink(name); fds = moved("", name)
    elif do == "sync_dir": os.fsync(os.open(".", os.O_RDONLY))
    else: raise ValueError(do)
    ack(n)
"""
"""The files of before are durable at `ready`, and their inodes are in memory, as those of a store at work.
push asks for the file's pages to be written back, and waits for nothing."""


@dataclass(frozen=True, slots=True)
class Step:
    """do: as PROGRAM tells them; to: the new name of a rename; offset: in bytes, or the new size."""

    do: str
    name: str = "."
    to: str = ""
    offset: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class DiskRun:
    """build: folder; kind: of the file system, with options of its mount; scratch: has all that belongs to
    the run; trace: what was done to the disk."""

    build: Path
    kind: str
    scratch: Path
    trace: Trace

    @property
    def before(self) -> Path:
        """The folder with the disk as the run has found it."""
        return self.scratch / "before"

    @property
    def recording(self) -> Path:
        """The file of the trace."""
        return self.scratch / "disk.trace"


@dataclass(frozen=True, slots=True)
class DiskCrash:
    """state: its ID; ended, issued: how many steps had, right before the disk changed again."""

    state: str
    ended: int
    issued: int


def run_on_disk(
    build: Path,
    kind: str,
    files: Mapping[str, bytes],
    steps: Sequence[Step],
    scratch: Path,
    env: Mapping[str, str],
) -> DiskRun:
    """files: that are there before, durable; scratch: a folder, emptied; env: of the program, besides.
    TargetError, ChildError."""
    preload, folder = preload_path(build), scratch / "disk"
    remove_image(scratch)
    folder.mkdir(parents=True)
    make_disk(under_path(preload), kind, folder)
    run = scratch / "before", scratch / "disk.trace"
    copy_image(folder, run[0])
    told = [[step.do, step.name, step.to, step.offset, step.data.hex()] for step in steps]
    before = {name: data.hex() for name, data in files.items()}
    (scratch / "work").write_text(json.dumps([before, told]), "ascii")
    outer = {**PATH, **fs_environment(folder, run[1], None), **WHOLE}
    outer["TORNPAGE_CONTROL"] = control_name(run[1])
    inner = {"PYTHONPATH": str(data_folder("marking")), **env}
    words = ["env", "-u", "TORNPAGE_CONTROL", *(f"{key}={value}" for key, value in inner.items())]
    words += [sys.executable, "-c", PROGRAM, str(folder), str(scratch / "work")]
    words += [outer["TORNPAGE_CONTROL"]]
    argv = [str(fs_path(preload)), *mounted_run(under_path(preload), kind, str(folder), words)]
    child = run_child(argv, outer, DEADLINE_S)
    if child.exit_code != 0:
        raise ChildError(f"the work on a disk failed: {child.describe()}")
    return DiskRun(build, kind, scratch, Trace.load(run[1]))


def disk_crashes(run: DiskRun) -> list[DiskCrash]:
    """Some behind each change of the disk since the first step."""
    journal = read_journal(run.trace)
    ready = next(event.seq for event, _mark in run.trace.marks("ready"))
    changes = [one for one in run.trace.events(kinds=(*WRITES, *FLUSHES)) if one.seq > ready]
    ends = [*(one.seq for one in changes[1:]), run.trace.events_declared + 1]
    return [
        DiskCrash(f"{one.seq}.{state}", *journal.at(end))
        for one, end in zip(changes, ends, strict=True)
        for state in (BEHIND_FLUSH if one.kind in FLUSHES else BEHIND_WRITES)
    ]


def crashed_files(run: DiskRun, crash: DiskCrash) -> dict[str, bytes]:
    """What the file system has when it is mounted again. ChildError: there is no such state, or the disk does
    not mount."""
    image, files = run.scratch / "crashed", run.scratch / "files"
    remove_image(files)
    files.mkdir()
    words = ["--fs", DEFAULT_FS, "--sector", str(DISK_SECTOR), "--base", str(run.before)]
    lay_out(run.build, run.recording, crash.state, image, words)
    program = under_path(preload_path(run.build))
    child = run_child(
        mounted_run(program, run.kind, str(image), ["cp", "-a", f"{image}/.", str(files)]),
        PATH,
        DEADLINE_S,
    )
    if child.exit_code != 0:
        raise ChildError(f"the disk of state {crash.state}: {child.describe()}")
    return {path.name: path.read_bytes() for path in sorted(files.iterdir())}


def lay_out(build: Path, trace: Path, state: str, image: Path, words: Sequence[str]) -> None:
    """Makes the folder of a computed state; words: more options of the explorer. ChildError: there is no such
    state."""
    remove_image(image)
    allowed = trace.with_name("allowed")
    allowed.write_text('{"prefix": 0, "line": 0, "tables": []}\n', "ascii")
    argv = [str(explorer_path(build)), "--trace", str(trace), "--allowed", str(allowed)]
    argv += ["--only", state, "--dump-state", str(image), *words]
    child = run_child(argv, {}, DEADLINE_S)
    if not image.is_dir():
        raise ChildError(f"no state {state} was computed: {child.describe()}")
