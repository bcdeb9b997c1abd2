"""The commit prefixes of an oracle, as the programs that compare a recovered state with them read them."""

from __future__ import annotations

import json
from typing import Any

from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.state import plain_tables

__all__ = ["prefixes_of"]


def prefixes_of(oracle: Oracle | ObservedOracle) -> str:
    """One JSON object per commit prefix: what a recovered state is compared with."""
    lines = []
    parts = oracle.parts if isinstance(oracle, ObservedOracle) else []
    for number, (state, line) in enumerate(zip(oracle.states, oracle.commit_lines, strict=True)):
        client, tables = parts[number] if parts else ("", state)
        prefix: dict[str, Any] = {"prefix": number, "line": line, "tables": plain_tables(tables)}
        if client:
            prefix["client"] = client
        if number in oracle.exports:
            prefix["exported"] = oracle.exports[number]
        if number == oracle.end:
            prefix["end"] = True
        if number in oracle.backups:
            prefix |= {"backup": oracle.backups[number].name, "sure": oracle.backups[number].sure}
        lines.append(json.dumps(prefix))
    return "\n".join(lines) + "\n"
