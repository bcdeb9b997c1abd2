"""The call stack of an operation, as functions and lines: of the target's own code, of its interpreter's too.

frames_of(trace, [seq, ...], folders) -> {seq: (Frame, ...)}, each from the innermost frame on
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from tornpage.evidence.symbols import symbols_of
from tornpage.faults.stacks import Call, CallStack, StackLog
from tornpage.vocabulary.evidence import Frame

__all__ = ["frame_text", "frames_of", "with_symbols"]

_PYTHON = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$', re.M)
"""What faulthandler says of a frame."""
_RUNTIME = re.compile(
    r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|c\+\+|asan|ubsan|tsan|aio|uring)|ld-[\w-]+|ld)([-.]\d[\d.]*)?\.so.*"
)
"""Libraries that are nobody's own code."""
_RUNTIME_SOURCE = re.compile(r"(/usr/include/|\.\./sysdeps/|/usr/lib/gcc/).*")
"""Functions of theirs that were inlined."""
_INTERPRETER = re.compile(r"(python|libpython)\d.*|.*\.cpython-.*\.so")
"""Modules whose frames an interpreter tells in its own words."""


def frames_of(
    trace: Path, seqs: Iterable[int], folders: Sequence[Path] = ()
) -> Mapping[int, tuple[Frame, ...]]:
    """The frames of these operations of a trace, by event number, from the innermost of the target's own code
    on; an operation without a stack is left out. folders: with debug files, as of symbols_of()."""
    log = StackLog.load(trace)
    stacks = {seq: stack for seq in seqs if log and (stack := log.of(seq)) is not None}
    named = symbols_of((call for stack in stacks.values() for call in stack.calls), folders)
    return {seq: _own(stack, named) for seq, stack in stacks.items()}


def with_symbols(frames: Iterable[Frame], folders: Sequence[Path]) -> tuple[Frame, ...]:
    """The same frames, named anew where nobody has known their function or line."""
    frames = tuple(frames)
    calls = {
        frame: Call(frame.module, frame.build_id, frame.offset)
        for frame in frames
        if frame.offset >= 0 and not frame.line
    }
    named = symbols_of(calls.values(), folders)
    found: list[Frame] = []
    for frame in frames:
        again = named.get(calls[frame], ()) if frame in calls else ()
        found += again if any(one.line for one in again) else (frame,)
    return tuple(dict.fromkeys(found))


def frame_text(frame: Frame) -> str:
    """As "fil_space_t::flush_low fil0fil.cc:512"; "mariadbd+0x51a2" where no symbol tells more."""
    function = frame.function.partition("(")[0] or frame.function
    place = f"{PurePath(frame.file).name}:{frame.line}" if frame.file else ""
    module = PurePath(frame.module).name
    if function:
        return f"{function} {place or module}"
    return place or f"{module or 'code of no file'}+{frame.offset:#x}"


def _own(stack: CallStack, named: Mapping[Call, tuple[Frame, ...]]) -> tuple[Frame, ...]:
    told = tuple(
        Frame(one["function"], one["file"], int(one["line"]))
        for one in _PYTHON.finditer(stack.text)
    )
    calls = stack.calls
    if told:
        inner = next((n for n, call in enumerate(calls) if _is_interpreter(call)), len(calls))
        calls = calls[:inner]
    frames = [frame for call in calls for frame in named[call]]
    return (*(one for one in frames if not _is_runtime(one)), *told)


def _is_interpreter(call: Call) -> bool:
    return _INTERPRETER.fullmatch(PurePath(call.module).name) is not None


def _is_runtime(frame: Frame) -> bool:
    return bool(
        _RUNTIME.fullmatch(PurePath(frame.module).name) or _RUNTIME_SOURCE.match(frame.file)
    )
