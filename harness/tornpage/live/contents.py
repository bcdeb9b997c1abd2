"""The contents that a golden run recorded, for killed runs that are recorded without.

A killed run that equals its golden run in every record, hashes included, wrote what the golden run wrote:
recording, reading and comparing that again would be most of a trial. What is wanted of its contents is told
here.
"""

from __future__ import annotations

import struct

import xxhash

from tornpage.faults.trace import HEADER_SIZE, Event, Trace

__all__ = ["KnownContents"]

STEP_BYTES = 1 << 18
"""Distance of the places up to which the hash of the golden run is at hand."""


class KnownContents:
    """What a run wrote; bare: its trace without that."""

    __slots__ = ("_bare_starts", "_hashes", "_starts", "_whole", "bare")

    def __init__(self, whole: Trace) -> None:
        """whole: of the golden run, with contents if its target is judged by them."""
        self.bare = whole.without_contents()
        self._bare_starts = self.bare.starts()
        self._whole = whole
        self._starts = whole.starts()
        self._hashes = _hashes_of(whole)

    def bare_start(self, seq: int) -> int | None:
        """Where the trace without contents has an event; None: it has none of this number."""
        return self._bare_starts[seq - 1] if 0 < seq <= len(self._bare_starts) else None

    def covers(self, trace: Trace, end: int) -> bool:
        """Whether the records of a trace without contents, up to byte `end`, are the first of the golden
        run."""
        return self.bare.begins_with(memoryview(trace.data)[HEADER_SIZE:end])

    def hash(self, trace: Trace, hit: Event) -> str:
        """Trace.hash() of fill()."""
        end = self._end(hit)
        step = (end - HEADER_SIZE) // STEP_BYTES
        digest = self._hashes[step].copy()
        digest.update(memoryview(self._whole.data)[HEADER_SIZE + step * STEP_BYTES : end])
        digest.update(memoryview(trace.data)[hit.at :])
        return digest.hexdigest()

    def fill(self, trace: Trace, hit: Event) -> bytes:
        """The trace that the same run gives when contents are asked for: covers() it up to its last record,
        which is `hit`."""
        header = bytearray(trace.data[:HEADER_SIZE])
        records = self._whole.data[HEADER_SIZE : self._end(hit)] + trace.data[hit.at :]
        struct.pack_into("<Q", header, 8, HEADER_SIZE + len(records))
        return bytes(header) + records

    def _end(self, hit: Event) -> int:
        """Where the golden run has what was hit: there its part of a trace ends."""
        seq = hit.seq
        return self._starts[seq - 1] if seq <= len(self._starts) else len(self._whole.data)


def _hashes_of(trace: Trace) -> list[xxhash.xxh3_64]:
    """The state of the hash before each step, and behind the last one that is whole."""
    body, digest = trace.body, xxhash.xxh3_64()
    hashes = [digest.copy()]
    for at in range(STEP_BYTES, len(body) + 1, STEP_BYTES):
        digest.update(body[at - STEP_BYTES : at])
        hashes.append(digest.copy())
    return hashes
