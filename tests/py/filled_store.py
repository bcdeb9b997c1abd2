"""A store with one of each thing that a store keeps, and what docs/STORE.md asks of stores."""

from __future__ import annotations

import re
from dataclasses import replace

from builders import make_result, make_spec

from tornpage.store.bugs import BugStatus
from tornpage.store.memory import Answer, Replayed
from tornpage.store.origin import Origin
from tornpage.store.rows import GoldenRunRow
from tornpage.store.store import Store
from tornpage.vocabulary.cause import Cause, Counterfactual, Explained, Kind, Operation
from tornpage.vocabulary.evidence import Frame
from tornpage.vocabulary.model import FaultPlan, Outcome, Source, Violation
from tornpage.vocabulary.paths import ROOT

PAGE = (ROOT / "docs" / "STORE.md").read_text("utf-8")
QUERIES = [
    query.strip()
    for block in re.findall(r"^```sql\n(.*?)^```", PAGE, re.M | re.S)
    for query in block.split("\n\n")
]
"""Its examples."""
RULE = Violation(13, "dblwr_skip: page 0:1 goes home\0 without a copy", source=Source.RULE)
ORIGIN = Origin("2026-11-21T19:00:00+00:00", host="a", programs={"engine": "b1"})
LOST = Operation(6, "write", "log", "write of 9 bytes at 0 of log (operation 6)", "redo", 1)
EXPLAINED = Explained(
    sentence="a row is missing: write of 9 bytes at 0 of log (operation 6) was not durable when ...",
    cause=Cause(
        kind=Kind.ACKNOWLEDGED,
        finding="a row is missing",
        lost=(replace(LOST, frames=(Frame("append", "store.c", 41),)),),
        beside=(),
        relied=LOST,
        acknowledged=1,
        until=None,
        counterfactuals=(Counterfactual("With it durable", True),),
        notes=("No fsync of log came between them.",),
        syncs=(Operation(8, "fsync", "log", "fsync of log (operation 8)", "", 1),),
    ),
    recording="kept",
    probes=7,
)
"""With one of each."""
TORN = {
    "page0": {
        "first_flush": {"prefix": {"writes": 2, "states": 0}, "dropped": {"writes": 2, "states": 1}}
    }
}


def fill(store: Store) -> None:
    """A run of kills with findings, a night with a power-loss run, a bug that was fixed and came back,
    and one that is found again."""
    kills = store.begin_run("smoke", "engine", 1, 3, {"name": "smoke"}, ORIGIN).id
    store.put_golden_run(
        kills, GoldenRunRow("a seed=1", True, "h", 9, 5, (RULE,), {"btr_splits": 2})
    )
    results = [
        make_result(0),
        replace(make_result(1, broken=5), alike=1, seconds={"total": 0.5}),
        make_result(2, Outcome.NOT_EXERCISED),
    ]
    for site, result in zip(("page0", "page0", "redo"), results, strict=True):
        store.start_trial(kills, make_spec(result.number), site, "none")
        store.finish_trial(kills, result)
    store.put_explanation(f"{kills}.1", EXPLAINED)
    store.set_verdict(store.finish_run(kills).id, "violations")
    store.mark_bug(2, BugStatus.FIXED, "flush")
    night = store.begin_night({"seed": 9}, ORIGIN).id
    origin = replace(ORIGIN, started="2026-11-22T19:00:00+00:00")
    losses = store.begin_run("powerloss", "engine", 7, 0, {}, origin, night).id
    store.put_golden_run(
        losses, GoldenRunRow("a seed=1", True, "h", 9, 5, (RULE,), {"btr_splits": 2})
    )
    spec = replace(make_spec(0), plan=FaultPlan(loss="17.one-torn.3"))
    store.start_trial(losses, spec, "page0", "17.one-torn.3")
    store.finish_trial(losses, replace(make_result(0, broken=5), alike=40))
    said = {"states": 500, "paths": {"dblwr_restored": 3}, "torn_pages": TORN}
    store.put_exploration(losses, "a", said)
    store.add_seconds(losses, 2.0)
    store.put_replay(Replayed(losses, 1, Answer.REPRODUCED, ""))
    store.stop_run(losses)
    store.end_night(night, "finished")
