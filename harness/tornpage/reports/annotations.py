"""A run as annotations of a GitHub workflow: lines that the runner reads from a step's output.

Escapes are those of the workflow commands: https://docs.github.com/actions/reference/workflow-commands.
"""

from __future__ import annotations

from collections.abc import Sequence

from tornpage.reports.summary import Summary
from tornpage.store.bugs import BugStatus
from tornpage.vocabulary.shown import one_line, visible

__all__ = ["github_lines"]

SHOWN_MAX = 10
"""Of one kind and step: GitHub shows no more."""


def github_lines(summaries: Sequence[Summary], *, only_news: bool = False) -> list[str]:
    """An error per bug that is a failure (only_news: a warning per known one) and per trial without a
    verdict, a warning for what was claimed and not exercised. The last of a kind may tell how many more."""
    errors: list[tuple[str, str]] = []
    warnings: list[tuple[str, str]] = []
    for summary in summaries:
        name = f"{summary.run.campaign} on {summary.run.target}"
        for seen in summary.bugs:
            if seen.bug.status is not BugStatus.IGNORED:
                first = seen.findings[0]
                text = "\n".join(map(one_line, (first.what, seen.bug.fingerprint, seen.replay)))
                kind = errors if seen.fails(only_news) else warnings
                kind.append((f"{name}: {seen.headline}", text))
        errors += [(name, text) for text in summary.errors]
        if summary.missing:
            errors.append((name, summary.missing))
        if summary.run.state == "finished":  # else its time was up before it came to all of them
            warnings += [(name, line) for line in summary.missed]
            warnings += [(name, f"no trial hit site {site}") for site in summary.uncovered_sites]
    return [*_lines("error", errors), *_lines("warning", warnings)]


def _lines(kind: str, items: Sequence[tuple[str, str]]) -> list[str]:
    shown = list(items if len(items) <= SHOWN_MAX else items[: SHOWN_MAX - 1])
    if len(items) > len(shown):
        shown.append(("tornpage", f"and {len(items) - len(shown)} more"))
    return [f"::{kind} title={_property(title)}::{_data(text)}" for title, text in shown]


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
