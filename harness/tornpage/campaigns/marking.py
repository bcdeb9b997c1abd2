"""What a person says of a bug."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from enum import StrEnum

from tornpage.store.bugs import Bug, BugStatus
from tornpage.store.store import Store

__all__ = ["Mark", "mark_bug"]


class Mark(StrEnum):
    """What a person may say of a bug."""

    OPEN = "open"
    KNOWN = "known"
    FIXED = "fixed"
    IGNORED = "ignored"


def mark_bug(store: Store, bug: int, mark: Mark, reason: str) -> Bug:
    """Said now and here. reason: "" = that which it has. ConfigError if there is no such bug."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return store.mark_bug(bug, BugStatus(mark), reason, at=at, host=platform.node())
