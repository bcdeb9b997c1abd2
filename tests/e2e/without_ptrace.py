"""Runs a command where ptrace is not permitted, as in a container with a strict profile: a seccomp filter
answers it with EPERM, for the command and all that it starts."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
PTRACE = {"x86_64": 101, "aarch64": 117}
ALLOW = 0x7FFF0000
EPERM = 0x00050001
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def refuse_ptrace() -> None:
    """For this process from now on."""
    number = PTRACE[os.uname().machine]
    steps = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, EPERM)]
    steps.append((RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse_ptrace()
    os.execv(sys.argv[1], sys.argv[1:])
