"""What the state of a bundled store of keys and values tells of a value."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage.targets.bundled.library import lines_of, pairs_of

LIBRARY = "liblmdb.so.0"
SECTOR_BYTES = 512


def called(*words: str, said: str = "") -> list[dict[str, object]]:
    """What lmdb_store prints."""
    command = [sys.executable, "-m", "tornpage.targets.bundled.lmdb_store", *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, input=said, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_lost_sector_inside_a_value_is_another_state(tmp_path: Path) -> None:
    """Though its beginning and its length are right."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        pytest.skip(str(error))
    last = called("run", LIBRARY, str(tmp_path), "write", "on")[-1]["state"]
    recover = ("recover", LIBRARY)
    assert called(*recover, said=f"{tmp_path}\n")[0]["state"] == last
    file = tmp_path / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"x" * SECTOR_BYTES, bytes(SECTOR_BYTES)))
    (lost,) = called(*recover, said=f"{tmp_path}\n")
    assert lost["ok"] and lost["state"] != last


class Store:
    """That finds other keys when it is asked for one than when it goes through all."""

    def __init__(self, found: dict[bytes, bytes], walked: list[bytes]) -> None:
        self._found, self._walked = found, walked

    def get(self, key: bytes) -> bytes | None:
        """As of PairStore."""
        return self._found.get(key)

    def keys(self) -> list[bytes]:
        """As of PairStore."""
        return self._walked

    def begin(self) -> bool:
        """As of PairStore."""
        return True

    def put(self, _key: bytes, _value: bytes) -> bool:
        """As of PairStore."""
        return False

    def commit(self) -> bool:
        """As of PairStore."""
        return False


@pytest.mark.parametrize(
    ("found", "walked"),
    [
        ([b"key01"], [b"key01"]),
        ([b"key01", b"key02"], [b"key01"]),
        ([b"key01"], [b"key01", b"key02"]),
        ([b"key01", b"key02"], [b"key01", b"key02", b"key02"]),
        ([b"key01", b"key02", b"\xff"], [b"key01", b"key02", b"\xff"]),
    ],
)
def test_a_key_that_one_way_does_not_come_to_is_another_state(
    found: list[bytes], walked: list[bytes]
) -> None:
    """Lost, met twice, or one that no run has put."""
    right = pairs_of(Store(dict.fromkeys([b"key01", b"key02"], b"v"), [b"key02", b"key01"]))
    assert right == {"pairs": "key01 v 1 6b643b84\nkey02 v 1 6b643b84\n"}
    assert pairs_of(Store(dict.fromkeys(found, b"v"), walked)) != right


@pytest.mark.parametrize(
    ("walked", "asked"),
    [
        ({b"key01": b"v"}, {b"key01": b"v", b"key02": b"v"}),
        ({b"key01": b"v", b"key02": b"v"}, {b"key01": b"v"}),
        ({b"key01": b"v", b"key02": b"v"}, {b"key01": b"v", b"key02": b"old"}),
        ({b"key02": b"v", b"key01": b"v"}, {b"key01": b"v", b"key02": b"v"}),
    ],
)
def test_a_pair_that_one_way_does_not_come_to_is_another_state(
    walked: dict[bytes, bytes], asked: dict[bytes, bytes]
) -> None:
    """Hidden from a walk or from who asks for it, with another value, or in another order."""
    keys = (b"key01", b"key02", b"key03")
    both = dict.fromkeys(keys[:2], b"v")
    right = lines_of(both.items(), both.get, keys)
    assert right == "key01 v 1 6b643b84\nkey02 v 1 6b643b84\n"
    assert lines_of(walked.items(), asked.get, keys) != right


def test_a_key_that_only_who_asks_for_it_finds_is_another_state() -> None:
    """Than that of a store which does not have it."""
    keys, walked = (b"key01", b"key02"), {b"key01": b"v"}
    alone = lines_of(walked.items(), walked.get, keys)
    hidden = lines_of(walked.items(), {**walked, b"key02": b"v"}.get, keys)
    assert alone == "key01 v 1 6b643b84\n" and hidden == f"{alone}b'key02' is met by no walk\n"
