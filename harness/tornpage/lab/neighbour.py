"""fio as a neighbour: it writes and syncs beside a campaign, on the file systems that the campaign uses. No
verdict may depend on how fast a disk is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tornpage.faults.process import end_child, launch_argv
from tornpage.faults.scratch import scratch_folder
from tornpage.vocabulary.errors import ConfigError, MachineError

__all__ = ["find_fio", "fio_beside"]

JOB = "neighbour.fio"
DEADLINE_S = 7 * 24 * 3600.0


def find_fio() -> str:
    """The program. ConfigError: it is not installed."""
    found = shutil.which("fio")
    if found is None:
        raise ConfigError("fio is not installed: apt install fio")
    return found


@contextmanager
def fio_beside(jobs: Path, folders: Sequence[Path]) -> Iterator[None]:
    """Runs workloads/fio/neighbour.fio (jobs: that folder) in the scratch space and in folders of its own
    below `folders` until the end. ConfigError: no fio; MachineError: it ended before, so that there was no
    contention."""
    fio = find_fio()
    with ExitStack() as made:
        places = [made.enter_context(scratch_folder())]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            places.append(Path(made.enter_context(_folder_in(folder))))
        # fio splits its list at colons, and would take one in a name for another folder.
        names = ":".join(str(place.resolve()).replace(":", "\\:") for place in places)
        errors = made.enter_context(tempfile.TemporaryFile())
        child = subprocess.Popen(
            launch_argv([fio, "--output-format=json", str(jobs / JOB)], DEADLINE_S),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=places[0],
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "TORNPAGE_FIO_FOLDERS": names,
                "TORNPAGE_FIO_COUNT": str(len(places)),
            },
        )
        try:
            yield
            if child.poll() is not None:
                errors.seek(0)
                said = errors.read().decode("utf-8", "replace").strip().splitlines()
                raise MachineError(f"fio ended beside the run: {said[-1] if said else 'silently'}")
        finally:
            end_child(child.pid)
            child.wait()


def _folder_in(folder: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=".neighbour-", dir=folder)
