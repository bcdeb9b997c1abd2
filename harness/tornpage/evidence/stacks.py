"""The call stack of an operation, as functions and lines: of the target's own code, of its interpreter's too.

frames_of(trace, [seq, ...], folders) -> {seq: (Frame, ...)}, each from the innermost frame on
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from tornpage.evidence.symbols import require_symbolizer, symbols_of
from tornpage.evidence.timeline import recorded_steps
from tornpage.faults.stacks import Call, CallStack, StackLog
from tornpage.faults.trace import Trace
from tornpage.vocabulary.evidence import Evidence, Fate, Frame, Phase, Step, unwrapped

__all__ = ["FULL", "frames_of", "named_anew", "stack_frames", "timed", "with_calls", "with_stacks"]

FRAMES_KEPT = 16
"""Of an operation, the innermost."""
FULL = "the log of call stacks was full, so later operations have none"
_NOT_SYNCED = (Fate.KEPT, Fate.TORN, Fate.LOST, Fate.GONE, Fate.ACCUSED)

_PYTHON = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$', re.M)
"""What faulthandler says of a frame."""
_RUNTIME = re.compile(
    r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|c\+\+|asan|ubsan|tsan|aio|uring)|ld-[\w-]+|ld)([-.]\d[\d.]*)?\.so.*"
)
"""Libraries that are nobody's own code."""
_START = "_start"
"""Where every program begins."""
_RUNTIME_SOURCE = re.compile(r"(/usr/include/|\.\./sysdeps/|/usr/lib/gcc/).*")
"""Functions of theirs that were inlined."""
_INTERPRETER = re.compile(r"(python|libpython)\d.*|.*\.cpython-.*\.so")
"""Modules whose frames an interpreter tells in its own words."""


def frames_of(
    trace: Path,
    seqs: Iterable[int],
    folders: Sequence[Path] = (),
    *,
    wrappers: Sequence[str] = (),
) -> Mapping[int, tuple[Frame, ...]]:
    """The frames of these operations of a trace, by event number, from the innermost of the target's own code
    on; an operation without a stack is left out. folders: with debug files, as of symbols_of(); wrappers:
    patterns of functions and files whose frames are left out before the first other one."""
    log = StackLog.load(trace)
    return stack_frames({seq: log.of(seq) for seq in seqs} if log else {}, folders, wrappers)


def stack_frames(
    taken: Mapping[int, CallStack | None], folders: Sequence[Path], wrappers: Sequence[str]
) -> Mapping[int, tuple[Frame, ...]]:
    """The frames of these stacks, by the same numbers; otherwise as frames_of()."""
    stacks = {number: stack for number, stack in taken.items() if stack is not None}
    named = symbols_of((call for stack in stacks.values() for call in stack.calls), folders)
    own = {seq: _own(stack, named) for seq, stack in stacks.items()}
    return {seq: unwrapped(frames, wrappers) for seq, frames in own.items()}


def with_stacks(phase: Phase, trace: Path) -> Phase:
    """The same with the frames and times of its operations and what these say, if `trace`, which it was told
    from, has stacks."""
    log = StackLog.load(trace)
    if log is None:
        return phase
    told = _with_frames(phase, stack_frames({s.seq: log.of(s.seq) for s in phase.steps}, (), ()))
    early = _begun_early(phase, trace, log)
    steps = (replace(step, sync=early.get(step.seq, "")) for step in told.steps)
    how = f"{told.how}; {FULL}" if log.is_full else told.how
    return replace(told, how=how, steps=timed(steps, log), around=timed(told.around, log))


def timed(steps: Iterable[Step], log: StackLog) -> tuple[Step, ...]:
    """The same with the times of their calls."""
    times = ((step, log.times(step.seq)) for step in steps)
    return tuple(replace(step, start_ns=start, end_ns=end) for step, (start, end) in times)


def _begun_early(phase: Phase, trace: Path, log: StackLog) -> dict[int, str]:
    """Of each write that no sync has made durable, the first sync of its file that ended behind it and had
    begun before it ended, which need not cover it; in words."""
    waiting = [step for step in phase.steps if step.length and step.fate in _NOT_SYNCED]
    if not waiting:
        return {}
    steps = recorded_steps(Trace.load(trace))
    syncs = [step for step in steps if step.op in ("fsync", "fdatasync")]
    found: dict[int, str] = {}
    for step in waiting:
        ended = log.times(step.seq)[1]
        for sync in syncs:
            began = log.times(sync.seq)[0]
            if sync.seq > step.seq and sync.path == step.path and 0 < began < ended:
                us = f"{(ended - began) / 1000:,.0f} us"
                found.setdefault(step.seq, f"{sync.op} {sync.seq} began {us} before this ended")
    return found


def with_calls(
    phase: Phase,
    program: Path,
    calls: Mapping[int, Sequence[int]],
    folders: Sequence[Path] = (),
) -> Phase:
    """The same of a recovery inside of a program. calls: that made each operation, by its number, as
    addresses in the file of the program, the innermost first; folders: with debug files."""
    stacks: dict[int, CallStack | None] = {
        seq: CallStack(tuple(Call(str(program), "", at) for at in made))
        for seq, made in calls.items()
    }
    return _with_frames(phase, stack_frames(stacks, folders, ()))


def _with_frames(phase: Phase, frames: Mapping[int, tuple[Frame, ...]]) -> Phase:
    steps = (
        replace(step, stack=found[:FRAMES_KEPT]) if (found := frames.get(step.seq)) else step
        for step in phase.steps
    )
    return replace(phase, steps=tuple(steps))


def named_anew(evidence: Evidence, folders: Sequence[Path]) -> Evidence:
    """The same with functions and lines that these folders with debug files tell, and nothing told then.
    ConfigError if nothing here can read them."""
    require_symbolizer()
    frames = {frame for phase in evidence.phases for step in phase.steps for frame in step.stack}
    unknown = (_call_of(frame) for frame in frames if frame.offset >= 0 and not frame.line)
    named = symbols_of(unknown, folders)
    phases = []
    for phase in evidence.phases:
        steps = (replace(step, stack=_anew(step.stack, named)) for step in phase.steps)
        phases.append(replace(phase, steps=tuple(steps)))
    return replace(evidence, phases=tuple(phases))


def _anew(frames: Sequence[Frame], named: Mapping[Call, tuple[Frame, ...]]) -> tuple[Frame, ...]:
    found: list[Frame] = []
    for frame in frames:
        again = named.get(_call_of(frame), ())
        told = any(one.line or (one.function and not frame.function) for one in again)
        found += again if told else (frame,)
    return tuple(dict.fromkeys(frame for frame in found if not _is_runtime(frame)))


def _call_of(frame: Frame) -> Call:
    return Call(frame.module, frame.build_id, frame.offset)


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
        frame.function == _START
        or _RUNTIME.fullmatch(PurePath(frame.module).name)
        or _RUNTIME_SOURCE.match(frame.file)
    )
