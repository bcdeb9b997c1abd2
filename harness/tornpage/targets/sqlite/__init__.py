"""The driver that runs scripts on SQLite, behind bundled/sqlite.toml: a program of its own, started with
`python -m`.
"""
