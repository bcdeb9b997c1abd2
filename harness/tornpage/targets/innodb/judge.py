"""The program behind the rules: a request per line, as of tornpage-judge (explorer/run/judge_main.c).

    python -m tornpage.targets.innodb.judge < REQUESTS

Request: trace, base, live, doublewrite. Answer: findings, log.found, counters; or error.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tornpage.faults.trace import FilePaths, Op, Trace
from tornpage.targets.innodb.rules import LOG_FILE, SYSTEM, Rules, is_tablespace
from tornpage.vocabulary.errors import TornpageError

__all__ = ["answer", "main"]

OF_ONE_RULE_MAX = 8
WRITE_DURABLE = 4
"""Flag of a write in the stream: faults/README.md."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The verdict on one recording."""
    findings: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    seq = 0

    def tell(invariant: int, rule: str, what: str) -> None:
        counts[rule] += 1
        if counts[rule] <= OF_ONE_RULE_MAX:
            findings.append(
                {"seq": seq, "invariant": invariant, "source": "rule", "rule": rule, "what": what}
            )

    trace = Trace.load(Path(request["trace"]))
    rules = Rules(tell, bool(request["doublewrite"]))
    _find(rules, request["base"])
    paths = FilePaths()
    linked: set[int] = set()  # files that have had two names
    gone: set[int] = set()  # files that are written without a name: nobody finds them again
    for event in trace.events():
        seq = event.seq
        if event.kind == Op.OPEN:
            gone.discard(event.file)
        if event.kind in (Op.RENAME, Op.UNLINK) and event.result == 0:
            if event.kind == Op.RENAME:
                rules.rename(*trace.renamed(event))
            else:
                rules.remove(trace.text(event))
                gone |= {event.file} - linked
        if event.kind == Op.LINK and event.result == 0:
            linked.add(event.file)
        paths.see(trace, event)
        path = "" if event.file in gone else paths[event.file]
        if event.kind == Op.WRITE and event.result > 0:
            data = trace.payload(event)[: event.result]
            durable = bool(event.flags & WRITE_DURABLE)
            rules.write(path, event.offset, data, seq, durable=durable)
        elif event.kind in (Op.FSYNC, Op.FDATASYNC) and event.result == 0:
            rules.sync(path, event.began)
    log = {"found": rules.found}
    return {"findings": findings, "log": log, "counters": dict(rules.counters)}


def _find(rules: Rules, base: str) -> None:
    if not base:
        return
    folder = Path(base)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    for name in sorted(names, key=SYSTEM.__ne__):
        path = folder / name
        if (name == LOG_FILE or is_tablespace(name)) and path.is_file():
            rules.find(name, path.read_bytes())


def main() -> None:
    """Until the input ends."""
    for line in sys.stdin:
        try:
            told = answer(json.loads(line))
        except (TornpageError, OSError, ValueError, KeyError) as error:
            told = {"error": str(error)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
