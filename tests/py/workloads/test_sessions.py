"""TPC-C and LinkBench: what their transactions leave behind is consistent, as their specifications say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.workloads.script import Script, Statement, Value, Verb
from tornpage.workloads.workload import generate

Rows = dict[tuple[Value, ...], dict[str, Value]]
SEEDS = range(4)


def _committed(script: Script) -> dict[str, Rows]:
    """The rows at the end, by the outcomes that the oracle predicts."""
    errors = {step.line: step.error for step in Oracle(script).steps}
    primary: dict[str, tuple[str, ...]] = {}
    tables: dict[str, Rows] = defaultdict(dict)
    for statement in _in_commit_order(script):
        if statement.verb is Verb.CREATE_TABLE:
            primary[statement.table] = statement.primary
        if errors[statement.line] or statement.verb not in (Verb.INSERT, Verb.UPDATE, Verb.DELETE):
            continue
        values = {**(statement.key or {}), **(statement.values or {})}
        key = tuple(values[name] for name in primary[statement.table])
        if statement.verb is Verb.DELETE:
            del tables[statement.table][key]
        else:
            tables[statement.table][key] = {**tables[statement.table].get(key, {}), **values}
    return tables


def _in_commit_order(script: Script) -> Iterator[Statement]:
    """Those of a transaction where it commits; those of one that is rolled back never."""
    waiting: dict[str, list[Statement]] = {}
    for statement in script.statements:
        if statement.verb is Verb.BEGIN:
            waiting[statement.trx] = []
        elif statement.verb is Verb.COMMIT:
            yield from waiting.pop(statement.trx)
        elif statement.verb is Verb.ROLLBACK:
            del waiting[statement.trx]
        elif statement.trx in waiting:
            waiting[statement.trx].append(statement)
        else:
            yield statement


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value


@pytest.mark.parametrize("seed", SEEDS)
def test_tpcc_is_consistent(seed: int) -> None:
    """Conditions 1 to 4 and 8 of clause 3.3.2, and that clients meet each other."""
    script = generate("tpcc", {}, seed)
    tables = _committed(script)
    paid: Counter[Value] = Counter()
    paid_here: Counter[tuple[Value, ...]] = Counter()
    for row in tables["history"].values():
        paid[row["h_w_id"]] += _int(row["h_amount"])
        paid_here[row["h_w_id"], row["h_d_id"]] += _int(row["h_amount"])
    for key, row in tables["warehouse"].items():
        assert row["w_ytd"] == 30_000_000 + paid[key[0]]
    for key, row in tables["district"].items():
        assert row["d_ytd"] == 3_000_000 + paid_here[key]
        orders = [one for one in tables["orders"] if one[:2] == key]
        lines = [one for one in tables["order_line"] if one[:2] == key]
        assert row["d_next_o_id"] == 1 + max((_int(one[2]) for one in orders), default=0)
        assert len(lines) == sum(_int(tables["orders"][one]["o_ol_cnt"]) for one in orders)
        placed = sorted(_int(one[2]) for one in tables["new_order"] if one[:2] == key)
        assert placed == list(range(placed[0], placed[0] + len(placed))) if placed else True
    assert any(step.error == "DB_LOCK_CONFLICT" for step in Oracle(script).steps)


@pytest.mark.parametrize("seed", SEEDS)
def test_linkbench_counts_what_is_there(seed: int) -> None:
    """Each count is the number of visible links; nodes have data of very different lengths."""
    script = generate("linkbench", {}, seed)
    tables = _committed(script)
    visible = Counter(row["id1"] for row in tables["linktable"].values() if row["visibility"] == 1)
    counted = {row["id"]: row["count"] for row in tables["counttable"].values() if row["count"]}
    assert counted == visible
    lengths = [
        len(row["data"]) for row in tables["nodetable"].values() if isinstance(row["data"], bytes)
    ]
    assert max(lengths) > 4 * min(lengths)


@pytest.mark.parametrize("name", ["tpcc", "linkbench"])
def test_one_seed_one_script(name: str) -> None:
    """Same seed, same text; another seed, another."""
    assert generate(name, {}, 7).text == generate(name, {}, 7).text
    assert generate(name, {}, 7).text != generate(name, {}, 8).text
