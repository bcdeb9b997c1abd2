"""A server that stands by: each child of it enters a folder of its own, and nothing else is different."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tornpage.targets.bundled.standby import Standby

SERVER = """
import os, sys, time
before = os.getpid()
os.chdir("/")  # no data folder
os.chdir(sys.argv[1] + "/")
names = sorted(os.listdir(sys.argv[1]))
open(sys.argv[2] + "/private", "w").close()
print("entered", names, os.listdir("."), before != os.getpid(), flush=True)
if "wait" in names:
    time.sleep(600)
sys.exit(3)
"""
THREADED = """
import os, sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
os.chdir(sys.argv[1])
"""
PASSING = """
import os, sys, time
os.fchdir(int(sys.argv[1].rpartition("/")[2]))
open("ibdata1", "w").close()
time.sleep(600)
"""
OWNER = f"""
import os, sys
from pathlib import Path
from tornpage.targets.bundled.standby import Standby
argv = lambda data, private: [sys.executable, "-c", {SERVER!r}, str(data), str(private)]
standby = Standby(argv, dict(os.environ))
place = Path(sys.argv[1])
standby.enter(place / "data", place / "private", place / "said")
print("entered", flush=True)
sys.stdin.read()
"""


def python(code: str) -> Callable[[Path, Path], list[str]]:
    """The command of a server that is this program."""
    return lambda data, private: [sys.executable, "-c", code, str(data), str(private)]


@pytest.fixture
def standby() -> Iterator[Standby]:
    """One that stands."""
    found = Standby(python(SERVER), dict(os.environ))
    assert found.stands
    yield found
    found.end()


def folders(place: Path, name: str) -> tuple[Path, Path, Path]:
    """Data with one file of this name, private folder, and output."""
    data, private = place / f"{name}.data", place / f"{name}.private"
    data.mkdir()
    private.mkdir()
    (data / name).touch()
    return data, private, place / f"{name}.said"


def test_each_child_enters_its_own_folders(standby: Standby, tmp_path: Path) -> None:
    """By descriptor, and as working folder; what it says goes to its own file."""
    for name in ("first", "second"):
        data, private, said = folders(tmp_path, name)
        child = standby.enter(data, private, said)
        child.wait()
        assert child.poll() == 3 << 8
        assert said.read_text() == f"entered ['{name}'] ['{name}'] True\n"
        assert (private / "private").exists()


def test_a_child_is_killed_and_the_next_one_enters(standby: Standby, tmp_path: Path) -> None:
    """Its end is told as that of a process."""
    data, private, said = folders(tmp_path, "wait")
    child = standby.enter(data, private, said)
    assert child.poll() is None
    child.end()
    assert child.poll() == signal.SIGKILL
    child.end()  # a second time does nothing
    after = standby.enter(*folders(tmp_path, "next"))
    after.wait()
    assert after.poll() == 3 << 8


@pytest.mark.parametrize(
    "code", [THREADED, PASSING, "print('no data folder is entered')", "raise SystemExit(1)"]
)
def test_a_server_that_cannot_be_forked_does_not_stand(code: str) -> None:
    """One with threads would be half a server in a child; one that enters the folder unseen finds that it is
    gone, and ends."""
    assert not Standby(python(code), dict(os.environ)).stands


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """Is an error, as without standby."""
    with pytest.raises(OSError, match="no-server"):
        Standby(lambda _data, _private: [str(tmp_path / "no-server")], dict(os.environ))


def test_a_build_without_the_library_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader would only warn, and the server would go on."""
    monkeypatch.setenv("TORNPAGE_BUILD", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="libtornpage_standby"):
        Standby(python(SERVER), dict(os.environ))


def test_all_end_with_their_owner(tmp_path: Path) -> None:
    """Also where it is killed while a child runs."""
    data, private = tmp_path / "data", tmp_path / "private"
    data.mkdir()
    private.mkdir()
    (data / "wait").touch()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"entered\n"
        started = psutil.Process(owner.pid).children(recursive=True)
        assert sum("chdir" in "".join(process.cmdline()) for process in started) == 2
        owner.kill()
        for process in started:
            process.wait(30)
