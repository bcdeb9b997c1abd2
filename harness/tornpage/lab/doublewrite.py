"""What the doublewrite of new pages costs on a disk of the user's, and what MDEV-19738 saves there: a load is
recorded once with every page doublewritten and once with the first write of new pages skipping it; fio
replays both recordings, which are the same on every machine, and takes the time.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tornpage.faults.preload import preload_environment, preload_path
from tornpage.faults.process import run_child
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.trace import Op, Trace
from tornpage.lab.neighbour import find_fio
from tornpage.vocabulary.errors import TargetError

__all__ = ["LOAD_ROWS", "Priced", "Replayed", "price_doublewrite", "write_iolog"]

DEADLINE_S = 600.0
LOAD_ROWS = 50_000
OPTIONS = {"page_size": "16k", "log_file_size": "512m", "buffer_pool_pages": "16384"}
CASES = {
    "each page doublewritten": {"log_optimize_ddl": "on"},
    "first write skips": {"log_optimize_ddl": "off"},
}
"""Both write the same redo for rows that are inserted; see docs/TESTING.md."""
_SYNCS = {Op.FSYNC: "sync", Op.FDATASYNC: "datasync"}


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recording, and fio's time for it. syncs: fsync and fdatasync; area: bytes that went to the
    doublewrite area; seconds: of each round."""

    what: str
    writes: int
    bytes: int
    area: int
    syncs: int
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Priced:
    """Both, and how much of bytes and time the skip saves, from 0 to 1."""

    rows: int
    every: Replayed
    skipping: Replayed

    @property
    def bytes_saved(self) -> float:
        """Of what is written with every page doublewritten."""
        return 1 - self.skipping.bytes / self.every.bytes

    @property
    def time_saved(self) -> float:
        """The same of the medians."""
        return 1 - self.skipping.median / self.every.median

    def to_json(self) -> dict[str, Any]:
        """The object of --json."""
        cases = [{**asdict(one), "median": one.median} for one in (self.every, self.skipping)]
        return {
            "rows": self.rows,
            "replays": cases,
            "bytes_saved": self.bytes_saved,
            "time_saved": self.time_saved,
        }


def price_doublewrite(
    build: Path,
    rows: int,
    rounds: int,
    folder: Path,
    keep: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Priced:
    """Records in scratch space, replays in `folder`, in turn, `rounds` times. keep: a folder for the iologs,
    which fio replays anywhere. ConfigError: no fio."""
    fio = find_fio()
    with scratch_folder() as scratch:
        logs = {}
        for number, (what, options) in enumerate(CASES.items()):
            (tell or _nobody)(f"recording: {what}")
            trace = _record(build, rows, options, scratch / str(number))
            logs[what] = write_iolog(trace)
        times: dict[str, list[float]] = {what: [] for what in CASES}
        for round_ in range(rounds):
            for what, log in logs.items():
                (tell or _nobody)(f"replaying, round {round_ + 1} of {rounds}: {what}")
                times[what].append(_replay(fio, log, folder))
    for number, log in enumerate(logs.values()):
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{('every', 'skipping')[number]}.iolog").write_text(log.text, "ascii")
    every, skipping = (
        Replayed(what, log.writes, log.bytes, log.area, log.syncs, tuple(times[what]))
        for what, log in logs.items()
    )
    return Priced(rows, every, skipping)


def _nobody(_line: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class IoLog:
    """What fio replays. text: in its format, version 2; sizes: of its files, by name."""

    text: str
    sizes: dict[str, int]
    writes: int
    bytes: int
    area: int
    syncs: int


def write_iolog(trace: Trace) -> IoLog:
    """Every write and sync of a recording in its order, without a pause. Not in it: what changes the size or
    the name of a file."""
    names: dict[int, str] = {}
    sizes: dict[str, int] = {}
    lines: list[str] = []
    writes = written = area = syncs = 0
    for event in trace.events():
        if event.kind == Op.OPEN and event.file and event.file not in names:
            names[event.file] = f"{event.file}-{Path(trace.text(event)).name}"
        name = names.get(event.file, "")
        if not name or event.result < 0:
            continue
        if event.kind == Op.WRITE and event.length:
            sizes[name] = max(sizes.get(name, 0), event.offset + event.length)
            lines.append(f"{name} write {event.offset} {event.length}")
            writes += 1
            written += event.length
            area += event.length if name.endswith("-ib_dblwr") else 0
        elif event.kind in _SYNCS and name in sizes:
            lines.append(f"{name} {_SYNCS[Op(event.kind)]} 0 0")
            syncs += 1
    begin = [f"{name} {verb}" for name in sizes for verb in ("add", "open")]
    end = [f"{name} close" for name in sizes]
    text = "\n".join(["fio version 2 iolog", *begin, *lines, *end, ""])
    return IoLog(text, sizes, writes, written, area, syncs)


def _record(build: Path, rows: int, options: dict[str, str], scratch: Path) -> Trace:
    """The load of `rows` rows of some 800 bytes, and the flush of its table."""
    scratch.mkdir()
    script = scratch / "script"
    script.write_text(
        "create table t a:bigint b:char(255) c:char(255) d:char(255) primary a\n"
        f"insert_seq - t 1 {rows}\npurge all\nflush table t\n",
        "ascii",
    )
    data, trace = scratch / "db", scratch / "trace"
    data.mkdir()
    command = [str(build / "engine" / "engine"), "run", str(data), str(script), "--crash"]
    for name, value in {**OPTIONS, **options}.items():
        command += ["--option", f"{name}={value}"]
    child = run_child(
        command,
        {
            "PATH": os.environ.get("PATH", os.defpath),
            **preload_environment(preload_path(build), data.resolve(), trace, None),
        },
        DEADLINE_S,
    )
    if child.exit_code != 0:
        raise TargetError(f"the load could not be recorded: {child.describe()}")
    return Trace.load(trace)


def _replay(fio: str, log: IoLog, folder: Path) -> float:
    """Seconds from the first write to the last sync, in files that are there at their full size."""
    with tempfile.TemporaryDirectory(prefix="tornpage-iolog-", dir=folder) as name:
        place = Path(name)
        (place / "iolog").write_text(log.text, "ascii")
        for file, size in log.sizes.items():
            with (place / file).open("wb") as made:
                made.truncate(size)
        child = run_child(
            [
                *("/usr/bin/env", f"--chdir={place.resolve()}", fio, "--output-format=json"),
                *("--name=replay", "--ioengine=psync", "--thread", "--randseed=1"),
                "--read_iolog=iolog",
            ],
            {"PATH": os.environ.get("PATH", os.defpath)},
            DEADLINE_S,
        )
        try:
            told = json.loads(child.stdout[max(0, child.stdout.find(b"{\n")) :])["jobs"][0]
            done = int(told["write"]["total_ios"]), int(told["sync"]["total_ios"])
            seconds = max(1.0, float(told["job_runtime"])) / 1000  # fio counts whole milliseconds
        except (ValueError, KeyError, IndexError) as error:
            raise TargetError(f"fio: {child.describe()}: {_said(child.stderr)}") from error
        if child.exit_code != 0 or told["error"] or done != (log.writes, log.syncs):
            raise TargetError(
                f"fio replayed {done[0]} of {log.writes} writes, {done[1]} of {log.syncs} syncs:"
                f" {_said(child.stderr)}"
            )
        return seconds


def _said(stderr: bytes) -> str:
    return " ".join(stderr.decode("utf-8", "replace").split())
