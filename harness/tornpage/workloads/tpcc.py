"""The workload "tpcc": the nine tables and the five transactions of TPC-C, scaled down to what a crash state
can hold. Money is in cents, dates count up; HISTORY has a number as primary key, which the specification
leaves out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from tornpage.workloads.script import Column, IndexDef, Script, Value, Verb
from tornpage.workloads.sessions import Key, Profile, Sessions

__all__ = ["TpccParams", "generate_tpcc"]

NAMES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")
"""Syllables of last names."""
ROLLED_BACK = 0.01
"""New orders that name an item that does not exist."""
LOST_ITEM = 999_999


def _text(name: str, length: int) -> Column:
    return Column(name, length, varying=True)


def _address(prefix: str) -> tuple[Column, ...]:
    texts = (("street_1", 20), ("street_2", 20), ("city", 20))
    return (
        *(_text(f"{prefix}_{name}", length) for name, length in texts),
        Column(f"{prefix}_state", 2),
        Column(f"{prefix}_zip", 9),
    )


TABLES: dict[str, tuple[tuple[Column, ...], tuple[str, ...]]] = {
    "warehouse": (
        (Column("w_id"), _text("w_name", 10), *_address("w"), Column("w_tax"), Column("w_ytd")),
        ("w_id",),
    ),
    "district": (
        (
            *(Column("d_w_id"), Column("d_id"), _text("d_name", 10), *_address("d")),
            *(Column("d_tax"), Column("d_ytd"), Column("d_next_o_id")),
        ),
        ("d_w_id", "d_id"),
    ),
    "customer": (
        (
            *(Column("c_w_id"), Column("c_d_id"), Column("c_id")),
            *(_text("c_first", 16), Column("c_middle", 2), _text("c_last", 16), *_address("c")),
            *(Column("c_phone", 16), Column("c_since"), Column("c_credit", 2)),
            *(Column("c_credit_lim"), Column("c_discount"), Column("c_balance")),
            *(Column("c_ytd_payment"), Column("c_payment_cnt"), Column("c_delivery_cnt")),
            _text("c_data", 500),
        ),
        ("c_w_id", "c_d_id", "c_id"),
    ),
    "history": (
        (
            *(Column("h_id"), Column("h_c_id"), Column("h_c_d_id"), Column("h_c_w_id")),
            *(Column("h_d_id"), Column("h_w_id"), Column("h_date"), Column("h_amount")),
            _text("h_data", 24),
        ),
        ("h_id",),
    ),
    "new_order": (
        (Column("no_w_id"), Column("no_d_id"), Column("no_o_id")),
        ("no_w_id", "no_d_id", "no_o_id"),
    ),
    "orders": (
        (
            *(Column("o_w_id"), Column("o_d_id"), Column("o_id"), Column("o_c_id")),
            *(Column("o_entry_d"), Column("o_carrier_id", nullable=True)),
            *(Column("o_ol_cnt"), Column("o_all_local")),
        ),
        ("o_w_id", "o_d_id", "o_id"),
    ),
    "order_line": (
        (
            *(Column("ol_w_id"), Column("ol_d_id"), Column("ol_o_id"), Column("ol_number")),
            *(Column("ol_i_id"), Column("ol_supply_w_id"), Column("ol_delivery_d", nullable=True)),
            *(Column("ol_quantity"), Column("ol_amount"), Column("ol_dist_info", 24)),
        ),
        ("ol_w_id", "ol_d_id", "ol_o_id", "ol_number"),
    ),
    "item": (
        (
            Column("i_id"),
            Column("i_im_id"),
            _text("i_name", 24),
            Column("i_price"),
            _text("i_data", 50),
        ),
        ("i_id",),
    ),
    "stock": (
        (
            *(Column("s_w_id"), Column("s_i_id"), Column("s_quantity"), Column("s_dist_01", 24)),
            *(Column("s_ytd"), Column("s_order_cnt"), Column("s_remote_cnt"), _text("s_data", 50)),
        ),
        ("s_w_id", "s_i_id"),
    ),
}
INDEXES = {
    "customer": IndexDef(
        "idx_customer", (("c_w_id", 0), ("c_d_id", 0), ("c_last", 16), ("c_first", 16))
    ),
    "orders": IndexDef("idx_orders", (("o_w_id", 0), ("o_d_id", 0), ("o_c_id", 0), ("o_id", 0))),
}
"""The two secondary indexes of every implementation."""


class TpccParams(BaseModel):
    """The tables and transactions of TPC-C; the two indexes are built during the work."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    warehouses: int = Field(default=2, ge=1, le=20)
    """Scales everything."""
    districts: int = Field(default=2, ge=1, le=10)
    """Per warehouse; 10 in the specification."""
    customers: int = Field(default=8, ge=2, le=3000)
    """Per district; 3,000 in the specification."""
    items: int = Field(default=30, ge=5, le=100_000)
    """100,000 in the specification."""
    transactions: int = Field(default=80, ge=1, le=1_000_000)
    """Over all rounds; the indexes are dropped and built between two rounds."""
    clients: int = Field(default=3, ge=1, le=20)
    """Most transactions open at once."""


def generate_tpcc(params: TpccParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    sessions = Sessions(rng)
    shop = _Shop(params, sessions)
    for table, (columns, primary) in TABLES.items():
        sessions.create(table, columns, primary)
    sessions.run({shop.load: 1.0}, 1, 1)
    profiles: dict[Profile, float] = {
        shop.new_order: 45,
        shop.payment: 43,
        shop.order_status: 4,
        shop.delivery: 4,
        shop.stock_level: 4,
    }

    def between() -> None:
        table = rng.choice(list(INDEXES))
        if rng.random() < 0.3:
            sessions.add(Verb.REBUILD_TABLE, table=table)
        sessions.toggle_index(table, INDEXES[table])

    sessions.rounds(profiles, params.clients, params.transactions, between)
    return sessions.script()


class _Shop:
    """The transactions, in the order of their statements."""

    def __init__(self, params: TpccParams, sessions: Sessions) -> None:
        self._params = params
        self._sessions = sessions
        self._rng = sessions.rng
        self._history = 0
        self._date = 0

    # -- values -----------------------------------------------------------------------------------

    def _letters(self, least: int, most: int) -> bytes:
        letters = self._rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=self._rng.randint(least, most))
        return bytes(letters)

    def _now(self) -> int:
        self._date += 1
        return self._date

    def _warehouse(self) -> int:
        return self._rng.randint(1, self._params.warehouses)

    def _district(self) -> int:
        return self._rng.randint(1, self._params.districts)

    def _uneven(self, most: int) -> int:
        """Some numbers are drawn far more often than others (NURand)."""
        return ((self._rng.randrange(256) | self._rng.randint(1, most)) % most) + 1

    def _address(self, prefix: str) -> dict[str, Value]:
        lines = ("street_1", "street_2", "city")
        return {
            **{f"{prefix}_{name}": self._letters(10, 20) for name in lines},
            f"{prefix}_state": self._letters(2, 2),
            f"{prefix}_zip": b"%04d11111" % self._rng.randrange(10_000),
        }

    # -- transactions -----------------------------------------------------------------------------

    def load(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """The rows that are there at the beginning."""
        for item in range(1, self._params.items + 1):
            row: dict[str, Value] = {
                "i_id": item,
                "i_im_id": self._rng.randint(1, 10_000),
                "i_name": self._letters(14, 24),
                "i_price": self._rng.randint(100, 10_000),
                "i_data": self._letters(26, 50),
            }
            yield sessions.insert(trx, "item", row)
        for warehouse in range(1, self._params.warehouses + 1):
            yield from self._load_warehouse(sessions, trx, warehouse)

    def _load_warehouse(self, sessions: Sessions, trx: str, warehouse: int) -> Iterator[bool]:
        row: dict[str, Value] = {
            "w_id": warehouse,
            "w_name": self._letters(6, 10),
            **self._address("w"),
            "w_tax": self._rng.randrange(2001),
            "w_ytd": 30_000_000,
        }
        yield sessions.insert(trx, "warehouse", row)
        for item in range(1, self._params.items + 1):
            stock: dict[str, Value] = {
                "s_w_id": warehouse,
                "s_i_id": item,
                "s_quantity": self._rng.randint(10, 100),
                "s_dist_01": self._letters(24, 24),
                "s_data": self._letters(26, 50),
            }
            yield sessions.insert(trx, "stock", stock)
        for district in range(1, self._params.districts + 1):
            yield from self._load_district(sessions, trx, warehouse, district)

    def _load_district(
        self, sessions: Sessions, trx: str, warehouse: int, district: int
    ) -> Iterator[bool]:
        row: dict[str, Value] = {
            "d_w_id": warehouse,
            "d_id": district,
            "d_name": self._letters(6, 10),
            **self._address("d"),
            "d_tax": self._rng.randrange(2001),
            "d_ytd": 3_000_000,
            "d_next_o_id": 1,
        }
        yield sessions.insert(trx, "district", row)
        for customer in range(1, self._params.customers + 1):
            yield sessions.insert(trx, "customer", self._customer(warehouse, district, customer))

    def _customer(self, warehouse: int, district: int, customer: int) -> dict[str, Value]:
        digits = f"{self._uneven(1000) - 1:03d}"
        return {
            "c_w_id": warehouse,
            "c_d_id": district,
            "c_id": customer,
            "c_first": self._letters(8, 16),
            "c_middle": b"OE",
            "c_last": "".join(NAMES[int(digit)] for digit in digits).encode(),
            **self._address("c"),
            "c_phone": b"%016d" % self._rng.randrange(10**16),
            "c_since": self._now(),
            "c_credit": b"BC" if self._rng.random() < 0.1 else b"GC",
            "c_credit_lim": 5_000_000,
            "c_discount": self._rng.randrange(5001),
            "c_balance": -1000,
            "c_ytd_payment": 1000,
            "c_payment_cnt": 1,
            "c_data": self._letters(300, 500),
        }

    def new_order(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """An order of 5 to 15 lines; one in a hundred is rolled back."""
        warehouse, district = self._warehouse(), self._district()
        place = (warehouse, district)
        order = _number(sessions, "district", place, "d_next_o_id")
        yield sessions.update(trx, "district", place, {"d_next_o_id": order + 1})
        lines = self._rng.randint(5, 15)
        values: dict[str, Value] = {
            "o_w_id": warehouse,
            "o_d_id": district,
            "o_id": order,
            "o_c_id": self._uneven(self._params.customers),
            "o_entry_d": self._now(),
            "o_carrier_id": None,
            "o_ol_cnt": lines,
            "o_all_local": 1,
        }
        yield sessions.insert(trx, "orders", values)
        placed: dict[str, Value] = {"no_w_id": warehouse, "no_d_id": district, "no_o_id": order}
        yield sessions.insert(trx, "new_order", placed)
        lost = self._rng.random() < ROLLED_BACK
        for line in range(1, lines + 1):
            if lost and line == lines:
                yield sessions.select("item", (LOST_ITEM,))
                yield False
            yield from self._order_line(sessions, trx, (warehouse, district, order, line))

    def _order_line(self, sessions: Sessions, trx: str, key: Key) -> Iterator[bool]:
        item = self._uneven(self._params.items)
        supply = self._warehouse()
        quantity = self._rng.randint(1, 10)
        stock = _number(sessions, "stock", (supply, item), "s_quantity")
        ytd = _number(sessions, "stock", (supply, item), "s_ytd")
        left = stock - quantity if stock - quantity >= 10 else stock - quantity + 91
        yield sessions.update(
            trx, "stock", (supply, item), {"s_quantity": left, "s_ytd": ytd + quantity}
        )
        values: dict[str, Value] = {
            **dict(zip(TABLES["order_line"][1], key, strict=True)),
            "ol_i_id": item,
            "ol_supply_w_id": supply,
            "ol_delivery_d": None,
            "ol_quantity": quantity,
            "ol_amount": quantity * _number(sessions, "item", (item,), "i_price"),
            "ol_dist_info": self._letters(24, 24),
        }
        yield sessions.insert(trx, "order_line", values)

    def payment(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """Warehouse, district and customer get an amount; a customer of bad credit a longer record."""
        warehouse, district = self._warehouse(), self._district()
        customer = (warehouse, district, self._uneven(self._params.customers))
        amount = self._rng.randint(100, 500_000)
        paid = _number(sessions, "warehouse", (warehouse,), "w_ytd") + amount
        yield sessions.update(trx, "warehouse", (warehouse,), {"w_ytd": paid})
        paid = _number(sessions, "district", (warehouse, district), "d_ytd") + amount
        yield sessions.update(trx, "district", (warehouse, district), {"d_ytd": paid})
        row = sessions.row("customer", customer) or {}
        values: dict[str, Value] = {
            "c_balance": _number(sessions, "customer", customer, "c_balance") - amount,
            "c_payment_cnt": _number(sessions, "customer", customer, "c_payment_cnt") + 1,
        }
        old = row.get("c_data")
        if row.get("c_credit") == b"BC" and isinstance(old, bytes):
            values["c_data"] = (b"%d %d %d|" % (*customer[1:], amount) + old)[:500]
        yield sessions.update(trx, "customer", customer, values)
        self._history += 1
        history: dict[str, Value] = {
            "h_id": self._history,
            "h_c_id": customer[2],
            "h_c_d_id": district,
            "h_c_w_id": warehouse,
            "h_d_id": district,
            "h_w_id": warehouse,
            "h_date": self._now(),
            "h_amount": amount,
            "h_data": self._letters(12, 24),
        }
        yield sessions.insert(trx, "history", history)

    def order_status(self, sessions: Sessions, trx: str) -> Iterator[bool]:  # noqa: ARG002 - reads
        """The last order of a customer, read."""
        orders = sessions.keys("orders")
        if orders:
            yield sessions.select("orders", self._rng.choice(orders))

    def delivery(self, sessions: Sessions, trx: str) -> Iterator[bool]:
        """The oldest new order of each district is delivered."""
        warehouse = self._warehouse()
        for district in range(1, self._params.districts + 1):
            waiting = [
                key for key in sessions.keys("new_order") if key[:2] == (warehouse, district)
            ]
            if not waiting:
                continue
            key = min(waiting, key=lambda one: int(one[2] or 0))
            yield sessions.delete(trx, "new_order", key)
            carrier = {"o_carrier_id": self._rng.randint(1, 10)}
            yield sessions.update(trx, "orders", key, carrier)
            for line in [line for line in sessions.keys("order_line") if line[:3] == key]:
                yield sessions.update(trx, "order_line", line, {"ol_delivery_d": self._now()})

    def stock_level(self, sessions: Sessions, trx: str) -> Iterator[bool]:  # noqa: ARG002 - reads
        """Stock of items, read."""
        for _ in range(3):
            yield sessions.select("stock", (self._warehouse(), self._uneven(self._params.items)))


def _number(sessions: Sessions, table: str, key: Key, column: str) -> int:
    row = sessions.row(table, key)
    value = row.get(column, 0) if row else 0
    return value if isinstance(value, int) else 0
