"""What the state of a bundled store of keys and values tells of a value."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
