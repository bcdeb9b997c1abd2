"""What must hold: the model that judges a recovered state, the trace invariants, and which
findings are the same bug. Shares nothing with any target.
"""
