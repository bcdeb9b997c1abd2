"""A result folder that is moved or copied: what it keeps is found in it, wherever it is now."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec

from tornpage.campaigns.fault_free import with_kept_image
from tornpage.store.copy import copy_runs
from tornpage.store.store import Store


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A result folder with one finding, whose image and target file lie in it."""
    out = tmp_path / "out"
    image = out / "images" / "1" / "0"
    image.mkdir(parents=True)
    fill(out / "s.db", image)
    return out


def fill(path: Path, image: Path) -> None:
    """A store with a finding of that image."""
    target = str(image / "target" / "kv.toml")
    with Store(path) as store:
        run = store.begin_run("import", target, 1, 1, {})
        assert (run.id, run.target) == (1, target)
        store.start_trial(1, replace(make_spec(0), target=target), "page0", "none")
        store.finish_trial(1, replace(make_result(0, broken=5), image=image))


def places_in(path: Path) -> tuple[str, ...]:
    """Where the store says that the image and the target of the finding are."""
    with Store(path, write=False) as store:
        row, run = store.trial(1, 0), store.run(1)
        assert row.result is not None
        assert run.target == row.spec.target == store.overview()[0].target
        return str(row.result.image), run.target


def places_of(image: Path) -> tuple[str, ...]:
    """Where they are."""
    return str(image), f"{image}/target/kv.toml"


@pytest.mark.parametrize("move", [shutil.move, shutil.copytree])
def test_what_lies_in_the_folder_goes_with_it(
    move: Callable[..., object], out: Path, tmp_path: Path
) -> None:
    """A copy has its own, although the first folder is there."""
    move(out, tmp_path / "there")
    assert places_in(tmp_path / "there" / "s.db") == places_of(tmp_path / "there/images/1/0")


def test_an_interrupted_run_is_found_again(out: Path) -> None:
    """By the target as the caller names it."""
    with Store(out / "s.db") as store:
        target = store.run(1).target
        assert store.has_unfinished("import", target) and not store.has_unfinished("import", "kv")
        store.set_target(1, str(out / "other.toml"))
        assert store.run(1).target == str(out / "other.toml")


def test_a_copy_of_a_run_names_what_stays_where_it_is(out: Path, tmp_path: Path) -> None:
    """A store in another folder has absolute paths of it; copied back, or twice, it is the same run."""
    there = tmp_path / "apart" / "s.db"
    with Store(out / "s.db") as store:
        store.finish_run(1)
    for _ in range(2):
        with Store(out / "s.db", write=False) as source, Store(there) as target:
            copy_runs(source, target)
        assert places_in(there) == places_of(out / "images/1/0")
    with Store(there, write=False) as source, Store(out / "s.db") as target:
        assert copy_runs(source, target).there == {1: 1}


def test_a_folder_that_was_moved_away_from_its_store(out: Path, tmp_path: Path) -> None:
    """With --store elsewhere the image is found in --out."""
    fill(tmp_path / "apart" / "s.db", out / "images/1/0")
    moved = out.rename(tmp_path / "moved")
    with Store(tmp_path / "apart" / "s.db", write=False) as store:
        row = store.trial(1, 0)
    for folder, image in ((moved, moved / "images/1/0"), (out, out / "images/1/0")):
        found = with_kept_image(row, folder).result
        assert found is not None and found.image == image
