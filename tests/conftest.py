"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from forked import forked_workers


def pytest_configure() -> None:
    """What a shell leaves in the background ignores SIGINT, and what nohup starts SIGHUP, and so would what
    tests start from there: they send both."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="module", autouse=True)
def workers() -> Iterator[None]:
    """Of campaigns inside of this process."""
    with forked_workers():
        yield
