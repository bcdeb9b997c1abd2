"""What all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from forked import forked_workers

from tornpage.vocabulary.paths import tmpfs_folder

FOLDERS_BYTES = 4 << 30
"""More than the folders of all tests have at a time."""


def pytest_configure() -> None:
    """Folders of tests are on tmpfs, if it may hold programs and has the room: on a disk, stores and result
    databases spend most of their time in its fsyncs. What a shell leaves in the background ignores SIGINT,
    and what nohup starts SIGHUP, and so would what tests start from there: they send both."""
    folder = tmpfs_folder()
    found = os.statvfs(folder)
    roomy = found.f_bavail * found.f_frsize >= FOLDERS_BYTES
    if roomy and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="module", autouse=True)
def workers() -> Iterator[None]:
    """Of campaigns inside of this process."""
    with forked_workers():
        yield
