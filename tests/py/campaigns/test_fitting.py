"""One way to open a campaign; campaigns and targets are what they say, wherever their files lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tornpage.campaigns.attempt import campaigns_of
from tornpage.campaigns.fitting import Opened, open_campaign
from tornpage.plans.campaign import Campaign
from tornpage.plans.limits import Limits
from tornpage.store.rows import Run
from tornpage.targets.command.file import load_target_file
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.targets.registry import campaign_parts
from tornpage.vocabulary.paths import find_paths

PATHS = find_paths()
LOSSES = """
description = "short"
workload = "smoke"
crash_model = "power_loss"
target = "mydb/mydb.toml"
seed = 1
[explore]
states = 20
"""


def checkout(folder: Path) -> Path:
    """A folder with a campaign of its own store; the campaign's file."""
    folder.mkdir()
    file = write_skeleton("mydb", Language.PYTHON, folder).file
    file.write_text(file.read_text("utf-8").replace('"./store', '"{python} store'), "utf-8")
    (folder / "x.toml").write_text(LOSSES, "utf-8")
    return folder / "x.toml"


def run_of(opened: Opened, **changed: object) -> Run:
    """As the store has one of this campaign."""
    settings = opened.campaign.changed(changed).model_dump(mode="json")
    return Run(
        1, opened.campaign.name, opened.name, 1, 0, settings, "finished", 1.0, opened.origin()
    )


@pytest.fixture
def both(tmp_path: Path) -> list[Opened]:
    """The same campaign and store in two checkouts."""
    files = [checkout(tmp_path / name) for name in ("a", "b")]
    return [open_campaign(str(file), None, PATHS) for file in files]


def test_a_path_is_only_where_it_was_found(both: list[Opened]) -> None:
    """Two checkouts have one target and one campaign; each finds its own files."""
    a, b = both
    assert a.name != b.name and "mydb@" in a.identity
    assert (a.identity, a.campaign.work) == (b.identity, b.campaign.work)
    assert a.origin().target == b.origin().target == a.identity
    assert a.did(run_of(b)) and b.did(run_of(a))


def test_sizes_are_not_what_a_campaign_is(both: list[Opened]) -> None:
    """With another seed or more states it is the same; with another depth, name or target it is not. Content
    knows them apart in any case."""
    a, _ = both
    explore = {"states": 9, "depth": 2}
    assert a.did(run_of(a, seed=7, explore={"states": 900}))
    assert not a.did(run_of(a, explore=explore))
    assert not a.did(replace(run_of(a), campaign="y"))
    assert not a.did(replace(run_of(a), origin=replace(a.origin(), target="mydb@1")))
    assert a.campaign.changed({"seed": 7}).content != a.campaign.content


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("./store.py load", "./store.py load -v", False),
        ("durable = true", "durable = false", False),
        ('name = "mydb"', 'name = "other"', False),
        ("[commands]", '[needs]\nsh = "apt"\n[commands]', True),
        ('name = "mydb"', 'name = "mydb"\nstate_deadline_s = 90', True),
    ],
)
def test_a_target_is_what_is_run_and_promised(
    old: str, new: str, same: bool, tmp_path: Path
) -> None:
    """Another command, promise or name is another store; what it needs, and how long it may take, is not."""
    file = write_skeleton("mydb", Language.PYTHON, tmp_path).file
    before = load_target_file(file).identity
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")
    assert (load_target_file(file).identity == before) is same


def test_an_option_is_its_values_and_not_its_words(tmp_path: Path) -> None:
    """Whoever explains it better has the same store."""
    file = write_skeleton("mydb", Language.PYTHON, tmp_path).file
    text = file.read_text("utf-8").replace("./store.py load", "./store.py load {how}")

    def identity(values: str, what: str) -> str:
        file.write_text(f'{text}\n[options.how]\nvalues = [{values}]\nwhat = "{what}"\n', "utf-8")
        return load_target_file(file).identity

    plain = identity('"-v"', "how it runs")
    assert identity('"-v"', "how it says what it does") == plain
    assert identity('"-q"', "how it runs") != plain


def test_the_script_of_an_interpreter_is_a_program(both: list[Opened]) -> None:
    """A run goes on with the same one only, and a build is told by it."""
    a, b = both
    assert a.origin().build == b.origin().build
    store = Path(b.name).parent / "store.py"
    store.write_text(store.read_text("utf-8") + "# another\n", "utf-8")
    assert a.origin().build != b.origin().build and a.origin().target == b.origin().target


def test_a_campaign_made_by_a_program_is_fitted_too(tmp_path: Path) -> None:
    """It crosses what its target says, and the target makes its own work."""
    file = write_skeleton("mydb", Language.PYTHON, tmp_path).file
    file.write_text(
        file.read_text("utf-8").replace('fs = "posix"', 'fs = ["posix", "ext4-ordered"]', 1),
        "utf-8",
    )
    made = Campaign(
        name="mine",
        description="",
        workload="smoke",
        crash_model="power_loss",
        seed=1,
        target=str(file),
        explore={"states": 20},  # type: ignore[arg-type]
    )
    opened = open_campaign(made, None, PATHS)
    assert opened.campaign.workload == "own" and opened.name == str(file)
    assert [config.label for config in opened.campaign.configs()] == ["fs=posix", "fs=ext4-ordered"]


@pytest.mark.parametrize(
    ("given", "states", "budget_s"),
    [
        ({"states": 70}, 70, 0),
        ({"budget_s": 5.0}, 0, 5),
        ({"states": 70, "budget_s": 5.0}, 70, 5),
    ],
)
def test_of_two_limits_the_first_one_reached_counts(
    given: dict[str, Any], states: int, budget_s: int, tmp_path: Path
) -> None:
    """None of them is dropped; a budget alone ends what it is given for. Kills have a number of their own."""
    file = write_skeleton("mydb", Language.PYTHON, tmp_path).file
    loss, kills = campaigns_of(str(file), Limits(seed=3, trials=9, **given), {}, PATHS, stacks=True)
    assert loss.campaign.explore is not None
    assert (loss.campaign.explore.states, loss.campaign.explore.budget_s) == (states, budget_s)
    assert (loss.campaign.seed, kills.campaign.seed, kills.campaign.trials) == (3, 3, 9)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("powerloss", ("powerloss", "engine")),
        ("powerloss-sqlite", ("powerloss", "sqlite")),
        ("smoke-command", ("smoke", "command")),
        ("smoke-postgresql", ("smoke-postgresql", "engine")),
    ],
)
def test_the_name_of_a_campaign_file_says_whose_it_is(name: str, parts: tuple[str, str]) -> None:
    """As nights and `runs` print it: also without --target it is run on that target."""
    assert campaign_parts(name) == parts
