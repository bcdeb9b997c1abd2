"""Files that a user names end, are files, and are read in no time."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tornpage.faults.plan import load_plan
from tornpage.plans.campaign import load_campaign
from tornpage.targets.command.file import load_target_file
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.named import parse_toml, read_named
from tornpage.workloads.workload import fit_params

READERS: dict[str, Callable[[Path], object]] = {
    "a plan": load_plan,
    "a target file": load_target_file,
    "a campaign": lambda path: load_campaign(str(path), path.parent),
    "a script": lambda path: fit_params("file", {"path": str(path)}, {}),
    "lines": lambda path: fit_params("lines", {"path": str(path)}, {}),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "nothing", "large"])
def test_whatever_a_name_leads_to(name: str, kind: str, tmp_path: Path) -> None:
    """No device is read, no pipe waited for, and nothing that is too large is taken into memory."""
    path = tmp_path / "x.toml"
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(ConfigError, match=r"(x\.toml|/dev/zero): [a-zA-Z ,]+"):
        READERS[name](path)


def test_all_of_a_file_is_read(tmp_path: Path) -> None:
    """Up to the last byte that it may have."""
    path = tmp_path / "x"
    path.write_bytes(b"x" * 2048)
    assert read_named(path, 2048, "script") == b"x" * 2048
    with pytest.raises(ConfigError, match="larger than 1 KiB, no script"):
        read_named(path, 2047, "script")


@pytest.mark.parametrize("key", [".".join("a" * 50_000), ".".join(['"a"'] * 25_000)])
@pytest.mark.parametrize("text", ["{} = 1", "[{}]", "x = {{ {} = 1 }}", "b = 1, {} = 2"])
def test_a_key_without_an_end_is_refused(key: str, text: str) -> None:
    """A hundred thousand bytes of it cost no time, measured by the processor's."""
    began = time.process_time()
    with pytest.raises(tomllib.TOMLDecodeError, match="more than 64 parts"):
        parse_toml(f"a = 1\n{text.format(key)}\n")
    assert time.process_time() - began < 5


def test_dots_in_values_are_no_keys() -> None:
    """Versions, paths and prose are as long as they like."""
    text = f"""a.b.c = "{"." * 500}"
prose = \'\'\'
{"dotted." * 100}
\'\'\'
numbers = [{", ".join(["1.5"] * 200)}]
"""
    assert parse_toml(text)["a"]["b"]["c"] == "." * 500
