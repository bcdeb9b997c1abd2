"""Smaller scripts and smaller crashes with the same finding.

May import: everything from campaigns downwards.
"""
