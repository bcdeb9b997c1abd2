"""How Alembic reaches the store: over a connection, and in a transaction, of whoever opens it.

May import: schema.
"""

from alembic import context

from tornpage.store.schema import TABLES

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=TABLES,
    transactional_ddl=False,
)
context.run_migrations()
