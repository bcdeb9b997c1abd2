"""Crash states of a recorded run: explored, whole or in slices; each kind of broken state played again."""
