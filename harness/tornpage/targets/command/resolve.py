"""Where modules of Python and shared libraries are: a program that runs as the commands of a target file do.

    python -P resolve.py FOLDER MODULES LIBRARIES

FOLDER: that of the target file; MODULES, LIBRARIES: lists in JSON. Prints an object: each name with its
file, null if it has none. Modules are loaded first if there are libraries: a library that they bring is the
one that is meant by its name.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

RTLD_DI_LINKMAP = 2


class _LinkMap(ctypes.Structure):
    """The beginning of struct link_map of <link.h>."""

    _fields_ = (("addr", ctypes.c_void_p), ("name", ctypes.c_char_p))


def _module(name: str) -> str | None:
    found = importlib.util.find_spec(name)
    return found.origin if found is not None and found.has_location else None


def _library(name: str) -> str | None:
    """As the loader tells where it has found it: dlinfo(3)."""
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    found = ctypes.POINTER(_LinkMap)()
    dlinfo = ctypes.CDLL(None).dlinfo
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    if dlinfo(library._handle, RTLD_DI_LINKMAP, ctypes.byref(found)) != 0:
        return None
    return os.fsdecode(found.contents.name)


def main(argv: Sequence[str]) -> None:
    """The program; argv without its name."""
    sys.path.insert(0, argv[0])
    modules = {name: _module(name) for name in json.loads(argv[1])}
    libraries = json.loads(argv[2])
    for name in (name for name, place in modules.items() if libraries and place is not None):
        importlib.import_module(name)
    print(json.dumps({**modules, **{name: _library(name) for name in libraries}}))


if __name__ == "__main__":
    main(sys.argv[1:])
