"""Proof by kills: processes of a campaign are ended at random moments, and it goes on until its end.

    python tests/e2e/kills.py --seed 1 --kills 100 [--campaign smoke]...

One attempt is `tornpage run CAMPAIGN --go-on` with one victim: its owner, a worker, a target, the judge or a
process of the explorer. Attempts follow one another in one store until one comes to
the end of the run; then the next campaign begins. Checked after every attempt: exit code, one line on stderr,
no process left, scratch folder empty where the owner could see to it, no verdict lost or changed. At the
end: every table of the store equals that of a run that nobody disturbed, but for times and memory; the images
are those of the store; nothing else is left. Exit codes: 0 all so, 1 not (the line on stderr tells what)."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
from kill_campaigns import CAMPAIGNS, Broken, Campaign, require

from tornpage.faults.scratch import scratch_folder

GONE_S = 10.0
"""A process that was told to die is given so long to be gone."""
ATTEMPT_S = 120.0
END_CODES = (0, 1, 3)
"""Of a run that came to its end: the shortened campaigns do not exercise all that they claim."""
SENT_TO_OWNER = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
SENT_TO_OTHERS = (signal.SIGKILL, signal.SIGTERM)
OF_A_RUN = {"seconds", "origin", "started", "at"}
OF_A_TABLE = {"bug": {"trial", "config"}}
"""A trial that somebody has disturbed is made again, behind others: another one may be the first to show a
bug."""
OF_A_MOMENT = {"seconds", "states_per_s", "peak_bytes", "written_bytes", "image", "unvisited"}
"""What two equal runs need not share. Which trial of a fingerprint comes first and keeps its image depends on
the workers."""


@dataclass(frozen=True)
class Place:
    """Where a campaign is run: file, store and scratch in a folder of its own."""

    campaign: Campaign
    folder: Path

    @property
    def scratch(self) -> Path:
        """TORNPAGE_TMP of the run."""
        return self.folder / "scratch"

    @property
    def out(self) -> Path:
        """--out of the run."""
        return self.folder / "out"

    def prepare(self) -> None:
        """Makes folder and campaign file."""
        self.scratch.mkdir(parents=True)
        self.campaign.write(self.folder)

    def start(self) -> subprocess.Popen[str]:
        """The owner of an attempt."""
        command = [sys.executable, "-P", "-m", "tornpage", "run"]
        command += [str(self.folder / f"{self.campaign.file}.toml"), "--go-on", "--json"]
        command += ["--target", self.campaign.target, "--jobs", "2", "--out", str(self.out)]
        return subprocess.Popen(
            command,
            env={**os.environ, "TORNPAGE_TMP": str(self.scratch)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def processes(self) -> list[psutil.Process]:
        """Those whose environment or arguments name this scratch folder: all that belong to the run."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                arguments = " ".join(process.cmdline())
                environment = Path(f"/proc/{process.pid}/environ").read_bytes()
                named = str(self.scratch) in arguments or str(self.scratch).encode() in environment
                if named and process.pid != os.getpid():
                    found.append(process)
        return found

    def require_no_process(self) -> None:
        """All are gone, or go now."""
        end = time.monotonic() + GONE_S
        while (left := self.processes()) and time.monotonic() < end:
            psutil.wait_procs(left, timeout=0.05)
        require(not left, f"processes are left: {[_command(process) for process in left]}")

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """What the store holds, table by table, without what two equal runs need not share."""
        names = self._ask("select name from sqlite_schema where type = 'table'")
        return {
            name: self._ask(f"select * from {name}", OF_A_TABLE.get(name, set()))
            for (name,) in names
        }

    def verdicts(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """Trials and explorations that have their end."""
        if not self._ask("select 1 from sqlite_schema where name = 'trial'"):
            return {}
        trials = self._ask("select run, number, result from trial where outcome is not null")
        explored = self._ask("select run, config, summary from exploration")
        return {row[:2]: row for row in (*trials, *explored)}

    def finished(self) -> bool:
        """The store says so, and what the run came to; the owner may have been ended after that."""
        runs = self._ask("select 1 from sqlite_schema where name = 'run'")
        over = "select 1 from run where state = 'finished' and verdict <> ''"
        return bool(runs and self._ask(over))

    def _ask(self, query: str, left_out: Set[str] = frozenset()) -> list[tuple[Any, ...]]:
        path = self.out / "tornpage.db"
        if not path.exists():
            return []
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return rows_of(db.execute(query), left_out)

    def require_tidy(self) -> None:
        """Nothing is left beside the store, its report and the images that it names. An owner that was killed
        at the end leaves its scratch to the next one, who removes it, and the lock of its run."""
        with mock.patch.dict(os.environ, TORNPAGE_TMP=str(self.scratch)), scratch_folder():
            pass
        require(not list(self.scratch.iterdir()), f"{self.scratch} is not empty")
        bugs = [f"bug-{number}" for (number,) in self._ask("select id from bug")]
        pages = {f"{name}.html" for name in ("report-1", "index", *bugs)}
        names = {path.name for path in self.out.iterdir()}
        names -= {"images", "run-1.lock", "tornpage.db-wal", "tornpage.db-shm"}
        names -= pages | {f"{page}.new" for page in pages}
        require(names == {"tornpage.db"}, f"left in the output folder: {names}")
        with contextlib.closing(sqlite3.connect(self.out / "tornpage.db")) as db:
            named = {
                self.out / path
                for (path,) in db.execute("select json_extract(result, '$.image') from trial")
                if path is not None
            }
        kept = set((self.out / "images").glob("*/*"))
        require(kept == named, f"images {kept ^ named} are only in the store or only on disk")


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def rows_of(cursor: sqlite3.Cursor, left_out: Set[str] = frozenset()) -> list[tuple[Any, ...]]:
    names = [column[0] for column in cursor.description]
    taken = [name not in OF_A_RUN | left_out for name in names]
    return sorted(
        (
            tuple(_timeless(value) for value, take in zip(row, taken, strict=True) if take)
            for row in cursor
        ),
        key=repr,
    )


def _timeless(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    data = {name: part for name, part in json.loads(value).items() if name not in OF_A_MOMENT}
    return json.dumps(data, sort_keys=True)


def role_of(process: psutil.Process) -> str:
    """What a descendant of the owner is."""
    words = _command(process)
    if words and words[0].endswith("tornpage-launch"):
        words = words[3:]
    name = Path(words[0]).name if words else ""
    line = " ".join(words)
    for role, holds in {
        "explorer": name == "tornpage-explore",
        "judge": name == "tornpage-judge",
        "worker": "spawn_main" in line,
    }.items():
        if holds:
            return role
    return "target" if name and "resource_tracker" not in line else "nobody"


@dataclass(frozen=True)
class Shot:
    """A kill that is planned."""

    role: str
    sent: signal.Signals
    after_s: float


def plan_shot(rng: random.Random, campaign: Campaign, seconds: float) -> Shot:
    """At any moment of a run that takes so long undisturbed."""
    role = rng.choice(campaign.roles)
    signals = SENT_TO_OWNER if role == "owner" else SENT_TO_OTHERS
    return Shot(role, rng.choice(signals), rng.uniform(0.1, seconds))


def fire(owner: subprocess.Popen[str], shot: Shot, rng: random.Random) -> bool:
    """Waits for the moment and for a process of the role; False if the run ended before."""
    root = psutil.Process(owner.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        owner.wait(shot.after_s)
    while owner.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            below = [] if shot.role == "owner" else root.children(recursive=True)
            alike = [root] if shot.role == "owner" else below
            victims = [p for p in alike if p is root or role_of(p) == shot.role]
            if victims:
                rng.choice(victims).send_signal(shot.sent)
                return True
        time.sleep(0.005)
    return False


def allowed_codes(shot: Shot) -> tuple[int, ...]:
    """How an owner may end. Before it listens to signals it dies by them."""
    if shot.role != "owner":
        return (*END_CODES, 2)
    return (*END_CODES, -shot.sent, 128 + shot.sent)


def check_attempt(place: Place, owner: subprocess.Popen[str], shot: Shot | None) -> None:
    """How it ended, and what it left."""
    errors = owner.communicate(timeout=ATTEMPT_S)[1]
    code = owner.returncode
    place.require_no_process()
    allowed = allowed_codes(shot) if shot else END_CODES
    require(code in allowed, f"{shot}: exit code {code}: {errors}")
    if code >= 0:
        require(not list(place.scratch.iterdir()), f"{shot}: the scratch folder is not empty")
        one_line = errors.startswith("tornpage: ") and errors.count("\n") == 1
        require(one_line or (code in END_CODES and not errors), f"{shot}: {code}: {errors}")
    if code >= 128:
        require("interrupted; " in errors, f"{shot}: {errors}")


def run_to_end(place: Place, rng: random.Random, shots: int, seconds: float) -> list[Shot]:
    """Attempts until one comes to the end; at most so many of them are shot at. Returns those that were."""
    hits: list[Shot] = []
    known = place.verdicts()
    while not place.finished():
        shot = plan_shot(rng, place.campaign, seconds) if len(hits) < shots else None
        owner = place.start()
        try:
            hit = shot is not None and fire(owner, shot, rng)
            check_attempt(place, owner, shot if hit else None)
        finally:
            if owner.poll() is None:
                owner.kill()
                owner.wait()
        if hit and shot is not None:
            hits.append(shot)
        now = place.verdicts()
        lost = {key for key, row in known.items() if now.get(key) != row}
        require(not lost, f"{shot}: verdicts lost or changed: {sorted(lost)[:5]}")
        require(hit or place.finished(), "the run came to its end and is not finished")
        known = now
    return hits


def compare(place: Place, untouched: Place) -> None:
    """The stores of the two."""
    found, wanted = place.tables(), untouched.tables()
    require(found.keys() == wanted.keys(), f"tables {found.keys() ^ wanted.keys()}")
    for name, rows in wanted.items():
        others = sorted({*rows} ^ {*found[name]}, key=repr)
        require(found[name] == rows, f"table {name} differs: {str(others[:2])[:500]}")


class Night:
    """Rounds over campaigns; each campaign's untouched run is made once."""

    def __init__(self, folder: Path, names: list[str], seed: int) -> None:
        """folder: new or empty; names: of CAMPAIGNS."""
        self._folder = folder
        self._names = names
        self._rng = random.Random(seed)
        self._untouched: dict[str, tuple[Place, float]] = {}
        self.hits: Counter[str] = Counter()

    def run(self, kills: int) -> None:
        """Until so many processes were ended, and to the end of the last campaign. Raises Broken."""
        number = 0
        while self.hits.total() < kills:
            name = self._names[number % len(self._names)]
            untouched, seconds = self._reference(name)
            place = Place(CAMPAIGNS[name], self._folder / f"{number}-{name}")
            place.prepare()
            left = kills - self.hits.total()
            for shot in run_to_end(place, self._rng, left, seconds):
                self.hits[f"{shot.role} {shot.sent.name}"] += 1
            place.require_no_process()
            place.require_tidy()
            compare(place, untouched)
            number += 1

    def _reference(self, name: str) -> tuple[Place, float]:
        if name not in self._untouched:
            place = Place(CAMPAIGNS[name], self._folder / f"untouched-{name}")
            place.prepare()
            started = time.monotonic()
            run_to_end(place, self._rng, 0, 0)
            self._untouched[name] = place, time.monotonic() - started
        return self._untouched[name]


def main(argv: list[str]) -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--campaign", action="append", choices=CAMPAIGNS, help="default: all")
    arguments = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="kills-", dir="/dev/shm"))
    night = Night(folder, arguments.campaign or list(CAMPAIGNS), arguments.seed)
    try:
        night.run(arguments.kills)
    except Broken as broken:
        print(f"kills: seed {arguments.seed}: {broken} (see {folder})", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print(f"{night.hits.total()} kills: {dict(sorted(night.hits.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
