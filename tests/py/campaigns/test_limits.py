"""One value says how far something goes: whatever a door is given arrives at the explorer or the trials, or
is refused."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tornpage import api, torture_items
from tornpage.campaigns import night
from tornpage.cli import attempt as cli_attempt
from tornpage.cli import main as cli_main
from tornpage.cli import run as cli_run
from tornpage.live.recording import Recording
from tornpage.plans.campaign import Campaign, fault_free_spec, load_campaign
from tornpage.plans.changes import change, change_all, command_words
from tornpage.plans.limits import BOUNDS, Has, Limits
from tornpage.powerloss.explorer import _arguments
from tornpage.powerloss.runner import loss_limits, loss_parts, loss_scope
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import data_folder
from tornpage.vocabulary.seeds import derive_seed

pytest_plugins = ["pytester"]

FILES = {
    "losses": """
description = "short"
workload = "smoke"
crash_model = "power_loss"
seed = 1
[explore]
states = 200
depths = [1, 2]
""",
    "kills": """
description = "short"
workload = "smoke"
crash_model = "kill"
trials = 24
seed = 1
[[hit]]
sites = ["data_page"]
masks = ["none"]
""",
}
VALUES: dict[str, Any] = {
    "seed": 7,
    "trials": 5,
    "scripts": 3,
    "fault_free": 2,
    "models": ("subset", "ordered"),
    "depth": 3,
    "states": 70,
    "budget_s": 9.0,
}
"""Of each limit one that neither file has."""


class Captured(BaseException):
    """Carries the campaigns that were about to be run."""

    def __init__(self, *campaigns: Campaign) -> None:
        super().__init__()
        self.campaigns = campaigns


def capture(_store: object, campaign: Campaign, *_: object) -> None:
    """In place of run_campaign()."""
    raise Captured(campaign)


def words_of(name: str) -> list[str]:
    """The options of a command."""
    return Limits(**{name: VALUES[name]}).words()


def as_command(words: Sequence[str], tmp_path: Path) -> Sequence[Campaign]:
    """What a command line runs. ConfigError: it is refused."""
    with pytest.raises(Captured) as captured:
        cli_main.root()([*words, "--out", str(tmp_path / "out")], standalone_mode=False, obj={})
    return captured.value.campaigns


def arguments_of(campaign: Campaign) -> list[str]:
    """What the explorer is told of its first exploration."""
    config, depth = loss_parts(campaign)[0]
    file = Path("file")
    return _arguments(
        fault_free_spec(campaign, "engine", config),
        Recording(file, file, file, None, file, 0, "", 1, (), {}),
        loss_limits(campaign, depth),
        loss_scope(campaign),
    )


def arrived(campaign: Campaign, name: str, seed: int) -> bool:
    """Whether this is what will be done."""
    if name == "scripts":
        scripts = loss_parts(campaign) if campaign.explore else campaign.scripted()
        depths = {depth for _, depth in loss_parts(campaign)} if campaign.explore else {1}
        return len(scripts) == VALUES[name] * len(depths)
    if name == "fault_free":
        return len(campaign.only_fault_free()) == VALUES[name]
    if name == "trials":
        return campaign.trials == VALUES[name]
    if campaign.explore is None:
        return campaign.seed == seed
    told = shlex.join(arguments_of(campaign))
    expected = {
        "seed": f"--seed {seed} ",
        "models": "--model subset --model ordered",
        "depth": "--depth 3 ",
        "states": "--states 70",
        "budget_s": "--budget 9.0",
    }
    ends_by_itself = name != "budget_s" or "--states" not in told
    return expected[name] in told and ends_by_itself


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With both campaign files, and a store of one's own."""
    for name, text in FILES.items():
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    write_skeleton("mydb", Language.PYTHON, tmp_path)
    return tmp_path


def has(kind: str, name: str) -> bool:
    """By the table, which the doors go by."""
    return BOUNDS[name].has in (Has.ALL, Has.LOSS if kind == "losses" else Has.LIVE)


def test_the_table_has_every_limit() -> None:
    """A new one must be walked through the doors here."""
    names = [field.name for field in fields(Limits)]
    assert names == list(BOUNDS) == list(VALUES)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("kind", FILES)
def test_run(kind: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tornpage run`."""
    monkeypatch.setattr(cli_run, "run_campaign", capture)
    words = ["run", str(folder / f"{kind}.toml"), *words_of(name)]
    _expect(lambda: as_command(words, folder), kind, name)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("kind", FILES)
def test_nightly(kind: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tornpage nightly`, whose seed derives those of its runs."""
    monkeypatch.setattr(night, "run_campaign", capture)
    words = ["nightly", str(folder / f"{kind}.toml"), *words_of(name)]
    seed = derive_seed(VALUES["seed"], "night", kind, 0) % night.SEEDS
    _expect(lambda: as_command(words, folder), kind, name, seed)


@pytest.mark.parametrize("name", BOUNDS)
def test_try(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tornpage try`, which has a campaign of each kind: each takes what it has."""

    def torture(_store: object, opened: Any, *_: object, **__: object) -> None:
        raise Captured(*(one.campaign for one in opened))

    monkeypatch.setattr(cli_attempt, "examine", lambda *_: (None, None))
    monkeypatch.setattr(cli_attempt, "torture", torture)
    words = ["try", str(folder / "mydb" / "mydb.toml"), *words_of(name)]
    loss, kills = as_command(words, folder)
    for kind, campaign in {"losses": loss, "kills": kills}.items():
        if has(kind, name):
            assert arrived(campaign, name, VALUES["seed"])


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("kind", FILES)
def test_a_program(kind: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """api.run()."""
    monkeypatch.setattr(api, "run_campaign", capture)
    given = {name: VALUES[name]}

    def call() -> Sequence[Campaign]:
        try:
            api.run(folder / f"{kind}.toml", out=folder / "out", **given)
        except Captured as captured:
            return captured.campaigns
        return ()

    _expect(call, kind, name)


@pytest.mark.parametrize("name", BOUNDS)
def test_one_script(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """api.powerloss() has those of one exploration, and no others."""
    monkeypatch.setattr(api, "run_campaign", capture)
    taken = name in inspect.signature(api.powerloss).parameters
    assert taken is (name == "seed" or BOUNDS[name].has is Has.LOSS)
    if not taken:
        return
    given = {"states": 0, name: VALUES[name]}
    with pytest.raises(Captured) as captured:
        api.powerloss("engine", "create table t a:bigint primary a\n", out=folder, **given)
    assert arrived(captured.value.campaigns[0], name, VALUES["seed"])


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("kind", FILES)
def test_pytest(
    kind: str, name: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign file; the budget is that of an item, which its explorations share."""
    seen: list[Campaign] = []

    def run(_store: object, campaign: Campaign, *_: object) -> None:
        seen.append(campaign)
        raise ConfigError("seen")

    monkeypatch.setattr(torture_items, "run_campaign", run)
    pytester.makefile(".torture.toml", x=FILES[kind])
    value = ",".join(VALUES[name]) if name == "models" else VALUES[name]
    option = BOUNDS[name].of_pytest
    done = pytester.runpytest_inprocess(f"{option}={value}", "-p", "no:cacheprovider")
    if name == "budget_s":
        shares = [one.explore.budget_s for one in seen if one.explore]
        assert shares == ([4.5] if kind == "losses" else [])
    elif has(kind, name):
        assert arrived(seen[0], name, VALUES["seed"])
    else:
        assert not seen and done.ret == pytest.ExitCode.USAGE_ERROR
        done.stderr.fnmatch_lines([f"*{option}: no campaign that was collected has it"])


def _expect(
    door: Callable[[], Sequence[Campaign]], kind: str, name: str, seed: int = VALUES["seed"]
) -> None:
    if not has(kind, name):
        with pytest.raises(ConfigError):
            door()
        return
    (campaign,) = door()
    assert arrived(campaign, name, seed)


def test_each_exploration_has_its_depth(folder: Path) -> None:
    """Of a campaign with several; each is explored no deeper, and no less deep, than it is called."""
    loss = load_campaign(str(folder / "losses.toml"), folder)
    told = {
        config.label.rpartition(",")[2]: loss_limits(loss, depth)
        for config, depth in loss_parts(loss)
    }
    assert {label: limits.depth for label, limits in told.items()} == {"depth=1": 1, "depth=2": 2}


def test_several_campaigns_share_limits(folder: Path) -> None:
    """Each takes those that it has; what none of them has is refused, by its option."""
    loss, kills = (load_campaign(str(folder / f"{name}.toml"), folder) for name in FILES)
    one, other = change_all([loss, kills], Limits(states=9, trials=3), {"fs": "xfs"})
    assert one.explore is not None
    assert (one.explore.states, one.trials, one.options) == (9, 0, {"fs": "xfs"})
    assert (other.trials, other.options) == (3, {})
    for wrong, settings, option in (
        (Limits(states=9), {}, "--states"),
        (Limits(), {"fs": "xfs"}, "--fs"),
    ):
        with pytest.raises(ConfigError, match=f"no power-loss campaign: no {option}$"):
            change_all([kills, kills], wrong, settings)
    with pytest.raises(ConfigError, match=r"a power-loss campaign: --states, no --trials$"):
        change(loss, Limits(trials=3))


@pytest.mark.parametrize("name", [name for name in BOUNDS if name != "models"])
def test_bounds(name: str) -> None:
    """Wherever a limit comes from; the message has the option."""
    bound = BOUNDS[name]
    for value in (bound.low, bound.high):
        assert Limits(**{name: value}).given() == {name: value}
    for value in (bound.low - 1, bound.high + 1):
        with pytest.raises(ConfigError, match=f"^{bound.option} "):
            Limits(**{name: value})


def test_limits_are_options() -> None:
    """`run` takes the words that a program's limits come to."""
    limits = Limits(**VALUES)
    words = command_words(limits, {"page_size": "8k"})
    assert shlex.join(words[:6]) == "--option page_size=8k --seed 7 --trials 5"
    assert words[6:] == shlex.split(
        "--scripts 3 --fault-free 2 --models subset,ordered --depth 3 --states 70 --budget 9s"
    )
    assert command_words(Limits()) == []
    loss = load_campaign("powerloss", data_folder("workloads"))
    assert change(loss, Limits()) == loss
