"""Do real file systems leave what is computed? Work is recorded on one that lies on a loop device, which
then crashes: it is shut down as by a power failure, or its device is copied while it is mounted. It is
mounted again and compared with the computed states of its profile; and small programs ask it one question
each.

It takes root and a kernel with loop devices; elsewhere it is left out, and says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tornpage.faults.preload import WHOLE, preload_environment, preload_path
from tornpage.faults.process import run_child
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.trace import Op, Trace
from tornpage.lab.doctor import Finding
from tornpage.lab.filework import Operation, contents, draw_work, why_illegal
from tornpage.lab.fsprobes import PROBES, Probe, Row, Step
from tornpage.targets.filesystems import file_systems
from tornpage.targets.registry import explorer_path
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.paths import Paths

__all__ = ["qualify_file_systems"]


@dataclass(frozen=True, slots=True)
class RealOne:
    """How a file system is made and mounted: its kind, arguments of mkfs, bytes of the device, options of
    mount. by_copy: it knows no shutdown; the device is copied instead."""

    kind: str
    arguments: tuple[str, ...]
    size: int
    options: tuple[str, ...] = ()
    by_copy: bool = False


_EXT4 = ("-q", "-F")
REAL = {
    "ext4-ordered": RealOne("ext4", _EXT4, 24 << 20, ("data=ordered",)),
    "ext4-writeback": RealOne("ext4", _EXT4, 24 << 20, ("data=writeback",)),
    "ext4-nodelalloc": RealOne("ext4", _EXT4, 24 << 20, ("nodelalloc",)),
    "xfs": RealOne("xfs", ("-q", "-f"), 320 << 20),
    "btrfs": RealOne("btrfs", ("-q", "-f"), 128 << 20, by_copy=True),
}
"""By profile. `posix` is none: it is what all of them keep."""
CRASHES = 12
SHUTDOWN = 0x8004587D
"""FS_IOC_SHUTDOWN, of ext4 and xfs."""
CLONE_NEWNS, MS_REC, MS_SLAVE = 0x20000, 0x4000, 0x80000
HOW = (2, 1)
"""What goes with it: nothing at all; the journal's end is written first, but no data."""
HEAD = 1 << 20
"""Bytes of btrfs in which there is nothing but a superblock."""
COPIES = 20
DEADLINE_S = 60.0
CHANGES = (Op.WRITE, Op.FSYNC, Op.RENAME, Op.UNLINK, Op.SYNC_DIR)
PROGRAM = """
import json, os, sys
os.chdir(sys.argv[1])
folder = os.open(".", os.O_RDONLY)
fds = {}
for do, file, name, to, offset, data in json.load(open(sys.argv[2])):
    if do == "create": fds[file] = os.open(name, os.O_RDWR | os.O_CREAT)
    elif do == "write": os.pwrite(fds[file], bytes.fromhex(data), offset)
    elif do == "push": os.posix_fadvise(fds[file], 0, 0, os.POSIX_FADV_DONTNEED)
    elif do == "fsync": os.fsync(fds[file])
    elif do == "rename": os.rename(name, to)
    elif do == "unlink": os.unlink(name)
    else: os.fsync(folder)
"""


PROBE = """
import json, mmap, os, sys
os.chdir(sys.argv[1])
fds = {}
def fd(name, flags=0):
    if (name, flags) not in fds:
        fds[name, flags] = os.open(name, os.O_RDWR | os.O_CREAT | flags)
    return fds[name, flags]
def pages(data):
    memory = mmap.mmap(-1, len(data))
    memory[:] = data
    return memory
for do, name, to, offset, fill, count in json.load(open(sys.argv[2])):
    data = fill.encode() * count
    if do == "write": os.pwrite(fd(name), data, offset)
    elif do == "direct": os.pwrite(fd(name, os.O_DIRECT), pages(data), offset)
    elif do == "dsync": os.pwrite(fd(name, os.O_DSYNC), data, offset)
    elif do == "fdatasync": os.fdatasync(fd(name))
    elif do == "push": os.posix_fadvise(fd(name), 0, 0, os.POSIX_FADV_DONTNEED)
    elif do == "truncate": os.ftruncate(fd(name), offset)
    elif do == "reserve": os.posix_fallocate(fd(name), 0, offset)
    elif do == "rename": os.rename(name, to)
    elif do == "sync": os.sync()
    else: os.fsync(os.open(".", os.O_RDONLY))
"""
SYNC: Step = ("sync", "", "", 0, "", 0)


def qualify_file_systems(paths: Paths) -> list[Finding]:
    """For each profile one line, and one for each question: promised, seen."""
    with ThreadPoolExecutor(max_workers=1) as alone:
        return alone.submit(_qualify_all, paths).result()


def _qualify_all(paths: Paths) -> list[Finding]:
    """By a thread with mounts of its own: a mount that another program's namespace has copied stays mounted
    there, and would be found again in place of what the crash has left."""
    try:
        _call_libc("unshare", CLONE_NEWNS)
        _call_libc("mount", None, b"/", None, MS_REC | MS_SLAVE, None)
    except OSError as error:
        return [
            Finding(f"file system {name}", True, f"left out: only root may mount one: {error}")
            for name in REAL
        ]
    rows = file_systems(explorer_path(paths.build))
    return [finding for name in REAL for finding in _qualify(name, rows[name], paths)]


def _call_libc(name: str, *arguments: object) -> None:
    """OSError if it fails."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)


def _qualify(name: str, row: Row, paths: Paths) -> list[Finding]:
    title, real = f"file system {name}", REAL[name]
    if shutil.which(f"mkfs.{real.kind}") is None:
        return [Finding(title, True, f"left out: there is no mkfs.{real.kind}")]
    with scratch_folder() as scratch:
        try:
            with _mounted(real, scratch):
                pass
        except ChildError as error:
            return [Finding(title, True, f"left out: {error}")]
        crashed = _crash_work(name, row, paths, scratch)
        return [crashed, *(_ask(name, row, probe, scratch) for probe in PROBES)]


def _crash_work(name: str, row: Row, paths: Paths, scratch: Path) -> Finding:
    """Random work, held against the computed states."""
    title, real = f"file system {name}", REAL[name]
    in_order = row["fsync"] == "earlier names"
    lost = between = 0
    for seed in range(CRASHES):
        work = draw_work(seed, renames=in_order)
        least, most, found = _crash(name, paths, scratch, work, HOW[seed % len(HOW)])
        problem = why_illegal(work, least, found, in_order=in_order)
        if problem:
            return Finding(title, False, f"crash {seed} is no computed state: {problem}")
        lost += found != most
        between += found not in (least, most)
    way = "a copy of the mounted device" if real.by_copy else "shutdown"
    seen = f"{CRASHES} crashes by {way}, each a state of fs = {name}"
    seen += f"; {lost} lost something, {between} of them not all that may be lost"
    return Finding(title, lost > 0, seen, "a crash that loses nothing says nothing")


def _ask(name: str, row: Row, probe: Probe, scratch: Path) -> Finding:
    """One question, at each way to crash."""
    real = REAL[name]
    steps = scratch / "steps"
    steps.write_text(json.dumps([*probe.before, SYNC, *probe.steps]), "ascii")

    def work(data: Path) -> None:
        _call(sys.executable, "-c", PROBE, str(data), str(steps))

    ways = HOW[:1] if real.by_copy else HOW
    answers = {probe.answer(_crashed(real, scratch, work, how)) for how in ways}
    allowed = probe.allowed(row)
    seen = f"promised {' or '.join(sorted(allowed))}; seen {', '.join(sorted(answers))}"
    return Finding(f"{name}: {probe.question}", answers <= allowed, seen, "the profile is wrong")


def _call(*command: str | Path) -> None:
    """ChildError if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        raise ChildError(f"{command[0]}: {done.stderr.strip()}")


@contextlib.contextmanager
def _mounted(real: RealOne, scratch: Path, device: Path | None = None) -> Iterator[Path]:
    """The folder at which it is mounted; a new one if no device is given."""
    folder = scratch / "mount"
    folder.mkdir(exist_ok=True)
    if device is None:
        device = scratch / "device"
        device.unlink(missing_ok=True)
        with device.open("wb") as file:
            file.truncate(real.size)
        _call(f"mkfs.{real.kind}", *real.arguments, device)
    _call("mount", "-o", ",".join(("loop", *real.options)), "-t", real.kind, device, folder)
    try:
        yield folder
    finally:
        _call("umount", folder)


def _copy(device: Path, crashed: Path) -> None:
    """The mounted device as it is at one moment: no transaction was committed meanwhile, which anybody's sync
    does. What is behind a superblock stays as it is until the next one."""
    for _ in range(COPIES):
        before = _head(device)
        _call("cp", "--sparse=always", device, crashed)
        if _head(device) == before:
            return
    raise ChildError(f"{device}: {COPIES} copies, and a transaction was committed during each")


def _head(device: Path) -> bytes:
    with device.open("rb") as file:
        return file.read(HEAD)


def _crashed(
    real: RealOne, scratch: Path, work: Callable[[Path], None], how: int
) -> dict[str, bytes]:
    """What is found after a crash right behind the work, which gets a durable empty folder."""
    device = scratch / "device"
    crashed = scratch / "crashed" if real.by_copy else device
    with _mounted(real, scratch) as folder:
        data = folder / "data"
        data.mkdir()
        os.sync()
        work(data)
        if real.by_copy:
            _copy(device, crashed)
        else:
            handle = os.open(folder, os.O_RDONLY)
            try:
                fcntl.ioctl(handle, SHUTDOWN, struct.pack("<I", how))
            finally:
                os.close(handle)
    with _mounted(real, scratch, crashed) as folder:
        return _files(folder / "data")


def _crash(
    name: str, paths: Paths, scratch: Path, work: list[Operation], how: int
) -> tuple[Mapping[str, bytes], Mapping[str, bytes], Mapping[str, bytes]]:
    """The computed states with least and most, and what the real one has left."""
    trace = scratch / "trace"
    found = _crashed(REAL[name], scratch, lambda data: _record(paths, data, trace, work), how)
    return (
        _computed(name, paths, scratch, trace, "none-persisted"),
        _computed(name, paths, scratch, trace, "all-persisted"),
        found,
    )


def _record(paths: Paths, data: Path, trace: Path, work: list[Operation]) -> None:
    steps = trace.with_name("work")
    told = [asdict(op) | {"data": contents(op).hex()} for op in work]
    keys = ("do", "file", "name", "to", "offset", "data")
    steps.write_text(json.dumps([[step[key] for key in keys] for step in told]), "ascii")
    env = preload_environment(preload_path(paths.build), data, trace, None)
    argv = [sys.executable, "-c", PROGRAM, str(data), str(steps)]
    child = run_child(argv, {**env, **WHOLE}, DEADLINE_S)
    if child.exit_code != 0:
        raise ChildError(f"the work on files failed: {child.describe()}")


def _computed(
    name: str, paths: Paths, scratch: Path, trace: Path, model: str
) -> Mapping[str, bytes]:
    """The files of a state behind the last operation, on the file system of this name."""
    image = scratch / model
    shutil.rmtree(image, ignore_errors=True)
    allowed = scratch / "allowed"
    allowed.write_text('{"prefix": 0, "line": 0, "tables": []}\n', "ascii")
    events = Trace.load(trace).events()
    last = max(e.seq for e in events if e.kind in CHANGES or (e.kind == Op.OPEN and e.flags == 1))
    argv: list[str | Path] = [explorer_path(paths.build), "--fs", name, "--trace", trace]
    argv += ["--allowed", allowed, "--only", f"{last}.{model}.0", "--dump-state", image]
    child = run_child(argv, {}, DEADLINE_S)
    if not image.is_dir():
        raise ChildError(f"no state {last}.{model}.0 was computed: {child.describe()}")
    return _files(image)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
