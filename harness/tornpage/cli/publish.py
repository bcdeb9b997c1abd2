"""Results for a CI system: a JUnit file, annotations of a GitHub workflow."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tornpage.cli.options import Annotate, FailOn
from tornpage.cli.terminal import say
from tornpage.reports.annotations import github_lines
from tornpage.reports.junit import NO_FRAMES, render_junit
from tornpage.reports.summary import Summary
from tornpage.vocabulary.outputs import output

__all__ = ["publish"]


def publish(
    summaries: Sequence[Summary],
    junit: Path | None,
    annotate: Annotate | None,
    fail_on: FailOn,
    frames: Mapping[int, Sequence[str]] = NO_FRAMES,
) -> None:
    """Writes what was asked for. Annotations go to standard error, where the runner reads them too: standard
    output may be redirected. frames: of the broken operations of bugs, by their numbers."""
    only_news = fail_on is FailOn.NEW
    if junit is not None:
        with output(junit):
            junit.write_bytes(render_junit(summaries, frames, only_news=only_news))
    if annotate is None:
        inside = os.environ.get("GITHUB_ACTIONS") == "true"
        annotate = Annotate.GITHUB if inside else Annotate.NONE
    if annotate is Annotate.GITHUB:
        for line in github_lines(summaries, only_news=only_news):
            say(line, sys.stderr)
