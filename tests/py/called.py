"""The command line inside of this process: what a test calls unless a process of its own is the subject, for
its signals, its end, or an environment that Python reads when it starts."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from unittest import mock

from tornpage.cli.main import main
from tornpage.faults.process import ENDING

DEADLINE_S = 600


class Hangs(BaseException):
    """A call has no end: no error of the command, which would tell it as one."""


def called(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`tornpage ARGUMENTS` in a folder, as a process would answer: exit code, and what it printed. Working
    directory, environment, output and signals are this process's own again afterwards."""
    told, errors = io.StringIO(), io.StringIO()
    with (
        _signals(),
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", ["tornpage", *arguments]),
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, code, told.getvalue(), errors.getvalue())


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Those that the command listens to, and one that ends a call that hangs."""
    before = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGALRM)}
    signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(DEADLINE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _hangs(_number: int, _frame: FrameType | None) -> None:
    raise Hangs(f"no end after {DEADLINE_S} s")
