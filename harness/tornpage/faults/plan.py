"""Fault plans: TOML text to model.FaultPlan, and from there to the preload's lines.

    name = "tear a page, then crash in the recovery"
    [[fault]]
    kind = "write"            # write fsync read truncate rename unlink mark
    file = "t1.ibd"           # pattern on the path inside the data directory
    nth = 17                  # the 17th matching operation
    action = "kill"           # kill drop tear corrupt misdirect error short
    sectors = "prefix:3"      # all none prefix:K suffix:K or 0s and 1s, of `sector` bytes: 512 to 65536
    follows = true            # counted from the fault before it on
    [[fault]]
    during = "recovery:1"     # "run" (default) or the n-th recovery
    ...

What is not understood, or what the fault layer cannot do, is refused with the line of the key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tornpage.vocabulary.codec import first_error
from tornpage.vocabulary.errors import ConfigError, PlanError
from tornpage.vocabulary.model import Action, Fault, FaultKind, FaultPlan
from tornpage.vocabulary.named import parse_toml, read_toml_text, toml_value

__all__ = ["KeyLines", "compile_plan", "format_plan", "load_plan", "parse_plan", "resolve_mask"]

_SECTORS = re.compile(r"all|none|(?:prefix|suffix):\d{1,9}|[01]{1,65536}")
_DURING = re.compile(r"run|recovery(?::([1-9]\d?))?")
_SECTOR_SIZES = tuple(1 << power for power in range(9, 17))
_SHAPED = ("sectors", "bytes")
_ALLOWED: dict[Action, frozenset[str]] = {
    Action.KILL: frozenset({"when", "sector", "sectors", "bytes"}),
    Action.TEAR: frozenset({"sector", "sectors", "bytes"}),
    Action.DROP: frozenset(),
    Action.CORRUPT: frozenset({"sector", "sectors"}),
    Action.MISDIRECT: frozenset({"shift"}),
    Action.ERROR: frozenset({"error"}),
    Action.SHORT: frozenset({"bytes"}),
}
_SPECIAL = frozenset({"when", "sector", "sectors", "bytes", "shift", "error"})
_RANGED = (FaultKind.WRITE, FaultKind.READ, FaultKind.TRUNCATE)


class _FaultText(BaseModel):
    """One [[fault]] as written."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["write", "fsync", "read", "truncate", "rename", "unlink", "mark"]
    nth: int = Field(ge=1)
    action: Literal["kill", "tear", "drop", "corrupt", "misdirect", "error", "short"] = "kill"
    file: str | None = Field(default=None, min_length=1, max_length=255)
    text: str | None = Field(default=None, min_length=1, max_length=255)
    offset: list[int] | None = Field(default=None, min_length=2, max_length=2)
    sector: int | None = None
    sectors: str | None = None
    bytes: int | None = Field(default=None, ge=0)
    when: Literal["before", "after"] | None = None
    error: Literal["EIO", "ENOSPC", "EDQUOT"] | None = None
    shift: int | None = None
    follows: bool = False
    during: str = "run"

    @field_validator("sectors")
    @classmethod
    def _check_sectors(cls, value: str | None) -> str | None:
        if value is not None and not _SECTORS.fullmatch(value):
            raise ValueError("wants all, none, prefix:K, suffix:K or 0s and 1s")
        return value

    @field_validator("sector")
    @classmethod
    def _check_sector(cls, value: int | None) -> int | None:
        if value is not None and value not in _SECTOR_SIZES:
            raise ValueError("wants a power of two from 512 to 65536")
        return value

    @field_validator("during")
    @classmethod
    def _check_during(cls, value: str) -> str:
        if not _DURING.fullmatch(value):
            raise ValueError('wants "run" or "recovery:N"')
        return value

    @field_validator("offset")
    @classmethod
    def _check_offset(cls, value: list[int] | None) -> list[int] | None:
        if value is not None and not 0 <= value[0] <= value[1]:
            raise ValueError("wants [MIN, MAX] in bytes")
        return value


class _PlanText(BaseModel):
    """A whole plan as written."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = ""
    crash_model: Literal["kill", "io_error", "power_loss"] = "kill"
    stale_log: bool = False
    fault: list[_FaultText] = Field(min_length=1, max_length=63)


class KeyLines:
    """Line numbers of the keys of a TOML text, which tomllib does not tell.

    Knows `[table]`, `[[table]]` and `key =` lines; enough for flat tables, as ours are.
    """

    def __init__(self, text: str) -> None:
        """Scans `text` once."""
        self._lines: dict[tuple[str | int, ...], int] = {}
        counts: dict[str, int] = {}
        where: tuple[str | int, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            if match := re.match(r"\s*\[\[\s*([\w.-]+)\s*\]\]", line):
                name = match[1]
                counts[name] = counts.get(name, -1) + 1
                where = (*name.split("."), counts[name])
                self._lines.setdefault(where, number)
            elif match := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
                where = tuple(match[1].split("."))
                self._lines.setdefault(where, number)
            elif match := re.match(r'\s*"?([\w.-]+)"?\s*=', line):
                self._lines.setdefault((*where, *match[1].split(".")), number)

    def find(self, path: tuple[str | int, ...]) -> int:
        """Line of the key, else of its nearest enclosing table, else 1."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return 1

    def describe(self, error: ValidationError, source: str) -> str:
        """The first finding as "SOURCE: line N: key: what"."""
        line = self.find(error.errors()[0]["loc"])
        return f"{source}: line {line}: {first_error(error)}"


def load_plan(path: Path) -> FaultPlan:
    """Reads a plan file. Raises PlanError."""
    try:
        text = read_toml_text(path, "plan")
    except ConfigError as error:
        raise PlanError(str(error)) from error
    return parse_plan(text, str(path))


def parse_plan(text: str, source: str = "plan") -> FaultPlan:
    """Parses and checks a plan; source names it in messages. Raises PlanError with a line number."""
    try:
        data = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{source}: {error}") from error
    lines = KeyLines(text)
    try:
        plan = _PlanText.model_validate(data)
    except ValidationError as error:
        raise PlanError(lines.describe(error, source)) from error
    if plan.crash_model == "power_loss":
        line = lines.find(("crash_model",))
        raise PlanError(f"{source}: line {line}: crash_model: the preload cannot lose power")
    faults: dict[int, list[Fault]] = {}
    for i, item in enumerate(plan.fault):
        level, fault = _check_fault(item, i, lines, source)
        before = faults.setdefault(level, [])
        if fault.follows and not before:
            line = lines.find(("fault", i, "follows"))
            raise PlanError(
                f"{source}: line {line}: follows: needs a fault before it, of {item.during}"
            )
        before.append(fault)
    depth = max(faults)
    return FaultPlan(
        name=plan.name,
        run=tuple(faults.get(0, ())),
        recover=tuple(tuple(faults.get(level, ())) for level in range(1, depth + 1)),
        stale_log=plan.stale_log,
    )


def _check_fault(item: _FaultText, i: int, lines: KeyLines, source: str) -> tuple[int, Fault]:
    def refuse(key: str, what: str) -> PlanError:
        return PlanError(f"{source}: line {lines.find(('fault', i, key))}: {key}: {what}")

    kind, action = FaultKind(item.kind), Action(item.action)
    wanted, other = ("text", "file") if kind is FaultKind.MARK else ("file", "text")
    if getattr(item, wanted) is None:
        raise refuse(wanted, f'missing, kind = "{kind}" needs it')
    if getattr(item, other) is not None:
        raise refuse(other, "text is for kind mark, file for all others")
    given = {key for key in _SPECIAL if getattr(item, key) is not None}
    if extra := given - _ALLOWED[action]:
        raise refuse(sorted(extra)[0], f'has no meaning with action = "{action}"')
    shaped = [key for key in _SHAPED if key in given]
    if len(shaped) == 2 or (shaped and "when" in given):
        raise refuse(shaped[0], "only one of sectors, bytes and when")
    if kind is not FaultKind.WRITE and given & {"sector", "sectors", "bytes"}:
        raise refuse(sorted(given)[0], "sectors and bytes are for kind write")
    if item.offset is not None and kind not in _RANGED:
        raise refuse("offset", "needs a kind that has an offset")
    _check_action(kind, action, item, given, refuse)
    level = 0
    if match := _DURING.fullmatch(item.during):
        level = 0 if item.during == "run" else int(match[1] or 1)
    return level, Fault(
        kind=kind,
        nth=item.nth,
        action=action,
        file=item.file or "*",
        offset=(item.offset[0], item.offset[1]) if item.offset else None,
        sector=item.sector or 512,
        sectors=item.sectors,
        bytes=item.bytes,
        when=item.when or "before",
        error=item.error,
        shift=item.shift,
        text=item.text,
        follows=item.follows,
    )


def _check_action(
    kind: FaultKind,
    action: Action,
    item: _FaultText,
    given: set[str],
    refuse: Callable[[str, str], PlanError],
) -> None:
    possible = {
        FaultKind.WRITE: set(Action),
        FaultKind.FSYNC: {Action.DROP, Action.ERROR},
        FaultKind.MARK: set[Action](),
    }
    if action is not Action.KILL and action not in possible.get(kind, {Action.ERROR}):
        raise refuse("action", f"{action} cannot be done to {kind}")
    if action is Action.TEAR and not given & set(_SHAPED):
        raise refuse("action", "tear needs sectors or bytes")
    if action is Action.CORRUPT and "sectors" not in given:
        raise refuse("action", "corrupt needs sectors")
    if action is Action.MISDIRECT and not item.shift:
        raise refuse("action", "misdirect needs shift, a number of bytes other than 0")
    if action is Action.SHORT and not item.bytes:
        raise refuse("action", "short needs bytes of at least 1")


def compile_plan(faults: tuple[Fault, ...]) -> str:
    """The preload's form: one `fault` line per fault (faults/README.md)."""
    return "".join(_compile_fault(fault) + "\n" for fault in faults)


def _compile_fault(fault: Fault) -> str:
    words = [f"fault kind={fault.kind}"]
    if fault.kind is FaultKind.MARK:
        words.append(f"text={_escape(fault.text or '')}")
    else:
        words.append(f"file={_escape(fault.file)}")
    words.append(f"nth={fault.nth}")
    if fault.offset is not None:
        words.append(f"offset={fault.offset[0]}-{fault.offset[1]}")
    words.append(f"action={fault.action}")
    if fault.sectors is not None:
        words.append(f"sector={fault.sector} sectors={fault.sectors}")
    elif fault.bytes is not None:
        if fault.action is not Action.SHORT:
            words.append(f"sector={fault.sector}")
        words.append(f"bytes={fault.bytes}")
    elif fault.action is Action.KILL:
        words.append(f"when={fault.when}")
    if fault.error is not None:
        words.append(f"errno={fault.error}")
    if fault.shift is not None:
        words.append(f"shift={fault.shift}")
    if fault.follows:
        words.append("follows=yes")
    return " ".join(words)


def _escape(text: str) -> str:
    return "".join(
        chr(byte) if 0x21 <= byte < 0x7F and byte != 0x25 else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def format_plan(plan: FaultPlan) -> str:
    """The plan as TOML text that parse_plan() reads back."""
    tables: list[dict[str, object]] = [
        {"name": plan.name or None, "stale_log": plan.stale_log or None}
    ]
    for level, faults in enumerate((plan.run, *plan.recover)):
        tables += [_keys_of(fault, level) for fault in faults]
    parts = [
        [f"{key} = {toml_value(value)}\n" for key, value in table.items() if value is not None]
        for table in tables
    ]
    return "\n[[fault]]\n".join(map("".join, parts)).lstrip("\n")


def _keys_of(fault: Fault, level: int) -> dict[str, object]:
    """What a file says of it; level: of the recovery that it is for, 0: of the run."""
    mark = fault.kind is FaultKind.MARK
    shaped = fault.sectors is not None or fault.bytes is not None
    return {
        "kind": fault.kind,
        "text": fault.text or "" if mark else None,
        "file": None if mark else fault.file,
        "nth": fault.nth,
        "action": fault.action,
        "offset": fault.offset,
        "sectors": fault.sectors,
        "bytes": fault.bytes,
        "sector": fault.sector if shaped and fault.sector != 512 else None,
        "when": fault.when if fault.when != "before" else None,
        "error": fault.error,
        "shift": fault.shift,
        "follows": fault.follows or None,
        "during": f"recovery:{level}" if level else None,
    }


def resolve_mask(spec: str, offset: int, length: int, sector: int = 512) -> str:
    """The sectors of a write [offset, offset + length) that `spec` keeps, as 0s and 1s.

    Sectors are aligned in the file, so that an unaligned write has a partial first and last one.
    """
    count = (offset + length + sector - 1) // sector - offset // sector
    if spec == "all":
        return "1" * count
    if spec == "none":
        return "0" * count
    if spec.startswith(("prefix:", "suffix:")):
        kept = min(count, int(spec[7:]))
        ones, zeros = "1" * kept, "0" * (count - kept)
        return ones + zeros if spec.startswith("prefix:") else zeros + ones
    return spec[:count].ljust(count, "0")
