"""The last table of the documents: what page compression costs LinkBench and TPC-C, and what it saves.

As there, doublewrite is off because the storage promises atomic writes. One client, which says commit and
waits; a pool that is smaller than the data. The scripts are the same with and without compression.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.lab.rig import Bench
from tornpage.lab.sql import sql_of
from tornpage.reports.compared import Figure, FigureTable
from tornpage.workloads.script import Script, Verb
from tornpage.workloads.workload import generate

__all__ = ["compression"]

PAGE_SIZE = 16_384
POOL_BYTES = 8 << 20
LOG = "64m"
SEED = 1
ROUNDS = 3
PUBLISHED = ("linkbench", "throughput")
LEFT = 78.0
"""Per cent of that, with compression."""
SERVER_SETTINGS = {
    "innodb-page-size": "16k",
    "innodb-buffer-pool-size": str(POOL_BYTES),
    "innodb-log-file-size": LOG,
    "innodb-doublewrite": "0",
}
_CHANGES = frozenset({Verb.INSERT, Verb.UPDATE, Verb.DELETE})
SERVER_TABLE = "engine=innodb charset=latin1"


@dataclass(frozen=True, slots=True)
class _Outcome:
    """seconds: of the script, until all pages of its tables are home; stored: bytes that the files of tables
    take on the disk; written, compressed: pages that went home, and how many of them compressed."""

    seconds: float
    stored: int
    written: int
    compressed: int


@dataclass(frozen=True, slots=True)
class _Work:
    """A workload's script."""

    name: str
    script: Script

    @property
    def commits(self) -> int:
        """Transactions that changed something, and stayed: of each the log must be durable."""
        changed = {one.trx for one in self.script.statements if one.verb in _CHANGES}
        ended = {one.trx for one in self.script.statements if one.verb is Verb.COMMIT}
        return len(changed & ended)

    @property
    def tables(self) -> list[str]:
        """By name."""
        made = (one for one in self.script.statements if one.verb is Verb.CREATE_TABLE)
        return sorted(one.table for one in made)


def _works(rows: int) -> Iterator[_Work]:
    params: Mapping[str, Mapping[str, Any]] = {
        "linkbench": {"nodes": rows // 10, "transactions": rows // 20},
        "tpcc": {"customers": rows // 200, "items": rows // 50, "transactions": rows // 50},
    }
    for name, given in params.items():
        yield _Work(name, generate(name, {**given, "clients": 1}, SEED))


def compression(bench: Bench) -> FigureTable:
    """Throughput, space and pages with compression; seconds beside what the commits alone would take."""
    shares: list[Figure] = []
    seconds: list[Figure] = []
    for work in _works(bench.rows):
        pairs = [(_engine(bench, work, "none"), _engine(bench, work, "lz4")) for _ in range(ROUNDS)]
        ours = _medians(pairs)
        theirs = None
        if bench.has_server:
            served = [
                (_server(bench, work, False), _server(bench, work, True)) for _ in range(ROUNDS)
            ]
            theirs = _medians(served)
        shares += _shares(work.name, ours, theirs)
        limit = 1000 / bench.sync_rate
        for number, name in enumerate(("uncompressed", "compressed")):
            mine = ours[number].seconds * 1000 / work.commits
            other = theirs[number].seconds * 1000 / work.commits if theirs else None
            what = f"{work.name}, {name}: seconds of 1,000 transactions"
            seconds.append(Figure(what, None, mine, other, limit))
    title = "page compression with atomic writes, in % of the same without; seconds"
    return FigureTable(10, title, "%, s", [*shares, *seconds])


def _medians(pairs: list[tuple[_Outcome, _Outcome]]) -> tuple[_Outcome, _Outcome]:
    """Without and with compression: the median of each figure."""
    without, with_it = zip(*pairs, strict=True)
    return _median(without), _median(with_it)


def _median(found: Iterable[_Outcome]) -> _Outcome:
    rounds = list(found)
    return _Outcome(
        statistics.median(one.seconds for one in rounds),
        statistics.median_low([one.stored for one in rounds]),
        statistics.median_low([one.written for one in rounds]),
        statistics.median_low([one.compressed for one in rounds]),
    )


def _shares(
    name: str, ours: tuple[_Outcome, _Outcome], theirs: tuple[_Outcome, _Outcome] | None
) -> Iterator[Figure]:
    mine, other = _percent(*ours), _percent(*theirs) if theirs else {}
    for what, share in mine.items():
        published = LEFT if (name, what) == PUBLISHED else None
        yield Figure(f"{name}, {what}", published, share, other.get(what))


def _percent(without: _Outcome, with_it: _Outcome) -> dict[str, float]:
    return {
        "throughput": 100 * without.seconds / with_it.seconds,
        "bytes on the disk": 100 * with_it.stored / without.stored,
        "pages written": 100 * with_it.written / without.written,
        "of these compressed": 100 * with_it.compressed / with_it.written,
    }


def _engine(bench: Bench, work: _Work, algorithm: str) -> _Outcome:
    options = {
        "page_size": "16k",
        "buffer_pool_pages": str(POOL_BYTES // PAGE_SIZE),
        "log_file_size": LOG,
        "log_format": "10.5",
        "atomic_write_unit": "16k",
        "page_compression": algorithm,
    }
    home = "\n".join(f"flush table {table}" for table in work.tables)
    # The generator of the script knows which of its statements fail.
    with bench.database(options, [work.script.text + home], may_fail=True) as (data, steps):
        status = steps[0].status
        written, compressed = status["data_writes"], status["pages_compressed"]
        return _Outcome(steps[0].seconds, _stored(data, work), written, compressed)


def _server(bench: Bench, work: _Work, compressed: bool) -> _Outcome:
    with bench.server(SERVER_SETTINGS) as server:
        assert server is not None, "has_server says so"
        options = f"{SERVER_TABLE} page_compressed={int(compressed)}"
        home = f"flush tables {', '.join(work.tables)} for export; unlock tables"
        before, after = server.run(["select 1", f"{sql_of(work.script, options)}{home}"])
        written, shrunk = (
            after.status[counter] - before.status[counter]
            for counter in ("innodb_buffer_pool_pages_flushed", "innodb_num_pages_page_compressed")
        )
        return _Outcome(after.seconds, _stored(server.data, work), written, shrunk)


def _stored(folder: Path, work: _Work) -> int:
    """Bytes of the disk's blocks, without holes."""
    files = [found for table in work.tables for found in folder.rglob(f"{table}.ibd")]
    return sum(file.stat().st_blocks * 512 for file in files)
