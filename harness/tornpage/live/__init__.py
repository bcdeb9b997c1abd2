"""Runs of a target as processes: fault-free ones with their golden run, those that a fault kills, their
recoveries, and the verdict on them.
"""
