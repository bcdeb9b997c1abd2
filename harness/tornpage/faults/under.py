"""A real file system on a loop device, under a target: the image of its disk, the program that mounts it
(faults/under.c), and why there can be none here.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tornpage.faults.image import files_below, remove_image
from tornpage.faults.process import run_child
from tornpage.faults.recorder import fs_path, why_no_fs
from tornpage.vocabulary.errors import TargetError

__all__ = [
    "DISKS",
    "DISK_FILE",
    "DISK_SECTOR",
    "make_disk",
    "mounted_recover",
    "mounted_run",
    "under_path",
    "why_no_disk",
]

DISK_FILE = "tornpage.disk"
"""In the folder of a target: the image."""
DISK_SECTOR = 4096
"""Bytes that the disk writes as a whole: no file system expects a torn superblock, which is no larger."""
DEADLINE_S = 60.0
GROWTH = 2
"""So many times the files that are there before the run find room besides."""
REMEDY = "it takes root, or CAP_SYS_ADMIN, and /dev/loop-control (of a container: --privileged)"
PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class DiskKind:
    """A file system of the kernel: how it is made, by which package, in how many bytes at least."""

    mkfs: tuple[str, ...]
    package: str
    size: int


DISKS = {
    "ext4": DiskKind(
        ("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
        "e2fsprogs",
        64 << 20,
    ),
    "xfs": DiskKind(("mkfs.xfs", "-q", "-f", "-s", "size=4096"), "xfsprogs", 320 << 20),
    "btrfs": DiskKind(("mkfs.btrfs", "-q", "-f"), "btrfs-progs", 256 << 20),
}


def under_path(preload: Path) -> Path:
    """The program that mounts, beside the preload."""
    return preload.with_name("tornpage-under")


def mounted_run(program: Path, kind: str, folder: str, words: Sequence[str]) -> list[str]:
    """A command, on the disk whose image is in its folder."""
    return [str(program), "run", kind, folder, *words]


def mounted_recover(program: Path, kind: str, words: Sequence[str], *, many: bool) -> list[str]:
    """A command that reads folders, each with an image. many: it answers for more than one."""
    return [str(program), "recover", kind, "many" if many else "once", *words]


def make_disk(program: Path, kind: str, folder: Path) -> None:
    """Moves what is in the folder onto a new disk, whose image is in the folder then: durable, and not
    mounted. kind: of DISKS, perhaps with options of its mount (ext4,nodelalloc). TargetError."""
    files = folder.with_name(f"{folder.name}.files")
    folder.rename(files)
    try:
        folder.mkdir()
        image, disk = folder / DISK_FILE, DISKS[kind.partition(",")[0]]
        size = sum(path.stat().st_size for path in files_below(files).values())
        with image.open("wb") as file:
            file.truncate(disk.size + GROWTH * size)
        _call(*disk.mkfs, image)
        _call(*mounted_run(program, kind, str(folder), ["cp", "-a", f"{files}/.", str(folder)]))
        _call("fallocate", "--dig-holes", image)
    finally:
        remove_image(files)


def _call(*words: str | Path) -> None:
    """TargetError if it fails."""
    child = run_child(
        [shutil.which(words[0], path=PATH) or words[0], *words[1:]], {"PATH": PATH}, DEADLINE_S
    )
    if child.exit_code != 0:
        raise TargetError(f"{Path(words[0]).name}: {child.last_line or child.describe()}")


@cache
def why_no_disk(preload: Path, kind: str) -> str:
    """Why a target cannot be recorded on this file system here, and what to do; "" if it can: it is tried."""
    if why := why_no_fs(fs_path(preload)):
        return why
    disk = DISKS[kind.partition(",")[0]]
    if shutil.which(disk.mkfs[0], path=PATH) is None:
        return f"there is no {disk.mkfs[0]}: apt-get install {disk.package}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "disk")
        folder.mkdir()
        try:
            make_disk(under_path(preload), kind, folder)
        except (TargetError, OSError) as error:
            return f"{error}: {REMEDY}"
    return ""
