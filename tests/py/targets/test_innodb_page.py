"""A page of MariaDB: what is right is read, whatever form it has; what is torn is not."""

from __future__ import annotations

import random
import struct
import zlib

import pytest
from innodb_pages import SIZE, classic, full_crc32, page, with_crc32

from tornpage.targets.innodb.page import UNREAD, Checksum, Page, read_page


def test_a_torn_page_has_a_wrong_checksum() -> None:
    """Whichever sector is missing."""
    right = page(5, 9, 77, fill=bytes(range(256)) * 14)
    assert read_page(right).checksum is Checksum.FULL_CRC32
    assert (read_page(right).space, read_page(right).number, read_page(right).lsn) == (5, 9, 77)
    for sector in range(8):
        torn = right[: sector * 512] + bytes(512) + right[sector * 512 + 512 :]
        assert not read_page(torn).whole
    assert read_page(bytes(SIZE)).checksum is Checksum.ZERO


def test_checksums_of_before_are_known() -> None:
    """crc32 of 10.2, and none."""
    data = bytearray(with_crc32(page(5, 9, 77, fill=b"row")))
    assert read_page(bytes(data)).checksum is Checksum.CRC32
    struct.pack_into(">I", data, 0, 0xDEADBEEF)
    struct.pack_into(">I", data, SIZE - 8, 0xDEADBEEF)
    assert read_page(bytes(data)).checksum is Checksum.NONE


PLAIN = page(5, 9, 77, fill=random.Random(1).randbytes(1800))
"""Half of it does not compress: the compressed page has several sectors."""
FORMS = {
    "full_crc32": (PLAIN, full_crc32(PLAIN, zlib.compress(PLAIN))),
    "classic": (with_crc32(PLAIN), classic(PLAIN, zlib.compress(with_crc32(PLAIN)))),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_compressed_page_is_read(form: str) -> None:
    """As the one that it stands for. Torn in what it has it is wrong; behind that nothing matters."""
    plain, compressed = FORMS[form]
    assert read_page(compressed) == read_page(plain)
    assert read_page(compressed).whole
    assert read_page(compressed[:-1] + b"x").whole
    for sector in range(-(-len(compressed.rstrip(b"\0")) // 512)):
        torn = compressed[: sector * 512] + bytes(512) + compressed[sector * 512 + 512 :]
        assert not read_page(torn).whole
    assert not read_page(compressed[:100] + b"?" + compressed[101:]).whole


def test_a_page_that_only_the_server_reads() -> None:
    """Is told from a torn one as far as it has a checksum, or another algorithm than zlib."""
    payload = b"by another algorithm"
    unread = full_crc32(PLAIN, payload)
    found = read_page(unread)
    assert found == Page(found.space, 9, 77, UNREAD, Checksum.FULL_CRC32)
    assert not read_page(unread[:50] + b"?" + unread[51:]).whole
    assert read_page(classic(PLAIN, payload, 2)).type == UNREAD
    assert not read_page(classic(PLAIN, payload, 1)).whole
