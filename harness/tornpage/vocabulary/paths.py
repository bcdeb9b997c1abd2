"""Where things are: the checkout's data folders, the built programs, scratch space on tmpfs.

May import: errors.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tornpage.vocabulary.errors import ConfigError

__all__ = ["Paths", "find_paths", "tmpfs_folder"]

ROOT = Path(__file__).resolve().parents[3]
"""The checkout: the package is installed from it in editable mode."""

SCRATCH_MIN_BYTES = 256 * 1024 * 1024
"""Free space that a campaign wants for its crash images."""


@dataclass(frozen=True, slots=True)
class Paths:
    """build: folder with the programs; workloads: campaigns; templates: of reports; out: default --out."""

    build: Path
    workloads: Path
    templates: Path
    out: Path


def find_paths(default_build: str = "release") -> Paths:
    """TORNPAGE_BUILD in the environment chooses another build (as build/asan)."""
    build = Path(os.environ.get("TORNPAGE_BUILD", ROOT / "build" / default_build)).resolve()
    return Paths(build, ROOT / "workloads", ROOT / "reports", Path("out"))


def tmpfs_folder() -> Path:
    """The folder in which scratch directories are made: TORNPAGE_TMP, else /dev/shm.

    ConfigError with what to do when it has too little space.
    """
    folder = Path(os.environ.get("TORNPAGE_TMP", "/dev/shm"))
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(
            f"{folder} is not a writable folder; set TORNPAGE_TMP to one (tmpfs is best)"
        )
    free = shutil.disk_usage(folder).free
    if free < SCRATCH_MIN_BYTES:
        raise ConfigError(
            f"{folder} has {free >> 20} MiB free and crash images need {SCRATCH_MIN_BYTES >> 20}; "
            "free some, or set TORNPAGE_TMP to another folder"
        )
    return folder
