"""Marks and answers of a target of Tornpage: all that a store in Python needs. Python's own library is enough.

A run: ready(state) when what is acknowledged must survive from now on, then for each commit issue(n), the
commit, ack(n, state). A recovery: serve(recover), where recover(folder) returns the state, or (state,
findings of its own checker), or raises Refused. Want of memory, space, processes or descriptors that it does
not catch is told as the machine's failure. A state is a dict of texts by name; what is no text is written as
JSON. Without Tornpage's preload marks do nothing. In a shell that is the client of a server: python3 -m
tornpage_mark ack n=3
"""

import errno
import json
import os
import sys
import threading

_printing = threading.Lock()


_SHORT = (errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


class Refused(Exception):
    """Recovery says clearly why it does not start."""


def mark(text):
    """Puts a mark into the stream of this process's file operations; of a client (`server = true` in the target
    file) into that of its server, which must have opened its store."""
    name = os.environ.get("TORNPAGE_CONTROL")
    if name:
        import socket  # much to load for a recovery, which marks nothing

        with socket.socket(socket.AF_UNIX) as server:
            server.connect("\0" + name)
            server.sendall(text.encode("ascii") + b"\n")
            if server.recv(16) != b"ok\n":
                raise ConnectionError("the server is gone")
        return
    import ctypes

    try:
        function = ctypes.CDLL(None).tp_trace_mark
    except AttributeError:
        return
    data = text.encode("ascii")
    function(data, ctypes.c_size_t(len(data)))


def ready(state):
    """What was made so far is durable, and this is the state that it holds."""
    mark("ready")
    _say({"n": 0, "state": _texts(state)})


def issue(n, client=""):
    """Statement n, from 1, begins: its effect may be there from now on. client: which of several at work
    issues it, each in a thread or process of its own; no two share a number."""
    mark(f"issue n={n}{_by(client)}")


def tell(n, state):
    """The state that statement n leads to, where that is known before it is acknowledged; of several clients,
    of what is this client's own."""
    _say({"n": n, "state": _texts(state)})


def ack(n, state=None, client=""):
    """Statement n is committed: it must be there from now on, and the state is this, if not told before."""
    mark(f"ack n={n}{_by(client)}")
    if state is not None:
        tell(n, state)


def serve(recover):
    """Answers for each folder that comes as a line of standard input, in a child process of its own, so that
    nothing of one is left for the next (long_lived = true)."""
    for line in sys.stdin:
        try:
            child = os.fork()
        except OSError as error:
            _say_machine(error)
            continue
        if child == 0:
            _answer(recover, line.rstrip("\n"))
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):  # by whom, only the signal says
            os.kill(os.getpid(), os.WTERMSIG(status))
        if status:
            sys.exit(1)


def _say_machine(error):
    _say({"ok": False, "machine": True, "message": f"{type(error).__name__}: {error}".rstrip(": ")})


def _answer(recover, folder):
    code = 1
    try:
        try:
            found = recover(folder)
            state, findings = found if isinstance(found, tuple) else (found, [])
            _say({"ok": True, "state": _texts(state), "findings": findings})
        except Refused as why:
            _say({"ok": False, "message": str(why)})
        except (MemoryError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in _SHORT:
                raise
            _say_machine(error)
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(code)


def _texts(state):
    return {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in state.items()
    }


def _by(client):
    return f" client={client}" if client else ""


def _say(value):
    with _printing:
        print(json.dumps(value), flush=True)


if __name__ == "__main__":
    mark(" ".join(sys.argv[1:]))
