"""Where no wheel can be built, pip is told why; test_wheel.py has pip itself tell it."""

from __future__ import annotations

import pytest
from build_backend import WHEELS, refusal


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_wheels_are_built_where_they_run(processor: str) -> None:
    """On Linux with glibc."""
    assert refusal("Linux", processor, "glibc") == ""


@pytest.mark.parametrize(
    ("machine", "told"),
    [
        (("Linux", "x86_64", ""), "the C library here is not glibc"),
        (("Linux", "x86_64", "musl"), "the C library here is not glibc"),
        (("Linux", "riscv64", "glibc"), "this processor is riscv64"),
        (("Darwin", "arm64", ""), "this is Darwin"),
        (("Windows", "AMD64", ""), "this is Windows"),
    ],
)
def test_elsewhere_there_is_a_reason(machine: tuple[str, str, str], told: str) -> None:
    """And what to do."""
    said = refusal(*machine)
    assert said.startswith(told) and said.endswith(WHEELS)
    assert "make build" in WHEELS
