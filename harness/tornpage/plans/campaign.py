"""Campaigns: what to run, with which options crossed, and which writes to hit. Reads the TOML files of
workloads/.

A script is a number: it decides the seed of the workload and what is drawn from the lists of `vary`.
Numbers go on from scripts that are crashed to those that only run without a fault, so that none is run twice.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import xxhash
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, model_validator

from tornpage.faults.aim import SHORT, is_error, is_of_names
from tornpage.plans.limits import BOUNDS
from tornpage.targets.option import FS, UNDER
from tornpage.targets.registry import DEFAULT_TARGET, family_of
from tornpage.vocabulary.closest import unknown
from tornpage.vocabulary.codec import first_error, read_toml
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import FaultPlan, Site, TrialSpec
from tornpage.vocabulary.seeds import make_rng
from tornpage.workloads.workload import enumerated, fit_params

__all__ = [
    "Campaign",
    "Config",
    "Hit",
    "PowerLoss",
    "default_campaigns",
    "fault_free_spec",
    "hit_of_place",
    "load_campaign",
    "place_of",
]

RECOVERY = "recovery:"
"""Goes before a site whose writes are hit in a recovery."""

PARAM_MAX = 1_000_000
CONFIGS_MAX = 1000
"""Bounds of a campaign besides those of its limits."""

SEED_STEP = 1000
"""From the seed of a script to that of the next one: campaigns of neighbouring seeds share none."""

Mask = Annotated[
    str,
    Field(
        pattern=r"^(none|all|random|prefix:(\d+|half)|suffix:(\d+|half)|mask:[01]+"
        r"|write:short|read:EIO|(write|fsync|truncate|rename|unlink|sync_dir):(EIO|ENOSPC|EDQUOT))$"
    ),
]

_STRICT = ConfigDict(extra="forbid", frozen=True)
"""The docstring behind a key is what docs/CAMPAIGNS.md and `tornpage new campaign` say of it."""


_NOT_WORK: Any = {
    **dict.fromkeys(("claims", "default", "description", "run_claims", "target"), True),
    **dict.fromkeys(("scripts", "seed", "trials", "fault_free", "stacks"), True),
    "explore": {"budget_s", "states", "whole"},
}
"""Keys of a campaign that say how much, or to whom; not what."""


class Hit(BaseModel):
    """Writes to hit. Each site is hit with each mask. There may be several of these tables."""

    model_config = _STRICT

    sites: list[Site] = Field(min_length=1)
    """What the writes are for: names of `tornpage list sites`."""
    masks: list[Mask] = Field(min_length=1)
    """Which sectors of the write reach the file before the kill: `none`, `all`, `random`, `prefix:N` and
    `suffix:N` (N sectors, or `half`), `mask:0110` (1 = reached, repeated over the write). A mask that tears
    skips writes that it would leave whole, such as `prefix:4` for one of four sectors. For crash_model
    io_error: the operation that fails and how, `write:EIO`, `fsync:ENOSPC`, also `EDQUOT`; `fsync` is the
    file's next one. `read:EIO` is a read of the site's files; one of a page, but a first one, is of `other`.
    `truncate`, `rename`, `unlink` and `sync_dir` are for `file_op`: `rename:EIO`.
    `write:short`, for `sort_run` and `row_log`: half of it is written, and the write says so. Half of the
    time a target that goes on is killed inside one of its next 16 writes."""
    during: Literal["run", "recovery"] = "run"
    """`run`: hit a write of the workload. `recovery`: kill the run inside one of its writes, each site
    equally likely, with random sectors; then hit a write of the first recovery."""

    @model_validator(mode="after")
    def _names_fail_as_a_whole(self) -> Hit:
        named = {is_of_names(mask) for mask in self.masks}
        if {site is Site.FILE_OP for site in self.sites} != named or len(named) > 1:
            raise ValueError("file_op has masks such as rename:EIO, and no other site has them")
        return self

    @model_validator(mode="after")
    def _short_where_no_rule_reads(self) -> Hit:
        if SHORT in self.masks and set(self.sites) - {Site.SORT_RUN, Site.ROW_LOG}:
            raise ValueError(
                f"{SHORT} is for sort_run and row_log: the rules on bytes cannot follow half of a write"
            )
        return self

    def places(self) -> list[str]:
        """What results call its sites: "redo", or "recovery:redo"."""
        return [place_of(site, self.during) for site in self.sites]


class PowerLoss(BaseModel):
    """How far a power-loss campaign explores each configuration."""

    model_config = _STRICT

    models: list[str] = []
    """Names of `tornpage list models`; none means all."""
    states: int = Field(default=0, ge=0, le=BOUNDS["states"].high)
    """Approximate limit of crash states per exploration; 0: all."""
    whole: StrictBool = False
    """Judge every state of the basic models, however few `states` allows: of `all-persisted` and `log-cut`;
    where recoveries are crashed, `kill` takes the place of the first."""
    budget_s: float = Field(default=0, ge=0, le=BOUNDS["budget_s"].high)
    """Limit of seconds per exploration; 0: none."""
    depth: int = Field(default=1, ge=1, le=3)
    """2 crashes the recovery too, 3 the recovery after that."""
    depths: list[Annotated[int, Field(ge=1, le=3)]] = []
    """Several depths in place of one, each with its own exploration."""
    aim: StrictBool = False
    """Crash only right after operations of the recorded run that broke a rule on bytes, to see whether
    anything is lost."""


class Campaign(BaseModel):
    """The target checks its options, and the workload its params."""

    model_config = _STRICT

    name: str = ""
    """What results call the campaign; none: the name of the file."""
    description: str
    """One line for `tornpage list campaigns`."""
    workload: str
    """What makes the scripts: a name of `tornpage list workloads`."""
    crash_model: Literal["kill", "io_error", "power_loss"]
    """`kill`: the process dies at `trials` writes of `hit`. `io_error`: that write, or the fsync after it,
    fails instead, and the target goes on as it sees fit. `power_loss`: the crash states of `explore`."""
    target: str = ""
    """The target, unless `--target` names another: a name of `tornpage list targets`, or the path of a
    target file, relative to the campaign file. None: the bundled engine."""
    default: StrictBool = False
    """Whether `make mutants` runs the campaign on planted bugs."""
    trials: int = Field(default=0, ge=0, le=BOUNDS["trials"].high)
    """Number of kills or errors; 0 for power_loss only."""
    seed: int = Field(ge=0, le=BOUNDS["seed"].high)
    """Determines everything that is drawn: scripts, writes, masks."""
    scripts: int = Field(default=1, ge=1, le=BOUNDS["scripts"].high)
    """Scripts that are crashed, per configuration; for power_loss also per depth, each with its own
    exploration. An enumerated workload has no more than all its scripts."""
    stacks: StrictBool = False
    """Operations carry their call stacks, for `show` and the report; costs a few microseconds each."""
    fault_free: int = Field(default=0, ge=0, le=BOUNDS["fault_free"].high)
    """Further scripts, across all configurations, run and judged without a fault."""
    claims: list[str] = []
    """Counters of recoveries that must be above zero at the end, such as dblwr_restored. If one stays at
    zero, the run proves nothing: exit code 3."""
    run_claims: list[str] = []
    """The same for status counters of fault-free runs, such as log_wraps."""
    options: dict[str, str] = {}
    """Options of the target, values as text: names of `tornpage list options`. `fs` and `under` belong to
    power_loss: where nothing is lost they have no effect, and are refused."""
    params: dict[str, Annotated[int, Field(ge=0, le=PARAM_MAX)] | str] = {}
    """Parameters of the workload, see below."""
    cross: dict[str, list[str]] = {}
    """Options with several values: every combination is a configuration."""
    vary: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    """Options with several values, one drawn per script; a value listed twice is drawn twice as often. A
    key may name several options that belong together: `"page_size,log_file_size" = ["4k,256k", "8k,1m"]`."""
    hit: list[Hit] = []
    """Which writes to hit, for kill and io_error."""
    explore: PowerLoss | None = None
    """How far to explore, for power_loss."""

    @property
    def content(self) -> str:
        """Hash of all that it says: campaigns of one name are two where it differs."""
        return _hash(self.model_dump_json())

    @property
    def work(self) -> str:
        """Hash of what it does, however much of it and with whatever seed: what it found stays its own when
        only its sizes are changed."""
        kept = self.model_dump(mode="json", exclude=_NOT_WORK)
        if "path" in kept["params"]:
            kept["params"]["path"] = Path(str(kept["params"]["path"])).name
        return _hash(json.dumps(kept, sort_keys=True))

    @model_validator(mode="after")
    def _has_what_its_model_needs(self) -> Campaign:
        live = self.crash_model != "power_loss"
        if live and not (self.hit and self.trials):
            raise ValueError(
                f"crash_model {self.crash_model} needs trials of 1 or more and [[hit]]"
            )
        if live != (self.explore is None):
            raise ValueError("[explore] belongs to crash_model power_loss, and to no other")
        if math.prod(len(values) for values in self.cross.values()) > CONFIGS_MAX:
            raise ValueError(f"cross gives more than {CONFIGS_MAX} configurations")
        if self.explore and len(self.explore.depths) > 1 and self.enumerated():
            raise ValueError(
                f"depths: each script of workload {self.workload} is crashed once: depth"
            )
        if not all(self.cross.values()):
            raise ValueError("cross has an option without a value")
        masks = [mask for hit in self.hit for mask in hit.masks]
        if any(is_error(mask) != (self.crash_model == "io_error") for mask in masks):
            raise ValueError("masks such as write:ERROR are those of crash_model io_error")
        for names, values in self.vary.items():
            if any(value.count(",") != names.count(",") for value in values):
                raise ValueError(f"vary: {names!r}: each value needs one part per name")
        return self

    def without_effect(self) -> str:
        """What it says that has no effect under its crash model: a run would be taken for one about it. "" if
        there is nothing."""
        if self.explore:
            return "[[hit]] belongs to crash_model kill and io_error" if self.hit else ""
        drawn = {name for names in self.vary for name in names.split(",")}
        said = [name for name in (FS, UNDER) if name in {*self.options, *self.cross, *drawn}]
        return f"{said[0]} belongs to crash_model power_loss" if said else ""

    def configs(self) -> list[Config]:
        """The cross product of `cross` on top of `options`, in the order of the file."""
        names = list(self.cross)
        found = []
        for values in itertools.product(*(self.cross[name] for name in names)):
            chosen = dict(zip(names, values, strict=True))
            label = ",".join(f"{name}={value}" for name, value in chosen.items()) or "default"
            found.append(Config(label, {**self.options, **chosen}, self.seed))
        return found

    def parts(self) -> list[int]:
        """Of power loss the depth of every exploration of a configuration."""
        assert self.explore is not None, "no power loss"
        return (self.explore.depths or [self.explore.depth]) * self._per_config

    def scripted(self) -> list[Config]:
        """Every script that is crashed, with its configuration: in power loss one per exploration."""
        count = len(self.parts()) if self.explore else self._per_config
        alone = count == 1 and not self.vary
        return self.configs() if alone else self._scripts(0, count * len(self.configs()))

    def only_fault_free(self) -> list[Config]:
        """The scripts that are run and judged without a crash."""
        return self._scripts(len(self.scripted()), self.fault_free)

    def enumerated(self) -> list[int]:
        """Of a workload that is enumerated the numbers of all its scripts, in the order of this campaign; of
        others none."""
        return enumerated(self.workload, self.params, self.seed)

    @property
    def _per_config(self) -> int:
        return min(self.scripts, len(self.enumerated()) or self.scripts)

    def _scripts(self, first: int, count: int) -> list[Config]:
        configs, order = self.configs(), self.enumerated()
        if not order:
            numbers = range(first, first + count)
            return [self._script(configs[n % len(configs)], n) for n in numbers]
        numbered = list(itertools.product(order, configs))[first : first + count]
        return [self._sequence(config, n) for n, config in numbered]

    def _script(self, config: Config, number: int) -> Config:
        seed = self.seed + number * SEED_STEP
        drawn = self._drawn(seed)
        return config.script(seed, {"seed": str(seed), **drawn}, drawn, {})

    def _sequence(self, config: Config, number: int) -> Config:
        """All have one seed: where two begin alike, they are the same script up to there."""
        drawn = self._drawn(self.seed + number * SEED_STEP)
        return config.script(
            self.seed, {"sequence": str(number), **drawn}, drawn, {"sequence": number}
        )

    def _drawn(self, seed: int) -> dict[str, str]:
        drawn: dict[str, str] = {}
        for names, values in self.vary.items():
            value = make_rng(seed, "vary", names).choice(values)
            drawn |= zip(names.split(","), value.split(","), strict=True)
        return drawn

    def with_options(self, given: Mapping[str, str]) -> Campaign:
        """Applies --option NAME=VALUE: `params.NAME` is the workload's, anything else a target option,
        which is then no longer crossed or drawn, nor are those that are drawn together with it. `fs` takes
        several names, which are crossed, and is for power loss."""
        options = dict(self.options)
        cross = dict(self.cross)
        params = dict(self.params)
        vary = {
            names: values
            for names, values in self.vary.items()
            if not set(names.split(",")) & set(given)
        }
        for key, value in given.items():
            if key.startswith("params."):
                params[key.removeprefix("params.")] = _param(value)
            elif key in (FS, UNDER) and self.explore is None:
                continue
            elif key == FS and "," in value:
                options.pop(key, None)
                cross[key] = value.split(",")
            else:
                cross.pop(key, None)
                options[key] = value
        return self.changed({"options": options, "cross": cross, "vary": vary, "params": params})

    def changed(self, update: Mapping[str, Any]) -> Campaign:
        """The campaign with other values. Raises ConfigError naming the first that cannot be."""
        try:
            return Campaign.model_validate({**self.model_dump(), **update})
        except ValidationError as error:
            raise ConfigError(first_error(error)) from error


@dataclass(frozen=True, slots=True)
class Config:
    """One combination of target options, and the seed of a script. label: what is crossed, as
    "log_optimize_ddl=on"; for one of several scripts a space, its seed, and what was drawn for it. params:
    of the workload, for this script alone."""

    label: str
    options: dict[str, str]
    seed: int
    params: Mapping[str, int] = field(default_factory=dict)

    def script(
        self,
        seed: int,
        told: Mapping[str, str],
        drawn: Mapping[str, str],
        params: Mapping[str, int],
    ) -> Config:
        """Of this combination the script of a seed. told: what its label says; drawn: further options."""
        parts = ",".join(f"{name}={value}" for name, value in told.items())
        return Config(f"{self.label} {parts}", {**self.options, **drawn}, seed, params)


def load_campaign(name: str, folder: Path, target: str = DEFAULT_TARGET) -> Campaign:
    """Reads folder/NAME-TARGET.toml if there is one, else folder/NAME.toml; or the file `name` if it
    ends in .toml. Targets have options and workloads of their own; TARGET of a target file is "command".

    Raises ConfigError naming file and key; an unknown campaign's message lists those there are.
    """
    path = Path(name) if name.endswith(".toml") else _campaign_file(name, folder, target)
    if not path.is_file():
        raise ConfigError(f"{name}: no such file; `tornpage new campaign NAME` writes one")
    found = read_toml(Campaign, path, "campaign", name=path.stem)
    if wrong := found.without_effect():  # of an older store it may be read
        raise ConfigError(f"{path}: {wrong}")
    return found


def _campaign_file(name: str, folder: Path, target: str) -> Path:
    for stem in (f"{name}-{family_of(target)}", name):
        if (folder / f"{stem}.toml").is_file():
            return folder / f"{stem}.toml"
    raise ConfigError(unknown("campaign", name, sorted(p.stem for p in folder.glob("*.toml"))))


def default_campaigns(folder: Path) -> list[Campaign]:
    """The campaigns of a folder that say `default`, by name."""
    campaigns = [load_campaign(str(path), folder) for path in sorted(folder.glob("*.toml"))]
    return [campaign for campaign in campaigns if campaign.default]


def fault_free_spec(campaign: Campaign, target: str, config: Config) -> TrialSpec:
    """The run of a script without a fault: what a golden run, a recording and every trial start from."""
    return TrialSpec(
        campaign=campaign.name,
        target=target,
        config=config.label,
        options=config.options,
        workload=campaign.workload,
        params=fit_params(campaign.workload, {**campaign.params, **config.params}, config.options),
        workload_seed=config.seed,
        seed=config.seed,
        number=0,
        plan=FaultPlan(name="fault_free"),
        stacks=campaign.stacks,
    )


def _hash(text: str) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode())


def _param(text: str) -> int | str:
    """A number is one in ASCII digits, and as long as one may be."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else text


def hit_of_place(place: str, masks: list[str]) -> Hit:
    """The entry of a campaign for this one place (Hit.places); a site that is none counts as other."""
    name = place.removeprefix(RECOVERY)
    site = Site(name) if name in set(Site) else Site.OTHER
    return Hit(sites=[site], masks=masks, during="run" if name == place else "recovery")


def place_of(site: Site, during: str) -> str:
    """What results call a site: "redo", or "recovery:redo"."""
    return f"{RECOVERY}{site}" if during == "recovery" else site.value
