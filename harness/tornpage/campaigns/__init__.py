"""Running things: campaigns and the trials drawn from them, the census, one trial, power loss, and the
runners that spread them over processes and put verdicts into the store.

May import: faults, oracle, reports, store, targets, vocabulary, workloads.
"""
