"""What a try goes on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tornpage.campaigns import attempt
from tornpage.campaigns.attempt import campaigns_of, torture
from tornpage.campaigns.fitting import Opened
from tornpage.plans.limits import Limits
from tornpage.store.origin import Examined, Origin
from tornpage.store.store import Store
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import find_paths
from tornpage.workers.context import QuietProgress, RunContext

PATHS = find_paths()


def test_what_an_earlier_try_came_to_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power loss of this one was interrupted: the kills behind it are made anew, those of an earlier try are
    not its own. A run with other limits is of another try."""
    monkeypatch.setattr(attempt, "go_on", lambda _store, run, _context: ("go on", run.id))
    monkeypatch.setattr(attempt, "run_campaign", lambda *_: "anew")
    file = write_skeleton("mydb", Language.PYTHON, tmp_path).file
    context = RunContext(PATHS, 1, tmp_path, QuietProgress(), Origin())
    losses, kills = campaigns_of(str(file), Limits(trials=1, states=1), {}, PATHS, stacks=False)
    others = campaigns_of(str(file), Limits(trials=2, states=2), {}, PATHS, stacks=False)
    with Store(tmp_path / "s.db") as store:

        def begin(one: Opened) -> int:
            settings = one.campaign.model_dump(mode="json")
            origin = Origin(target=one.identity)
            return store.begin_run(one.campaign.name, one.name, 1, 0, settings, origin).id

        earlier = begin(kills)
        store.finish_run(earlier)
        store.set_verdict(earlier, "clean")
        begin(losses)
    with Store(tmp_path / "s.db") as store:
        examined = Examined("w", 1, 1)
        assert list(torture(store, [losses, kills], examined, context, resume=True)) == [
            ("go on", 2),
            "anew",
        ]
        with pytest.raises(ConfigError, match="no interrupted try"):
            torture(store, others, examined, context, resume=True)


def test_a_run_without_its_verdict_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner may have died behind its last crash. One that has its verdict is told as it is."""
    monkeypatch.setattr(attempt, "go_on", lambda _store, run, _context: ("go on", run.id))
    monkeypatch.setattr(attempt, "load_summary", lambda _store, run: ("told", run.id))
    file = write_skeleton("mydb", Language.PYTHON, tmp_path).file
    opened = campaigns_of(str(file), Limits(trials=1, states=1), {}, PATHS, stacks=False)
    context = RunContext(PATHS, 1, tmp_path, QuietProgress(), Origin())

    def resumed(store: Store) -> list[Any]:
        return list(torture(store, opened, Examined("w", 1, 1), context, resume=True))

    with Store(tmp_path / "s.db") as store:
        for one in opened:
            settings = one.campaign.model_dump(mode="json")
            run = store.begin_run(
                one.campaign.name, one.name, 1, 0, settings, Origin(target=one.identity)
            )
            store.finish_run(run.id)
    with Store(tmp_path / "s.db") as store:
        store.set_verdict(1, "clean")
        assert resumed(store) == [("told", 1), ("go on", 2)]
        store.set_verdict(2, "clean")
        with pytest.raises(ConfigError, match="no interrupted try"):
            resumed(store)
