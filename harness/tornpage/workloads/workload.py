"""Workloads: named generators that turn parameters and a seed into a script.

A campaign names a workload, and its parameters if they are not the workload's own:

    workload = "smoke"
    [params]
    rows = 60

The generators ask the oracle's model nothing; they keep a small book of what exists (book.py).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import xxhash
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tornpage.vocabulary.closest import unknown
from tornpage.vocabulary.codec import first_error
from tornpage.vocabulary.errors import ConfigError, WorkloadError
from tornpage.vocabulary.named import read_named
from tornpage.vocabulary.seeds import make_rng
from tornpage.workloads.backups import BackupParams, generate_backup
from tornpage.workloads.bounded import BoundedParams, generate_bounded, sequences_of
from tornpage.workloads.churn import ChurnParams, generate_churn
from tornpage.workloads.linkbench import LinkbenchParams, generate_linkbench
from tornpage.workloads.mix import MixParams, StormParams, generate_mix, generate_storm
from tornpage.workloads.parse import parse_script
from tornpage.workloads.places import PlacesParams, SwitchesParams, generate_places, places_of
from tornpage.workloads.script import Script, Statement, Verb
from tornpage.workloads.smoke import (
    SmokeParams,
    SqliteSmokeParams,
    generate_smoke,
    generate_sqlite_smoke,
)
from tornpage.workloads.tpcc import TpccParams, generate_tpcc

__all__ = [
    "FileParams",
    "InlineParams",
    "bytes_of",
    "enumerated",
    "fit_params",
    "generate",
    "lengths_of",
    "page_size_of",
    "params_of",
    "validate_params",
    "workload_names",
]


PAGE_SIZE = "4096"
"""Of a target that is not told another."""


SCRIPT_MAX_BYTES = 16_000_000


class FileParams(BaseModel):
    """A script in a file, run as it is; the seed changes nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    """The file, in the language of docs/SCRIPT.md."""
    hash: str = ""
    """XXH3-64 of the text; none: any text. A run stores the hash, so that no replay uses another script."""


class InlineParams(BaseModel):
    """A script given in full, so that a trial needs no file beside the result database; the seed changes
    nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: str = Field(max_length=SCRIPT_MAX_BYTES)
    """The text."""


def _generate_file(params: FileParams, rng: random.Random) -> Script:  # noqa: ARG001 - one shape
    text = _read_pinned(params.path, params.hash)
    try:
        return parse_script(text)
    except WorkloadError as error:
        raise WorkloadError(f"{params.path}: {error}") from error


def _read_pinned(path: Path, known: str) -> str:
    text = _read_script(path)
    if known not in ("", _hash_of(text)):
        raise WorkloadError(f"{path}: the script has changed since the run; put the old text back")
    return text


def _read_script(path: Path) -> str:
    try:
        data = read_named(path, SCRIPT_MAX_BYTES, "script")
    except ConfigError as error:
        raise WorkloadError(str(error)) from error
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WorkloadError(f"{path}: script line {line}: not ASCII") from error


def _hash_of(text: str) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode("ascii"))


class OwnParams(BaseModel):
    """The work of the target's own run command; no script, and the seed changes nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _generate_own(params: OwnParams, rng: random.Random) -> Script:  # noqa: ARG001 - one shape
    return Script("", ())


class LinesParams(BaseModel):
    """Statements in the target's own language, one per line, which its run command takes from a file;
    the seed changes nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = None
    """The file."""
    hash: str = ""
    """As of `file`."""
    script: str = Field(default="", max_length=SCRIPT_MAX_BYTES)
    """Without a path: the text."""


def _generate_lines(params: LinesParams, rng: random.Random) -> Script:  # noqa: ARG001 - one shape
    text = params.script if params.path is None else _read_pinned(params.path, params.hash)
    return Script.of(Statement(0, Verb.LINE, name=line) for line in text.splitlines())


def _generate_inline(params: InlineParams, rng: random.Random) -> Script:  # noqa: ARG001 - one shape
    return parse_script(params.script)


_WORKLOADS: dict[str, tuple[type[BaseModel], Callable[..., Script]]] = {
    "smoke": (SmokeParams, generate_smoke),
    "churn": (ChurnParams, generate_churn),
    "mix": (MixParams, generate_mix),
    "storm": (StormParams, generate_storm),
    "backup": (BackupParams, generate_backup),
    "bounded": (BoundedParams, generate_bounded),
    "places": (PlacesParams, generate_places),
    "switches": (SwitchesParams, generate_places),
    "linkbench": (LinkbenchParams, generate_linkbench),
    "tpcc": (TpccParams, generate_tpcc),
    "sqlite_smoke": (SqliteSmokeParams, generate_sqlite_smoke),
    "file": (FileParams, _generate_file),
    "inline": (InlineParams, _generate_inline),
    "own": (OwnParams, _generate_own),
    "lines": (LinesParams, _generate_lines),
}
_FITTED = ("page_size", "dblwr_pages", "sort_buffer_size", "online_alter_log_max_size")
"""Parameters that are options of the target too."""
_NUMBER = re.compile(r"([0-9]{1,18})([kKmMgG]?)")
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30}


def workload_names() -> list[str]:
    """The workloads that generate() knows."""
    return sorted(_WORKLOADS)


def params_of(name: str) -> type[BaseModel]:
    """The model of a workload's parameters; its docstring says what the workload is."""
    return _WORKLOADS[name][0]


def enumerated(name: str, params: Mapping[str, int | str], seed: int) -> list[int]:
    """The numbers of all scripts of a workload that is enumerated, in the order in which a campaign of this
    seed has them: of each length all before the next one, drawn. Empty: it is not, or `params` names one."""
    found: list[int] = []
    for number, end in enumerate(lengths_of(name, params), start=1):
        rest = range(len(found), end)
        found += make_rng(seed, "enumerated", number).sample(rest, len(rest))
    return found


def lengths_of(name: str, params: Mapping[str, int | str]) -> list[int]:
    """Of a workload that is enumerated: how many scripts there are up to each length. Empty: it is not, or
    `params` names one."""
    if name not in ("bounded", "places", "switches") or "sequence" in params:
        return []
    if name != "bounded":
        return [len(places_of(name))]
    length = BoundedParams.model_validate(validate_params(name, params)).length
    return [len(sequences_of(each)) for each in range(1, length + 1)]


def fit_params(
    name: str, params: Mapping[str, int | str], options: Mapping[str, str]
) -> dict[str, int | str]:
    """The parameters, and those that the target's options decide: a workload that asks for page_size or
    dblwr_pages gets the target's, unless it is told another. A script in a file gets its absolute path and
    hash. Raises WorkloadError for what is no number, and for a script that cannot be read."""
    known = _WORKLOADS[name][0].model_fields if name in _WORKLOADS else {}
    fitted = {
        key: bytes_of(key, options[key]) for key in _FITTED if key in known and key in options
    }
    pinned: dict[str, int | str] = {}
    if name in ("file", "lines") and isinstance(params.get("path"), str) and "hash" not in params:
        path = Path(str(params["path"])).resolve()
        pinned = {"hash": _hash_of(_read_script(path)), "path": str(path)}
    return {**fitted, **params, **pinned}


def bytes_of(key: str, text: str) -> int:
    """ "4k" -> 4096, as the target reads it. WorkloadError naming the key."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise WorkloadError(f"{key}={text}: expected a number, as 4096, 4k, 1m or 1g")
    return int(match[1]) << _SHIFTS[match[2].lower()]


def page_size_of(options: Mapping[str, str]) -> int:
    """Bytes of a page, by the options of a target."""
    return bytes_of("page_size", options.get("page_size", PAGE_SIZE))


def validate_params(name: str, params: Mapping[str, int | str]) -> dict[str, int | str]:
    """The parameters with their defaults filled in. Raises WorkloadError naming what is wrong."""
    if name not in _WORKLOADS:
        raise WorkloadError(unknown("workload", name, workload_names()))
    model = _WORKLOADS[name][0]
    try:
        return model.model_validate(dict(params)).model_dump(mode="json")
    except ValidationError as error:
        told = first_error(error, known=model.model_fields)
        raise WorkloadError(f"workload {name!r}: {told}") from error


def generate(name: str, params: Mapping[str, int | str], seed: int) -> Script:
    """The script of a workload. The same arguments give the same text."""
    checked = validate_params(name, params)
    model, make = _WORKLOADS[name]
    return make(model.model_validate(checked), make_rng(seed, "workload", name))
