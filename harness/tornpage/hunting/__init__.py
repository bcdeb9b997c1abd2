"""A search that learns which scripts show something new."""
