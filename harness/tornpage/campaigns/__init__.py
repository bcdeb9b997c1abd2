"""Running things: campaigns and the trials drawn from them, the census, one trial, power loss, and the
runners that spread them over processes and put verdicts into the store.
"""
