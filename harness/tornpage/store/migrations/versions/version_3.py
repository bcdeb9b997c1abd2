"""From version 2 to 3: nights; bugs, which are found in the violations that are there. Those of censuses,
JSON in a column until then, have a table of their own.

May import: bugs, codec, migrate, model, schema.
"""

from pathlib import Path

from alembic import op
from sqlalchemy import select, text

from tornpage.store import schema
from tornpage.store.bugs import Where, assign_bugs, violation_rows
from tornpage.store.migrate import statements
from tornpage.vocabulary.codec import from_json
from tornpage.vocabulary.model import Outcome, TrialResult, Violation

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Tables first; the runs in their order, since the first one to see a bug found it."""
    for statement in statements(Path(__file__).with_name("from_2.sql").read_text("utf-8")):
        op.execute(text(statement))
    for run in (
        op.get_bind().execute(select(schema.run.c.id).order_by(schema.run.c.id)).scalars().all()
    ):
        _assign_of_censuses(run)
        _assign_of_trials(run)
    op.drop_column("census", "violations")


def _assign_of_censuses(run: int) -> None:
    db = op.get_bind()
    query = text("select config, violations from census where run = :run order by config")
    for config, written in db.execute(query, {"run": run}).all():
        violations = from_json(tuple[Violation, ...], written)
        bugs = assign_bugs(db, Where(run, None, config), violations)
        rows = violation_rows({"run": run, "config": config}, violations, bugs)
        if rows:
            db.execute(schema.census_violation.insert(), rows)


def _assign_of_trials(run: int) -> None:
    db = op.get_bind()
    table, broken = schema.trial, schema.violation
    query = (
        select(table.c.number, table.c.config, table.c.result)
        .where(table.c.run == run, table.c.outcome == Outcome.VIOLATION.value)
        .order_by(table.c.number)
    )
    for number, config, written in db.execute(query).all():
        result = from_json(TrialResult, written)
        where = Where(run, number, config, result.alike)
        for position, bug in enumerate(assign_bugs(db, where, result.violations)):
            db.execute(
                broken.update()
                .where(broken.c.run == run, broken.c.trial == number, broken.c.position == position)
                .values(bug=bug)
            )
