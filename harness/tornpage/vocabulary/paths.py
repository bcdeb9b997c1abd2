"""Where things are: campaigns and templates, the built programs, scratch space on tmpfs."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tornpage.vocabulary.errors import ConfigError, MachineError

__all__ = [
    "BUILD_VARIABLE",
    "DEFAULT_OUT",
    "ROOT",
    "SHM",
    "STANDBY",
    "TMP_VARIABLE",
    "Paths",
    "data_folder",
    "fetched_folder",
    "filesystem_of",
    "find_paths",
    "is_on_shm",
    "package_folder",
    "require_floor",
    "require_room",
    "tmpfs_folder",
]

_PACKAGE = Path(__file__).resolve().parents[1]
_CARRIED = _PACKAGE / "data"
"""In an installed wheel: what CMakeLists.txt installs: the programs, and copies of folders."""

ROOT = _PACKAGE.parents[1]
"""The checkout, where the package is used from one (as when it is installed in editable mode)."""

STANDBY = Path("faults", "libtornpage_standby.so")
"""In a build folder: what makes a bundled server stand by before its data folder."""
BUILD_VARIABLE = "TORNPAGE_BUILD"
"""Chooses another build than build/release, or than the programs of an installed wheel."""
TMP_VARIABLE = "TORNPAGE_TMP"
"""Chooses the folder for scratch."""
SHM = Path("/dev/shm")
DEFAULT_OUT = Path("out")
"""--out where none is given."""

ROOM_BYTES = 256 << 20
"""Free space that a campaign wants before it starts, for its crash images and for its store."""
FLOOR_BYTES = 64 << 20
"""With less than that free a run stops: what a target does on a full disk says nothing of its recovery."""


@dataclass(frozen=True, slots=True)
class Paths:
    """build: folder with the programs; workloads: campaigns; templates: of reports; out: default --out."""

    build: Path
    workloads: Path
    templates: Path
    out: Path


def find_paths() -> Paths:
    """The programs are those of an installed wheel, or of build/release in the checkout.
    TORNPAGE_BUILD in the environment chooses another build (as build/asan)."""
    own = _CARRIED / "programs" if _CARRIED.is_dir() else ROOT / "build" / "release"
    build = Path(os.environ.get(BUILD_VARIABLE, own)).resolve()
    return Paths(build, data_folder("workloads"), data_folder("reports"), DEFAULT_OUT)


def data_folder(name: str) -> Path:
    """`workloads`, `reports` or `marking`: the wheel's own copy, or the checkout's folder."""
    return (_CARRIED if _CARRIED.is_dir() else ROOT) / name


def fetched_folder(target: str) -> Path:
    """Where `tornpage target fetch` puts what a target needs: below TORNPAGE_FETCHED, else below the user's
    cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("TORNPAGE_FETCHED") or cache / "tornpage")
    return folder.absolute() / target


def package_folder() -> Path:
    """What a Python finds this package in."""
    return _PACKAGE.parent


def tmpfs_folder(on_shm: bool = True) -> Path:
    """The folder in which scratch directories are made: TORNPAGE_TMP, else /dev/shm, or where that does not
    serve (on_shm) the folder for temporary files, the first on a tmpfs.

    ConfigError with what to do when it has too little space.
    """
    folder = Path(os.environ.get(TMP_VARIABLE) or (SHM if on_shm else _elsewhere()))
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(
            f"{folder} is not a writable folder; set TORNPAGE_TMP to one (tmpfs is best)"
        )
    require_room(folder, "free some, or set TORNPAGE_TMP to another folder")
    return folder


def _elsewhere() -> Path:
    """A folder for temporary files that is not /dev/shm and has room."""
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    fit = [
        place
        for place in dict.fromkeys(places)
        if place.is_dir()
        and os.access(place, os.W_OK)
        and not is_on_shm(place)
        and shutil.disk_usage(place).free >= ROOM_BYTES
    ]
    if not fit:
        raise ConfigError("finds no folder for scratch that is not /dev/shm")
    return next((place for place in fit if filesystem_of(place) == "tmpfs"), fit[0])


def is_on_shm(folder: Path) -> bool:
    """Whether it is the same file system."""
    return SHM.exists() and folder.stat().st_dev == SHM.stat().st_dev


def filesystem_of(folder: Path) -> str:
    """The kind of file system that a folder is on: "tmpfs", "ext4"; "unknown" if no mount tells."""
    kinds = {}
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, place, kind = line.split()[:3]
        kinds[re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), place)] = kind
    whole = folder.resolve()
    return next(
        (kinds[str(above)] for above in (whole, *whole.parents) if str(above) in kinds), "unknown"
    )


def require_room(folder: Path, remedy: str) -> None:
    """ConfigError if a campaign should not start with so little space."""
    free = shutil.disk_usage(folder).free
    if free < ROOM_BYTES:
        raise ConfigError(
            f"{folder} has {free >> 20} MiB free and a run needs {ROOM_BYTES >> 20}: {remedy}"
        )


def require_floor(folder: Path) -> None:
    """MachineError if a run should not go on with so little space."""
    free = shutil.disk_usage(folder).free
    if free < FLOOR_BYTES:
        raise MachineError(f"{folder} has only {free >> 20} MiB free: free some")
