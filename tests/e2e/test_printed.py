"""What a person sees, as it is printed: on terminals of 80 and 200 columns, and piped. Lines that can be
executed are one line everywhere, and are executed as they were printed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from called import called

from tornpage.store.store import Store

pytestmark = pytest.mark.extended

DEADLINE_S = 240
WIDTHS = (80, 200, None)
"""Columns of a terminal; None: piped."""
ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")
BOX = "┏┡└│┃"
CONTROL = ["--option", "doublewrite=off", "--jobs", "1"]
KILLS = ["run", "smoke", *CONTROL, "--scripts", "1", "--fault-free", "0", "--trials", "24"]
LOSSES = ["run", "powerloss", *CONTROL, "--scripts", "1", "--depth", "1", "--states", "300"]
"""In several configurations: what one has shown needs no image of the next."""


@dataclass(frozen=True)
class Printed:
    """Exit code and standard output of a command, without the codes of colours. colours: there were some."""

    code: int
    text: str
    colours: bool

    @property
    def lines(self) -> list[str]:
        """Of the output."""
        return self.text.splitlines()

    def replays(self) -> list[list[str]]:
        """The words of each line that replays a trial."""
        return [shlex.split(line) for line in self.lines if "tornpage replay" in line]


def call(folder: Path, width: int | None, *arguments: str) -> Printed:
    """`tornpage ARGUMENTS --out a folder with a long name`, on a terminal of so many columns or piped. A pipe
    has no columns, even if the terminal around it has told them."""
    out = folder / ("folder of a store whose name is longer than lines used to be" * 2)
    arguments += () if arguments[0] == "doctor" else ("--out", str(out))
    if width is None:
        done = called(Path.cwd(), *arguments, COLUMNS="80", TERM="xterm-256color")
        return _printed(done.returncode, done.stdout)
    command = [sys.executable, "-P", "-m", "tornpage", *arguments]
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    env["TERM"] = "xterm-256color"
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    with subprocess.Popen(command, env=env, stdout=terminal, stderr=subprocess.DEVNULL) as child:
        os.close(terminal)
        text = _read_all(screen)
        os.close(screen)
        return _printed(child.wait(DEADLINE_S), text.replace("\r\n", "\n"))


def _read_all(screen: int) -> str:
    """Until the terminal has no other side: that is an error of reading."""
    parts = []
    while True:
        try:
            part = os.read(screen, 1 << 16)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


def _printed(code: int, text: str) -> Printed:
    plain = ESCAPE.sub("", text)
    return Printed(code, plain, plain != text)


def check_form(printed: Printed, width: int | None) -> None:
    """No markup is left over, tables fit a terminal, a pipe gets no colours."""
    assert not re.search(r"\[/?(red|green|yellow|bold|/)\]|\[/\]", printed.text)
    assert "\x1b" not in printed.text
    if width is None:
        assert not printed.colours
    else:
        tables = [line for line in printed.lines if line[:1] in BOX]
        assert all(len(line) <= width for line in tables)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Printed, Printed]:
    """A folder with the kills and the power losses of a target without doublewrite, and what they printed."""
    folder = tmp_path_factory.mktemp("printed")
    return folder, call(folder, None, *KILLS), call(folder, None, *LOSSES)


def test_a_run_is_told(made: tuple[Path, Printed, Printed]) -> None:
    """Counts, recovery paths, bugs with the line that replays each, the report; nothing is folded."""
    _, kills, losses = made
    for printed, unit in ((kills, "trials"), (losses, "states")):
        check_form(printed, None)
        assert printed.code == 1
        (counts,) = [line for line in printed.lines if " exercised, " in line]
        assert re.fullmatch(
            rf"\d+ {unit}, \d+ exercised, [1-9]\d* broken(, [1-9]\d* [a-z ]+)*, \d+ {unit}/s",
            counts,
        )
        (scripts,) = [line for line in printed.lines if " scripts crashed, " in line]
        assert re.search(r", [1-9]\d* distinct states$", scripts) or unit == "trials"
        (paths,) = [line for line in printed.lines if line.startswith("recovery paths: ")]
        assert paths.endswith(tuple("0123456789"))
        bugs = [line for line in printed.lines if re.match(r"bug \d+, ", line)]
        assert len(bugs) == len(printed.replays()) >= 1
        assert [line for line in printed.lines if re.match(r"    I5 by state, \d+ ", line)]
        assert printed.lines[-2].startswith("report: ")
        assert printed.lines[-2].endswith(".html")
        assert re.match(
            r"VIOLATIONS \(exit 1\): \d+ (new|known) bugs?, next: .*show ", printed.lines[-1]
        )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("run", [1, 2])
def test_a_report_is_the_run_again(
    made: tuple[Path, Printed, Printed], run: int, width: int | None
) -> None:
    """The same lines as at the end of the run, on every width."""
    printed = call(made[0], width, "report", "--run", str(run))
    check_form(printed, width)
    assert printed.code == 1
    assert [line.strip() for line in printed.lines] == [line.strip() for line in made[run].lines]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_kill_is_shown_and_its_line_replays_it(
    made: tuple[Path, Printed, Printed], width: int | None
) -> None:
    """What was hit, sector by sector, what recovery said, the finding, the image, the line; and executed as
    printed, the line reproduces the finding and says the same."""
    trial = made[1].replays()[0][2]
    shown = call(made[0], width, "show", trial)
    check_form(shown, width)
    assert shown.code == 0
    assert shown.lines[0].startswith(f"trial {trial}: violation ")
    for line in (
        r"  fault: kill at write \d+ of \S+, sectors \S+ of 512 bytes",
        r"  \S+ at \d+: (\d+ (new|old|same)(, )?)+",
        r"  run, its last operations:",
        r" +crash +killed",
        r"  recovery: \S.+",
        r"  I\d+ by (state|rule): \S.+",
        r"  image: /.+",
    ):
        assert [text for text in shown.lines if re.fullmatch(line, text)], (line, shown.text)
    (words,) = shown.replays()
    again = call_words(words)
    assert again.code == 1, again.text
    assert "\nreproduced\nthe same verdict\n" in again.text
    assert [line for line in told_again(shown) if line not in again.lines] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_power_loss_is_shown_and_its_line_replays_it(
    made: tuple[Path, Printed, Printed], width: int | None
) -> None:
    """Which writes were torn and which of their sectors are old, what recovery said, the line; and
    executed as printed, the line reproduces the finding and says the same. The trial is one whose image
    was kept, and with it the way of its crash: there is one per fingerprint; here that of a torn page."""
    (images,) = made[0].glob("*/images/2")
    (database,) = made[0].glob("*/tornpage.db")
    with Store(database, write=False) as store:
        answers = {row.number: row.result.answer for row in store.trials(2) if row.result}
    kept = sorted(int(image.name) for image in images.iterdir())
    trial = f"2.{next(number for number in kept if 'torn page' in answers[number])}"
    shown = call(made[0], width, "show", trial)
    check_form(shown, width)
    assert shown.code == 0
    states = [line for line in shown.lines if line.startswith("  power loss, state ")]
    assert len(states) == 1
    assert [line for line in shown.lines if re.match(" +crash +power loss, ", line)]
    torn = r" +(\d+ +)?torn +write \S+, page \d+, .+ (0+1|1+0)[01]*"
    writes = [line for line in shown.lines if re.fullmatch(torn, line)]
    (answer,) = [line for line in shown.lines if line.startswith("  recovery: ")]
    (broken,) = re.findall(r"torn page (\d+) of (\S+?):", answer)
    assert any(f" write {broken[1]}, page {broken[0]}, " in line for line in writes)
    (words,) = shown.replays()
    again = call_words(words)
    assert again.code == 1, again.text
    told = [line for line in told_again(shown)[1:] if not line.startswith("  power loss, ")]
    assert [line for line in told if line not in again.lines] == []


def test_a_trial_without_an_image_is_told_by_its_replay(
    made: tuple[Path, Printed, Printed],
) -> None:
    """One line says so, right above the line that plays it; that tells how it crashed."""
    (database,) = made[0].glob("*/tornpage.db")
    for run in (1, 2):
        with Store(database, write=False) as store:
            broken = [row for row in store.trials(run) if row.result and row.result.violations]
        trial = f"{run}.{next(row.number for row in broken if row.result and not row.result.image)}"
        shown = call(made[0], None, "show", trial)
        assert not [line for line in shown.lines if line.endswith(", its last operations:")]
        assert shown.lines[-2].startswith("  no image was kept; ")
        (words,) = shown.replays()
        again = call_words(words)
        assert again.code == 1, again.text
        assert "\n  run, its last operations:\n" in again.text
        assert re.search(r"\n +crash   ", again.text)


def told_again(shown: Printed) -> list[str]:
    """What `show` prints that a replay prints too: not what the store alone has, which are the bug and the
    place of the image."""
    stored = re.compile(r"  image: |  of bug ")
    return [line for line in shown.lines if not stored.match(line)]


def call_words(words: list[str]) -> Printed:
    """A line as it was printed, up to the name of the program. What all widths print is called once."""
    return _call_words(tuple(words))


@cache
def _call_words(words: tuple[str, ...]) -> Printed:
    variables = [word for word in words[: words.index("tornpage")] if "=" in word]
    environment = dict(word.split("=", 1) for word in variables)
    done = called(Path.cwd(), *words[words.index("tornpage") + 1 :], **environment)
    return _printed(done.returncode, done.stdout)


@pytest.mark.parametrize("width", [80, None])
def test_a_shrunk_finding_is_told(
    made: tuple[Path, Printed, Printed], tmp_path: Path, width: int | None
) -> None:
    """What it was shrunk to, the line that replays it, the script; and the line reproduces it. In a copy
    of the store: its bug has another reproducer from then on."""
    trial = made[1].replays()[0][2]
    folder = tmp_path / "copy"
    shutil.copytree(made[0], folder, symlinks=True)
    printed = call(folder, width, "shrink", trial, "--budget", "2")
    check_form(printed, width)
    assert printed.code == 0
    assert re.match(rf"trial {trial}: I\d+", printed.lines[0])
    assert re.search(r"\n  statements: \d+ -> \d+\n", printed.text)
    assert re.search(r"\n  crash: \S.+\n", printed.text)
    assert "\ncreate table " in printed.text
    (words,) = printed.replays()
    assert call_words(words).code == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_the_doctor_is_told(tmp_path: Path, width: int | None) -> None:
    """A row per check; piped, a row is one line, and every check has its word of all rows."""
    printed = call(tmp_path, width, "doctor")
    check_form(printed, width)
    rows = [line for line in printed.lines if line.startswith("│")]
    assert printed.code == 0, printed.text
    assert len([line for line in rows if "ok" in line]) > 5
    if width is None:
        assert all(len(line.split("│")) == 6 and line.split("│")[1].strip() for line in rows)


def test_pruning_is_told(tmp_path: Path) -> None:
    """How many runs are gone and how many are left, in one line."""
    for _ in range(2):
        call(tmp_path, None, *KILLS[:-1], "2")
    last = call(tmp_path, None, "prune", "--keep", "0", "--dry-run").lines[-1]
    assert last.endswith(", 1 left, 1 of them for the reproducers of bugs")
    call(tmp_path, None, "bugs", "1", "--mark", "ignored")  # else its reproducer's run stays
    told = call(tmp_path, None, "prune", "--keep", "1").lines
    size = re.fullmatch(r"run 1: (\d+\.\d MiB) of images and report", told[0])
    assert size and told[1:] == [f"1 runs deleted, {size[1]}, 1 left"]
    (none,) = call(tmp_path, 80, "prune", "--keep", "1").lines
    assert none.startswith("0 runs deleted, ") and none.endswith(", 1 left")
