"""Nights of a store that several machines and branches share."""

from __future__ import annotations

import platform
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tornpage.campaigns.night import NightPlan, open_night
from tornpage.store.file import StoreFile
from tornpage.store.origin import Origin
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import find_paths

PLAN = NightPlan(1, "engine", ("smoke",), (), 0.0)


def test_what_is_anothers_is_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine's night, other programs', and one whose campaign is not here; none is given up."""
    monkeypatch.setattr(StoreFile, "shared", True)
    paths = find_paths()
    here = Origin(host=platform.node())
    with Store(tmp_path / "s.db") as store:
        ours = open_night(store, PLAN, paths, tmp_path, resume=False, anew=True)
        store.begin_night(asdict(PLAN), replace(ours.origin, host="another"))
        store.begin_night(asdict(PLAN), here)
        store.begin_night(asdict(replace(PLAN, campaigns=("nowhere",))), here)
        assert open_night(store, PLAN, paths, tmp_path, resume=True, anew=False).id == ours.id
        store.end_night(ours.id, "finished")
        with pytest.raises(ConfigError, match="no interrupted night"):
            open_night(store, PLAN, paths, tmp_path, resume=True, anew=False)
        assert [night.id for night in store.interrupted_nights()] == [4, 3, 2]
