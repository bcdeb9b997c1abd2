"""The result database, and with it all SQL of the package."""
