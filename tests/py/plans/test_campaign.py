"""Campaign files are checked, and trials are drawn from a golden run by seed and number alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_golden_run, make_write

from tornpage.faults.aim import RecoveryAim
from tornpage.plans.campaign import Campaign, fault_free_spec, hit_of_place, load_campaign
from tornpage.plans.changes import change
from tornpage.plans.drawing import cells_of, draw_trial
from tornpage.plans.limits import Limits
from tornpage.powerloss.runner import canary_places, loss_limits, loss_parts
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Action, Site, config_of
from tornpage.vocabulary.paths import data_folder
from tornpage.workloads.workload import generate

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


def golden_run_for(chosen: Campaign) -> dict[str, object]:
    """Ten page-0 writes and five redo writes in every configuration."""
    writes = [make_write(n, Site.PAGE0) for n in range(1, 11)]
    writes += [make_write(n, Site.REDO, "ib_logfile0", 1024) for n in range(1, 6)]
    return {config.label: make_golden_run(*writes) for config in chosen.configs()}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 10", "trials = 0", "c.toml: crash_model kill needs trials"),
        ('"page0"', '"page00"', "sites"),
        ('"random"', '"prefix:x"', "masks"),
        ('"random"', '"read:ENOSPC"', "masks"),
        ("seed = 3", "seed = 3\nsede = 4", "sede"),
        ('"kill"', '"power loss"', "crash_model"),
        ('"random"]', '"random"]\nduring = "recovery:2"', "during"),
        ("[[hit]]", '[vary]\n"a,b" = ["1,2", "3"]\n[[hit]]', "a,b"),
        ("[[hit]]", "[vary]\na = []\n[[hit]]", "vary"),
    ],
)
def test_a_wrong_file_names_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Unknown keys, unknown sites and values out of range are refused by name."""
    with pytest.raises(ConfigError, match=message):
        campaign(tmp_path, TEXT.replace(old, new))


def test_power_loss_takes_no_writes_to_hit(tmp_path: Path) -> None:
    """They would have no effect: whoever named them would take the run for one about them."""
    text = (
        'description = "x"\nworkload = "smoke"\ncrash_model = "power_loss"\nseed = 1\n[explore]\n'
    )
    assert campaign(tmp_path, text).explore
    with pytest.raises(ConfigError, match="belongs to crash_model kill"):
        campaign(tmp_path, f'{text}[[hit]]\nsites = ["redo"]\nmasks = ["all"]\n')


@pytest.mark.parametrize("name", ["fs", "under"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('page_size = "4k"', '{} = "ext4"'),
        ("[cross]", '[cross]\n{} = ["posix", "ext4"]'),
        ("[[hit]]", '[vary]\n"page_size,{}" = ["4k,xfs", "8k,ext4"]\n[[hit]]'),
    ],
)
def test_kills_take_no_file_system(tmp_path: Path, name: str, old: str, new: str) -> None:
    """A kill loses nothing that a file system may lose: that has no effect, and the file says otherwise."""
    with pytest.raises(ConfigError, match=f"c.toml: {name} belongs to crash_model power_loss"):
        campaign(tmp_path, TEXT.replace(old, new.format(name)))


def test_an_unknown_campaign_lists_those_there_are(tmp_path: Path) -> None:
    """The error says what could have been meant."""
    campaign(tmp_path)
    with pytest.raises(ConfigError, match="there are: c"):
        load_campaign("d", tmp_path)


def test_a_file_that_is_not_there_is_called_so(tmp_path: Path) -> None:
    """Nor is a folder one; the campaigns that come along are no answer to that."""
    (tmp_path / "folder.toml").mkdir()
    for name in ("d.toml", "folder.toml"):
        with pytest.raises(ConfigError, match=f"{name}: no such file"):
            load_campaign(str(tmp_path / name), tmp_path)


@pytest.mark.parametrize(
    ("limits", "option"),
    [
        (Limits(budget_s=5), "--budget"),
        (Limits(models=("subset",)), "--models"),
        (Limits(states=5), "--states"),
    ],
)
def test_a_limit_of_power_loss_is_refused_by_its_option(
    tmp_path: Path, limits: Limits, option: str
) -> None:
    """The message has the word that was typed."""
    with pytest.raises(ConfigError, match=f"no power-loss campaign: no {option}$"):
        change(campaign(tmp_path), limits)


def test_set_replaces_a_crossed_option(tmp_path: Path) -> None:
    """--option pins an option: it is no longer crossed."""
    chosen = campaign(tmp_path).with_options({"log_optimize_ddl": "off", "params.rows": "9"})
    assert [config.options["log_optimize_ddl"] for config in chosen.configs()] == ["off"]
    assert chosen.params == {"rows": 9}


def test_drawing_depends_on_seed_and_number_only(tmp_path: Path) -> None:
    """The same number gives the same trial, another seed other ones."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, golden_run_for(chosen))
    draws = [draw_trial(chosen, "engine", cells, number).spec for number in range(50)]
    again = [draw_trial(chosen, "engine", cells, number).spec for number in reversed(range(50))]
    assert draws == again[::-1]
    other = chosen.model_copy(update={"seed": 4})
    cells = cells_of(other, golden_run_for(other))
    assert draws != [draw_trial(other, "engine", cells, number).spec for number in range(50)]


def test_runs_without_a_write_have_no_cell(tmp_path: Path) -> None:
    """A store of sizes and names: no kill can be inside a write. Writes of other sites only are a mistake."""
    chosen = campaign(tmp_path)
    labels = [config.label for config in chosen.configs()]
    assert cells_of(chosen, {label: make_golden_run() for label in labels}) == []
    other = make_golden_run(make_write(1, Site.DATA_PAGE))
    with pytest.raises(ConfigError, match="no write of the run belongs to its sites"):
        cells_of(chosen, dict.fromkeys(labels, other))


def test_every_cell_gets_its_share(tmp_path: Path) -> None:
    """Configuration x site x mask are visited evenly."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, golden_run_for(chosen))
    assert len(cells) == 8
    seen: Counter[tuple[str, str, str]] = Counter()
    for number in range(80):
        cell = draw_trial(chosen, "engine", cells, number).cell
        seen[cell.label, cell.site, cell.mask] += 1
    assert set(seen.values()) == {10}


def test_masks_fit_the_write(tmp_path: Path) -> None:
    """A random mask has one digit per sector of the write that it hits."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, golden_run_for(chosen))
    for number in range(80):
        draw = draw_trial(chosen, "engine", cells, number)
        fault = draw.spec.plan.run[0]
        if draw.cell.mask == "random":
            assert fault.sectors is not None
            assert len(fault.sectors) == (8 if draw.cell.site is Site.PAGE0 else 2)


def test_no_matching_write_is_an_error(tmp_path: Path) -> None:
    """A campaign whose sites never occur is refused instead of passing with nothing."""
    chosen = campaign(tmp_path)
    empty = {
        config.label: make_golden_run(make_write(1, Site.OTHER)) for config in chosen.configs()
    }
    with pytest.raises(ConfigError, match="no write"):
        cells_of(chosen, empty)


def test_io_errors_hit_the_write_or_the_fsync_after_it(tmp_path: Path) -> None:
    """The masks of io_error name what fails and how; nothing is killed, torn, or planted."""
    text = TEXT.replace('"kill"', '"io_error"').replace(
        '["prefix:1", "random"]', '["write:EIO", "fsync:ENOSPC"]'
    )
    chosen = campaign(tmp_path, text)
    cells = cells_of(chosen, golden_run_for(chosen))  # type: ignore[arg-type]
    seen: Counter[tuple[str, str, str | None]] = Counter()
    for number in range(40):
        plan = draw_trial(chosen, "engine", cells, number).spec.plan
        fault, *kills = plan.run
        assert all(kill.follows and kill.action is Action.KILL for kill in kills)
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
    cells = cells_of(chosen, golden_run_for(chosen))  # type: ignore[arg-type]
    assert [cell.place for cell in cells] == ["recovery:undo_page"] * 2
    assert chosen.hit[0].places() == ["recovery:undo_page"]
    files: Counter[str] = Counter()
    for number in range(80):
        draw = draw_trial(chosen, "engine", cells, number)
        assert draw == draw_trial(chosen, "engine", cells, number)
        assert draw.aim == RecoveryAim(Site.UNDO_PAGE, mask, draw.spec.seed)
        (fault,) = draw.spec.plan.run
        assert fault.action is Action.KILL and not draw.spec.plan.recover
        files[fault.file] += 1
    assert min(files["t1.ibd"], files["ib_logfile0"]) > 25


def test_a_fault_of_the_run_needs_no_aim(tmp_path: Path) -> None:
    """Its plan is whole when it is drawn."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, golden_run_for(chosen))  # type: ignore[arg-type]
    assert all(draw_trial(chosen, "engine", cells, n).aim is None for n in range(16))


def test_a_failed_fsync_needs_an_fsync(tmp_path: Path) -> None:
    """A write that no fsync follows is no candidate for a failed one."""
    text = TEXT.replace('"kill"', '"io_error"').replace('"prefix:1", "random"', '"fsync:EIO"')
    chosen = campaign(tmp_path, text)
    writes = [replace(make_write(n, Site.REDO), next_fsync=n % 2) for n in range(1, 9)]
    golden_run = {config.label: make_golden_run(*writes) for config in chosen.configs()}
    for cell in cells_of(chosen, golden_run):
        ((_, hit),) = cell.runs
        assert [write.nth for write in hit] == [1, 3, 5, 7]


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


@pytest.mark.parametrize(
    ("sites", "masks"),
    [
        ("page0", "rename:EIO"),
        ("file_op", "write:EIO"),
        ("file_op", "unlink:EIO, fsync:EIO"),
        ("file_op", "read:EIO"),
    ],
)
def test_what_fails_of_a_name_is_no_write(tmp_path: Path, sites: str, masks: str) -> None:
    """And the other way round."""
    listed = ", ".join(f'"{mask}"' for mask in masks.split(", "))
    text = TEXT.replace('"kill"', '"io_error"').replace('"prefix:1", "random"', listed)
    with pytest.raises(ConfigError, match="file_op"):
        campaign(tmp_path, text.replace('"page0", "redo"', f'"{sites}"'))


def test_a_short_write_is_one_of_a_temporary_file(tmp_path: Path) -> None:
    """The rules on bytes would not know what is in the file behind half of a page."""
    text = TEXT.replace('"kill"', '"io_error"').replace('"prefix:1", "random"', '"write:short"')
    with pytest.raises(ConfigError, match="write:short"):
        campaign(tmp_path, text)
    text = text.replace('"page0", "redo"', '"sort_run", "row_log"')
    assert campaign(tmp_path, text).hit[0].masks == ["write:short"]


def test_the_million_campaign_explores_what_it_must() -> None:
    """Both loads, two page sizes, several seeds, depth 1 and 2, each with a label of its own; a million
    distinct states, which four in five are."""
    chosen = load_campaign("million", data_folder("workloads"))
    parts = loss_parts(chosen)
    labels = [config.label for config, _ in parts]
    assert len(set(labels)) == len(labels)
    assert {depth for _, depth in parts} == {1, 2}
    assert len({config.seed for config, _ in parts}) == len(parts)
    for name, values in {"log_optimize_ddl": {"on", "off"}, "page_size": {"4k", "16k"}}.items():
        for depth in (1, 2):
            assert {config.options[name] for config, d in parts if d == depth} == values
    assert chosen.explore is not None
    assert chosen.explore.states * len(parts) * 0.79 > 1_100_000


def test_the_judge_is_tried_once_for_each_configuration() -> None:
    """In its first exploration, whatever else is drawn for that one."""
    chosen = load_campaign("powerloss", data_folder("workloads"))
    configs = [config for config, _ in loss_parts(chosen)]
    tried = canary_places(configs)
    assert len(configs) > len(tried) == len(chosen.configs())
    assert tried == set(range(len(tried)))


@pytest.mark.parametrize(
    "name", ["powerloss", "churn", "mix", "large_pages", "backup", "storm", "linkbench"]
)
def test_depths_take_turns(name: str) -> None:
    """Crashes of recoveries are among the first explorations, whichever there are, and no configuration has
    less of them than it would if each depth came to its end before the next."""
    chosen = load_campaign(name, data_folder("workloads"))
    assert chosen.explore is not None
    parts = loss_parts(chosen)
    depths = chosen.parts()
    configs = len(parts) // len(depths)
    assert {depth for _, depth in parts[: max(configs, 2)]} == {1, 2}
    for config in range(configs):
        own = parts[config::configs]
        assert len({tuple(script.options[key] for key in chosen.cross) for script, _ in own}) == 1
        assert sorted(depth for _, depth in own) == sorted(depths)


def test_each_creation_is_explored_whole() -> None:
    """No statement comes behind it, and each combination of what decides its files has an exploration with
    all states."""
    chosen = load_campaign("creation", data_folder("workloads"))
    parts = loss_parts(chosen)
    spec = fault_free_spec(chosen, "engine", parts[0][0])
    assert generate(spec.workload, spec.params, spec.workload_seed).statements == ()
    assert [loss_limits(chosen, depth).states for _, depth in parts] == [0] * len(parts)
    decided = ("log_format", "page_size", "doublewrite", "undo_tablespaces", "atomic_write_unit")
    made = {tuple(config.options[name] for name in decided) for config, _ in parts}
    assert len(made) == len(parts) == 2 ** len(decided)


DRAWN = (
    *("mix", "large_pages", "mix_kill", "mix_error"),
    *("storm", "backup", "backup_kill", "backup_error", "million"),
)
"""Campaigns of scripts that the seed composes."""


def drawn_options(name: str) -> set[str]:
    """What differs between the scripts of a campaign."""
    chosen = load_campaign(name, data_folder("workloads"))
    return {option for key in (*chosen.vary, *chosen.cross) for option in key.split(",")}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_scripts_meet_the_same_options(name: str) -> None:
    """What one of these campaigns draws, each other one draws as well: pieces of scripts meet every
    mechanism that an option turns on. How backups are made is a matter of those that make some."""
    all_options = set[str]().union(*map(drawn_options, DRAWN)) - {"backup_interval"}
    assert all_options <= drawn_options(name), all_options - drawn_options(name)


VARY = """
[vary]
"page_size,log_file_size" = ["4k,256k", "16k,1m"]
buffer_pool_pages = ["32", "48", "96", "1024"]
"""


def test_each_script_draws_its_options(tmp_path: Path) -> None:
    """By its seed alone; what belongs together is drawn together; the label says all of it; --option pins."""
    text = TEXT.replace("trials = 10", "trials = 10\nscripts = 20\nfault_free = 30") + VARY
    chosen = campaign(tmp_path, text)
    scripts, others = chosen.scripted(), chosen.only_fault_free()
    assert len(scripts) == 40 and len(others) == 30
    seeds = {script.seed for script in [*scripts, *others]}
    assert len(seeds) == 70 and not {seed + 1 for seed in seeds} & seeds
    assert chosen.model_copy(update={"scripts": 15}).scripted() == scripts[:30]
    assert {config_of(script.label) for script in scripts} == {c.label for c in chosen.configs()}
    pairs = {(s.options["page_size"], s.options["log_file_size"]) for s in scripts}
    assert pairs == {("4k", "256k"), ("16k", "1m")}
    assert {s.options["buffer_pool_pages"] for s in scripts} == {"32", "48", "96", "1024"}
    for script in scripts:
        told = dict(part.split("=") for part in script.label.replace(" ", ",").split(","))
        assert int(told.pop("seed")) == script.seed
        assert told.items() <= script.options.items() and len(told) == 4
    pinned = chosen.with_options({"page_size": "4k", "log_file_size": "1m"}).scripted()
    assert {(s.options["page_size"], s.options["log_file_size"]) for s in pinned} == {("4k", "1m")}
    assert [s.options["buffer_pool_pages"] for s in pinned] == [
        s.options["buffer_pool_pages"] for s in scripts
    ]


def test_trials_take_the_scripts_in_turn(tmp_path: Path) -> None:
    """Each round over the cells has the next script; a script without a write of the site is left out."""
    chosen = campaign(tmp_path, TEXT.replace("trials = 10", "trials = 10\nscripts = 3"))
    golden_runs = {
        script.label: make_golden_run(*(make_write(n, site) for n in range(1, 4)))
        for number, script in enumerate(chosen.scripted())
        for site in [Site.PAGE0 if number < 4 else Site.REDO]
    }
    cells = cells_of(chosen, golden_runs)
    assert len(cells) == 8
    for number in range(48):
        draw = draw_trial(chosen, "engine", cells, number)
        runs = draw.cell.runs
        assert len(runs) == (2 if draw.cell.site is Site.PAGE0 else 1)
        config, _ = runs[number // 8 % len(runs)]
        assert (draw.spec.config, draw.spec.workload_seed) == (config.label, config.seed)
        assert config_of(draw.spec.config) == draw.cell.label


def test_a_workload_is_told_the_options_that_it_asks_for(tmp_path: Path) -> None:
    """Sizes of pages and batches follow the drawn options, unless the campaign says otherwise."""
    text = (
        TEXT.replace('"smoke"', '"mix"').replace("trials = 10", "trials = 10\nscripts = 5") + VARY
    )
    for params, wanted in (("", {4096, 16384}), ("[params]\npage_size = 8192\n", {8192})):
        chosen = campaign(tmp_path, text + params)
        specs = [fault_free_spec(chosen, "engine", script) for script in chosen.scripted()]
        assert {spec.params["page_size"] for spec in specs} == wanted


@pytest.mark.parametrize(
    ("name", "models"),
    [("smoke", "kill"), ("mix_kill", "kill"), ("io_error", "io_error"), ("mix", "power_loss")],
)
def test_default_campaigns_have_many_scripts(name: str, models: str) -> None:
    """None hangs on one script; power loss also crashes recoveries."""
    chosen = load_campaign(name, data_folder("workloads"))
    assert chosen.crash_model == models
    assert len({script.seed for script in chosen.scripted()}) >= 20
    for loss in ("powerloss", "churn", "mix"):
        parts = loss_parts(load_campaign(loss, data_folder("workloads")))
        assert len(parts) >= 40 and sum(depth == 2 for _, depth in parts) * 4 >= len(parts)


def test_who_tears_the_log_meets_a_stale_block(tmp_path: Path) -> None:
    """There it is read on most often; elsewhere some trials do."""
    chosen = campaign(tmp_path)
    cells = cells_of(chosen, golden_run_for(chosen))  # type: ignore[arg-type]
    stale: dict[Site, list[bool]] = {Site.REDO: [], Site.PAGE0: []}
    for number in range(80):
        draw = draw_trial(chosen, "engine", cells, number)
        stale[draw.cell.site].append(draw.spec.plan.stale_log)
    assert all(stale[Site.REDO]) and len(stale[Site.REDO]) == 40
    assert 0 < sum(stale[Site.PAGE0]) < 20
