"""Runs of a target as processes: undisturbed ones with their census, those that a fault kills, their
recoveries, and the verdict on them.
"""
