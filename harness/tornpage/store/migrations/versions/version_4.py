"""From version 3 to 4: the tables stay; the version is kept by Alembic."""

from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """The old place of the version goes, so that an older Tornpage refuses the store."""
    op.drop_table("schema_version")
