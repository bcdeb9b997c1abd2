"""Files with holes cost what is in them."""

from __future__ import annotations

import random
import resource
from pathlib import Path

from tornpage.faults.sparse import SparseFile, data_ranges

LARGE = 16 << 30


def test_what_was_written_is_there(tmp_path: Path) -> None:
    """Writes, cuts, growth and zeros in any order give the bytes of a file that was treated alike."""
    drawn = random.Random(5)
    content, plain, path = SparseFile(), bytearray(), tmp_path / "f"
    for _ in range(300):
        at, length = drawn.randrange(200_000), drawn.randrange(90_000)
        match drawn.randrange(4):
            case 0:
                content.resize(at)
                plain = (plain[:at] + bytes(at))[:at]
            case 1:
                content.zero(at, at + length)
                n = max(0, min(at + length, len(plain)) - at)
                plain[at : at + n] = bytes(n)
            case _:
                data = drawn.randbytes(length)
                content.write(at, data)
                if data:
                    plain += bytes(max(0, at - len(plain)))
                    plain[at : at + length] = data
        path.write_bytes(plain)
        found = SparseFile.read(path)
        assert (content.size, content.difference(found)) == (len(plain), None)


def test_the_difference_is_first_and_last() -> None:
    """Also against a hole."""
    one, other = SparseFile(), SparseFile()
    one.write(100, b"abc")
    other.write(100, b"abc")
    one.resize(1 << 20)
    other.write((1 << 20) - 1, b"\0")
    assert one.difference(other) is None
    other.write(101, b"x")
    one.write(900_000, b"y")
    assert one.difference(other) == (101, 900_000)


def test_a_large_file_costs_what_is_in_it(tmp_path: Path) -> None:
    """16 GB with a byte at the end."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.seek(LARGE - 1)
        file.write(b"x")
        file.flush()
        assert sum(end - start for start, end in data_ranges(file.fileno())) < 1 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    content = SparseFile.read(path)
    assert content.size == LARGE
    content.zero(0, LARGE)
    content.resize(2 * LARGE)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
