"""Scripts of clients as SQL."""

from __future__ import annotations

import pytest

from tornpage.lab.sql import sql_of
from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.parse import parse_script
from tornpage.workloads.workload import generate

SCRIPT = """create table t a:bigint b:varchar(9) null c:char(4) primary a
begin s
insert s t a=1 b=null c="it\\x27s"
update s t a=1 set b="x" c="y"
commit s
clean 4
select t a=1
add unique index t ib(b:3,a)
drop index t ib
delete - t a=1
rebuild table t
"""
SQL = """create table t (a bigint not null default 0, b varchar(9), c char(4) not null default x'', \
primary key (a)) engine=innodb;
begin;
insert into t (a, b, c) values (1, null, x'69742773');
update t set b = x'78', c = x'79' where a = 1;
commit;
select * from t where a = 1;
alter table t add unique index ib (b(3), a);
alter table t drop index ib;
delete from t where a = 1;
alter table t force;
"""


def test_each_statement_of_a_client() -> None:
    """Values are bytes; what only the engine needs is left out."""
    assert sql_of(parse_script(SCRIPT), "engine=innodb") == SQL


@pytest.mark.parametrize("name", ["linkbench", "tpcc"])
def test_the_benchmarks_of_one_client(name: str) -> None:
    """All that they say has SQL."""
    script = generate(name, {"transactions": 50, "clients": 1}, 1)
    text = sql_of(script)
    assert text.count("begin;") == text.count("commit;") + text.count("rollback;") > 50


def test_what_no_client_says() -> None:
    """It is refused."""
    with pytest.raises(WorkloadError, match="flush log: there is no SQL"):
        sql_of(parse_script("flush log\n"))
