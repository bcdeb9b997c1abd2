"""The workload "linkbench": the social graph of LinkBench, with its three tables and the shares of its
operations. Nodes and links that are popular are asked for far more often than others.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from tornpage.workloads.script import Column, IndexDef, Script, Value, Verb
from tornpage.workloads.sessions import Profile, Sessions

__all__ = ["LinkbenchParams", "generate_linkbench"]

LINK_TYPE = 123456789
NODE_TYPE = 2048
VISIBLE = 1
HIDDEN = 0
LINKS = IndexDef(
    "id1_type",
    (("id1", 0), ("link_type", 0), ("visibility", 0), ("time", 0), ("id2", 0), ("version", 0)),
)
"""LinkBench's index holds the data too; a key has room for numbers and the start of a text."""


class LinkbenchParams(BaseModel):
    """Nodes, links between them and counts of links, changed as LinkBench changes them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: int = Field(default=40, ge=2, le=1_000_000)
    """At the beginning."""
    node_bytes: int = Field(default=1200, ge=16, le=15_000)
    """Longest data of a node; most are much shorter."""
    transactions: int = Field(default=120, ge=1, le=1_000_000)
    """Over all rounds; the index of the links is dropped and built between two rounds."""
    clients: int = Field(default=4, ge=1, le=20)
    """Most transactions open at once."""


def generate_linkbench(params: LinkbenchParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    sessions = Sessions(rng)
    graph = _Graph(params, sessions)
    data = Column("data", params.node_bytes, varying=True)
    times = (Column("time"), Column("version"))
    sessions.create("nodetable", (Column("id"), Column("type"), *times, data), ("id",))
    ids = (Column("id1"), Column("id2"), Column("link_type"))
    link = (*ids, Column("visibility"), Column("data", 255, varying=True, nullable=True), *times)
    sessions.create("linktable", link, ("link_type", "id1", "id2"))
    count = (Column("id"), Column("link_type"), Column("count"), *times)
    sessions.create("counttable", count, ("id", "link_type"))
    sessions.run({graph.add_node: 1}, 1, params.nodes)
    profiles: dict[Profile, float] = {
        graph.add_node: 2.6,
        graph.update_node: 7.4,
        graph.delete_node: 1.0,
        graph.get_node: 12.9,
        graph.add_link: 9.0,
        graph.delete_link: 3.0,
        graph.update_link: 8.0,
        graph.count_links: 4.9,
    }

    def between() -> None:
        sessions.toggle_index("linktable", LINKS)
        if rng.random() < 0.3:
            sessions.add(Verb.REBUILD_TABLE, table=rng.choice(("nodetable", "linktable")))

    sessions.rounds(profiles, params.clients, params.transactions, between)
    return sessions.script()


class _Graph:
    """LinkBench's operations. Those that only read lists of links are left out: they change nothing."""

    def __init__(self, params: LinkbenchParams, sessions: Sessions) -> None:
        self._params = params
        self._rng = sessions.rng
        self._n_nodes = 0
        self._time = 0

    def _now(self) -> int:
        self._time += 1
        return self._time

    def _node(self) -> int:
        """One of those there ever were: the older, the more popular."""
        return min(int(self._rng.paretovariate(1.0)), max(self._n_nodes, 1))

    def _data(self, most: int) -> bytes:
        length = min(most, int(self._rng.lognormvariate(4.5, 1.3)))
        return self._rng.randbytes(8).hex().encode().ljust(length, b"d")[:length]

    def add_node(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """A new node."""
        self._n_nodes += 1
        row: dict[str, Value] = {
            "id": self._n_nodes,
            "type": NODE_TYPE,
            "version": 1,
            "time": self._now(),
            "data": self._data(self._params.node_bytes),
        }
        yield sessions.insert(trx, "nodetable", row)

    def update_node(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """Other data, shorter or longer."""
        data = self._data(self._params.node_bytes)
        values: dict[str, Value] = {"version": self._now(), "time": self._time, "data": data}
        yield sessions.update(trx, "nodetable", (self._node(),), values)

    def delete_node(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """A node goes; its links stay, as in LinkBench."""
        yield sessions.delete(trx, "nodetable", (self._node(),))

    def get_node(self, sessions: Sessions, trx: str) -> Iterator[bool]:  # noqa: ARG002 - reads
        """Reads a node."""
        yield sessions.select("nodetable", (self._node(),))

    def count_links(self, sessions: Sessions, trx: str) -> Iterator[bool]:  # noqa: ARG002 - reads
        """Reads a count."""
        yield sessions.select("counttable", (self._node(), LINK_TYPE))

    def add_link(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """A link, or an old one made visible again; it counts if it was not there."""
        key = (LINK_TYPE, self._node(), self._node())
        row = sessions.row("linktable", key)
        values: dict[str, Value] = {
            "visibility": VISIBLE,
            "data": self._data(255) if self._rng.random() < 0.9 else None,
            "time": self._now(),
            "version": 1,
        }
        if row is None:
            named: dict[str, Value] = dict(zip(("link_type", "id1", "id2"), key, strict=True))
            yield sessions.insert(trx, "linktable", {**named, **values})
        else:
            yield sessions.update(trx, "linktable", key, values)
        if row is None or row["visibility"] == HIDDEN:
            yield self._count(sessions, trx, key[1], 1)

    def update_link(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """Other data of a link that is there, or a new one."""
        links = sessions.keys("linktable")
        if not links:
            yield from self.add_link(sessions, trx)
            return
        values: dict[str, Value] = {"data": self._data(255), "version": self._now()}
        yield sessions.update(trx, "linktable", self._rng.choice(links), values)

    def delete_link(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """A link is hidden, or goes for good; the count follows."""
        links = sessions.keys("linktable")
        if not links:
            return
        key = self._rng.choice(links)
        row = sessions.row("linktable", key) or {}
        if self._rng.random() < 0.5:
            yield sessions.delete(trx, "linktable", key)
        else:
            yield sessions.update(trx, "linktable", key, {"visibility": HIDDEN})
        if row.get("visibility") == VISIBLE:
            yield self._count(sessions, trx, int(key[1] or 0), -1)

    def _count(self, sessions: Sessions, trx: str, node: int, change: int) -> bool:
        key = (node, LINK_TYPE)
        row = sessions.row("counttable", key)
        if row is None:
            values: dict[str, Value] = {"id": node, "link_type": LINK_TYPE, "count": 1}
            return sessions.insert(trx, "counttable", {**values, "time": self._now()})
        count = row["count"] if isinstance(row["count"], int) else 0
        values = {"count": count + change, "time": self._now()}
        return sessions.update(trx, "counttable", key, values)
