"""What the end-to-end tests share: the type of a call of `tornpage`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What a call of `tornpage` gave. data: the JSON object, if it printed one."""

    code: int
    data: dict[str, Any]
    text: str


Tornpage = Callable[..., Answer]
