"""Files that a user names: read as far as such a file may go, and never waited for. A device, a pipe or a
file without an end is a mistake that is told in one line, not memory or time that is gone.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from tornpage.vocabulary.errors import ConfigError

__all__ = ["TOML_MAX_BYTES", "parse_toml", "read_named", "read_toml_text", "toml_value"]

TOML_MAX_BYTES = 1 << 20
KEY_PARTS_MAX = 64
"""Of a dotted key: the parser's time grows with their square."""
_BETWEEN_KEYS = re.compile(r"[={},]")


def read_named(path: Path, max_bytes: int, what: str) -> bytes:
    """All of a file. what: it is meant to be, as "script". ConfigError: it cannot be read, is no regular
    file, or is larger than max_bytes."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ConfigError(f"{path}: no regular file, so no {what}")
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(data) > max_bytes:
        raise ConfigError(f"{path}: larger than {_size(max_bytes)}, no {what}")
    return data


def read_toml_text(path: Path, what: str) -> str:
    """The text of a file of TOML. ConfigError as read_named(), and for what is no UTF-8."""
    try:
        return read_named(path, TOML_MAX_BYTES, what).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not a TOML text file, no {what}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """As tomllib.loads(), whose TOMLDecodeError, a ValueError, it raises also for a key of too many parts."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") < KEY_PARTS_MAX:
            continue
        if any(part.count(".") >= KEY_PARTS_MAX for part in _BETWEEN_KEYS.split(_bare(line))):
            raise tomllib.TOMLDecodeError(
                f"a key of more than {KEY_PARTS_MAX} parts (at line {number})"
            )
    return tomllib.loads(text)


def toml_value(value: Any) -> str:
    """Text, a number, a boolean or a list of them as TOML has it on one line: as JSON, but for a letter."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _bare(line: str) -> str:
    """Without what stands in quotes, and only of a line that can hold a key."""
    left = re.sub(r"\"[^\"]*\"|'[^']*'", "", line)
    return left if "=" in left or left.lstrip().startswith("[") else ""


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
