"""SQLite as a target: the driver that runs scripts on it, the reader of its images, and their common
schema. Driver and reader are programs of their own, started with `python -m`.
"""
