"""What a store puts into its folder besides files, and what it starts besides itself."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from e2e_support import DEADLINE_S, PYTHON, Tornpage
from test_target_file import FEW, RUN, changed, make, wrong

from tornpage.campaigns.attempt import check_target
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.paths import BUILD_VARIABLE

PIPES = """    import socket
    socket.socket(socket.AF_UNIX).bind(os.path.relpath(f"{folder}/socket"))
    os.mkfifo(f"{folder}/fifo")
    os.mkfifo(f"{folder}/gone"), os.rename(f"{folder}/gone", f"{folder}/old"), os.unlink(f"{folder}/old")
"""
PREPARE = 'prepare = "mkfifo {dir}/before"\nrun = '


def test_sockets_and_fifos_are_left_out(tmp_path: Path, tornpage: Tornpage) -> None:
    """Of what prepare and run make: they hold no data. Everything is done as without, and nothing waits."""
    file = changed(make(tmp_path), "pipes", wrong(RUN, PIPES), ("run = ", PREPARE))
    answer = tornpage("try", str(file), *FEW)
    assert answer.code == 0, answer.text
    loss, kills = answer.data["runs"]
    assert loss["states"] >= 200 and kills["exercised"] == 12


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (wrong(RUN, "    os.symlink('store.log', f'{folder}/current')\n"), "current"),
        (("run = ", 'prepare = "ln -s / {dir}/root"\nrun = '), "root is a symbolic link, of which"),
        (("[commands]", 'template = "before"\n[commands]'), "template: zero is a symbolic link"),
    ],
    ids=["run", "prepare", "template"],
)
def test_links_are_refused_in_words(
    change: tuple[str, str], told: str, tmp_path: Path, build: Path
) -> None:
    """A crashed image has none: whoever makes one, the check says which; unless no crash needs it."""
    file = changed(make(tmp_path), "linked", change)
    before = file.parent / "before"
    before.mkdir()
    (before / "zero").symlink_to("/dev/zero")
    with pytest.raises(TornpageError, match=told):
        check_target(make_target(str(file), build))
    if "template" not in change[1]:
        ignored = file.read_text("utf-8").replace("ignore = []", 'ignore = ["root", "current"]')
        file.write_text(ignored, "utf-8")
        assert check_target(make_target(str(file), build)).commits == 30


DAEMON = """    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            os.execv(sys.executable, [sys.executable, "-c", "import signal; signal.pause()", TOKEN])
        os._exit(0)
    os.wait()
"""
RECOVER = ("    rows = {}\n    for line", "{}    rows = {{}}\n    for line")


def daemons(token: str) -> list[int]:
    """Processes with this word in their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "pid"]):
        words = process.info["cmdline"] or []
        if words[-1:] == [token] and process.info["pid"] != os.getpid():
            found.append(process.info["pid"])
    return found


@pytest.mark.parametrize("server", [False, True])
def test_nothing_that_was_started_is_left(server: bool, tmp_path: Path, tornpage: Tornpage) -> None:
    """By run, recover and prepare, in sessions of their own; a server or not."""
    token = f"daemon-of-{tmp_path.name}-{os.getpid()}"
    code = DAEMON.replace("TOKEN", repr(token))
    file = changed(
        make(tmp_path), "forks", wrong(RUN, code), wrong(RECOVER, code),
        ("run = ", 'prepare = "./store.py load {dir}/first"\nrun = '),
        ("    log = os.open(", "    os.makedirs(folder, exist_ok=True)\n    log = os.open("),
        ("[commands]", f"server = {str(server).lower()}\n[commands]"),
    )  # fmt: skip
    answer = tornpage("try", str(file), "--states", "60", "--trials", "6", "--jobs", "1")
    assert daemons(token) == []
    assert answer.code == 0, answer.text
    assert answer.data["left"] == ["python3"]


@pytest.mark.parametrize("recorder", ["preload", "fs"])
def test_what_run_has_left_is_told(recorder: str, tmp_path: Path, build: Path) -> None:
    """By the name of each program, whatever records it; nothing where it has waited for all."""
    code = DAEMON.replace("TOKEN", "'a'") + DAEMON.replace("TOKEN", "'b'")
    for lines, left in ((code, 2), ("    os.system(':')\n", 0)):
        target = make_target(
            str(changed(make(tmp_path / str(left)), "it", wrong(RUN, lines))), build
        )
        if recorder == "fs" and target.why_not_below():
            pytest.skip(target.why_not_below())
        seen = check_target(target, {"recorder": recorder})
        assert [name[:7] for name in seen.left] == ["python3"] * left


def test_nothing_is_left_after_ctrl_c(tmp_path: Path, build: Path) -> None:
    """The owner ends what it has started, and what that has."""
    token = f"daemon-of-{tmp_path.name}-{os.getpid()}"
    fifo = tmp_path / "up"
    os.mkfifo(fifo)
    tells = f"open({str(fifo)!r}, 'w').write('x'); import signal"
    code = DAEMON.replace("TOKEN", repr(token)).replace("import signal", tells)
    wait = "    __import__('signal').pause()\n"
    file = changed(make(tmp_path), "stays", wrong(RUN, code + wait))
    owner = subprocess.Popen(
        [*PYTHON, "target", "check", str(file)],
        env={**os.environ, BUILD_VARIABLE: str(build)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert fifo.read_text() == "x"  # the daemon runs
    (started,) = daemons(token)
    ended = os.pidfd_open(started)
    owner.send_signal(signal.SIGINT)
    owner.communicate(timeout=DEADLINE_S)
    with pytest.raises(ProcessLookupError):
        signal.pidfd_send_signal(ended, 0)
    os.close(ended)
