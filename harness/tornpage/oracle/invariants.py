"""The trace invariants as one call: all rules over a run, or over a recovery.

May import: model, rules and its siblings, trace.
"""

from __future__ import annotations

from tornpage.faults.trace import Trace
from tornpage.oracle.rules import Finding, LogState, Rule, Setting, walk
from tornpage.oracle.rules_log import (
    CheckpointOrder,
    CommitDurable,
    FailedIo,
    FileOpOrder,
    LogOverwrite,
    LogTailCut,
    WriteAhead,
)
from tornpage.oracle.rules_page import DoublewriteOrder, DoublewriteSkip, FreedPages, IndexLoad
from tornpage.oracle.rules_recovery import HistoryCollector, LogHistory, RecoveryReads

__all__ = ["COMMON_RULES", "RECOVERY_RULES", "check_recovery", "check_run", "describe_rules"]

COMMON_RULES: tuple[type[Rule], ...] = (
    WriteAhead,
    CommitDurable,
    LogOverwrite,
    CheckpointOrder,
    FailedIo,
    FileOpOrder,
    DoublewriteSkip,
    DoublewriteOrder,
    FreedPages,
    IndexLoad,
)
"""Rules that hold for a run and for a recovery alike."""

RECOVERY_RULES: tuple[type[Rule], ...] = (*COMMON_RULES, LogTailCut, RecoveryReads)


def check_run(trace: Trace, setting: Setting) -> tuple[list[Finding], LogHistory]:
    """Checks a run; also returns what its log holds, which check_recovery() needs."""
    log = LogState(setting)
    collector = HistoryCollector(log)
    findings = walk(trace, log, [*(rule(log) for rule in COMMON_RULES), collector])
    return findings, collector.history


def check_recovery(
    trace: Trace, setting: Setting, history: LogHistory, first: bool
) -> tuple[list[Finding], LogState]:
    """Checks a recovery. history: of the run before it; first: no earlier recovery has added to the log, so
    that the history tells all of it.

    Also returns what of the log it has found and written.
    """
    log = LogState(setting)
    rules = [rule(log) for rule in COMMON_RULES if rule is not FreedPages]
    rules.append(FreedPages(log, history.noredo))
    rules.append(LogTailCut(log))
    if first:
        rules.append(RecoveryReads(log, history))
    return walk(trace, log, rules), log


def describe_rules() -> list[tuple[tuple[int, ...], str, str]]:
    """Invariant numbers, what is checked, and what is not, per rule."""
    return [
        (rule.numbers, " ".join((rule.__doc__ or "").split()), rule.blind)
        for rule in RECOVERY_RULES
    ]
