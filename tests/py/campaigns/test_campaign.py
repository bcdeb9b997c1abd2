"""Campaign files are checked, and trials are drawn from a census by seed and number alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_census, make_write

from tornpage.campaigns.campaign import Campaign, cells_of, draw_trial, hit_of_place, load_campaign
from tornpage.campaigns.lossrunner import loss_parts
from tornpage.faults.aim import RecoveryAim
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Action, Site
from tornpage.vocabulary.paths import data_folder

TEXT = """
description = "test"
workload = "smoke"
crash_model = "kill"
trials = 10
seed = 3
[options]
page_size = "4k"
[cross]
log_optimize_ddl = ["on", "off"]
[[hit]]
sites = ["page0", "redo"]
masks = ["prefix:1", "random"]
"""


def campaign(tmp_path: Path, text: str = TEXT) -> Campaign:
    """The campaign of a file with this text."""
    (tmp_path / "c.toml").write_text(text, encoding="utf-8")
    return load_campaign("c", tmp_path)


def census_for(chosen: Campaign) -> dict[str, object]:
    """Ten page-0 writes and five redo writes in every configuration."""
    writes = [make_write(n, Site.PAGE0) for n in range(1, 11)]
    writes += [make_write(n, Site.REDO, "ib_logfile0", 1024) for n in range(1, 6)]
    return {config.label: make_census(*writes) for config in chosen.configs()}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 10", "trials = 0", "trials"),
        ('"page0"', '"page00"', "sites"),
        ('"random"', '"prefix:x"', "masks"),
        ("seed = 3", "seed = 3\nsede = 4", "sede"),
        ('"kill"', '"power loss"', "crash_model"),
        ('"random"]', '"random"]\nduring = "recovery:2"', "during"),
    ],
)
def test_a_wrong_file_names_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Unknown keys, unknown sites and values out of range are refused by name."""
    with pytest.raises(ConfigError, match=message):
        campaign(tmp_path, TEXT.replace(old, new))


def test_an_unknown_campaign_lists_those_there_are(tmp_path: Path) -> None:
    """The error says what could have been meant."""
    campaign(tmp_path)
    with pytest.raises(ConfigError, match="there are: c"):
        load_campaign("d", tmp_path)


def test_set_replaces_a_crossed_option(tmp_path: Path) -> None:
    """--set pins an option: it is no longer crossed."""
    chosen = campaign(tmp_path).with_settings({"log_optimize_ddl": "off", "params.rows": "9"})
    assert [config.options["log_optimize_ddl"] for config in chosen.configs()] == ["off"]
    assert chosen.params == {"rows": 9}


def test_drawing_depends_on_seed_and_number_only(tmp_path: Path) -> None:
    """The same number gives the same trial, another seed other ones."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, census_for(chosen))
    draws = [draw_trial(chosen, "engine", 1, cells, number).spec for number in range(50)]
    again = [draw_trial(chosen, "engine", 1, cells, number).spec for number in reversed(range(50))]
    assert draws == again[::-1]
    other = chosen.model_copy(update={"seed": 4})
    cells = cells_of(other, census_for(other))
    assert draws != [draw_trial(other, "engine", 1, cells, number).spec for number in range(50)]


def test_every_cell_gets_its_share(tmp_path: Path) -> None:
    """Configuration x site x mask are visited evenly."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, census_for(chosen))
    assert len(cells) == 8
    seen: Counter[tuple[str, str, str]] = Counter()
    for number in range(80):
        cell = draw_trial(chosen, "engine", 1, cells, number).cell
        seen[cell.config.label, cell.site, cell.mask] += 1
    assert set(seen.values()) == {10}


def test_masks_fit_the_write(tmp_path: Path) -> None:
    """A random mask has one digit per sector of the write that it hits."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, census_for(chosen))
    for number in range(80):
        draw = draw_trial(chosen, "engine", 1, cells, number)
        fault = draw.spec.plan.run[0]
        if draw.cell.mask == "random":
            assert fault.sectors is not None
            assert len(fault.sectors) == (8 if draw.cell.site is Site.PAGE0 else 2)


def test_no_matching_write_is_an_error(tmp_path: Path) -> None:
    """A campaign whose sites never occur is refused instead of passing with nothing."""
    chosen = campaign(tmp_path)
    empty = {config.label: make_census(make_write(1, Site.OTHER)) for config in chosen.configs()}
    with pytest.raises(ConfigError, match="no write"):
        cells_of(chosen, empty)


def test_io_errors_hit_the_write_or_the_fsync_after_it(tmp_path: Path) -> None:
    """The masks of io_error name what fails and how; nothing is killed, torn, or planted."""
    text = TEXT.replace('"kill"', '"io_error"').replace(
        '["prefix:1", "random"]', '["write:EIO", "fsync:ENOSPC"]'
    )
    chosen = campaign(tmp_path, text)
    cells = cells_of(chosen, census_for(chosen))  # type: ignore[arg-type]
    seen: Counter[tuple[str, str, str | None]] = Counter()
    for number in range(40):
        plan = draw_trial(chosen, "engine", 3, cells, number).spec.plan
        (fault,) = plan.run
        seen[fault.kind.value, fault.action.value, fault.error] += 1
        assert fault.sectors is None and not plan.stale_log
    assert set(seen) == {("write", "error", "EIO"), ("fsync", "error", "ENOSPC")}


@pytest.mark.parametrize(
    ("model", "mask"), [("kill", "prefix:1"), ("io_error", "write:EIO"), ("io_error", "fsync:EIO")]
)
def test_hits_in_recovery_follow_a_kill_at_any_write(tmp_path: Path, model: str, mask: str) -> None:
    """The run is killed at every site; site and mask are for the recovery, and are a row of their own. That
    the run never writes to the site does not matter."""
    text = TEXT.replace('"kill"', f'"{model}"').replace('"prefix:1", "random"', f'"{mask}"')
    text = text.replace('"page0", "redo"', '"undo_page"') + 'during = "recovery"\n'
    chosen = campaign(tmp_path, text)
    cells = cells_of(chosen, census_for(chosen))  # type: ignore[arg-type]
    assert [cell.place for cell in cells] == ["recovery:undo_page"] * 2
    assert chosen.hit[0].places() == ["recovery:undo_page"]
    files: Counter[str] = Counter()
    for number in range(80):
        draw = draw_trial(chosen, "engine", 1, cells, number)
        assert draw == draw_trial(chosen, "engine", 1, cells, number)
        assert draw.aim == RecoveryAim(Site.UNDO_PAGE, mask, draw.spec.seed)
        (fault,) = draw.spec.plan.run
        assert fault.action is Action.KILL and not draw.spec.plan.recover
        files[fault.file] += 1
    assert min(files["t1.ibd"], files["ib_logfile0"]) > 25


def test_a_fault_of_the_run_needs_no_aim(tmp_path: Path) -> None:
    """Its plan is whole when it is drawn."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, census_for(chosen))  # type: ignore[arg-type]
    assert all(draw_trial(chosen, "engine", 1, cells, n).aim is None for n in range(16))


def test_a_failed_fsync_needs_an_fsync(tmp_path: Path) -> None:
    """A write that no fsync follows is no candidate for a failed one."""
    text = TEXT.replace('"kill"', '"io_error"').replace('"prefix:1", "random"', '"fsync:EIO"')
    chosen = campaign(tmp_path, text)
    writes = [replace(make_write(n, Site.REDO), next_fsync=n % 2) for n in range(1, 9)]
    census = {config.label: make_census(*writes) for config in chosen.configs()}
    for cell in cells_of(chosen, census):
        assert [write.nth for write in cell.writes] == [1, 3, 5, 7]


def test_a_place_names_its_hit() -> None:
    """What results call a site leads back to it; what is no site counts as other."""
    for place in ("redo", "recovery:redo"):
        assert hit_of_place(place, ["none"]).places() == [place]
    assert hit_of_place("run", ["none"]).sites == [Site.OTHER]


@pytest.mark.parametrize(("model", "mask"), [("kill", "write:EIO"), ("io_error", "prefix:1")])
def test_masks_belong_to_their_crash_model(tmp_path: Path, model: str, mask: str) -> None:
    """A kill has sectors and an I/O error an error: the other is refused."""
    text = TEXT.replace('"kill"', f'"{model}"').replace('["prefix:1", "random"]', f'["{mask}"]')
    with pytest.raises(ConfigError, match="io_error"):
        campaign(tmp_path, text)


def test_the_nightly_campaign_explores_what_it_must() -> None:
    """Both loads, two page sizes, several seeds, depth 1 and 2, each with a label of its own; a million."""
    chosen = load_campaign("nightly", data_folder("workloads"))
    parts = loss_parts(chosen)
    labels = [config.label for config, _, _ in parts]
    assert len(set(labels)) == len(labels)
    assert {depth for _, depth, _ in parts} == {1, 2}
    assert len({seed for _, _, seed in parts}) >= 3
    for name, values in {"log_optimize_ddl": {"on", "off"}, "page_size": {"4k", "16k"}}.items():
        assert {config.options[name] for config, _, _ in parts} == values
    assert chosen.explore is not None
    assert chosen.explore.states * len(parts) > 2_000_000
    assert len({(config.options["page_size"], seed) for config, _, seed in parts}) == len(parts) / 2
