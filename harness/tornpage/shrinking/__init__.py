"""Smaller scripts and smaller crashes with the same finding.

May import: campaigns, faults, oracle, store, targets, vocabulary, workloads.
"""
