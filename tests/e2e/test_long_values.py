"""Rows of any size and long values, changed in every way a script knows: the engine comes to what the
oracle says, and nothing is left over."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.oracle.state import plain_tables
from tornpage.workloads.parse import parse_script

SCRIPT = """\
create table t a:bigint b:varchar(9000) null c:varchar(4000) d:bigint null primary a
insert - t a=1 b="xyz."*8000 c="cc"*3000
insert - t a=2 b="q1"*3000 c="small"
insert - t a=3 c="only"*1990
insert - t a=4 b="zz"*5000
add index t ib(b:20,d)
begin T1
update T1 t a=1 b_to_c
insert T1 t a=5 b="fifth"*7000
delete T1 t a=4
rollback T1
start rebuild t lock=none
step index t 1 2
begin T2
update T2 t a=1 set b="new"*7000
update T2 t a=2 set d=5
insert T2 t a=9 b="ninth"*6000
delete T2 t a=4
rollback T2
update - t a=2 set c="cc"*3500
update - t a=3 set b="bb"*4100
delete - t a=4
insert - t a=4 c="again"*2500
step index t 5 2
update - t a=1 set b=null
purge all
finish index t
add unique index t ub(b:20) lock=none
rebuild table t algorithm=copy
update - t a=2 set b="e"*8000
delete - t a=3
""".replace("b_to_c", 'set b="new"*7000 c="n"*2500')


@pytest.mark.parametrize("options", [[], ["log_format=10.5"], ["page_size=16k"]])
@pytest.mark.parametrize("end", ["", "purge all\n"])
def test_the_engine_comes_to_what_the_oracle_says(
    build: Path, tmp_path: Path, options: list[str], end: str
) -> None:
    """Each statement succeeds, the digests agree, and no page is lost or has two owners."""
    oracle = Oracle(parse_script(SCRIPT + end))
    assert not [step for step in oracle.steps if step.error]
    engine = build / "engine" / "engine"
    sets = [word for option in options for word in ("--option", option)]
    done = subprocess.run(
        [engine, "run", "--json", *sets, tmp_path / "db", "-"],
        input=SCRIPT.encode("ascii") + end.encode("ascii"),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert not json.loads(done.stdout.splitlines()[-1])["failed"]
    checked = subprocess.run(
        [engine, "check", "--json", tmp_path / "db"], capture_output=True, timeout=60, check=True
    )
    report = json.loads(checked.stdout.splitlines()[-1])
    assert not report["findings"]
    assert report["tables"] == plain_tables(oracle.states[-1])
