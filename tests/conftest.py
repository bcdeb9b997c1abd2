"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forked import forked_workers


@pytest.fixture(scope="module", autouse=True)
def workers() -> Iterator[None]:
    """Of campaigns inside of this process."""
    with forked_workers():
        yield
