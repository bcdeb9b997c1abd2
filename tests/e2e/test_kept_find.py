"""A finding of a store whose runs differ is shown by what was kept of it, whatever a new run does."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_support import Tornpage

from tornpage.targets.command.skeleton import Language, write_skeleton

FEW = ("--jobs", "1", "--fault-free", "0")
POWER = ("run", "powerloss", "--states", "60", "--depth", "1", *FEW)
KILLS = ("run", "smoke", "--trials", "8", *FEW)
EQUAL, DIFFERENT = "1200", "{1200 + os.urandom(1)[0] % 64}"
FSYNC = "        os.fsync(log)\n"
TORN = "        if line != line_of(line[9:-1]):\n            break"


def make(folder: Path, width: str) -> Path:
    """The store that comes along, with records of this width."""
    file = write_skeleton("kv", Language.PYTHON, folder).file
    change(file, "{n:01200}", f"{{n:0{width}}}")
    return file


def change(file: Path, old: str, new: str) -> None:
    """Its program."""
    program = file.parent / "store.py"
    text = program.read_text("utf-8")
    assert old in text
    program.write_text(text.replace(old, new), "utf-8")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("width", "code", "said"),
    [
        (DIFFERENT, 1, "what was kept shows it; a new run does not"),
        (EQUAL, 0, "fixed? the runs of this target are equal, and write otherwise than then"),
    ],
)
def test_a_new_run_decides_only_where_runs_are_equal(
    width: str, code: int, said: str, tmp_path: Path, tornpage: Tornpage
) -> None:
    """An fsync is missing, and comes back: the kept recording lacks it for ever."""
    file = make(tmp_path, width)
    change(file, FSYNC, "")
    assert tornpage(*POWER, "--target", str(file)).code == 1
    kept = sum(one.stat().st_size for one in (tmp_path / "out").rglob("*") if one.is_file())
    assert kept < 4 << 20, "the room of a recording is not kept"
    change(file, '        ack(n, {"rows": rows})', f'{FSYNC}        ack(n, {{"rows": rows}})')
    again = tornpage("replay", "1.0")
    assert again.code == code and again.data["note"].startswith(said), again.text
    assert again.data["kept"] == [
        "the kept image, recovered again: broken, I1",
        "the kept recording, crashed there again: broken, I1",
    ]
    assert again.data["new_run"].startswith("not met")


def broken(file: Path) -> None:
    """A torn line is taken for a whole one, and what it lacks for 0."""
    change(
        file, "key, value = line.split()[1:]", "key, value = (line.split()[1:] + ['k', '0'])[:2]"
    )
    change(file, TORN, "        if False:\n            break")


@pytest.mark.parametrize("command", [POWER, KILLS])
def test_a_recovery_that_was_mended_recovers_what_was_kept(
    command: tuple[str, ...], tmp_path: Path, tornpage: Tornpage
) -> None:
    """The kept image, or its recording, is broken as long as the recovery is, and clean then."""
    file = make(tmp_path, DIFFERENT)
    whole = (file.parent / "store.py").read_text("utf-8")
    broken(file)
    found = tornpage(*command, "--target", str(file))
    assert found.code == 1, found.text
    trial = found.data["bugs"][0]["trial"]
    asked = tornpage("replay", trial).data
    assert asked["exit_code"] == 1 and any("broken" in one for one in asked["kept"]), asked
    (file.parent / "store.py").write_text(whole, "utf-8")
    asked = tornpage("replay", trial).data
    assert asked["exit_code"] == 0 and asked["note"].startswith("fixed?"), asked
    assert {one.partition(": ")[2] for one in asked["kept"]} == {"clean"}, asked
