"""`tornpage upstream`: a report for somebody without Tornpage, and a program that shows them the finding."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from e2e_support import ONE_CONFIGURATION, Tornpage

from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import TornpageError

pytestmark = pytest.mark.extended

FEW_ROWS = ("--option", "params.rows=24")
SMALL = ("--scripts", "1", "--fault-free", "0", *FEW_ROWS)
TORN = ("--option", "doublewrite=off")


def seen(folder: Path, *words: str) -> str:
    """What the program prints for a person in a shell of their own."""
    shell = ["/bin/sh", str(folder / "see.sh"), *words]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        shell, cwd="/", env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


def rows_of(said: str) -> dict[str, Any]:
    """The skeleton's."""
    rows: dict[str, Any] = json.loads(json.loads(said)["state"]["rows"])
    return rows


def test_a_lost_commit(tmp_path: Path, tornpage: Tornpage) -> None:
    """The report has the cause, the call by its line and with its time, and the file systems; the program
    loses the commit, and with nothing lost has it; it needs neither Tornpage nor where it was made."""
    file = write_skeleton("mykv", Language.PYTHON, tmp_path).file
    store = file.with_name("store.py")
    store.write_text(store.read_text("utf-8").replace("        os.fsync(log)\n", ""), "utf-8")
    assert tornpage("run", "powerloss", "--target", str(file), "--states", "60").code == 1
    made = tornpage("upstream", "1.0", str(tmp_path / "report"))
    assert made.code == 0 and made.data["explained"], made.text
    report = (tmp_path / "report" / "report.md").read_text("utf-8")
    cause = tornpage("explain", "1.0").data
    assert report.startswith("# mykv: acknowledged commits are missing")
    assert cause["sentence"] in report
    lost = cause["cause"]["lost"][0]
    assert f"| {lost['seq']} | 0.000 | " in report and "    load store.py:16\n" in report
    assert "| posix | what the standard promises, and no more | broken |" in report
    assert made.data["crashed"] in report and made.data["whole"] in report
    moved = (tmp_path / "report").rename(tmp_path / "elsewhere")
    file.unlink()
    store.unlink()
    crashed, whole = rows_of(seen(moved)), rows_of(seen(moved, "whole"))
    assert crashed != whole and crashed.items() <= whole.items()
    assert seen(moved, "whole").strip() == made.data["whole"]


@pytest.mark.parametrize(
    ("campaign", "has_file_systems"),
    [
        (("powerloss", "--states", "200", *ONE_CONFIGURATION, *FEW_ROWS), True),
        (("smoke", "--trials", "20", *SMALL), False),
    ],
)
def test_a_torn_page(
    campaign: tuple[str, ...], has_file_systems: bool, tmp_path: Path, tornpage: Tornpage
) -> None:
    """A power loss, or a kill inside a write: the engine refuses the crashed files and takes the whole
    ones."""
    assert tornpage("run", *campaign, *TORN).code == 1
    made = tornpage("upstream", "1.0", str(tmp_path / "report"))
    assert made.code == 0, made.text
    report = (tmp_path / "report" / "report.md").read_text("utf-8")
    assert "torn: of its sectors " in report and "buf_dblwr_write_home buf_dblwr.c:" in report
    assert ("## On which file systems" in report) == has_file_systems
    assert "engine: error[torn-page]" in seen(tmp_path / "report")
    assert "0 findings" in seen(tmp_path / "report", "whole")


def test_what_is_not_explained_is_shown_as_it_is(tmp_path: Path, tornpage: Tornpage) -> None:
    """A kill of a store that acknowledges before it writes, and whose runs need not be equal: the files that
    were kept, the last calls, and why there is no cause."""
    file = write_skeleton("mykv", Language.PYTHON, tmp_path).file
    store = file.with_name("store.py")
    head, write, rest = store.read_text("utf-8").partition("        os.write(log")
    ack = '        ack(n, {"rows": rows})\n'
    assert write and ack in rest
    store.write_text(head + ack + write + rest.replace(ack, ""), "utf-8")
    assert tornpage("run", "smoke", "--target", str(file), "--trials", "10").code == 1
    made = tornpage("upstream", "1.0", str(tmp_path / "report"))
    assert made.code == 0 and not made.data["explained"] and made.data["whole"] is None, made.text
    report = (tmp_path / "report" / "report.md").read_text("utf-8")
    assert "What must be lost for it was not found by experiment: trial 1.0: no recording" in report
    assert "## On which file systems" not in report and "see.sh whole" not in report
    kept = next((tmp_path / "out").glob("images/1/0/data/store.log")).read_bytes()
    assert (tmp_path / "report" / "files" / "store.log").read_bytes() == kept
    assert (
        seen(tmp_path / "report").strip() == made.data["crashed"] and made.data["crashed"] in report
    )


@pytest.mark.parametrize(
    ("name", "option", "says"),
    [
        ("sqlite-3.7.2", "synchronous=off", "SQLite 3.7.2"),
        ("leveldb-1.22", "fs=posix", "key0"),
    ],
)
def test_a_library(
    name: str, option: str, says: str, build: Path, tmp_path: Path, tornpage: Tornpage
) -> None:
    """What a library shows of its files is not the same with and without the loss."""
    try:
        make_target(name, build)
    except TornpageError as error:
        pytest.skip(str(error))
    run = ("run", "powerloss", "--target", name, "--states", "100", "--depth", "1")
    assert tornpage(*run, "--option", option).code == 1
    made = tornpage("upstream", "1.0", str(tmp_path / "report"))
    assert made.code == 0 and made.data["explained"], made.text
    assert made.data["crashed"] != made.data["whole"] and says in made.data["whole"]
    again = [line[:200] for line in seen(tmp_path / "report", "whole").splitlines()]
    assert again == made.data["whole"].splitlines()


def test_what_is_refused(tmp_path: Path, tornpage: Tornpage) -> None:
    """One line each: no finding, and a folder that is there."""
    assert tornpage("run", "smoke", "--trials", "4", *SMALL).code in (0, 3)
    clean = tornpage("upstream", "1.0", str(tmp_path / "report"))
    assert clean.code == 2 and "breaks no state: a report needs a crash that does" in clean.text
    assert not (tmp_path / "report").exists()
    assert tornpage("run", "smoke", "--trials", "20", *SMALL, *TORN).code == 1
    there = tornpage("upstream", "2.0", str(tmp_path))
    assert there.code == 2 and f"{tmp_path} exists already: name another folder" in there.text
