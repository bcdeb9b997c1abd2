"""Recorders: the preload, and the file system that sees what no preload does (faults/README.md). Which one,
and whether the second can be here.
"""

from __future__ import annotations

import tempfile
from enum import StrEnum
from functools import cache
from pathlib import Path

import xxhash

from tornpage.faults.process import run_child

__all__ = ["Recorder", "control_name", "fs_environment", "fs_path", "why_no_fs"]

TRACE_MAX_BYTES = 1 << 31
"""Of a recording with contents; the file is sparse and is cut at its end."""
PROBE = "/bin/true"
PROBE_DEADLINE_S = 20.0
NOT_BUILT = "tornpage-fs is not built: install libfuse3-dev (Debian), then make build"


class Recorder(StrEnum):
    """What records a run."""

    PRELOAD = "preload"
    """A library in its processes."""
    FS = "fs"
    """A file system below them."""


def fs_path(preload: Path) -> Path:
    """The program that is that file system, beside the preload."""
    return preload.with_name("tornpage-fs")


def fs_environment(data: Path, trace: Path, plan: Path | None) -> dict[str, str]:
    """What both recorders are asked by: to record (and disturb) what happens below data."""
    env = {"TORNPAGE_ROOT": str(data), "TORNPAGE_TRACE": str(trace)}
    env["TORNPAGE_TRACE_MAX"] = str(TRACE_MAX_BYTES)
    if plan is not None:
        env["TORNPAGE_PLAN"] = str(plan)
    return env


def control_name(trace: Path) -> str:
    """Of the socket that takes marks for this recording."""
    return f"tornpage-{xxhash.xxh3_64_hexdigest(str(trace).encode())}"


@cache
def why_no_fs(program: Path) -> str:
    """Why the file system cannot record here, and what to do; "" if it can: it is tried."""
    if not program.is_file():
        return NOT_BUILT
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        root.mkdir()
        env = fs_environment(root, Path(folder, "trace"), None)
        child = run_child([program, PROBE], env, PROBE_DEADLINE_S)
    return "" if child.exit_code == 0 else child.last_line or child.describe()
