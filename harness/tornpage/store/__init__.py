"""The result store, and with it all SQL of the package."""
