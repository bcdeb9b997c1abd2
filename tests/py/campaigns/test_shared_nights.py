"""Nights of a store that several machines and branches share."""

from __future__ import annotations

import platform
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tornpage.campaigns.night import NightPlan, open_night
from tornpage.plans.limits import Limits
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


def test_a_night_goes_on_with_its_own_plan(tmp_path: Path) -> None:
    """What is named besides must be its plan's; another limit, seed, time or setting is refused by its
    option. Where a new night may begin, the interrupted one is given up for it."""
    paths = find_paths()
    plan = replace(
        PLAN, campaigns=("smoke", "powerloss"), limits=Limits(states=40, models=("subset",))
    )
    others = {
        "--states": (replace(plan, limits=Limits(states=41)), set()),
        "--models": (replace(plan, limits=Limits(models=("subset", "ordered"))), set()),
        "--depth": (replace(plan, limits=Limits(depth=2)), set()),
        "--seed": (replace(plan, seed=2), {"seed"}),
        "--for": (replace(plan, seconds=9.0), {"seconds"}),
        "--option": (replace(plan, options=(("page_size", "8k"),)), {"options"}),
        "campaigns": (replace(plan, campaigns=("smoke",)), {"campaigns"}),
    }

    with Store(tmp_path / "s.db") as store:
        first = open_night(store, plan, paths, tmp_path, resume=False, anew=True)
        for option, (asked, said) in others.items():
            with pytest.raises(
                ConfigError, match=rf"night 1 was made with another {option}; start"
            ):
                open_night(store, asked, paths, tmp_path, resume=True, anew=False, said=said)
        unsaid = replace(plan, seed=5, campaigns=(), limits=Limits(states=40))
        again = open_night(
            store, unsaid, paths, tmp_path, resume=True, anew=False, said=frozenset()
        )
        assert again.id == first.id and again.plan["limits"]["states"] == 40
        asked, _ = others["--depth"]
        other = open_night(store, asked, paths, tmp_path, resume=True, anew=True)
        assert (other.id, store.night(1).state) == (2, "failed")


def test_nights_of_one_day_have_seeds_of_their_own(tmp_path: Path) -> None:
    """The first one the date; a seed that somebody names is taken as it is."""
    paths = find_paths()
    plan = replace(PLAN, seed=20261124)
    unsaid: frozenset[str] = frozenset()
    with Store(tmp_path / "s.db") as store:
        seeds = []
        for said in (unsaid, unsaid, {"seed"}, unsaid):
            night = open_night(store, plan, paths, tmp_path, resume=False, anew=True, said=said)
            seeds.append(night.plan["seed"])
            store.end_night(night.id, "finished")
        assert seeds == [20261124, 2026112402, 20261124, 2026112403]
        assert [night.id for night in store.nights()] == [1, 2, 3, 4]
