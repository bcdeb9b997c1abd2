"""docs/FORMAT.md, "A worked example": its bytes and its command output are the engine's own.

The example is built again from the script in the document. When a format changes on purpose, correct the
document by what the failures here say.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tornpage.vocabulary.paths import ROOT

FORMAT = ROOT / "docs" / "FORMAT.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"(\S+)\+0x([0-9a-f]+): ((?:[0-9a-f]{2} )*[0-9a-f]{2})(?: +(.+))?")
DEADLINE_S = 60


@dataclass(frozen=True, slots=True)
class Quote:
    """One line of a `bytes` block."""

    file: str
    offset: int
    data: bytes
    comment: str

    def __str__(self) -> str:
        return f"{self.file}+0x{self.offset:x}: {self.data.hex(' ')}"


def fences(kind: str) -> list[str]:
    """Contents of the document's fenced blocks of one kind, in order."""
    text = FORMAT.read_text(encoding="utf-8")
    return [body for name, body in FENCE.findall(text) if name == kind]


def quotes(block: str) -> list[Quote]:
    """The lines of a `bytes` block; each must have the form that can be checked."""
    found = []
    for line in block.splitlines():
        match = LINE.fullmatch(line)
        assert match, f"not 'file+0xOFFSET: bytes  comment': {line}"
        file, offset, data, comment = match.groups()
        found.append(Quote(file, int(offset, 16), bytes.fromhex(data), comment or ""))
    return found


def all_quotes() -> list[Quote]:
    """Every quoted line of the document."""
    found = [quote for block in fences("bytes") for quote in quotes(block)]
    assert len(found) >= 40
    return found


def crc32c(data: bytes) -> int:
    """CRC-32C, bit by bit: independent of the engine's table or instruction."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def engine(build: Path, *args: str, cwd: Path) -> str:
    """Standard output of the engine program, which must succeed."""
    program = build / "engine" / "engine"
    done = subprocess.run(
        [program, *args], cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, f"engine {' '.join(args)}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the document's script as example.txt and the database db that it makes."""
    path = tmp_path_factory.mktemp("format")
    (script,) = fences("script")
    (path / "example.txt").write_text(script, encoding="ascii")
    engine(build, "run", "db", "example.txt", cwd=path)
    return path


def test_quoted_bytes_are_in_the_files(folder: Path) -> None:
    """Each quoted line is exactly what the rebuilt database has at that place."""
    wrong = []
    for quote in all_quotes():
        data = (folder / "db" / quote.file).read_bytes()
        real = data[quote.offset : quote.offset + len(quote.data)]
        if real != quote.data:
            wrong.append(f"{quote}  is now  {real.hex(' ')}")
    assert wrong == []


def test_quoted_values_are_those_of_the_bytes() -> None:
    """A comment `= N` is the bytes as one big-endian number, and a comment "text" is the bytes as text."""
    wrong = []
    n_checked = 0
    for quote in all_quotes():
        number = re.match(r"= (\d+)\b", quote.comment)
        text = re.fullmatch(r'"(.+)"', quote.comment)
        if number:
            n_checked += 1
            if int(number[1]) != int.from_bytes(quote.data, "big"):
                wrong.append(f"{quote}  is not {number[1]}")
        elif text:
            n_checked += 1
            if text[1].encode("ascii") != quote.data:
                wrong.append(f"{quote}  is not {quote.comment}")
    assert wrong == []
    assert n_checked >= 30


def test_a_block_leaves_no_byte_out() -> None:
    """Inside a block every line begins where the one before it ended."""
    for block in fences("bytes"):
        lines = quotes(block)
        for before, after in itertools.pairwise(lines):
            place = (before.file, before.offset + len(before.data))
            assert (after.file, after.offset) == place, f"gap before {after}"


def test_checksums_follow_the_document(folder: Path) -> None:
    """Page: CRC-32C of the bytes 4 to P - 9, twice. Log block, slot and header: of the bytes 0 to 507."""
    assert crc32c(b"123456789").to_bytes(4, "big").hex(" ") == "e3 06 92 83"
    page = (folder / "db" / "t.ibd").read_bytes()[4096:8192]
    checksum = crc32c(page[4:-8]).to_bytes(4, "big")
    assert page[:4] == checksum
    assert page[-8:-4] == checksum
    log = (folder / "db" / "ib_logfile0").read_bytes()
    for start in (0, 512, 1536, 0x1000, 0x1200):
        block = log[start : start + 512]
        assert crc32c(block[:508]).to_bytes(4, "big") == block[508:], f"block at {start}"


def test_quoted_output_is_what_the_program_prints(build: Path, folder: Path) -> None:
    """What stands below a command in the document is a run of whole lines of its output."""
    blocks = fences("console")
    assert len(blocks) >= 4
    for block in blocks:
        command, *shown = block.splitlines()
        assert command.startswith("$ engine ") and shown, command
        printed = engine(build, *command.split()[2:], cwd=folder).splitlines()
        starts = range(len(printed) - len(shown) + 1)
        assert any(printed[i : i + len(shown)] == shown for i in starts), (
            f"{command} prints now\n" + "\n".join(printed)
        )


def test_the_example_is_complete(build: Path, folder: Path) -> None:
    """The database holds what the script says and no violation: the example is no damaged one."""
    copy = folder / "copy"
    shutil.copytree(folder / "db", copy)
    assert "0 findings" in engine(build, "check", "copy", cwd=folder)
