"""`make finds`: runs the campaigns of workloads/finds and writes docs/FINDS.md: what was found, in which
engine, and after how many crash states. Of each find a state that shows it is asked again, as it was kept,
and explained: the list below the table; and disks of real file systems are asked for it, where they can be.
What a file NAME.md beside NAME.toml tells of a find stands below that. Each line of it with a command and
`{KEY}` is filled: the command is run with --json, and KEY is what it prints under that key, `{violations}`,
or `{counters.checkpoints}`. `target check` runs as often as `--recordings` says, for a server's threads make
each recording another one.

A campaign or line whose target is not here, or whose command fails, keeps what the page says of it. The page
is written after each find: what was measured is not lost when a later one fails. Exit code 1 if a command
failed; 2 if nothing was run: a name is no find, or scratch is not on a disk.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from tornpage.plans.campaign import Campaign, load_campaign
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import ConfigError, TornpageError
from tornpage.vocabulary.paths import ROOT, filesystem_of, find_paths, tmpfs_folder

PAGE = ROOT / "docs" / "FINDS.md"
PLANS = ROOT / "workloads" / "finds"
KNOWN: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("finds.toml").read_text("utf-8")
)
STATES_FIRST = 100
COMMAND = re.compile(r"`tornpage ((?:run|target check) [^`]+)`")
KEY = re.compile(r"\{([a-z_.0-9A-Z]+)\}")
FIGURES = r"[\w:, ]+"
"""What stands in its place when it is filled."""
RECORDINGS = 3
TRIES = "--tries 2"
"""Options of `tornpage confirm`: recordings on each real file system."""
REAL = -2
"""Which cell of a row says what came of them."""
MEMORY = ("tmpfs", "ramfs")
"""File systems on which an fsync takes no time."""
HEAD = """\
# Finds

Bugs that Tornpage found in third-party engines, with the command that repeats each. Most are known upstream
and fixed in later versions, and serve as controls. [TARGETS.md](TARGETS.md) says what each target shows
when nothing is wrong. Below the table, each find is explained and some are checked by hand.

- `make finds` runs the campaigns of `workloads/finds` and writes this page; do not edit it.
- Scratch is on a disk (`TORNPAGE_TMP`). On a tmpfs an fsync takes no time, so nothing can happen during
  one.
- The number of states is doubled, from 100 on, until the find appears. With a threaded server that is
  partly chance.
- On a real file system: the result of `tornpage confirm ID` for the first state. "ext4 3 of 40" means that
  3 of 40 images of a disk with ext4 show the same; an empty cell means not tried. "None" is [no
  proof](FINDINGS.md#on-a-real-file-system) that none can: such a disk writes 4096 bytes as a whole, and
  does not show what a smaller tear breaks, as one of a page of 4k.
- The figures below the list, except lost names, were measured when the profile `ext4-ordered` promised more
  than today: an fsync of any file made all earlier names durable.

| engine | what is wrong | since, fixed, known | what Tornpage reports | states \
| on a real file system | repeat it |
|---|---|---|---|---:|---|---|
"""

CAUSES = """\
## Each find replayed and explained

For the first state of each find, as it was kept: `tornpage replay ID --ask kept` recovers its image again,
and crashes its recording there again; `tornpage explain ID` says what must be lost for it. If the programs
have debug information, the functions that made the calls follow. Finds without an item were measured before
there were items.

"""
WIDTH = 118
PYTHON = re.compile(r"\.py$|^<")
"""Files of the program that works with the engine."""
FRAMES_SHOWN = 3
"""Of an operation, the innermost that are the engine's own and have a name."""

Ran = Callable[[str], list[dict[str, Any]] | None]
"""What a command printed, each time that it ran; None if its target is not here."""


@dataclass(frozen=True, slots=True)
class Bug:
    """said: its invariants and words; trial: ID of what shows it."""

    said: str
    trial: str

    @property
    def is_state(self) -> bool:
        """Else a run without a crash shows it."""
        return not self.trial.partition(".")[2].startswith("s")


@dataclass(frozen=True, slots=True)
class Measured:
    """Of a campaign: its row of the table, its item of the list below."""

    row: str
    cause: str


def measured(file: Path, campaign: Campaign, old: str) -> Measured | None:
    """What comes of the campaign; None if its target is not here. old: the row of before."""
    what = ready(campaign.target)
    if what is None:
        return None
    assert campaign.explore is not None, "these are power losses"
    known = KNOWN[file.stem]
    states = STATES_FIRST
    while True:
        with tempfile.TemporaryDirectory() as out:
            found = bugs_of(file, states, campaign.explore.depth, Path(out))
            shown = [bug for bug in found if known.get("shows", "") in bug.said]
            if shown or states >= campaign.explore.states:
                state_bugs = [bug for bug in shown if bug.is_state]
                cause = cause_of(file.stem, state_bugs, Path(out))
                real = confirmed(state_bugs, known.get("confirm", ""), Path(out)) or cell_of(old)
                break
        states = min(2 * states, campaign.explore.states)
    command = f"`tornpage run workloads/finds/{file.name} --states {states} "
    command += f"--depth {campaign.explore.depth}`"
    said = "<br>".join(bug.said for bug in found) or "nothing"
    count = str(states) if shown else f"none in {states}"
    cells = (what, campaign.description, known["upstream"], said, count, real, command)
    row = "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    return Measured(row, cause)


def cause_of(name: str, bugs: list[Bug], out: Path) -> str:
    """What was kept of the first of these says now, and why that is so. out: of the run."""
    if not bugs:
        return item(name, "no state shows it.")
    trial, where = bugs[0].trial, ["--out", str(out)]
    kept = "; ".join(printed(["replay", trial, "--ask", "kept", *where])["kept"])
    try:
        found = printed(["explain", trial, *where])
    except CommandFailed as error:
        return item(name, f"{kept}. Not explained: {error}")
    return item(name, " ".join([f"{kept}.", found["sentence"], *calls_of(found["cause"])]))


def confirmed(bugs: list[Bug], words: str, out: Path) -> str:
    """What disks of real file systems show of the first of these, "" if none could be asked. words: options
    of `tornpage confirm`; out: of the run."""
    if not bugs:
        return ""
    asked = ["confirm", bugs[0].trial, *(words or TRIES).split(), "--out", str(out)]
    try:
        disks = printed(asked)["disks"]
    except CommandFailed as error:
        print(error, file=sys.stderr)
        return ""
    told = (
        f"{disk['under']} {disk['shown'] or 'none'} of {disk['states']}"
        for disk in disks
        if disk["states"]
    )
    return ", ".join(told)


def cell_of(row: str) -> str:
    """The same of a row of the page."""
    cells = row.split(" | ")
    return cells[REAL].strip() if row else ""


def calls_of(cause: dict[str, Any]) -> Iterable[str]:
    """The functions that made its operations, in a sentence each."""
    relied = [cause["relied"]] if cause["relied"] else []
    for operation in (*cause["lost"], *relied):
        names = [
            f"{frame['function'].partition('(')[0]} {Path(frame['file']).name}:{frame['line']}"
            for frame in operation["frames"]
            if frame["function"] and frame["line"] and not PYTHON.search(frame["file"])
        ]
        if names:
            yield f"Operation {operation['seq']}: `{' ← '.join(names[:FRAMES_SHOWN])}`."


def item(name: str, text: str) -> str:
    """Of a list."""
    return textwrap.fill(
        f"- `{name}`: {text}",
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


class CommandFailed(Exception):
    """What a command said when it neither found something nor found nothing."""


def ready(target: str) -> str | None:
    """What the target is; None, and a word on standard error, if it is not here."""
    try:
        return make_target(target, find_paths().build).what
    except TornpageError as error:
        print(error, file=sys.stderr)
        return None


def bugs_of(file: Path, states: int, depth: int, out: Path) -> list[Bug]:
    """What was found; the run and what was kept of it is in `out`."""
    limits = ["--states", str(states), "--depth", str(depth), "--out", str(out)]
    bugs = printed(["run", str(file), *limits])["bugs"]
    names = (", ".join(f"I{n}" for n in bug["invariants"]) for bug in bugs)
    return [
        Bug(f"{name}: {bug['title']}", str(bug["trial"]))
        for name, bug in zip(names, bugs, strict=True)
    ]


def printed(arguments: list[str]) -> dict[str, Any]:
    """The object that a command prints last."""
    with tempfile.TemporaryDirectory() as out:
        more = ["--jobs", "1"] if arguments[0] == "run" else []
        more += ["--out", out] if arguments[0] == "run" and "--out" not in arguments else []
        command = [sys.executable, "-m", "tornpage", *arguments, *more, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise CommandFailed(f"tornpage {' '.join(arguments)}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(command: str, recordings: int, failed: list[str]) -> list[dict[str, Any]] | None:
    """As often as is told above. failed: gets the command, if it does."""
    words = shlex.split(command)
    is_check = words[:2] == ["target", "check"]
    if ready(_target_of(words)) is None:
        return None
    try:
        return [printed(words) for _ in range(recordings if is_check else 1)]
    except CommandFailed as error:
        print(error, file=sys.stderr)
        failed.append(command)
        return None


def _target_of(words: list[str]) -> str:
    if words[0] == "target":
        return words[2]
    if "--target" in words:
        return words[words.index("--target") + 1]
    return load_campaign(str(ROOT / words[1]), PLANS).target


def told(text: str, old: list[str], ran: Ran) -> str:
    """What is told of a find, with its figures; old: lines of the page, which keep theirs where `ran` has
    none."""
    return "\n".join(_filled(line, old, ran) for line in text.splitlines()) + "\n"


def _filled(line: str, old: list[str], ran: Ran) -> str:
    command = COMMAND.search(line)
    if command is None or not KEY.search(line):
        return line
    answers = ran(command[1])
    if answers is None:
        return next((kept for kept in old if shape_of(line).fullmatch(kept)), line)
    return KEY.sub(lambda key: ", ".join(_shown(answer, key[1]) for answer in answers), line)


def shape_of(line: str) -> re.Pattern[str]:
    """What a line of a tale is on the page. One without a command stays as it is."""
    parts = KEY.sub("\0", line).split("\0") if COMMAND.search(line) else [line]
    return re.compile(FIGURES.join(map(re.escape, parts)))


def _shown(answer: dict[str, Any], path: str) -> str:
    """A number, or the numbers of a table."""
    value: Any = answer
    for key in path.split("."):
        value = value.get(key, 0) if isinstance(value, dict) else 0
    if isinstance(value, dict):
        return ", ".join(f"{key}: {count}" for key, count in value.items()) or "none"
    return str(value)


class Page:
    """docs/FINDS.md: a row and an item for each campaign and the text of each find, those of before until
    there are new ones."""

    def __init__(self) -> None:
        """As it is."""
        self.old = PAGE.read_text("utf-8").splitlines() if PAGE.exists() else []
        self.rows = {file: self._row_of(file) for file in sorted(PLANS.glob("*.toml"))}
        self.causes = {file: self._cause_of(file) for file in self.rows}
        self.tales = {
            file: told(file.read_text("utf-8"), self.old, lambda _command: None)
            for file in sorted(PLANS.glob("*.md"))
        }

    def _row_of(self, file: Path) -> str:
        return next((line for line in self.old if f"/{file.name} " in line), "")

    def _cause_of(self, file: Path) -> str:
        first = next(
            (n for n, line in enumerate(self.old) if line.startswith(item(file.stem, ""))), None
        )
        if first is None:
            return ""
        behind = takewhile(lambda line: line.startswith("  "), self.old[first + 1 :])
        return "\n".join([self.old[first], *behind])

    def write(self) -> None:
        """All of it."""
        rows = HEAD + "\n".join(filter(None, self.rows.values())) + "\n"
        causes = CAUSES + "\n".join(filter(None, self.causes.values())) + "\n"
        PAGE.write_text("\n".join([rows, causes, *self.tales.values()]), "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Every file, or those that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="finds to run; all others keep what the page says")
    parser.add_argument("--recordings", type=int, default=RECORDINGS, help="of each `target check`")
    given = parser.parse_args(arguments)
    page = Page()
    there = [file.stem for file in page.rows]
    unknown = [name for name in given.names if name not in there]
    if unknown:
        parser.error(f"no such find: {', '.join(unknown)}; there are {', '.join(there)}")
    try:
        require_disk()
    except ConfigError as error:
        parser.error(str(error))
    failed: list[str] = []
    for file in page.rows:
        if not given.names or file.stem in given.names:
            renew(page, file, given.recordings, failed)
            page.write()
    return int(bool(failed))


def require_disk() -> None:
    """ConfigError where an fsync of a crash image takes no time."""
    folder = tmpfs_folder()
    kind = filesystem_of(folder)
    if kind in MEMORY:
        raise ConfigError(
            f"scratch in {folder} is on a {kind}: set TORNPAGE_TMP to a folder on a disk"
        )


def renew(page: Page, file: Path, recordings: int, failed: list[str]) -> None:
    """Row and text of a find. failed: gets each command that does."""
    try:
        found = measured(file, load_campaign(str(file), PLANS), page.rows[file])
        if found is not None:
            page.rows[file], page.causes[file] = found.row, found.cause
    except CommandFailed as error:
        print(error, file=sys.stderr)
        failed.append(f"run {file.name}")
    tale = file.with_suffix(".md")
    if tale in page.tales:
        text = tale.read_text("utf-8")
        page.tales[tale] = told(text, page.old, lambda words: run(words, recordings, failed))


if __name__ == "__main__":
    sys.exit(main())
