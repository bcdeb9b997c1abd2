"""What the tables of generated scripts look like."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tornpage.workloads.script import Column, IndexDef, Value, row_size

__all__ = [
    "LARGE",
    "LIST",
    "LONG",
    "LONGER",
    "LONG_PAGE_MAX",
    "MANY",
    "MIRRORED",
    "NEW_COLUMNS",
    "SHAPES",
    "SMALL",
    "UNIQUE",
    "UNIQUE_PREFIX",
    "VARYING",
    "WIDE",
    "Shape",
]

UNIQUE_PREFIX = 4
"""Bytes of a serial value that its prefix index compares."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table looks like. indexes: those that it may get; floor: smallest key that a generator uses;
    mirror: a BIGINT column that has the negative of the primary key, so that it can take its place;
    negated: it has; serial: a column whose values differ, but for those that are to collide. Unique
    indexes are on that, or end with the primary key. share: tables of larger rows have the share-th part of
    the rows."""

    columns: tuple[Column, ...]
    primary: str
    indexes: tuple[IndexDef, ...]
    floor: int = -10_000
    serial: str = ""
    share: int = 1
    mirror: str = ""
    negated: bool = False

    @property
    def wide_key(self) -> int:
        """Bytes of a CHAR primary key; 0 for BIGINT."""
        return next(column.length for column in self.columns if column.name == self.primary)

    @property
    def in_sequence(self) -> bool:
        """May rows be nothing but consecutive keys?"""
        return not (self.wide_key or self.serial or self.mirror)

    @property
    def varies(self) -> bool:
        """Have records sizes of their own?"""
        return any(c.nullable or c.varying for c in self.columns if c.name != self.primary)

    @property
    def row_size(self) -> int:
        """Bytes of a row."""
        return row_size(self.columns)

    def key(self, number: int) -> dict[str, Value]:
        """The primary key of this number, in the order of the numbers."""
        if not self.wide_key:
            return {self.primary: -number if self.negated else number}
        return {self.primary: f"{number:05d}".encode().ljust(self.wide_key, b"k")}

    def mirrored(self, number: int) -> dict[str, Value]:
        """What the row of this key has in its mirror."""
        return {self.mirror: number if self.negated else -number} if self.mirror else {}

    def swapped_keys(self) -> Shape:
        """The same with the mirror for its primary key."""
        return replace(self, primary=self.mirror, mirror=self.primary, negated=not self.negated)

    def rename_column(self, name: str, new: str) -> Shape:
        """The same with another name for a column."""

        def called(item: str) -> str:
            return new if item == name else item

        return replace(
            self,
            columns=tuple(replace(column, name=called(column.name)) for column in self.columns),
            primary=called(self.primary),
            serial=called(self.serial),
            mirror=called(self.mirror),
            indexes=tuple(
                replace(index, columns=tuple((called(item), cut) for item, cut in index.columns))
                for index in self.indexes
            ),
        )

    def resize_column(self, name: str, length: int) -> Shape:
        """The same with another length of a VARCHAR."""
        columns = (replace(c, length=length) if c.name == name else c for c in self.columns)
        return replace(self, columns=tuple(columns))

    def add_column(self, column: Column, at: int) -> Shape:
        """The same with one more column in this place."""
        return replace(self, columns=(*self.columns[:at], column, *self.columns[at:]))

    def drop_column(self, name: str) -> Shape:
        """The same without a column."""
        return replace(self, columns=tuple(c for c in self.columns if c.name != name))

    def free_columns(self) -> list[str]:
        """The columns that no key, index or collision is about: they may go."""
        used = {self.primary, self.serial, self.mirror}
        used.update(name for index in self.indexes for name, _ in index.columns)
        return [column.name for column in self.columns if column.name not in used]

    def rename_index(self, name: str, new: str) -> Shape:
        """The same with another name for an index."""
        return replace(
            self,
            indexes=tuple(
                replace(index, name=new) if index.name == name else index for index in self.indexes
            ),
        )


def _indexes(*names: tuple[str, str, int]) -> tuple[IndexDef, ...]:
    return tuple(IndexDef(name, ((column, length),)) for name, column, length in names)


LARGE = Shape(
    (Column("a"), *(Column(name, 255) for name in "bcdefgh")),
    "a",
    _indexes(
        ("ib", "b", 0),
        ("ic", "c", 0),
        ("id", "d", 0),
        ("ie", "e", 10),
        ("if", "f", 4),
        ("ig", "g", 5),
        ("ih", "h", 5),
    ),
    share=4,
)
"""Two rows of seven texts fill a page of 4k."""
SMALL = Shape(
    (Column("k"), Column("v", 40), Column("w")), "k", _indexes(("sv", "v", 0), ("sw", "w", 0))
)
WIDE = Shape(
    (Column("k", 200), Column("v", 120), Column("u", 250)),
    "k",
    (*_indexes(("iv", "v", 0), ("ip", "v", 30)), IndexDef("iw", (("u", 0), ("v", 0)))),
    floor=0,
    share=2,
)
"""Wide keys give three levels from few rows, and several pages above the leaves."""
LIST = Shape(
    (Column("k"), Column("v", 200), Column("w"), Column("x", 30)),
    "k",
    (
        *_indexes(("lv", "v", 0), ("lw", "w", 0), ("lp", "v", 5)),
        IndexDef("lx", (("x", 0), ("w", 0))),
    ),
)
"""Rows of middle size; its indexes have from one to three levels."""
UNIQUE = Shape(
    (Column("k"), Column("s", 24), Column("v", 60), Column("w")),
    "k",
    (
        IndexDef("us", (("s", 0),), unique=True),
        IndexDef("up", (("s", UNIQUE_PREFIX),), unique=True),
        IndexDef("uk", (("v", 5), ("k", 0)), unique=True),
        *_indexes(("uv", "v", 0), ("un", "w", 0)),
    ),
    serial="s",
)
"""Rows that may be each other's duplicates, but for `uk`, which ends with the primary key."""
NEW_COLUMNS = (
    Column("", nullable=True),
    Column(""),
    Column("", 12),
    Column("", 30, varying=True),
    Column("", 600, varying=True, nullable=True),
)
"""Columns that a table gets, but for their names."""
VARYING = Shape(
    (
        Column("k"),
        Column("b", 700, varying=True, nullable=True),
        Column("c", 300, varying=True),
        Column("d", nullable=True),
        Column("e", 12, nullable=True),
        Column("s", 24, varying=True, nullable=True),
        Column("f", 600, varying=True),
    ),
    "k",
    (
        *_indexes(("vb", "b", 30), ("vc", "c", 12), ("vd", "d", 0)),
        IndexDef("vf", (("f", 5), ("e", 0))),
        IndexDef("vw", (("s", 0), ("d", 0))),
        IndexDef("vs", (("s", 0),), unique=True),
        IndexDef("vp", (("s", UNIQUE_PREFIX),), unique=True),
        IndexDef("vk", (("d", 0), ("k", 0)), unique=True),
    ),
    serial="s",
    share=2,
)
"""Rows from 30 bytes to nearly half a page of 4k, which grow and shrink; NULL in keys."""
LONG = Shape(
    (
        Column("k"),
        Column("b", 9000, varying=True, nullable=True),
        Column("c", 4200, varying=True),
        Column("d", nullable=True),
        Column("e", 60, varying=True),
    ),
    "k",
    (
        *_indexes(("ob", "b", 40), ("oc", "c", 12), ("od", "d", 0)),
        IndexDef("oe", (("e", 10), ("b", 5))),
    ),
    share=6,
)
"""Rows whose texts have pages of their own, some or none of them."""
LONGER = replace(
    LONG,
    columns=(
        Column("k"),
        *(Column(name, 16_000, varying=True, nullable=name == "b") for name in "bcf"),
        Column("d", nullable=True),
        Column("e", 60, varying=True),
    ),
)
"""The same for pages of more than LONG_PAGE_MAX bytes: all texts of a row of LONG fit in half of such a page,
and would never leave it."""
LONG_PAGE_MAX = 16_384
MIRRORED = Shape(
    (
        Column("k"),
        Column("r"),
        Column("v", 60),
        Column("w"),
        Column("f", 400, varying=True, nullable=True),
    ),
    "k",
    (
        *_indexes(("rv", "v", 0), ("rf", "f", 20)),
        IndexDef("ru", (("w", 0), ("v", 9), ("k", 0)), unique=True),
        IndexDef("rk", (("r", 0), ("w", 0))),
    ),
    mirror="r",
)
"""Rows that have two keys, of opposite order."""
SHAPES = (LARGE, SMALL, WIDE, LIST, UNIQUE, VARYING, VARYING, LONG, LONG, MIRRORED)
MANY = Shape(
    WIDE.columns,
    "k",
    tuple(
        IndexDef(f"m{number}", columns)
        for number, columns in enumerate(
            [(("u", cut), ("v", 0)) for cut in (0, *range(1, 20))]
            + [(("v", cut), ("u", 0)) for cut in (0, *range(1, 20))]
        )
    ),
    floor=0,
    share=8,
)
"""40 indexes: more than what a small sort buffer has room for at a time."""
