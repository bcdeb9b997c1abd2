"""Targets that are a file: three commands and a promise.

May import: faults, oracle, targets, targets.innodb, vocabulary.
"""
