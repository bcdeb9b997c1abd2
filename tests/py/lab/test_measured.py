"""Processor time is that of every process that somebody has started."""

from __future__ import annotations

import subprocess
import sys

from tornpage.lab.measured import cpu_seconds, living_seconds

BUSY = "print(sum(range(9_000_000)), flush=True); input()"


def test_a_living_child_counts_and_counts_on() -> None:
    """As long as it lives, and as one that was waited for then."""
    before = cpu_seconds() + living_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = cpu_seconds() + living_seconds() - before
        assert living_seconds() > 0.02
        child.communicate(b"\n")
    assert 0.02 < alive < cpu_seconds() + living_seconds() - before + 0.05
