"""A statement of several clauses in the making, and its place in the book."""

from __future__ import annotations

from dataclasses import dataclass, field

from tornpage.workloads.book import Book, other_name
from tornpage.workloads.script import Column, IndexDef, Lock, Statement, Verb
from tornpage.workloads.shapes import Shape
from tornpage.workloads.table import Table

__all__ = ["Plan", "combine"]


@dataclass(slots=True)
class Plan:
    """The clauses of a statement, and what they make of a table. shape, kept: of it afterwards, but for the
    new indexes; added: these, as they are called before it; rebuilds: it becomes a new table."""

    shape: Shape
    kept: list[str]
    clauses: list[Statement] = field(default_factory=list)
    added: list[IndexDef] = field(default_factory=list)
    rebuilds: bool = False

    @classmethod
    def of(cls, table: Table) -> Plan:
        """None yet."""
        return cls(table.shape, list(table.indexes))

    def drop_index(self, name: str) -> None:
        """An index goes."""
        self.kept.remove(name)
        self.clauses.append(Statement(0, Verb.DROP_INDEX, name=name))

    def rename_index(self, name: str) -> None:
        """Another name for an index that stays, or the one that it had before."""
        new = other_name(name)
        self.kept[self.kept.index(name)] = new
        self.shape = self.shape.rename_index(name, new)
        self.clauses.append(Statement(0, Verb.RENAME_INDEX, name=name, to=new))

    def rename_column(self, name: str) -> None:
        """The same for a column."""
        new = other_name(name)
        self.shape = self.shape.rename_column(name, new)
        self.clauses.append(Statement(0, Verb.RENAME_COLUMN, name=name, to=new))

    def force(self) -> None:
        """The table is built anew."""
        self.rebuilds = True
        self.clauses.append(Statement(0, Verb.REBUILD_TABLE))

    def add_column(self, column: Column, at: int) -> None:
        """A column comes to this place; its values are those that nobody has given."""
        before = self.shape.columns[at - 1].name if at else ""
        self.shape, self.rebuilds = self.shape.add_column(column, at), True
        to = f"after={before}" if at else "first"
        self.clauses.append(Statement(0, Verb.ADD_COLUMN, columns=(column,), to=to))

    def drop_column(self, name: str) -> None:
        """A column goes that no index is about."""
        self.shape, self.rebuilds = self.shape.drop_column(name), True
        self.clauses.append(Statement(0, Verb.DROP_COLUMN, name=name))

    def add_index(self, index: IndexDef) -> None:
        """An index comes that nobody renames; its columns are called what they will be."""
        self.added.append(index)
        (renamed,) = (one for one in self.shape.indexes if one.name == index.name)
        self.clauses.append(Statement(0, Verb.ADD_INDEX, indexes=(renamed,)))


def combine(
    book: Book, table: Table, plan: Plan, in_steps: bool = False, lock: Lock = Lock.DEFAULT
) -> None:
    """The statement, or its beginning, once no transaction has changed the table."""
    book.release(table)
    verb = Verb.START_ALTER if in_steps else Verb.ALTER_TABLE
    book.alter(verb, table, clauses=tuple(plan.clauses), lock=lock)
    table.kept, table.new_shape = plan.kept, plan.shape
    if in_steps:
        table.build = tuple(plan.added)
        if lock is Lock.NONE:
            table.changes = book.watch(table, () if plan.rebuilds else plan.added)
        return
    if not table.has_duplicates(plan.added):
        table.become(plan.added)
    table.kept, table.new_shape = None, None
