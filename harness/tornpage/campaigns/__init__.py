"""Runs whole campaigns: one, those of a night, all of a target; replays what they found."""
