"""The limits of the process, which its children inherit: where one is too low, what a target cannot do or
dies of is the machine's doing, and would be taken for the target's.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass

from tornpage.vocabulary.errors import MachineError

__all__ = ["FLOORS", "Floor", "require_limits"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that a limit may be. number: of the resource module; unit: in which a person gives it;
    remedy: the shell's command."""

    name: str
    number: int
    least: int
    unit: str
    remedy: str

    def allowed(self) -> int:
        """What this process has; resource.RLIM_INFINITY: no limit."""
        return resource.getrlimit(self.number)[0]

    def low(self) -> bool:
        """It has less than is needed."""
        allowed = self.allowed()
        return allowed != resource.RLIM_INFINITY and allowed < self.least

    def said(self, value: int) -> str:
        """In words."""
        if value == resource.RLIM_INFINITY:
            return "no limit"
        return f"{value >> 10} KiB" if self.unit == "KiB" else f"{value} {self.unit}".rstrip()


FLOORS = (
    Floor("stack", resource.RLIMIT_STACK, MIB, "KiB", "ulimit -s 8192"),
    Floor("address space", resource.RLIMIT_AS, 1024 * MIB, "KiB", "ulimit -v unlimited"),
    Floor("data segment", resource.RLIMIT_DATA, 512 * MIB, "KiB", "ulimit -d unlimited"),
    Floor("file size", resource.RLIMIT_FSIZE, 1024 * MIB, "KiB", "ulimit -f unlimited"),
    Floor("processor time", resource.RLIMIT_CPU, 3600, "s", "ulimit -t unlimited"),
    Floor("file descriptors", resource.RLIMIT_NOFILE, 256, "", "ulimit -n 1024"),
)
"""What a campaign of the bundled engine needs, with room."""


def require_limits() -> None:
    """Raises MachineError naming the first limit that is too low."""
    for floor in FLOORS:
        if floor.low():
            raise MachineError(
                f"the limit on {floor.name} is {floor.said(floor.allowed())}, {floor.said(floor.least)} are "
                f"needed: {floor.remedy}"
            )
