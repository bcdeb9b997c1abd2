"""Whatever is ended in a run, and however often: it leaves no process and no scratch folder behind, and
--go-on ends it as if nothing had been. kills.py is the program; KILLS makes a whole night of it, KILLS_SEED
another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kill_campaigns import CAMPAIGNS
from kills import Night

pytestmark = pytest.mark.extended

KILLS = int(os.environ.get("KILLS", "12"))
SEED = int(os.environ.get("KILLS_SEED", "1"))
SHORT = ["smoke", "powerloss"]
"""Of few kills; of many, all campaigns take part."""


def test_a_night_of_kills_ends_as_if_nothing_had_been(tmp_path: Path) -> None:
    """Owner, workers, targets, judges and explorers are ended at random moments of the campaigns: exit codes
    and messages are right, nothing is left, and the stores are those of fault-free runs."""
    names = SHORT if KILLS <= 12 else list(CAMPAIGNS)
    night = Night(tmp_path, names, SEED)
    night.run(KILLS)
    assert night.hits.total() == KILLS
