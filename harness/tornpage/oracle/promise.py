"""What a target promises of a crash, whatever kind of crash it is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Promise"]


@dataclass(frozen=True, slots=True)
class Promise:
    """durable: what was acknowledged is there. consistent: the state is some commit prefix. A target that
    promises neither must only recover, to whatever state, and come to the same when it recovers again."""

    durable: bool = True
    consistent: bool = True

    @property
    def level(self) -> str:
        """The explorer's word (--promise)."""
        return "durable" if self.durable else "consistent" if self.consistent else "start"
