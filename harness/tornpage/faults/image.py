"""Crashed images: the files of a data directory between the crash and the recovery.

They are copied with their holes, and removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tornpage.faults.sparse import data_ranges

__all__ = [
    "attributes_below",
    "copy_image",
    "empty_place",
    "files_below",
    "fill_image",
    "keep_files",
    "odd_files",
    "remove_image",
]

PART_BYTES = 1 << 20
ODD = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""Kinds of files that no image can have, and whose absence would change what a store finds."""


def odd_files(folder: Path) -> Iterator[tuple[str, str]]:
    """What can be in no image: its path below the folder, and what it is, as "a symbolic link", also a file
    that we may not read. Sockets and FIFOs are no such: they hold no data, and images are without them."""
    for path in (folder, *sorted(folder.rglob("*"))):
        mode = path.lstat().st_mode
        kind = ODD.get(stat.S_IFMT(mode), "")
        if stat.S_ISREG(mode) and not os.access(path, os.R_OK):
            kind = "a file that may not be read"
        elif stat.S_ISDIR(mode) and not os.access(path, os.R_OK | os.X_OK):
            kind = "a folder that may not be read"
        if kind:
            yield str(path.relative_to(folder)), kind


def attributes_below(folder: Path) -> list[str]:
    """The extended attributes of a user's that files have and no copy, each as "user.n of store"."""
    return [
        f"{name} of {path.relative_to(folder)}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
        for name in os.listxattr(path)
        if name.startswith("user.")
    ]


def files_below(folder: Path) -> dict[str, Path]:
    """The regular files, by their names below the folder."""
    return {
        str(path.relative_to(folder)): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def keep_files(folder: Path) -> None:
    """Removes what copy_image() would leave out."""
    for path in sorted(folder.rglob("*")):
        if stat.S_IFMT(path.lstat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
            path.unlink()


def copy_image(source: Path, target: Path) -> None:
    """Copies a data directory to a new directory: folders and regular files, and nothing else that is there.
    No file is waited for: of others, as a FIFO, none is opened."""
    target.mkdir()
    fill_image(source, target)


def fill_image(source: Path, target: Path) -> None:
    """The same into a directory that is there and lacks what is copied."""
    _copy_folder(source, target, memoryview(bytearray(PART_BYTES)))


def _copy_folder(source: Path, target: Path, room: memoryview) -> None:
    with os.scandir(source) as entries:
        for entry in entries:
            place = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                place.mkdir()
                _copy_folder(Path(entry.path), place, room)
            elif entry.is_file(follow_symlinks=False):
                _copy_file(Path(entry.path), place, room)


def _copy_file(source: Path, target: Path, room: memoryview) -> None:
    """Holes stay holes, and no file is in memory as a whole; its parts come through `room`."""
    old = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.truncate(new, os.fstat(old).st_size)
            for at, end in data_ranges(old):
                while at < end:
                    got = os.preadv(old, [room[: end - at]], at)
                    if not got:
                        return  # somebody cut it meanwhile
                    at += os.pwrite(new, room[:got], at)
        finally:
            os.close(new)
    finally:
        os.close(old)


def remove_image(path: Path) -> None:
    """Removes a directory tree that the harness made, where a target may have made folders read-only."""
    shutil.rmtree(path, ignore_errors=True)
    if path.is_dir():
        _open_up(path)
        shutil.rmtree(path, ignore_errors=True)


def _open_up(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.chmod(stat.S_IRWXU)
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                _open_up(entry)


@contextmanager
def empty_place(folder: Path | None) -> Iterator[None]:
    """An empty folder where one was; what had to be made for that goes. FileExistsError: something is
    there."""
    with ExitStack() as made:
        if folder is not None:
            missing = [one for one in (folder, *folder.parents) if not one.exists()]
            if folder not in missing:
                raise FileExistsError(f"{folder} is there, and the files name it")
            for one in reversed(missing):
                one.mkdir(mode=0o711)
                made.callback(remove_image, one)
        yield
