"""What is done to a program, and what is seen of it: fault plans and where they strike, child processes,
the trace that the preload writes, crashed images.
"""
