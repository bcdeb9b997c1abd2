"""The `tornpage` command and what a person sees of it in the terminal.

May import: campaigns, faults, lab, reports, shrinking, store, targets, targets.command, vocabulary.
"""
