"""A store that writes the path of its folder into its files is recovered under that path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from e2e_support import Tornpage

from tornpage.live.admission import own_work
from tornpage.live.recording import recorded_run
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import explore
from tornpage.targets.registry import make_target

PROGRAM = """
import sqlite3, sys
from tornpage_mark import Refused, ack, issue, ready, serve

def open_both(folder):
    db = sqlite3.connect(f"{folder}/one.db", isolation_level=None)
    db.execute("ATTACH ? AS two", (f"{folder}/two.db",))
    for name in ("main", "two"):
        db.execute(f"PRAGMA {name}.journal_mode = delete").fetchall()
        db.execute(f"PRAGMA {name}.synchronous = extra")
    return db

def load(folder):
    db = open_both(folder)
    for name in ("main", "two"):
        db.execute(f"CREATE TABLE {name}.t (n INTEGER, filler TEXT)")
        db.execute(f"INSERT INTO {name}.t VALUES (0, hex(zeroblob(3000)))")
    ready({"n": "0 0"})
    for n in range(1, 7):
        issue(n)
        db.execute("BEGIN")
        for name in ("main", "two"):
            db.execute(f"UPDATE {name}.t SET n = ?", (n,))
        db.execute("COMMIT")  # a super-journal names both journals, and each names it
        ack(n, {"n": f"{n} {n}"})

def recover(folder):
    db = open_both(folder)
    try:
        found = [db.execute(f"SELECT n FROM {name}.t").fetchone()[0] for name in ("main", "two")]
        whole = [db.execute(f"PRAGMA {name}.integrity_check").fetchone()[0] for name in ("main", "two")]
    except (sqlite3.Error, TypeError) as error:
        raise Refused(str(error))
    finally:
        db.close()
    return {"n": "%d %d" % tuple(found)}, [what for what in whole if what != "ok"]

load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)
"""


def target_file(folder: Path) -> Path:
    """Two databases that change in one transaction."""
    (folder / "store.py").write_text(PROGRAM, "utf-8")
    file = folder / "attached.toml"
    file.write_text(
        f"""
name = "attached"
fs = "ext4-ordered"
long_lived = true
[commands]
run = "{sys.executable} store.py load {{dir}}"
recover = "{sys.executable} store.py recover"
""",
        "utf-8",
    )
    return file


def test_what_a_file_says_of_its_folder_holds_in_every_image(
    tmp_path: Path, tornpage: Tornpage
) -> None:
    """SQLite's journals name a super-journal by its whole path: without it a hot journal is a stale one."""
    file = target_file(tmp_path)
    run = ("run", "powerloss", "--target", str(file), "--states", "400", "--depth")
    once = tornpage(*run, "1", "--jobs", "2")
    assert once.code == 0, once.text
    twice = tornpage(*run, "2", "--option", "fs=ext4-ordered")
    assert twice.code == 0, twice.text


@pytest.mark.extended
def test_elsewhere_the_same_store_looks_broken(tmp_path: Path, build: Path) -> None:
    """The control: the path is in the recording, and without it images of a right store are condemned."""
    from dataclasses import replace

    target = make_target(str(target_file(tmp_path)), build)
    spec = own_work(target)
    with recorded_run(spec, target, tmp_path) as recording:
        assert recording.at is not None and list(recording.at.iterdir()) == []
        limits = Limits(states=400)
        under = explore(spec, target, recording, limits)
        elsewhere = explore(spec, target, replace(recording, at=None), limits)
        assert list(recording.at.iterdir()) == []
    assert not under.broken and elsewhere.broken
