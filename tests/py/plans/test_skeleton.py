"""A new campaign file is the one it was made like, with every key explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.plans.campaign import Campaign, Hit, PowerLoss, load_campaign
from tornpage.plans.skeleton import skeleton
from tornpage.vocabulary.documented import keys_of
from tornpage.vocabulary.paths import data_folder

WORKLOADS = data_folder("workloads")


@pytest.mark.parametrize("path", sorted(WORKLOADS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_skeleton_says_what_its_model_says(path: Path, tmp_path: Path) -> None:
    """Every shipped campaign comes back as it is, but for its name and that bugs are measured by it."""
    like = load_campaign(str(path), WORKLOADS)
    mine = tmp_path / "mine.toml"
    mine.write_text(skeleton(like), "utf-8")
    assert load_campaign(str(mine), WORKLOADS) == like.changed({"name": "mine", "default": False})


@pytest.mark.parametrize(
    ("name", "models"), [("smoke", [Campaign, Hit]), ("powerloss", [Campaign, PowerLoss])]
)
def test_every_key_is_there(name: str, models: list[type]) -> None:
    """Given, or as a comment with its default, below what it means; tables are there if they are given."""
    text = skeleton(load_campaign(name, WORKLOADS))
    lines = text.splitlines()
    for model in models:
        for key in keys_of(model):
            starts = (f"{key.name} = ", f"# {key.name} = ", f"[{key.name}]", f"[[{key.name}]]")
            found = [n for n, line in enumerate(lines) if line.startswith(starts)]
            if key.name in ("name", "default") or key.is_table:
                continue
            assert found, key.name
            assert lines[found[0] - 1].startswith("# "), key.name
    assert max(map(len, lines)) <= 120


def test_text_with_spaces_is_not_cut(tmp_path: Path) -> None:
    """A list that is too long for a line is broken between its values only."""
    like = load_campaign("smoke", WORKLOADS)
    odd = like.changed({"cross": {"an option": [f"value {n} \\" for n in range(40)]}})
    mine = tmp_path / "mine.toml"
    mine.write_text(skeleton(odd), "utf-8")
    assert load_campaign(str(mine), WORKLOADS).cross == odd.cross
