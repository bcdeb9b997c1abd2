"""The workload "churn": what moves the structures that the workload "smoke" hardly touches.

Wide keys give trees of three levels from few rows; phases that grow and shrink them split, merge, raise and
lower; transactions change one row again and again, bring back what they deleted and fill several undo
pages; two names are created, renamed and dropped in turn while the log still has all of it.

May import: script.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

from tornpage.workloads.script import Column, IndexDef, Script, Statement, Value, Verb

__all__ = ["ChurnParams", "generate_churn"]

TABLE = "w"
KEY_BYTES = 200
VALUE_BYTES = 120
NAMES = ("n1", "n2")


class ChurnParams(BaseModel):
    """Rounds of growing and shrinking one table of wide keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rounds: int = Field(default=2, ge=1, le=1000)
    rows: int = Field(default=120, ge=16, le=100_000)
    """Rows of the table when it is at its largest."""
    bursts: int = Field(default=6, ge=0, le=1000)
    """File operations on the two names, per round."""


class _Churn:
    """One script in the making. rows: live keys; files: which of NAMES exist."""

    def __init__(self, params: ChurnParams, rng: random.Random) -> None:
        self.params = params
        self.rng = rng
        self.out: list[Statement] = []
        self.rows: set[int] = set()
        self.files: set[str] = set()
        self.serial = 0

    def add(self, verb: Verb, **fields: object) -> None:
        self.out.append(Statement(0, verb, **fields))  # type: ignore[arg-type]

    def value(self) -> bytes:
        """Never the same twice; long or short."""
        self.serial += 1
        word = f"v{self.serial:05d}".encode()
        return word.ljust(self.rng.choice((0, 60, VALUE_BYTES)), b"x")

    def transaction(self, work: Callable[[str], None], commit: bool) -> None:
        """Runs `work` in a transaction; a rollback brings the live keys back."""
        before = set(self.rows)
        self.serial += 1
        trx = f"T{self.serial}"
        self.add(Verb.BEGIN, trx=trx)
        work(trx)
        self.add(Verb.COMMIT if commit else Verb.ROLLBACK, trx=trx)
        if not commit:
            self.rows = before

    def insert(self, trx: str, key: int) -> None:
        self.add(Verb.INSERT, trx=trx, table=TABLE, values={**_key(key), "v": self.value()})
        self.rows.add(key)

    def update(self, trx: str, key: int) -> None:
        self.add(Verb.UPDATE, trx=trx, table=TABLE, key=_key(key), values={"v": self.value()})

    def delete(self, trx: str, key: int) -> None:
        self.add(Verb.DELETE, trx=trx, table=TABLE, key=_key(key))
        self.rows.discard(key)

    def some(self, count: int) -> list[int]:
        """So many live keys, or all there are."""
        live = sorted(self.rows)
        return self.rng.sample(live, min(count, len(live)))

    # -- phases ---------------------------------------------------------------------------------

    def grow(self) -> None:
        """Splits and raises; half of the rows in transactions of several undo pages."""
        wanted = [key for key in range(self.params.rows) if key not in self.rows]
        self.rng.shuffle(wanted)
        half = len(wanted) // 2
        for key in wanted[:half]:
            self.insert("-", key)
        self.add(Verb.CLEAN, number=6)

        def rest(trx: str) -> None:
            for key in wanted[half:]:
                self.insert(trx, key)

        self.transaction(rest, commit=False)
        self.transaction(rest, commit=True)

    def rewrite(self) -> None:
        """Many updates in one transaction, and rows that one transaction changes again and again."""

        def many(trx: str) -> None:
            for key in self.some(self.params.rows // 3):
                self.update(trx, key)

        def again(trx: str) -> None:
            for key in self.some(6):
                self.update(trx, key)
                self.delete(trx, key)
                self.insert(trx, key)
                self.update(trx, key)

        for work in (many, again):
            for commit in (False, True):
                self.transaction(work, commit)
                self.add(Verb.CLEAN, number=4)

    def revive(self) -> None:
        """Rows that were deleted, not yet purged, and come back; some go again."""
        for key in self.some(8):
            self.delete("-", key)
            if self.rng.random() < 0.5:
                self.insert("-", key)
            else:
                back = self.rng.random() < 0.5
                self.transaction(lambda trx, key=key: self.insert(trx, key), commit=back)  # type: ignore[misc]

    def shrink(self) -> None:
        """Merges and lowers, while purge takes the pages away."""
        gone = self.some(len(self.rows) - 4)
        for number, key in enumerate(gone):
            self.delete("-", key)
            if number % 16 == 15:
                self.add(Verb.PURGE, number=self.rng.choice((8, 24, -1)))
            if number % 40 == 39:
                self.add(Verb.CLEAN, number=6)
        self.add(Verb.PURGE, number=-1)

    def name_burst(self) -> None:
        """Names come and go, and come back for another table."""
        for _ in range(self.params.bursts):
            free = sorted(set(NAMES) - self.files)
            if free and (not self.files or self.rng.random() < 0.5):
                self.create(self.rng.choice(free))
            elif free and self.rng.random() < 0.6:
                (name,) = self.files
                self.add(Verb.RENAME_TABLE, table=name, name=free[0])
                self.files = {free[0]}
            else:
                name = self.rng.choice(sorted(self.files))
                self.add(Verb.DROP_TABLE, table=name)
                self.files.discard(name)

    def create(self, name: str) -> None:
        columns = (Column("k"), Column("v", 40))
        self.add(Verb.CREATE_TABLE, table=name, columns=columns, primary=("k",))
        self.files.add(name)
        for key in range(1, 4):
            self.add(Verb.INSERT, trx="-", table=name, values={"k": key, "v": self.value()[:40]})
        self.add(Verb.CLEAN, number=6)


def _key(number: int) -> dict[str, Value]:
    return {"k": f"{number:05d}".encode().ljust(KEY_BYTES, b"k")}


def generate_churn(params: ChurnParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    churn = _Churn(params, rng)
    columns = (Column("k", KEY_BYTES), Column("v", VALUE_BYTES))
    churn.add(Verb.CREATE_TABLE, table=TABLE, columns=columns, primary=("k",))
    for number in range(params.rounds):
        churn.grow()
        churn.add(Verb.ADD_INDEX, table=TABLE, indexes=(IndexDef(f"iv{number}", (("v", 0),)),))
        churn.rewrite()
        churn.name_burst()
        churn.revive()
        churn.shrink()
        churn.name_burst()
        churn.revive()
    return Script.of(churn.out)
