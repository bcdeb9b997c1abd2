"""How Alembic reaches the store: over a connection, and in a transaction, of whoever opens it."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transactional_ddl=False,
)
context.run_migrations()
