"""How far something goes: one value for commands, programs, pytest, nights, shrinking and the explorer.

    a door ──> Limits ──> changes.change() ──> Campaign ──> runner.loss_limits() ──> Limits ──> explorer

A deadline is no limit: how long a state or a command may take is the target's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from tornpage.vocabulary.errors import ConfigError

__all__ = ["BOUNDS", "SEED_MAX", "UNLIMITED", "Bound", "Has", "Limits"]

SEED_MAX = (1 << 62) - 1
SCRIPTS_MAX = 1_000_000


class Has(Enum):
    """Which campaigns have a limit."""

    ALL = "all"
    LOSS = "power loss"
    LIVE = "kills and I/O errors"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a limit is, and may be. option: its name on the command line; low, high: both included; what: for
    people; has: campaigns that have it; form: of one that is written as text, "" of a number."""

    option: str
    low: int
    high: int
    what: str
    has: Has = Has.ALL
    form: str = ""

    @property
    def of_pytest(self) -> str:
        """Its name among the options of a pytest session."""
        return self.option.replace("--", "--torture-", 1)


BOUNDS: Mapping[str, Bound] = {
    "seed": Bound("--seed", 0, SEED_MAX, "Determines everything that is drawn"),
    "trials": Bound("--trials", 1, 10_000_000, "How many kills", Has.LIVE),
    "scripts": Bound("--scripts", 1, SCRIPTS_MAX, "Scripts per configuration, and per depth"),
    "fault_free": Bound(
        "--fault-free", 0, SCRIPTS_MAX, "Further scripts, run and judged without a crash"
    ),
    "models": Bound(
        "--models", 0, 0, "Power loss: only these models of crash states", Has.LOSS, "NAME[,NAME]"
    ),
    "depth": Bound("--depth", 1, 3, "Power loss: 2 crashes the recovery too", Has.LOSS),
    "states": Bound(
        "--states", 0, 1_000_000_000, "Power loss: states per script and depth, 0: all", Has.LOSS
    ),
    "budget_s": Bound(
        "--budget",
        0,
        7 * 24 * 3600,
        "Power loss: time per script and depth, as 60s, 5m, 2h",
        Has.LOSS,
        "TIME",
    ),
}
"""Of each limit. Beyond them nobody would see the end, or a store could not hold the number."""
OF_PYTEST: Mapping[str, Bound] = {
    name: bound for name, bound in BOUNDS.items() if name != "budget_s"
}
"""Those that are options of a pytest session as they stand: its budget is one of a whole item."""


@dataclass(frozen=True, slots=True)
class Limits:
    """None, or no name: as the campaign has it, and where there is no campaign, no limit.

    seed: derives everything that is drawn; trials: kills or errors; scripts: per configuration, and for power
    loss per depth; fault_free: further scripts, over all configurations; models: names of `tornpage list
    models`; depth: 2 crashes the recovery again, 3 that one too; states: at most about so many, 0 = all;
    budget_s: so many seconds, 0 = no end. States and budget are those of one exploration, and the first one
    that is reached counts; a budget that is given without states goes before the campaign's states.
    ConfigError for a number that no campaign may have."""

    seed: int | None = None
    trials: int | None = None
    scripts: int | None = None
    fault_free: int | None = None
    models: tuple[str, ...] = ()
    depth: int | None = None
    states: int | None = None
    budget_s: float | None = None

    def __post_init__(self) -> None:
        """Every number within its bounds."""
        for name, value in self.given().items():
            bound = BOUNDS[name]
            if name != "models" and not bound.low <= value <= bound.high:
                raise ConfigError(f"{bound.option} {value}: from {bound.low} to {bound.high}")

    def given(self) -> dict[str, Any]:
        """Those that are said, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, ())}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Limits:
        """From its fields, or some of them, once they were JSON."""
        return cls(**{**given, "models": tuple(given.get("models", ()))})

    def words(self) -> list[str]:
        """The options of `tornpage run` that say the same."""
        shown: dict[str, object] = dict(self.given())
        if self.models:
            shown["models"] = ",".join(self.models)
        if self.budget_s is not None:
            shown["budget_s"] = f"{self.budget_s:g}s"
        pairs = [(BOUNDS[name].option, str(value)) for name, value in shown.items()]
        return [word for pair in pairs for word in pair]


UNLIMITED = Limits()
