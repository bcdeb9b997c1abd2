"""The program that mounts a disk's image: what is recorded of it, what a crashed one is when it is recovered,
and that nothing of it is left however it ends."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import FDATASYNC, FSYNC, MARK, OPEN, WRITE, PreloadCase, read_trace

UNDER = os.environ["TORNPAGE_TEST_UNDER"]
FS = os.environ.get("TORNPAGE_TEST_FS", "")
DISK = "tornpage.disk"
SIZE = 16 << 20
SECTOR = 4096
IN_CLOSE_WRITE = 8
NOT_HERE = 77
ANSWER = 'while read -r dir; do echo "{\\"ok\\": true, \\"state\\": \\"$(cat "$dir"/*)\\"}"; done'


def make_disk(folder: Path) -> None:
    """An empty ext4 in its file."""
    folder.mkdir()
    with (folder / DISK).open("wb") as file:
        file.truncate(SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-b", str(SECTOR), folder / DISK], check=True)


def why_not() -> str:
    """Why nothing can be mounted here; "" if it can."""
    if shutil.which("mkfs.ext4") is None:
        return "there is no mkfs.ext4"
    with tempfile.TemporaryDirectory() as folder:
        make_disk(Path(folder, "disk"))
        done = subprocess.run(
            [UNDER, "run", "ext4", Path(folder, "disk"), "/bin/true"],
            capture_output=True,
            text=True,
            check=False,
        )
    return "" if done.returncode == 0 else done.stderr.strip()


class UnderCase(PreloadCase):
    """A disk in a folder of its own."""

    def setUp(self) -> None:
        super().setUp()
        self.disk = self.root / "disk"
        make_disk(self.disk)

    def run_on(self, script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """A shell that begins in the disk's folder. words: in front of it."""
        argv = [*words, UNDER, "run", "ext4", self.disk, "sh", "-c", f'cd "{self.disk}"; {script}']
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    def recover(self, how: str, script: str, *folders: Path) -> tuple[int, list[dict[str, object]]]:
        """Its exit code and answers."""
        done = subprocess.run(
            [UNDER, "recover", "ext4", how, "sh", "-c", script],
            input="".join(f"{folder}\n" for folder in folders),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def crashed(self, script: str) -> Path:
        """A copy of the image as it is behind the script, while it is mounted."""
        copy = self.root / "crashed"
        copy.mkdir()
        os.link(self.disk / DISK, self.root / "image")
        done = self.run_on(f'{script}; cp "{self.root}/image" "{copy}/{DISK}"')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return copy

    def is_mounted(self, process: int) -> bool:
        """In the namespace of this process."""
        return str(self.root) in Path(f"/proc/{process}/mountinfo").read_text("utf-8")


class TestUnder(UnderCase):
    """What the program does."""

    def test_what_is_written_is_in_the_image(self) -> None:
        """And in the folder there is only the image, and nothing is mounted."""
        self.assertEqual(self.run_on("echo one > a; ls").stdout, "a\n")
        self.assertEqual([path.name for path in self.disk.iterdir()], [DISK])
        self.assertFalse(self.is_mounted(os.getpid()))
        self.assertEqual(self.recover("once", ANSWER, self.disk)[1], [{"ok": True, "state": "one"}])

    def test_its_end_is_the_programs(self) -> None:
        """An exit code, a signal; and what the program has left running does not keep the disk."""
        self.assertEqual(self.run_on("exit 7").returncode, 7)
        self.assertEqual(self.run_on("kill -KILL $$").returncode, -signal.SIGKILL)
        left = self.run_on('(sleep 1000 >/dev/null 2>&1 <&- & ); echo "$(pwd)"')
        self.assertEqual((left.returncode, left.stdout), (0, f"{self.disk}\n"))

    def test_a_crashed_disk_has_its_journal(self) -> None:
        """What was fsynced is only there by its replay; what was not is lost."""
        copy = self.crashed("echo synced > a; sync a; echo lost > b; echo lost >> a")
        for how in ("once", "many"):
            code, answers = self.recover(how, ANSWER, copy)
            self.assertEqual((code, answers), (0, [{"ok": True, "state": "synced"}]))

    def test_one_process_may_answer_for_many(self) -> None:
        """In turn; and each answer comes when its disk is unmounted."""
        self.run_on("echo one > a")
        other = self.root / "other"
        shutil.copytree(self.disk, other)
        with subprocess.Popen(
            [UNDER, "recover", "ext4", "many", "sh", "-c", ANSWER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            for folder in (self.disk, other, self.disk):
                process.stdin.write(f"{folder}\n")
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["state"], "one")
                self.assertFalse(self.is_mounted(process.pid))
        self.assertEqual(process.returncode, 0)

    def test_what_does_not_mount_is_an_answer(self) -> None:
        """Of the recovery; that there is no image is the machine's failure."""
        with (self.disk / DISK).open("r+b") as file:
            file.write(bytes(SIZE))
        code, (answer,) = self.recover("many", ANSWER, self.disk)
        self.assertEqual((code, answer["ok"]), (0, False))
        self.assertEqual(answer["message"], "ext4 does not mount: Invalid argument")
        self.assertNotIn("machine", answer)
        (self.disk / DISK).unlink()
        code, (answer,) = self.recover("many", ANSWER, self.disk)
        self.assertEqual((code, answer["ok"], answer["machine"]), (0, False, True))

    def test_an_end_without_an_answer(self) -> None:
        """Is passed on, and so is a second line."""
        for how in ("once", "many"):
            self.assertEqual(self.recover(how, "read dir; exit 5", self.disk), (5, []))
            self.assertEqual(
                self.recover(how, "read dir; kill -SEGV $$", self.disk), (-signal.SIGSEGV, [])
            )
        two = 'read -r dir; echo "{}"; echo "{}"'
        self.assertEqual(self.recover("once", two, self.disk), (0, [{}, {}]))

    def test_a_folder_in_use_is_no_verdict(self) -> None:
        """A process for many that stays in one: the next answer would be of another disk."""
        script = 'read -r dir; cd "$dir"; echo "{}"; read -r dir'
        _code, (answer,) = self.recover("many", script, self.disk)
        self.assertEqual((answer["ok"], answer["machine"]), (False, True))

    def test_nothing_is_left_of_one_that_is_killed(self) -> None:
        """The kernel lets go of the image."""
        inotify = ctypes.CDLL(None, use_errno=True)
        events = inotify.inotify_init()
        inotify.inotify_add_watch(events, str(self.disk / DISK).encode(), IN_CLOSE_WRITE)
        with subprocess.Popen(
            [UNDER, "run", "ext4", self.disk, "sh", "-c", "echo there; exec sleep 1000"],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            self.assertTrue(self.is_mounted(process.pid))
            process.kill()
        self.assertGreater(len(os.read(events, 4096)), 0)  # waits for it
        os.close(events)
        self.assertEqual(self.run_on("echo again").stdout, "again\n")


@unittest.skipUnless(FS, "tornpage-fs is not built: it needs libfuse3-dev")
class TestRecorded(UnderCase):
    """With the recorder below the image."""

    def test_a_flush_is_a_sync_of_the_image(self) -> None:
        """It stands behind the writes that the kernel made for an fsync, and before it returns."""
        mark = f"{sys.executable} -c \"import tornpage_mark as m; m.mark('synced')\""
        env = self.environment(
            LD_PRELOAD="",
            TORNPAGE_PAYLOAD="full",
            TORNPAGE_ROOT=str(self.disk),
            TORNPAGE_CONTROL=f"tornpage-test-{os.getpid()}",
            PYTHONPATH=os.environ["TORNPAGE_TEST_MARKING"],
            PATH=os.environ["PATH"],
        )
        script = f'cd "{self.disk}"; echo synced > a; sync a; {mark}'
        argv = [FS, UNDER, "run", "ext4", self.disk, "sh", "-c", script]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        trace = read_trace(self.trace_path)
        self.assertEqual({one.text for one in trace.of(OPEN)}, {DISK})
        (marked,) = (one.seq for one in trace.of(MARK) if one.text == "synced")
        written = [
            one.seq for one in trace.of(WRITE) if b"synced\n" in one.payload and one.seq < marked
        ]
        synced = max(one.seq for one in trace.of(FSYNC, FDATASYNC) if one.seq < marked)
        self.assertEqual(len(written), 1)
        between = [one for one in trace.of(WRITE) if written[0] < one.seq < synced]
        self.assertGreater(len(between), 0)  # the journal
        self.assertTrue(all(one.offset % SECTOR == 0 for one in trace.of(WRITE)))


if __name__ == "__main__":
    if why := why_not():
        print(why)
        sys.exit(NOT_HERE)
    unittest.main()
