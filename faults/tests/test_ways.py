"""Ways to change a file other than write(): each is followed with its contents, or leaves a mark with call
and file.

The programs are Python's, whose functions are the C library's; ctypes finds the rest where any program
does."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import unittest
from pathlib import Path

from support import (
    APPEND,
    DURABLE,
    FSYNC,
    LINK,
    MARK,
    MKDIR,
    OPEN,
    RENAME,
    SIGKILL,
    SYNC_ALL,
    UNSEEN,
    WRITE,
    PreloadCase,
    Run,
    replay,
)

HEAD = """
import array, ctypes, mmap, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
for name in ("fopen", "fdopen", "freopen"):
    getattr(libc, name).restype = ctypes.c_void_p
for name in ("mkdtemp", "mmap"):
    getattr(libc, name).restype = ctypes.c_void_p
for name in ("fprintf", "fputs", "fwrite", "fflush", "fclose", "fileno", "fseek", "ftell", "setvbuf"):
    function = getattr(libc, name)
    at = {"fputs": 1, "fwrite": 3}.get(name, 0)
    function.argtypes = [ctypes.c_size_t if name == "fwrite" and 0 < i < 3 else ctypes.c_void_p
                         for i in range(at + 1)]
    if name == "fwrite":
        function.argtypes[0] = ctypes.c_char_p
    elif name == "fputs":
        function.argtypes[0] = ctypes.c_char_p
libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
libc.fseek.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
def ok(result):
    assert result is not None and result >= 0, os.strerror(ctypes.get_errno())
    return result
def made(path, content=b"", flags=os.O_RDWR | os.O_CREAT):
    fd = os.open(path, flags)
    os.write(fd, content)
    return fd
"""


class WayCase(PreloadCase):
    """A program in Python, with contents recorded."""

    def play(self, body: str, plan: str | None = None, *arguments: str) -> Run:
        return self.run_command(
            [sys.executable, "-c", HEAD + body, *arguments], plan, TORNPAGE_PAYLOAD="full"
        )

    def followed(self, body: str, *arguments: str) -> Run:
        """Its stream gives its files, and has no mark."""
        run = self.play(body, None, *arguments)
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual([m.text for m in run.trace.of(MARK)], [])
        found = {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }
        given = replay(run.trace)
        self.assertEqual(given.keys(), found.keys())
        self.assertEqual([name for name in found if given[name] != found[name]], [])
        self.assertGreater(len(found), 0)
        return run

    def marked(self, body: str, *arguments: str) -> list[str]:
        """What its stream says of it."""
        run = self.play(body, None, *arguments)
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual(run.trace.flags, UNSEEN)
        return [m.text for m in run.trace.of(MARK)]


class Functions(unittest.TestCase):
    """What the preload stands in front of."""

    def test_names_of_64_bits(self) -> None:
        """A header gives a program that has files of 64 bits another function of the same use."""
        sources = sorted(Path(__file__).resolve().parents[1].glob("*.c"))
        text = "".join(source.read_text("utf-8") for source in sources)
        names = set(re.findall(r"^LAYER_EXPORT [^(;=]*?(\w+)\(", text, re.MULTILINE))
        self.assertIn("lio_listio", names)
        libc = ctypes.CDLL(None)
        wide = {name.removesuffix("v2") + "64" + "v2" * name.endswith("v2") for name in names}
        self.assertEqual({name for name in wide if hasattr(libc, name)} - names, set())


class Streams(WayCase):
    """stdio: what the buffer held is written when the C library says so."""

    def test_the_commit_idiom(self) -> None:
        """mkstemp, fdopen, fprintf, fflush, fsync, fclose, rename: all of it, in this order, and once."""
        run = self.followed(
            """
path = ctypes.create_string_buffer(b"dataXXXXXX")
fd = ok(libc.mkstemp(path))
stream = libc.fdopen(fd, b"w")
libc.fputs(b"hello ", stream)
libc.fputs(b"world", stream)
ok(libc.fflush(stream))
assert ok(libc.fileno(stream)) == fd
os.fsync(libc.fileno(stream))
ok(libc.fclose(stream))
os.rename(path.value, "data")
"""
        )
        kinds = [r.kind for r in run.trace.records]
        self.assertEqual(kinds, [OPEN, WRITE, FSYNC, 2, RENAME])
        self.assertEqual((self.root / "data").read_bytes(), b"hello world")

    def test_modes_and_places(self) -> None:
        """Of each mode: where it begins, where it writes after a seek, what it reads."""
        self.followed(
            """
for mode in (b"w", b"a", b"r+", b"w+", b"a+"):
    stream = libc.fopen(b"f", mode)
    assert stream, mode
    at = libc.ftell(stream)
    assert at == (os.stat("f").st_size if mode == b"a" else 0), (mode, at)
    libc.fputs(b"0123456789" * 1000, stream)
    ok(libc.fseek(stream, 5, 0))
    libc.fputs(mode, stream)
    ok(libc.fclose(stream))
assert not libc.fopen(b"f", b"wx") and ctypes.get_errno() == 17
assert not libc.fopen(b"none", b"r") and ctypes.get_errno() == 2
stream = libc.fopen(b"f", b"r")
room = ctypes.create_string_buffer(100)
libc.fgets.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
libc.fgets.restype = ctypes.c_void_p
assert libc.fgets(room, 11, stream) and room.value == b"01234w+789", room.value
ok(libc.fclose(stream))
"""
        )

    def test_the_buffer_is_as_large_as_ever(self) -> None:
        """A block of the file system: so many bytes are one write, and what is left comes at the end."""
        run = self.followed(
            """
size = os.stat(".").st_blksize
stream = libc.fopen(b"f", b"w")
for _ in range(2 * size + 100):
    libc.fputs(b"x", stream)
ok(libc.fclose(stream))
os.mkdir("size-%d" % size)
"""
        )
        (folder,) = run.trace.of(MKDIR)
        size = int(folder.text.split("-")[1])
        self.assertEqual([w.length for w in run.trace.of(WRITE)], [size, size, 100])

    def test_what_is_left_at_the_end_of_the_program(self) -> None:
        """exit() writes it; _exit() loses it."""
        for end, content in (("libc.exit(0)", b"left"), ("os._exit(0)", b"")):
            self.followed(f'stream = libc.fopen(b"f", b"w"); libc.fputs(b"left", stream); {end}')
            self.assertEqual((self.root / "f").read_bytes(), content)

    def test_a_close_that_cannot_write_says_so(self) -> None:
        """With the error of the write, which is in the stream; nothing of it is written later."""
        run = self.play(
            """
stream = libc.fopen(b"f", b"w")
libc.fputs(b"lost", stream)
assert libc.fclose(stream) == -1 and ctypes.get_errno() == 28, ctypes.get_errno()
""",
            "fault kind=write file=f nth=1 action=error errno=ENOSPC\n",
        )
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual([w.result for w in run.trace.of(WRITE)], [-28])
        self.assertEqual((self.root / "f").read_bytes(), b"")

    def test_a_kill_inside_of_a_stream(self) -> None:
        """A plan hits the write of a stream as any other."""
        run = self.play(
            'stream = libc.fopen(b"f", b"w"); libc.fputs(b"x" * 3000, stream); libc.fclose(stream)',
            "fault kind=write file=f nth=1 action=kill sectors=prefix:2\n",
        )
        self.assertEqual(run.status, SIGKILL)
        self.assertEqual((self.root / "f").read_bytes(), b"x" * 1024)

    def test_dprintf(self) -> None:
        """Is a write."""
        run = self.followed('fd = made("f"); ok(libc.dprintf(fd, b"%d-%s", 7, b"x"))')
        self.assertEqual((self.root / "f").read_bytes(), b"7-x")
        self.assertEqual(run.trace.of(WRITE)[-1].length, 3)

    def test_a_stream_gets_another_file(self) -> None:
        """freopen: what the stream held goes to the old one; its number stays."""
        self.followed(
            """
stream = libc.fopen(b"f", b"w")
libc.fputs(b"old", stream)
fd = libc.fileno(stream)
assert libc.freopen(b"g", b"a", stream) == stream and libc.fileno(stream) == fd
libc.fputs(b"new", stream)
assert libc.freopen(None, b"r+", stream) == stream
libc.fputs(b"N", stream)
assert libc.freopen(b"/dev/null", b"w", stream) == stream
libc.fputs(b"nowhere", stream)
assert libc.freopen(b"f", b"r", stream) == stream
room = ctypes.create_string_buffer(100)
libc.fgets.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
libc.fgets.restype = ctypes.c_void_p
assert libc.fgets(room, 11, stream) and room.value == b"old", room.value
assert libc.fputs(b"x", stream) == -1
ok(libc.fclose(stream))
again = libc.fopen(b"f", b"a")
assert not libc.freopen(b"no/f", b"w", again) and ctypes.get_errno() == 2
"""
        )
        self.assertEqual((self.root / "g").read_bytes(), b"New")

    def test_streams_that_stay_the_c_librarys_are_marked(self) -> None:
        """The standard streams, and one of wide characters."""
        marks = self.marked(
            'libc.freopen(b"f", b"w", ctypes.c_void_p.in_dll(libc, "stdout"));'
            'libc.fopen(b"h", b"w,ccs=UTF-8");'
            'made("g");'
            'libc.fopen(b"g", b"r+,ccs=UTF-8");'
            'libc.fopen(b"g", b"r,ccs=UTF-8")'
        )
        names = [f"unseen {mark}" for mark in ("freopen path=f", "fopen path=h", "fopen path=g")]
        self.assertEqual(marks, names)

    def test_a_standard_stream_that_writes_to_a_file_is_marked(self) -> None:
        """The one that a program was started with."""
        run = self.run_command(["sh", "-c", f'"{sys.executable}" -c "print(1)" >out'])
        self.assertEqual([m.text for m in run.trace.of(MARK)], ["unseen standard-stream path=out"])


class Copies(WayCase):
    """Copies inside of the kernel: the positions, and how much, are as the kernel's."""

    def test_of_files(self) -> None:
        """copy_file_range and sendfile, with and without positions of their own."""
        run = self.followed(
            """
source = made("s", bytes(range(256)) * 20)
target = made("t", b"T" * 100)
assert os.copy_file_range(source, target, 300, 10, 50) == 300
os.lseek(source, 5000, 0)
assert os.copy_file_range(source, target, 1000) == 120
assert os.lseek(source, 0, 1) == 5120 and os.lseek(target, 0, 1) == 220
assert os.sendfile(target, source, 1000, 64) == 64
os.lseek(source, 0, 0)
assert os.sendfile(target, source, None, 3_000_000) == 5120
assert os.lseek(target, 0, 1) == 220 + 64 + 5120
"""
        )
        self.assertEqual([w.length for w in run.trace.of(WRITE)][2:], [300, 120, 64, 5120])

    def test_of_a_pipe(self) -> None:
        """splice: what the pipe has; an empty one is no end."""
        self.followed(
            """
target = made("t", b"T" * 10)
out, into = os.pipe()
os.write(into, b"p" * 700)
assert os.splice(out, target, 1000, offset_dst=5) == 700
os.write(into, b"q" * 7)
assert os.splice(out, target, 4) == 4
try:
    os.read(out, 3)
    os.splice(out, target, 4, flags=os.SPLICE_F_NONBLOCK)
    raise SystemExit("no EAGAIN")
except BlockingIOError:
    pass
"""
        )

    @unittest.skipUnless(os.uname().machine == "x86_64", "it has the numbers of that machine")
    def test_bare_calls(self) -> None:
        """syscall() is the function of that name."""
        self.followed(
            """
fd = ok(libc.syscall(257, -100, b"f", os.O_RDWR | os.O_CREAT, 0o644))
assert ok(libc.syscall(1, fd, b"one", 3)) == 3
assert ok(libc.syscall(18, fd, b"two", 3, 10)) == 3
ok(libc.syscall(74, fd))
ok(libc.syscall(77, fd, 12))
ok(libc.syscall(3, fd))
ok(libc.syscall(82, b"f", b"g"))
"""
        )

    @unittest.skipUnless(os.uname().machine == "x86_64", "it has the numbers of that machine")
    def test_flags_of_a_bare_call(self) -> None:
        """Those of pwritev2 are its last word: at the end of the file, and durable by itself."""
        run = self.followed(
            """
fd = made("f", b"begin")
data = ctypes.create_string_buffer(b"end")
part = (ctypes.c_size_t * 2)(ctypes.addressof(data), 3)
for flags in (os.RWF_APPEND, os.RWF_DSYNC):
    assert ok(libc.syscall(328, fd, ctypes.byref(part), 1, 0, 0, flags)) == 3
"""
        )
        places = [(w.offset, w.flags & (APPEND | DURABLE)) for w in run.trace.of(WRITE)]
        self.assertEqual(places, [(0, 0), (5, APPEND), (0, DURABLE)])

    def test_modes_of_fallocate(self) -> None:
        """Longer, reserved, a hole, zeros: the stream gives what is there."""
        self.followed(
            """
fd = made("f", b"x" * 9000)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
for mode, at, length in ((0, 8000, 4000), (1, 20000, 4000), (3, 100, 5000), (16, 6000, 500), (17, 7000, 9000)):
    if libc.fallocate(fd, mode, at, length) != 0:
        assert ctypes.get_errno() == 95 and mode >= 16, mode
"""
        )

    def test_space_by_ioctl_is_marked(self) -> None:
        """Reserved, a hole, or zeros, as XFS calls it; other requests are nothing."""
        body = """
import fcntl, struct
fd = made("f", b"x" * 9000)
try:
    fcntl.ioctl(fd, int(sys.argv[1], 16), struct.pack("=hhiqqiI16x", 0, 0, 0, 0, 4096, 0, 0))
except OSError:
    sys.exit(3)
"""
        for request in ("40305828", "40305829", "4030582a", "4030582b", "40305839", "541b"):
            run = self.play(body, None, request)
            there = run.status == 0 and request != "541b"
            marks = ["unseen ioctl(space) path=f"] * there
            self.assertEqual([m.text for m in run.trace.of(MARK)], marks, run.errors)

    @unittest.skipUnless(os.uname().machine == "x86_64", "it has the numbers of that machine")
    def test_a_bare_ioctl_is_marked(self) -> None:
        """It is the function of that name, too."""
        marks = self.marked(
            """
import struct
fd = made("f", b"x" * 9000)
space = ctypes.create_string_buffer(struct.pack("=hhiqqiI16x", 0, 0, 0, 0, 4096, 0, 0))
ok(libc.syscall(16, fd, ctypes.c_long(0x4030582A), ctypes.byref(space)))
"""
        )
        self.assertEqual(marks, ["unseen ioctl(space) path=f"])

    @unittest.skipUnless(os.uname().machine == "x86_64", "it has the numbers of that machine")
    def test_asynchronous_calls_are_marked(self) -> None:
        """io_submit of a write, by its number, wherever in the list it is; one of a read is none."""
        marks = self.marked(
            """
class Call(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("op", ctypes.c_uint16), ("prio", ctypes.c_int16), ("fd", ctypes.c_uint32),
                ("buf", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("at", ctypes.c_int64),
                ("more", ctypes.c_uint64 * 2)]
fd = made("f")
context = ctypes.c_ulong(0)
ok(libc.syscall(206, 4, ctypes.byref(context)))
data = ctypes.create_string_buffer(b"hello")
for ops in ((0, 0), (0, 1)):
    calls = [Call(op=op, fd=fd, buf=ctypes.addressof(data), bytes=5) for op in ops]
    list_ = (ctypes.POINTER(Call) * 2)(*map(ctypes.pointer, calls))
    ok(libc.syscall(209, context, 2, list_))
"""
        )
        self.assertEqual(marks, ["unseen io_submit path=f"])

    @unittest.skipUnless(sys.maxsize > 2**32, "it has the layout of 64 bits")
    def test_calls_of_posix_aio_are_marked(self) -> None:
        """Each that writes or syncs, under both of its names; no read."""
        body = """
class Call(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("op", ctypes.c_int), ("prio", ctypes.c_int), ("buf", ctypes.c_void_p),
                ("bytes", ctypes.c_size_t), ("value", ctypes.c_void_p), ("signal", ctypes.c_int),
                ("notify", ctypes.c_int), ("more", ctypes.c_char * 200)]
fd = made("f", b"x" * 9)
data = ctypes.create_string_buffer(b"hello")
call = Call(fd=fd, op=int(sys.argv[2]), buf=ctypes.addressof(data), bytes=5, notify=1)
function, one = getattr(libc, sys.argv[1]), ctypes.byref(call)
list_ = (ctypes.POINTER(Call) * 2)(None, ctypes.pointer(call))
first = {"lio_listio": (0, list_, 2, None), "aio_fsync": (os.O_SYNC, one)}
ok(function(*first.get(sys.argv[1].removesuffix("64"), (one,))))
list_ = (ctypes.POINTER(Call) * 1)(ctypes.pointer(call))
ok(libc.aio_suspend(list_, 1, None))
"""
        for name, op in (("aio_write", 1), ("aio_fsync", 1), ("lio_listio", 1)):
            for call in (name, f"{name}64"):
                with self.subTest(call):
                    self.assertEqual(self.marked(body, call, str(op)), [f"unseen {name} path=f"])
        for call in ("aio_read", "lio_listio"):
            self.followed(body, call, "0")

    @unittest.skipUnless(os.uname().machine == "x86_64", "it has the numbers of that machine")
    def test_a_ring_is_marked(self) -> None:
        """What is written through it is seen by nobody; one that could not be made changes nothing."""
        run = self.play(
            'made("f"); sys.exit(libc.syscall(425, 1, ctypes.create_string_buffer(120)) < 0)'
        )
        marks = [m.text for m in run.trace.of(MARK)]
        self.assertEqual(marks, ["unseen io_uring path=."] * (run.status == 0))


class Names(WayCase):
    """Names that come by themselves, and further names."""

    def test_temporary_names(self) -> None:
        """Each maker of them; the same names in each run."""
        body = """
for name, call in ((b"aXXXXXX", libc.mkstemp), (b"bXXXXXX", lambda p: libc.mkostemp(p, os.O_CLOEXEC)),
                   (b"cXXXXXX.x", lambda p: libc.mkstemps(p, 2)),
                   (b"dXXXXXX.x", lambda p: libc.mkostemps(p, 2, os.O_APPEND))):
    path = ctypes.create_string_buffer(name)
    fd = ok(call(path))
    os.write(fd, path.value)
    assert b"X" * 6 not in path.value and os.stat(path.value).st_mode & 0o777 == 0o600
folder = ctypes.create_string_buffer(b"eXXXXXX")
assert libc.mkdtemp(folder) and os.path.isdir(folder.value)
assert libc.mkstemp(ctypes.create_string_buffer(b"short")) == -1 and ctypes.get_errno() == 22
"""
        first = self.followed(body)
        for path in self.root.iterdir():
            path.rmdir() if path.is_dir() else path.unlink()
        self.assertEqual(first.trace.body, self.followed(body).trace.body)

    def test_a_name_that_is_taken_is_passed_over(self) -> None:
        """By another process, or by one before a crash."""
        body = 'path = ctypes.create_string_buffer(b"aXXXXXX"); ok(libc.mkstemp(path))'
        self.play(body)
        self.play(body)
        self.assertEqual(len(list(self.root.iterdir())), 2)

    def test_links(self) -> None:
        """A further name of a file that was written, which outlives the first."""
        run = self.followed(
            """
fd = made("tmp", b"content")
os.fsync(fd)
os.link("tmp", "final")
os.unlink("tmp")
os.link("final", "again")
os.pwrite(fd, b"C", 0)
os.truncate("again", 5)
"""
        )
        self.assertEqual([x.result for x in run.trace.of(LINK)], [0, 0])
        self.assertEqual({r.file for r in run.trace.of(WRITE, LINK)}, {1})
        plan = "fault kind=link file=final nth=1 action=kill\n"
        self.root.joinpath("final").unlink()
        run = self.play('made("tmp"); os.link("tmp", "final")', plan)
        self.assertEqual((run.status, (self.root / "final").exists()), (SIGKILL, False))

    def test_names_that_are_not_followed(self) -> None:
        """A symbolic link; a link that leaves the root, enters it, or names what had no name; a write by a
        name outside."""
        outside = self.base / "outside"
        outside.write_bytes(b"")
        marks = self.marked(
            """
out = sys.argv[1]
fd = made("f", b"x")
os.symlink("f", "s")
os.mkdir("d")
os.symlink("f", "s", dir_fd=os.open("d", os.O_RDONLY))
os.link("f", out + "2")
os.close(os.open(out + "2", os.O_RDONLY))
os.close(os.open(out + "2", os.O_WRONLY))
os.close(os.open(out + "2", os.O_RDWR))
os.link(out, "g")
nameless = os.open(".", os.O_RDWR | os.O_TMPFILE)
ok(libc.linkat(-100, b"/proc/self/fd/%d" % nameless, -100, b"named", 0x400))
try:
    os.link("nothing", "h")
except FileNotFoundError:
    pass
""",
            str(outside),
        )
        self.assertEqual(
            marks,
            [
                "unseen symlink path=s",
                "unseen symlink path=d/s",
                "unseen link path=f",
                "unseen open-by-another-name path=f",
                "unseen open-by-another-name path=f",
                "unseen link path=g",
                "unseen link path=named",
            ],
        )

    def test_names_are_exchanged(self) -> None:
        """Each has then what the other had, whoever calls it how."""
        self.followed(
            """
made("f", b"x"); made("g", b"yy")
ok(libc.renameat2(-100, b"f", -100, b"g", 2))
ok(libc.renameat2(-100, b"f", -100, b"h", 1))
"""
        )

    def test_what_holds_no_data_replaces_a_file(self) -> None:
        """A FIFO, which no image has: the name that it takes is gone."""
        self.followed(
            """
made("f", b"x"); made("g", b"y")
os.mkfifo("p")
os.rename("p", "q")
os.rename("q", "f")
"""
        )

    def test_syncs_of_everything(self) -> None:
        """sync, and syncfs of the root's file system, whichever descriptor tells it."""
        run = self.followed(
            """
os.sync()
fd = made("f", b"x")
os.sync()
ok(libc.syncfs(fd))
ok(libc.syncfs(os.open("..", os.O_RDONLY)))
ok(libc.syncfs(os.open("/proc", os.O_RDONLY)))
"""
        )
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, WRITE, *[SYNC_ALL] * 3])


class Elsewhere(WayCase):
    """Descriptors and memory that no call here has opened."""

    def test_an_inherited_descriptor_is_followed(self) -> None:
        """Of a file that the recording knows; its position and O_APPEND too."""
        self.followed(
            """
fd = made("f", b"one", os.O_RDWR | os.O_CREAT | os.O_APPEND)
os.set_inheritable(fd, True)
import subprocess
subprocess.run([sys.executable, "-c", "import os; os.write(%d, b'two')" % fd], pass_fds=[fd], check=True)
os.write(fd, b"three")
"""
        )
        self.assertEqual((self.root / "f").read_bytes(), b"onetwothree")

    def test_one_of_two_descriptors_appends(self) -> None:
        """It does, whatever the other one is told."""
        self.followed(
            """
import fcntl
one = made("f", b"content", os.O_RDWR | os.O_CREAT | os.O_APPEND)
two = os.open("f", os.O_RDWR)
fcntl.fcntl(two, fcntl.F_SETFL, 0)
os.lseek(one, 0, 0)
os.write(one, b"more")
os.write(two, b"C")
"""
        )

    def test_a_descriptor_that_was_received(self) -> None:
        """Over a socket: followed if a process of the recording has opened the file, else marked."""
        body = """
import subprocess
here, there = socket.socketpair()
env = dict(os.environ)
if sys.argv[1] == "bare":
    del env["LD_PRELOAD"]
subprocess.run([sys.executable, "-c", '''
import os, socket
with socket.socket(fileno=%d) as s:
    socket.send_fds(s, [b"x"], [os.open("f", os.O_RDWR | os.O_CREAT)])
''' % there.fileno()], env=env, pass_fds=[there.fileno()], check=True)
_, fds, _, _ = socket.recv_fds(here, 1, 4)
os.write(fds[0], b"received")
"""
        self.followed(body, "recorded")
        (self.root / "f").unlink()
        self.assertEqual(self.marked(body, "bare"), ["unseen received path=f"])

    @unittest.skipUnless(sys.maxsize > 2**32, "it has the layout of 64 bits")
    def test_descriptors_of_several_messages(self) -> None:
        """Each that came by recvmmsg, whichever message had it."""
        body = """
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint), ("parts", ctypes.POINTER(Part)),
                ("n_parts", ctypes.c_size_t), ("control", ctypes.c_void_p), ("room", ctypes.c_size_t),
                ("flags", ctypes.c_size_t), ("got", ctypes.c_uint)]
import subprocess
here, there = socket.socketpair(type=socket.SOCK_DGRAM)
env = {name: text for name, text in os.environ.items() if name != "LD_PRELOAD"}
subprocess.run([sys.executable, "-c", '''
import os, socket
with socket.socket(fileno=%d) as s:
    for name in "fg":
        socket.send_fds(s, [b"x"], [os.open(name, os.O_RDWR | os.O_CREAT)])
''' % there.fileno()], env=env, pass_fds=[there.fileno()], check=True)
byte = ctypes.create_string_buffer(1)
rooms = [ctypes.create_string_buffer(64) for _ in range(2)]
part = Part(ctypes.addressof(byte), 1)
messages = (Message * 2)(*(Message(None, 0, ctypes.pointer(part), 1, ctypes.addressof(room), 64) for room in rooms))
assert ok(libc.recvmmsg(here.fileno(), messages, 2, 0, None)) == 2
"""
        marks = self.marked(body)
        self.assertEqual(marks, ["unseen received path=f", "unseen received path=g"])

    def test_a_mapping_that_is_made_writable(self) -> None:
        """mprotect, or pkey_mprotect, of a shared mapping; a private one, and one that stays as it is, are no
        reason for a mark."""
        body = """
fd = made("f", b"x" * 8192)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
at = libc.mmap(None, 8192, 1, int(sys.argv[1]), fd, 0)
other = libc.mmap(None, 8192, 1, 2, fd, 0)
ok(libc.mprotect(ctypes.c_void_p(other), 4096, 3))
protect = lambda at, bytes, how: libc.pkey_mprotect(at, bytes, how, -1)
ok((protect if sys.argv[3:] else libc.mprotect)(ctypes.c_void_p(at + 4096), 4096, int(sys.argv[2])))
"""
        self.assertEqual(self.marked(body, "1", "3"), ["unseen mprotect path=f"])
        self.assertEqual(self.marked(body, "1", "3", "by key"), ["unseen mprotect path=f"])
        for arguments in (("1", "1"), ("2", "3")):
            self.followed(body, *arguments)

    def test_a_mapping_of_each_kind(self) -> None:
        """Of a file, to be written: shared, under both names of that; a private one is nobody's."""
        body = 'fd = made("f", b"x" * 4096); mmap.mmap(fd, 4096, int(sys.argv[1]), 3)'
        for kind in ("1", "3"):  # MAP_SHARED, MAP_SHARED_VALIDATE
            self.assertEqual(self.marked(body, kind), ["unseen mmap path=f"])
        self.followed(body, "2")

    def test_attributes_are_no_changes(self) -> None:
        """Times, rights, owners and extended attributes."""
        self.followed(
            """
fd = made("f", b"x")
os.utime("f", (1, 2)); os.chmod("f", 0o600); os.chown("f", os.getuid(), os.getgid())
try:
    os.setxattr("f", "user.a", b"b")
except OSError:
    pass
"""
        )


if __name__ == "__main__":
    unittest.main()
