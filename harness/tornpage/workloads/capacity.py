"""How many rows fill a page, from docs/FORMAT.md alone: page size and record size give the numbers of
rows at which a tree gets another page or another level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tornpage.workloads.script import Column, IndexDef

__all__ = ["Tree", "clustered_tree", "edges", "secondary_tree"]

Tree = tuple[int, int]
"""Size of a leaf record, length of the key."""

PAGE_OVERHEAD = 92
"""Page header and trailer of an index page."""
SLOT = 2
INFO = 1
CHILD = 4
SYSTEM_COLUMNS = 13
"""DB_TRX_ID and DB_ROLL_PTR."""
BIGINT = 8


def clustered_tree(columns: Iterable[Column], primary: Iterable[str]) -> Tree | None:
    """The tree of a table's rows; None if these have sizes of their own."""
    columns = tuple(columns)
    if any(column.varying or column.nullable for column in columns):
        return None
    sizes = _sizes(columns)
    return INFO + SYSTEM_COLUMNS + sum(sizes.values()), sum(sizes[name] for name in primary)


def secondary_tree(index: IndexDef, columns: Iterable[Column], primary: Iterable[str]) -> Tree:
    """The tree of a secondary index, whose key is all that it has."""
    columns = tuple(columns)
    sizes = _sizes(columns)
    nullable = {column.name for column in columns if column.nullable}
    key = sum((length or sizes[name]) + (name in nullable) for name, length in index.columns)
    key += sum(sizes[name] for name in primary)
    return INFO + key, key


def edges(tree: Tree, page_size: int, most: int) -> list[int]:
    """Numbers of rows, ascending and at most `most`, with which full pages hold all: of 1 to 3 leaves, of
    1 or 2 full pages on each level above, and of one leaf less or more than these."""
    record, key = tree
    leaf = _capacity(page_size, record)
    node = _capacity(page_size, INFO + key + CHILD)
    found = {leaf, 2 * leaf, 3 * leaf}
    full = leaf * node
    while full <= most:
        found |= {full - leaf, full, full + leaf, 2 * full}
        full *= node
    return sorted(rows for rows in found if 0 < rows <= most)


def _capacity(page_size: int, record: int) -> int:
    return (page_size - PAGE_OVERHEAD) // (record + SLOT)


def _sizes(columns: Iterable[Column]) -> Mapping[str, int]:
    return {column.name: column.length or BIGINT for column in columns}
