"""The campaigns of kills.py: those of workloads/, shortened, and who may be ended in each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILL_ROLES = ("owner", "worker", "target", "judge")
LOSS_ROLES = ("owner", "explorer", "target", "judge")


class Broken(Exception):
    """What must hold did not."""


def require(holds: object, what: object) -> None:
    """Raises Broken with `what` if it does not hold."""
    if not holds:
        raise Broken(str(what))


@dataclass(frozen=True)
class Campaign:
    """A shortened campaign file: --go-on takes no limits. sizes: of its keys; options: added to its own."""

    file: str
    roles: tuple[str, ...]
    sizes: dict[str, str]
    options: dict[str, str] = field(default_factory=dict)
    target: str = "engine"

    def write(self, folder: Path) -> Path:
        """The campaign as a file in a folder."""
        text = (ROOT / "workloads" / f"{self.file}.toml").read_text("utf-8")
        for key, value in self.sizes.items():
            text, found = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
            require(found == 1, f"{self.file}: no {key}")
        added = "".join(f'{name} = "{value}"\n' for name, value in self.options.items())
        path = folder / f"{self.file}.toml"
        path.write_text(text.replace("[options]\n", f"[options]\n{added}", 1), "utf-8")
        return path


SMALL = {"trials": "40", "scripts": "2", "fault_free": "6"}
CAMPAIGNS = {
    "smoke": Campaign("smoke", KILL_ROLES, SMALL),
    "powerloss": Campaign(
        "powerloss", LOSS_ROLES, {"states": "300", "scripts": "1", "depths": "[1, 2]"}
    ),
    "control": Campaign("smoke", KILL_ROLES, SMALL, {"doublewrite": "off"}),
    "control_loss": Campaign(
        "powerloss",
        LOSS_ROLES,
        {"states": "300", "scripts": "1", "depths": "[1, 2]"},
        {"doublewrite": "off"},
    ),
    "io_error": Campaign("io_error", KILL_ROLES, {"trials": "60", "scripts": "2"}),
    "mix_kill": Campaign("mix_kill", KILL_ROLES, {"trials": "40", "scripts": "4"}),
    "churn": Campaign(
        "churn",
        (*LOSS_ROLES, "worker"),
        {"states": "200", "scripts": "1", "depths": "[1, 2]", "fault_free": "4"},
    ),
    "sqlite": Campaign(
        "smoke-sqlite",
        ("owner", "worker", "target"),
        {"trials": "24", "scripts": "2"},
        target="sqlite",
    ),
    "sqlite_loss": Campaign(
        "powerloss-sqlite",
        ("owner", "explorer", "target"),
        {"states": "600", "scripts": "2"},
        target="sqlite",
    ),
}
"""The controls find violations, which must be the same ones too."""
