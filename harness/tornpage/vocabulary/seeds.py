"""Derivation of seeds: one number of the user's makes every other one, by name."""

from __future__ import annotations

import random

import xxhash

__all__ = ["derive_seed", "make_rng"]


def derive_seed(seed: int, *labels: str | int) -> int:
    """A 63-bit seed that depends on `seed` and the labels, and on nothing else."""
    text = "\0".join([str(seed), *(str(label) for label in labels)])
    return xxhash.xxh64_intdigest(text.encode()) >> 1


def make_rng(seed: int, *labels: str | int) -> random.Random:
    """A generator of its own, seeded by derive_seed()."""
    return random.Random(derive_seed(seed, *labels))
