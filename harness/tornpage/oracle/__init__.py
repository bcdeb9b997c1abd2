"""What must be true: the model that a recovered state is judged by, the trace invariants, and which
findings are the same bug. Shares nothing with any target.
"""
