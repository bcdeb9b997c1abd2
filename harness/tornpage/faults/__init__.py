"""Faults in a program, and its recording: fault plans and where they strike, child processes, the trace that
the preload writes, crashed images.
"""
