"""Targets that are a file: three commands and a promise."""
