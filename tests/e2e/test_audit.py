"""The audit of the admitted run: what changes a file and is not in the recording is refused, by call and
process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_support import DEADLINE_S, PYTHON, Tornpage, call
from test_target_file import changed, make

from tornpage.campaigns.attempt import check_target
from tornpage.faults.audit import AUDITOR, Audit
from tornpage.live import stopped
from tornpage.live.admission import Audited, audit_runs, own_work
from tornpage.live.stopped import Compared, check_at_acknowledgements
from tornpage.targets.command.skeleton import Language
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import GoldenRunError
from tornpage.vocabulary.paths import data_folder

SOURCE = Path(__file__).with_name("unseen_store.c")
COMMITS = 4
WRITES = 1 + COMMITS + COMMITS + 1
"""Of a run: the first header, the log, the headers, the first header again."""
WAYS = {
    "inline": "pwrite of header by store",
    "cleaned": "pwrite of header by store, into which the recorder is not loaded",
    "static": "by store_static, into which the recorder is not loaded",
    "dprintf": "write of header by store",
    "link": "pwrite of header by store",
    "splice": "splice of header by store",
    "libaio": "io_submit of header by store",
    "rights": "pwrite of header by store",
    "mprotect": "mprotect of header by store",
}
FILE = """
name = "unseen"
[options.way]
values = ["pwrite", "{ways}"]
what = "how the header is written"
[commands]
run = "./store load {{dir}} {{way}}"
recover = "./store recover"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target file, its program built."""
    folder = tmp_path_factory.mktemp("unseen")
    for name, option in (("store", "-O2"), ("store_static", "-static")):
        command = ["cc", option, "-I", data_folder("marking"), "-o", folder / name, SOURCE]
        subprocess.run(command, check=True, timeout=60)
    file = folder / "unseen.toml"
    file.write_text(FILE.format(ways='", "'.join(WAYS)), "utf-8")
    return file


def test_what_is_recorded_is_admitted(store: Path, build: Path, tmp_path: Path) -> None:
    """The same program with pwrite: each of its writes is in the recording, and each acknowledgement was
    looked at; by a run too that no admission test came before."""
    target = make_target(str(store), build)
    seen = check_target(target)
    assert (seen.writes, seen.audited) == (WRITES, Audited("", Compared(COMMITS, COMMITS), 4))
    works = [own_work(target), own_work(target, {"way": "dprintf"})]
    assert audit_runs(target, works, tmp_path) == seen.audited + seen.audited


@pytest.mark.parametrize("way", WAYS)
def test_a_way_around_the_recorder_is_refused(way: str, store: Path, build: Path) -> None:
    """By call, file and process, though the last bytes are the first ones; or it is in the recording."""
    target = make_target(str(store), build)
    try:
        seen = check_target(target, {"way": way})
    except GoldenRunError as error:
        line = str(error)
        marked = re.search(r"the preload cannot follow \S+ of header", line)  # it says so itself
        assert marked or ("not in the recording: " in line and WAYS[way] in line), line
        assert "\n" not in line
    else:
        assert seen.writes == WRITES


def test_it_is_the_end_of_check_and_of_try(store: Path, tornpage: Tornpage) -> None:
    """Exit code 2 and one line, of either; nothing is tortured."""
    told = "tornpage: audited run of default: not in the recording: pwrite of header by store"
    by_preload = ("--option", "recorder=preload")
    check = call(store.parent, "target", "check", str(store), "--option", "way=inline", *by_preload)
    assert (check.returncode, check.stdout, check.stderr.strip()) == (2, "", told)
    file = store.with_name("first.toml")
    file.write_text(store.read_text("utf-8").replace('["pwrite", ', "["), "utf-8")
    tried = tornpage("try", str(file), *by_preload)
    assert tried.code == 2 and tried.text.strip().splitlines()[-1] == told, tried.text


CALLING = """
import ctypes, fcntl, os, stat, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    result = libc.syscall(ctypes.c_long(number), *words)
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result
data = ctypes.create_string_buffer(bytes(100))
part = (ctypes.c_size_t * 2)(ctypes.addressof(data), 100)
fd = os.open("f", os.O_RDWR)
"""
SUBMIT = """
context = ctypes.c_ulong(0)
call(206, 2, ctypes.byref(context))
at = ctypes.addressof(data)
calls = [struct.pack("=QIIHhIQQqQQ", 0, 0, 0, op, 0, fd, at, 100, 0, 0, 0) for op in (0, 1)]
held = [ctypes.create_string_buffer(one) for one in calls]
list_ = (ctypes.c_void_p * 2)(*map(ctypes.addressof, held))
assert call(209, context.value, 2, list_) == 2
"""
PROTECT = """
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, fd, ctypes.c_long(0))
call({number}, ctypes.c_void_p(at), 4096, 3, -1)
"""
SPACE = "fcntl.ioctl(fd, 0x{:x}, struct.pack('=hhiqqiI16x', 0, 0, 0, 0, 100, 0, 0))"
LISTED = {
    "pwritev2": ("call(328, fd, ctypes.byref(part), 1, 0, 0, os.RWF_APPEND)", "f", 8192),
    "openat2": (
        "call(437, -100, b'new', struct.pack('=QQQ', os.O_CREAT | os.O_RDWR, 0o600, 0), 24)",
        "new",
        0,
    ),
    "mknodat": ("os.mknod('new', stat.S_IFREG | 0o600, dir_fd=os.open('.', 0))", "new", 0),
    "rename": ("os.rename('../out', 'in')", "in", 0),
    "sync": ("os.sync()", "?", 0),
    "mprotect": (PROTECT.format(number=10), "f", 0),
    "pkey_mprotect": (PROTECT.format(number=329), "f", 0),
    "io_submit": (SUBMIT, "f", 0),
    "ioctl reserves": (SPACE.format(0x4030582A), "f", 0),
    "ioctl punches": (SPACE.format(0x4030582B), "f", 0),
    "ioctl zeros": (SPACE.format(0x40305839), "f", 0),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="it has the numbers of that machine")
@pytest.mark.parametrize("name", LISTED)
def test_every_call_that_changes_a_file_is_listed(name: str, build: Path, tmp_path: Path) -> None:
    """By its name, its file and its place, where no recorder is."""
    body, path, offset = LISTED[name]
    data, log = tmp_path / "data", tmp_path / "log"
    data.mkdir()
    (data / "f").write_bytes(bytes(8192))
    (tmp_path / "out").touch()
    command = [build / AUDITOR, data, tmp_path / "trace", log, sys.executable, "-c", CALLING + body]
    done = subprocess.run(command, cwd=data, capture_output=True, text=True, timeout=DEADLINE_S)
    if "not supported" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert (done.returncode, done.stderr) == (0, "")
    seen = [(one.name, one.other or one.path, one.offset) for one in Audit.load(log).calls]
    assert [one for one in seen if one == (name.partition(" ")[0], path, offset)], seen


THREADS = """    import threading
    def work(n):
        own = os.open(f"{folder}/own{n}", os.O_RDWR | os.O_CREAT)
        for i in range(20):
            os.pwrite(own, b"x" * 100, 100 * i), os.write(log, b""), os.fsync(own)
        os.rename(f"{folder}/own{n}", f"{folder}/done{n}")
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [thread.start() for thread in threads]
    line = f"cd {folder}; mkdir d; echo a > d/a; echo b >> d/a; mv d/a b; rm b"
    os.waitpid(os.posix_spawnp("sh", ["sh", "-c", line], os.environ), 0)
    [thread.join() for thread in threads]
    rows = {}
    ready"""


def test_threads_and_children_are_followed(tmp_path: Path, build: Path) -> None:
    """Four threads at once, and programs of the system that the store starts: all is accounted for."""
    file = changed(make(tmp_path), "threads", ("    rows = {}\n    ready", THREADS))
    seen = check_target(make_target(str(file), build))
    assert seen.writes > 100 and seen.audited.missing == ""


def test_what_no_crash_needs_may_be_written_unseen(tmp_path: Path, build: Path) -> None:
    """Files that the target ignores."""
    shell = "['sh', '-c', f'echo a > {folder}/note; rm {folder}/note']"
    code = f"    os.waitpid(os.posix_spawnp('sh', {shell}, {{}}), 0)\n"
    change = ("    rows = {}\n    ready", f"{code}    rows = {{}}\n    ready")
    file = changed(make(tmp_path), "noted", change)
    with pytest.raises(GoldenRunError, match="note by sh, into which"):
        check_target(make_target(str(file), build))
    text = file.read_text("utf-8").replace("ignore = []", 'ignore = ["note"]')
    file.write_text(text, "utf-8")
    assert check_target(make_target(str(file), build)).audited.missing == ""


CHILD = """    shell = ["sh", "-c", f"echo a > {folder}/note; rm {folder}/note"]
    os.waitpid(os.posix_spawnp("sh", shell, ENVIRONMENT), 0)
    rows = {}
    for line"""


def test_a_recovery_is_audited_too(tmp_path: Path, build: Path) -> None:
    """No crash inside a recovery shows what it does past the recorder: by check and by every run of a target
    file it is refused, unless no crash needs the file."""
    recover = "    rows = {}\n    for line"
    file = changed(make(tmp_path), "seen", (recover, CHILD.replace("ENVIRONMENT", "os.environ")))
    assert check_target(make_target(str(file), build)).audited.missing == ""
    (tmp_path / "b").mkdir()
    file = changed(make(tmp_path / "b"), "unseen", (recover, CHILD.replace("ENVIRONMENT", "{}")))
    target = make_target(str(file), build)
    told = "audited recovery of default: not in the recording: .* of note by sh, into which"
    with pytest.raises(GoldenRunError, match=told):
        check_target(target)
    with pytest.raises(GoldenRunError, match=told):
        audit_runs(target, [own_work(target)], tmp_path)
    text = file.read_text("utf-8").replace("ignore = []", 'ignore = ["note"]')
    file.write_text(text, "utf-8")
    assert check_target(make_target(str(file), build)).audited.missing == ""


def test_a_recovery_that_nothing_records_is_refused(store: Path, build: Path) -> None:
    """A program that is linked statically: its recovery has no recording at all. One that changes nothing
    needs none."""
    text = store.read_text("utf-8").replace("./store recover", "./store_static recover")
    file = store.with_name("static.toml")
    file.write_text(text, "utf-8")
    assert check_target(make_target(str(file), build)).audited.missing == ""
    command = "sh -c 'read f; echo > $f/new; rm $f/new; echo $f | env -i ./store recover'"
    file.write_text(text.replace("./store_static recover", f"env -i {command}"), "utf-8")
    with pytest.raises(
        GoldenRunError, match=r"audited recovery of default: .* of new by sh, into which"
    ):
        check_target(make_target(str(file), build))


@pytest.mark.parametrize("target", ["engine", "sqlite"])
def test_our_own_targets_are_seen_as_a_whole(target: str, build: Path, tmp_path: Path) -> None:
    """The bundled engine and SQLite change nothing past the recorder."""
    from test_stream import _spec

    from tornpage.live.fault_free import run_fault_free

    run = run_fault_free(_spec(target), make_target(target, build), tmp_path / "w", audit=True)
    assert run.not_audited == "" and not run.violations


def test_where_it_is_not_permitted_the_list_says_so(tmp_path: Path, build: Path) -> None:
    """And why; the program itself runs as ever."""
    folder = tmp_path / "data"
    folder.mkdir()
    log = tmp_path / "log"
    # What is traced already can have no second tracer.
    auditor = build / AUDITOR
    again = [
        auditor,
        folder,
        tmp_path / "trace",
        log,
        auditor,
        folder,
        tmp_path / "t",
        tmp_path / "l",
    ]
    done = subprocess.run([*map(str, again), "/bin/true"], timeout=60, check=False)
    assert done.returncode == 0
    assert Audit.load(log).missing == ""
    assert re.search("permitted", Audit.load(tmp_path / "l").missing)


@pytest.mark.parametrize("campaign", ["smoke", "powerloss"])
def test_every_run_is_audited_once(campaign: str, store: Path, tornpage: Tornpage) -> None:
    """A run by itself, which no admission test came before, refuses as that does."""
    run = ("run", campaign, "--target", str(store), "--option")
    answer = tornpage(*run, "way=inline")
    assert answer.code == 2 and "not in the recording: pwrite of header by store" in answer.text


def test_files_are_compared_at_acknowledgements(store: Path, build: Path, tmp_path: Path) -> None:
    """Before the last bytes are the first ones again: a run that stands still there shows what it was."""
    target = make_target(str(store), build)
    compared = check_at_acknowledgements(own_work(target), target, tmp_path / "w")
    assert compared == Compared(COMMITS, COMMITS)
    inline = own_work(target, {"way": "inline"})
    told = "acknowledgement 1 of a run: .* header differs in bytes 0-1535"
    with pytest.raises(GoldenRunError, match=told):
        check_at_acknowledgements(inline, target, tmp_path / "w")


BETWEEN = """
        if n in (AT, AT + 1):  # dirty behind AT, as it was behind the next one
            line = "x" if n == AT else "a"
            put = f"printf {line} | dd of={folder}/big conv=notrunc bs=1 seek=5 status=none"
            os.waitpid(os.posix_spawnp("sh", ["sh", "-c", put], {}), 0)
        ack(n, {"rows": rows})"""
BIG = """
    big = os.open(f"{folder}/big", os.O_WRONLY | os.O_CREAT)
    os.write(big, b"a" * SIZE), os.close(big)
    rows = {}
    ready"""


@pytest.mark.parametrize("size", [100, 3 << 20])
@pytest.mark.parametrize("at", [2, 13, 29])
def test_each_acknowledgement_is_looked_at(at: int, size: int, tmp_path: Path, build: Path) -> None:
    """A change that was seen by nobody, and is undone before the next acknowledgement, also in the middle of
    a run and in a file that is too large to be read each time."""
    between = BETWEEN.replace("AT", str(at))
    big = BIG.replace("SIZE", str(size))
    changes = (('\n        ack(n, {"rows": rows})', between), ("\n    rows = {}\n    ready", big))
    target = make_target(str(changed(make(tmp_path), "between", *changes)), build)
    told = f"at acknowledgement {at} of a run: .* big differs in bytes 5-5"
    with pytest.raises(GoldenRunError, match=told):
        check_at_acknowledgements(own_work(target), target, tmp_path / "w")


def test_of_many_acknowledgements_some_are_looked_at(
    tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer and fewer, all along the run; it is told how many."""
    monkeypatch.setattr(stopped, "EVERY_ACK", 4)
    target = make_target(str(make(tmp_path)), build)
    # 1 to 4, then four that are even, then those that three divides, and so on.
    assert check_at_acknowledgements(own_work(target), target, tmp_path / "w") == Compared(13, 30)
    monkeypatch.setattr(stopped, "EVERY_BYTES", 1 << 12)
    compared = check_at_acknowledgements(own_work(target), target, tmp_path / "w")
    assert 3 < compared.acknowledgements < 13 and compared.of == 30


BUSY = """
    import threading
    def work(n):
        own = os.open(f"{folder}/own{n}", os.O_RDWR | os.O_CREAT)
        while not done:
            os.ftruncate(own, 70000), os.pwrite(own, b"x" * 60000, 100), os.ftruncate(own, 10)
            os.posix_fallocate(own, 0, 5000)
            os.close(os.open(f"{folder}/new{n}", os.O_WRONLY | os.O_CREAT))
            os.rename(f"{folder}/new{n}", f"{folder}/named{n}"), os.unlink(f"{folder}/named{n}")
    done = []
    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    [thread.start() for thread in threads]
    rows = {}
    ready"""
END = """        ack(n, {"rows": rows})
    done.append(1)
    [thread.join() for thread in threads]
"""


def test_what_goes_on_beside_an_acknowledgement_is_no_difference(
    tmp_path: Path, build: Path
) -> None:
    """Other threads write, cut, reserve and rename while the files are looked at."""
    changes = (("\n    rows = {}\n    ready", BUSY), ('        ack(n, {"rows": rows})\n', END))
    target = make_target(str(changed(make(tmp_path), "busy", *changes)), build)
    assert check_at_acknowledgements(own_work(target), target, tmp_path / "w") == Compared(30, 30)


def test_where_ptrace_is_refused_the_verdict_says_so(tmp_path: Path) -> None:
    """As in a container with a strict profile: the store is tortured all the same, and the last line, --json
    and the admission say that its runs were not audited, and why. `run` as `try`."""
    file = str(make(tmp_path, Language.C))
    few = ("--states", "60", "--depth", "1", "--trials", "4", "--jobs", "1")
    wrapped = [sys.executable, str(Path(__file__).with_name("without_ptrace.py")), *PYTHON]

    def tornpage(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*wrapped, *words, "--out", str(tmp_path / "out")],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
            env={**os.environ, "COLUMNS": "400"},
        )

    why = "not audited: Operation not permitted"
    tried = tornpage("try", file, *few)
    assert tried.returncode == 0, tried.stderr
    admitted, last = tried.stdout.splitlines()[0], tried.stdout.splitlines()[-1]
    assert why in admitted
    assert last.startswith("CLEAN (exit 0): ") and last.endswith(f"; {why}")
    assert last.count("power loss: ") == last.count("kills: ") == 1 and "I/O errors" in last
    run = tornpage("run", "smoke", "--target", file, "--trials", "2", "--jobs", "1", "--json")
    assert run.returncode == 0, run.stderr
    data = json.loads(run.stdout.splitlines()[-1])
    assert data["looked_at"]["not_audited"] == "Operation not permitted"
