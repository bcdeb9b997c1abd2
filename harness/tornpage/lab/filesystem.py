"""Does a real file system leave what is computed? Work is recorded on one that lies on a loop device, which
is then shut down as by a power failure, mounted again and compared with the computed states.

It takes root and a kernel with loop devices; elsewhere it is left out, and says so.

May import: doctor, errors, filework, paths, preload, process, scratch, trace.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from tornpage.faults.preload import WHOLE, preload_environment, preload_path
from tornpage.faults.process import run_child
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.trace import Op, Trace
from tornpage.lab.doctor import Finding
from tornpage.lab.filework import Operation, contents, draw_work, why_illegal
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.paths import Paths

__all__ = ["qualify_file_systems"]

FILE_SYSTEMS = {"ext4": (["-q", "-F"], 24 << 20), "xfs": (["-q", "-f"], 320 << 20)}
"""How each is made: arguments of mkfs, bytes of the device."""
CRASHES = 12
SHUTDOWN = 0x8004587D
"""FS_IOC_SHUTDOWN, of ext4 and xfs."""
HOW = (2, 1)
"""What goes with it: nothing at all; the journal's end is written first, but no data."""
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


def qualify_file_systems(paths: Paths) -> list[Finding]:
    """One line for each: qualified, not, or left out."""
    return [_qualify(name, paths) for name in FILE_SYSTEMS]


def _qualify(name: str, paths: Paths) -> Finding:
    title = f"file system {name}"
    if os.geteuid() != 0:
        return Finding(title, True, "left out: only root may mount one")
    if shutil.which(f"mkfs.{name}") is None:
        return Finding(title, True, f"left out: there is no mkfs.{name}")
    lost = between = 0
    with scratch_folder() as scratch:
        try:
            with _mounted(name, scratch):
                pass
        except ChildError as error:
            return Finding(title, True, f"left out: {error}")
        for seed in range(CRASHES):
            work = draw_work(seed)
            least, most, found = _crash(name, paths, scratch, work, HOW[seed % len(HOW)])
            problem = why_illegal(work, least, found)
            if problem:
                return Finding(title, False, f"crash {seed} is no computed state: {problem}")
            lost += found != most
            between += found not in (least, most)
    seen = f"{CRASHES} crashes by shutdown, each a state of fs = ordered"
    seen += f"; {lost} lost something, {between} of them not all that may be lost"
    return Finding(title, lost > 0, seen, "a shutdown that loses nothing says nothing")


def _call(*command: str | Path) -> None:
    """ChildError if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        raise ChildError(f"{command[0]}: {done.stderr.strip()}")


@contextlib.contextmanager
def _mounted(name: str, scratch: Path, device: Path | None = None) -> Iterator[Path]:
    """The folder at which it is mounted; a new one if no device is given."""
    folder = scratch / "mount"
    folder.mkdir(exist_ok=True)
    if device is None:
        device = scratch / "device"
        arguments, size = FILE_SYSTEMS[name]
        with device.open("wb") as file:
            file.truncate(size)
        _call(f"mkfs.{name}", *arguments, device)
    _call("mount", "-o", "loop", "-t", name, device, folder)
    try:
        yield folder
    finally:
        _call("umount", folder)


def _crash(
    name: str, paths: Paths, scratch: Path, work: list[Operation], how: int
) -> tuple[Mapping[str, bytes], Mapping[str, bytes], Mapping[str, bytes]]:
    """The computed states with least and most, and what the real one has left."""
    trace = scratch / "trace"
    with _mounted(name, scratch) as folder:
        data = folder / "data"
        data.mkdir()
        os.sync()
        _record(paths, data, trace, work)
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUTDOWN, struct.pack("<I", how))
        finally:
            os.close(handle)
    with _mounted(name, scratch, scratch / "device") as folder:
        found = _files(folder / "data")
    return (
        _computed(paths, scratch, trace, "none-persisted"),
        _computed(paths, scratch, trace, "all-persisted"),
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


def _computed(paths: Paths, scratch: Path, trace: Path, model: str) -> Mapping[str, bytes]:
    """The files of a state behind the last operation."""
    image = scratch / model
    shutil.rmtree(image, ignore_errors=True)
    allowed = scratch / "allowed"
    allowed.write_text('{"prefix": 0, "line": 0, "tables": []}\n', "ascii")
    events = Trace.load(trace).events()
    last = max(e.seq for e in events if e.kind in CHANGES or (e.kind == Op.OPEN and e.flags == 1))
    explorer = paths.build / "explorer" / "tornpage-explore"
    argv: list[str | Path] = [explorer, "--fs", "ordered", "--trace", trace]
    argv += ["--allowed", allowed, "--only", f"{last}.{model}.0", "--dump-state", image]
    child = run_child(argv, {}, DEADLINE_S)
    if not image.is_dir():
        raise ChildError(f"no state {last}.{model}.0 was computed: {child.describe()}")
    return _files(image)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
