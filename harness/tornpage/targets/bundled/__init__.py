"""Stores that nobody here wrote, ready to be tortured: a target file each, and the programs of its commands.

May import: vocabulary.
"""
