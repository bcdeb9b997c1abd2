"""Lists say what the sources say, and leave nothing out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.campaigns.catalogue import KINDS, list_items
from tornpage.powerloss.explorer import loss_models
from tornpage.targets.registry import target_names
from tornpage.vocabulary.documented import first_sentence, meanings
from tornpage.vocabulary.errors import ConfigError, TargetError, TornpageError
from tornpage.vocabulary.invariants import load_invariants
from tornpage.vocabulary.model import Outcome, Site, Source
from tornpage.vocabulary.paths import Paths, data_folder
from tornpage.workloads.workload import workload_names

NOT_BUILT = Paths(
    Path("/nonexistent"), data_folder("workloads"), data_folder("reports"), Path("out")
)


def names(kind: str) -> list[str]:
    """Of all items; each has a meaning in one line."""
    items = list_items(kind, NOT_BUILT)
    assert all(item.what and "\n" not in item.what for item in items)
    assert len({tuple(item.facts) for item in items}) == 1
    return [item.name for item in items]


def test_what_needs_no_program_is_listed_without_one() -> None:
    """All campaigns with their targets, workloads, sites, invariants, targets."""
    files = {path.stem for path in data_folder("workloads").glob("*.toml")}
    listed = list_items("campaigns", NOT_BUILT)
    assert {
        item.name if item.facts["target"] == "engine" else f"{item.name}-{item.facts['target']}"
        for item in listed
    } == files
    assert names("workloads") == workload_names()
    assert names("sites") == [site.value for site in Site]
    assert names("invariants") == [f"I{number}" for number in range(1, 31)]
    assert names("targets") == target_names()
    assert {"engine", "sqlite", "mariadb-10.11"} <= set(names("targets"))


def test_what_needs_a_program_says_that_it_is_missing() -> None:
    """And nothing else is listed in its place."""
    for kind in ("options", "models"):
        with pytest.raises(TornpageError, match="/nonexistent"):
            list_items(kind, NOT_BUILT)


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    """All of them."""
    with pytest.raises(ConfigError, match=", ".join(KINDS)):
        list_items("nothing", NOT_BUILT)


def test_meanings_are_the_docstrings_behind_the_members() -> None:
    """Also over several lines; a member without one is not among them."""
    assert set(meanings(Source)) == {source.value for source in Source}
    assert meanings(Outcome)["vacuous"].startswith("The fault fired, but what the trial is about")
    assert "clean" not in meanings(Outcome)
    assert first_sentence(Source) == "Who says that an invariant is broken, the strongest first"


def test_a_page_without_invariants_is_refused(tmp_path: Path) -> None:
    """An empty list would look like an answer."""
    page = tmp_path / "INVARIANTS.md"
    with pytest.raises(ConfigError, match="No such file"):
        load_invariants(page)
    page.write_text("# Invariants\n")
    with pytest.raises(ConfigError, match="no table"):
        load_invariants(page)


def test_an_explorer_that_tells_nothing_is_an_error() -> None:
    """A program that ends well and prints no models."""
    with pytest.raises(TargetError, match="lists no models"):
        loss_models(Path("/bin/true"))
