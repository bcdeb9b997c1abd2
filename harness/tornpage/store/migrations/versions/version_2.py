"""From version 1 to 2: the contents of torn writes, kept in the JSON of the results until then, are blobs.

May import: codec, migrate, model, schema.
"""

from dataclasses import replace
from pathlib import Path

from alembic import op
from sqlalchemy import text

from tornpage.store import schema
from tornpage.store.migrate import statements
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.model import TrialResult

revision = "2"
down_revision = None


def upgrade() -> None:
    """Tables first."""
    for statement in statements(Path(__file__).with_name("from_1.sql").read_text("utf-8")):
        op.execute(text(statement))
    db = op.get_bind()
    rows = db.execute(
        text("select run, number, result from trial where json_extract(result, '$.torn.new') != ''")
    ).all()
    for run, number, written in rows:
        result = from_json(TrialResult, written)
        torn = result.torn
        assert torn is not None, "the query says so"
        db.execute(
            schema.contents.insert().values(run=run, number=number, old=torn.old, new=torn.new)
        )
        bare = replace(result, torn=replace(torn, old=b"", new=b""))
        db.execute(
            schema.trial.update()
            .where(schema.trial.c.run == run, schema.trial.c.number == number)
            .values(result=to_json(bare))
        )
