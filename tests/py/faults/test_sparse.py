"""Files with holes cost what is in them."""

from __future__ import annotations

import random
import subprocess
import sys
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


USE = """
import sys
from pathlib import Path
from tornpage.faults.sparse import SparseFile

def peak_kb():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)

before, size = peak_kb(), int(sys.argv[2])
content = SparseFile.read(Path(sys.argv[1]))
assert content.size == size
content.zero(0, size)
content.resize(2 * size)
print(peak_kb() - before)
"""
"""What is done to a large file, by a process that has done nothing else; it prints its need in KiB."""


def test_a_large_file_costs_what_is_in_it(tmp_path: Path) -> None:
    """16 GB with a byte at the end."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.seek(LARGE - 1)
        file.write(b"x")
        file.flush()
        assert sum(end - start for start, end in data_ranges(file.fileno())) < 1 << 20
    done = subprocess.run(
        [sys.executable, "-c", USE, str(path), str(LARGE)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 << 10
