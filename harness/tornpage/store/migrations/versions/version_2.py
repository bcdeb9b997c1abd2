"""From version 1 to 2: the contents of torn writes, kept in the JSON of the results until then, are blobs."""

import base64
import json
from pathlib import Path

from alembic import op
from sqlalchemy import text

from tornpage.store.migrate import statements

revision = "2"
down_revision = None

_TORN = text("select run, number, result from trial where json_extract(result, '$.torn.new') != ''")
_ADD_CONTENTS = text(
    "insert into contents (run, number, old, new) values (:run, :number, :old, :new)"
)
_SET_RESULT = text("update trial set result = :result where run = :run and number = :number")


def upgrade() -> None:
    """Tables first."""
    for statement in statements(Path(__file__).with_name("from_1.sql").read_text("utf-8")):
        op.execute(text(statement))
    db = op.get_bind()
    for run, number, written in db.execute(_TORN).all():
        trial = {"run": run, "number": number}
        result = json.loads(written)
        torn = result["torn"]
        both = {name: _decoded(torn[name]) for name in ("old", "new")}
        result["torn"] = {**torn, "old": "", "new": ""}
        db.execute(_ADD_CONTENTS, {**trial, **both})
        db.execute(_SET_RESULT, {**trial, "result": json.dumps(result)})


def _decoded(text: str) -> bytes:
    """Base64 in either alphabet."""
    return base64.b64decode(text.translate(str.maketrans("-_", "+/")))
