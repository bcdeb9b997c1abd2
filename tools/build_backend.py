"""What builds a wheel: scikit-build-core, on a machine that a wheel of Tornpage can be for. pip comes here
where no wheel fits: it is told why there is none, in place of a compiler's errors or of a wheel that does not
run.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

from scikit_build_core import build
from scikit_build_core.build import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

PROCESSORS = ("x86_64", "aarch64")
WHEELS = (
    "Tornpage's wheels are for Linux with glibc 2.34 or newer, on x86-64 and arm64. On such a machine a "
    "checkout builds it: make build"
)


def refusal(system: str, processor: str, library: str) -> str:
    """Why no wheel can be built on this machine, "" if one can. library: the C library's name, as of
    platform.libc_ver(), which knows glibc."""
    if system != "Linux":
        return f"this is {system or 'an unknown system'}. {WHEELS}"
    if processor not in PROCESSORS:
        return f"this processor is {processor or 'unknown'}. {WHEELS}"
    if library != "glibc":
        return f"the C library here is not glibc, which its recorder is written against. {WHEELS}"
    return ""


def get_requires_for_build_wheel(*given: Any) -> list[str]:
    """As of PEP 517: the first that pip asks."""
    _refuse()
    return build.get_requires_for_build_wheel(*given)


def get_requires_for_build_editable(*given: Any) -> list[str]:
    """As of PEP 660."""
    _refuse()
    return build.get_requires_for_build_editable(*given)


def build_wheel(*given: Any) -> str:
    """As of PEP 517. What the machine lacks is told by CMake; what to do, after it."""
    _refuse()
    try:
        return build.build_wheel(*given)
    except SystemExit:
        print(f"The programs were not built. {WHEELS}", file=sys.stderr)
        raise


def build_editable(*given: Any) -> str:
    """As of PEP 660."""
    _refuse()
    return build.build_editable(*given)


def _refuse() -> None:
    reason = refusal(platform.system(), platform.machine(), platform.libc_ver()[0])
    if reason:
        raise SystemExit(f"tornpage: {reason}")
