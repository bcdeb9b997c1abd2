"""What recovery says of the indexes of a PostgreSQL cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from private_postgresql import PROGRAMS

from tornpage.targets.bundled import postgresql

pytestmark = pytest.mark.skipif(not PROGRAMS.exists(), reason="no PostgreSQL")
PAGE_BYTES = 8192
FILL = "INSERT INTO t SELECT i, i * 31 % 97 FROM generate_series(1, 3000) i"


@pytest.fixture
def cluster(tmp_path: Path) -> tuple[Path, Path]:
    """With a table that has an index, all of it in its files; and the file of the index."""
    data = tmp_path / "data"
    data.mkdir()
    postgresql.prepare(PROGRAMS, data)
    with postgresql.backend(PROGRAMS, data, []) as server:
        server.ask("CREATE TABLE t (id int, a int)")
        server.ask("CREATE INDEX ta ON t (a)")
        server.ask(FILL)
        server.ask("CHECKPOINT")
        (index,) = server.ask("SELECT pg_relation_filepath('ta')")
    return data, data / index


def test_sound_indexes_are_clean(cluster: tuple[Path, Path]) -> None:
    """With the rows of the table as its state, its columns and its indexes."""
    state, findings = postgresql.recover(PROGRAMS, cluster[0], [])
    assert state["t"].startswith("3000 rows ") and findings == []
    assert state["t definition"] == (
        "id integer false, a integer false; CREATE INDEX ta ON public.t USING btree (a)"
    )


def test_a_damaged_index_is_found(cluster: tuple[Path, Path]) -> None:
    """Though a scan of the table gives every row."""
    data, index = cluster
    size = index.stat().st_size
    with index.open("r+b") as file:
        file.seek(PAGE_BYTES)
        file.write(b"\xee" * (size - PAGE_BYTES))
    state, findings = postgresql.recover(PROGRAMS, data, [])
    assert state["t"].startswith("3000 rows ")
    assert [finding["invariant"] for finding in findings] == [10]
    assert "invalid page in block" in findings[0]["what"]


def test_a_row_that_an_index_has_lost_is_found(cluster: tuple[Path, Path]) -> None:
    """Though each of its pages is right: the index is as it was before the table grew."""
    data, index = cluster
    before = index.read_bytes()
    with postgresql.backend(PROGRAMS, data, []) as server:
        server.ask("INSERT INTO t VALUES (9000, 50)")
        server.ask("CHECKPOINT")
    index.write_bytes(before)
    _, findings = postgresql.recover(PROGRAMS, data, [])
    assert [finding["invariant"] for finding in findings] == [10]
    assert "lacks matching index tuple" in findings[0]["what"]


def test_nothing_lies_beside_the_folder(cluster: tuple[Path, Path]) -> None:
    """Workers that recover theirs under the same path, each in its own namespace, share what is beside it."""
    data = cluster[0]
    with postgresql.backend(PROGRAMS, data, []):
        assert [*data.parent.iterdir()] == [data]
