"""Whether the machine is short of memory is what its kernel says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.faults import shortage
from tornpage.faults.shortage import is_short, oom_kills

PLENTY = 8 << 20


def said(proc: Path, *, kills: int, available_kib: int) -> None:
    """What the kernel says."""
    (proc / "vmstat").write_text(f"nr_free_pages 7\noom_kill {kills}\noom_kill_other 5\n", "ascii")
    (proc / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:  {available_kib} kB\n", "ascii")


@pytest.mark.parametrize(
    ("kills", "available_kib", "short"),
    [(2, PLENTY, False), (3, PLENTY, True), (2, 1 << 10, True)],
)
def test_what_the_kernel_says(
    kills: int, available_kib: int, short: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has killed another process for want of memory, or hardly any is left."""
    monkeypatch.setattr(shortage, "PROC", tmp_path)
    said(tmp_path, kills=2, available_kib=PLENTY)
    before = oom_kills()
    said(tmp_path, kills=kills, available_kib=available_kib)
    assert (before, is_short(before)) == (2, short)


def test_a_kernel_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is short of nothing that anybody knows of."""
    monkeypatch.setattr(shortage, "PROC", tmp_path)
    assert (oom_kills(), is_short(0)) == (0, False)
