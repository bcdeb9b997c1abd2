"""Lists of what there is to choose from: campaigns, workloads, options, models, file systems, sites,
invariants, targets. Each text comes from where the thing is defined, which is loaded for its list only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tornpage.targets.registry import (
    TARGETS,
    campaign_parts,
    explorer_path,
    make_target,
    target_names,
)
from tornpage.vocabulary.closest import unknown
from tornpage.vocabulary.documented import first_sentence, keys_of, meanings
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.invariants import load_invariants
from tornpage.vocabulary.model import Site
from tornpage.vocabulary.paths import Paths, data_folder

__all__ = ["KINDS", "Item", "list_items"]

FS_CELLS = ("names", "fsync", "size_first", "replace_flushes")


@dataclass(frozen=True, slots=True)
class Item:
    """One that there is. facts: further columns, the same for all of a kind; what: one line."""

    name: str
    what: str
    facts: Mapping[str, str] = field(default_factory=dict)


def list_items(kind: str, paths: Paths) -> list[Item]:
    """All of one kind. Raises ConfigError naming the kinds, TargetError if a program is not built."""
    if kind not in KINDS:
        raise ConfigError(unknown("list", kind, KINDS))
    return KINDS[kind](paths)


def _campaigns(paths: Paths) -> list[Item]:
    return [_campaign(path) for path in sorted(paths.workloads.glob("*.toml"))]


def _campaign(path: Path) -> Item:
    """Of its file the head only: to check the whole takes the model of every workload."""
    name, target = campaign_parts(path.stem)
    head = tomllib.loads(path.read_text())
    facts = {"target": target, "crash model": head["crash_model"]}
    return Item(name, head["description"], facts)


def _workloads(_paths: Paths) -> list[Item]:
    from tornpage.workloads.workload import params_of, workload_names

    return [
        Item(
            name,
            first_sentence(params_of(name)),
            {"params": ", ".join(f"{key.name}={key.default}" for key in keys_of(params_of(name)))},
        )
        for name in workload_names()
    ]


def _options(paths: Paths) -> list[Item]:
    return [
        Item(
            option.name,
            option.what,
            {"target": target, "values": option.values, "default": option.default},
        )
        for target in target_names()
        for option in make_target(target, paths.build, ready=target in TARGETS).options()
    ]


def _models(paths: Paths) -> list[Item]:
    from tornpage.powerloss.explorer import loss_models

    known = loss_models(explorer_path(paths.build))
    return [Item(name, what) for name, what in known.items()]


def _file_systems(paths: Paths) -> list[Item]:
    from tornpage.targets.filesystems import file_systems

    known = file_systems(explorer_path(paths.build))
    return [
        Item(name, row["what"], {key: str(row[key]) for key in FS_CELLS})
        for name, row in known.items()
    ]


def _sites(_paths: Paths) -> list[Item]:
    return [Item(name, what) for name, what in meanings(Site).items()]


def _invariants(_paths: Paths) -> list[Item]:
    page = data_folder("docs") / "INVARIANTS.md"
    return [Item(number, what) for number, what in load_invariants(page).items()]


def _targets(paths: Paths) -> list[Item]:
    made = {name: make_target(name, paths.build, ready=False) for name in target_names()}
    return [
        Item(
            name,
            target.what,
            {"capabilities": ", ".join(sorted(target.capabilities))},
        )
        for name, target in made.items()
    ]


KINDS: dict[str, Callable[[Paths], list[Item]]] = {
    "campaigns": _campaigns,
    "workloads": _workloads,
    "options": _options,
    "models": _models,
    "fs": _file_systems,
    "sites": _sites,
    "invariants": _invariants,
    "targets": _targets,
}
"""What can be listed."""
