"""Crash states of a recorded run: explored whole or in slices; one broken state of each kind is replayed."""
