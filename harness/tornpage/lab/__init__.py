"""The harness put to the test: planted bugs and the hunts for them, the base line of random kills, fio's
judgement of the fault layer, and the doctor.

May import: campaigns, faults, oracle, reports, store, targets, targets.command, targets.engine, vocabulary,
workloads.
"""
