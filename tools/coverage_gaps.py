"""What `make coverage` makes of gcovr's counters: uncovered ranges, and the reasons of coverage.toml.

Pure: reads files that it is given, runs nothing. Keyed by function and source text, never by line number.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tornpage.vocabulary.errors import ConfigError

__all__ = [
    "Explanations",
    "Gap",
    "Run",
    "SourceFile",
    "Total",
    "below_aim",
    "contradicted",
    "explain",
    "gaps_of",
    "load_table",
    "read_counts",
    "total_of",
]

CONTEXT_LINES = 2
"""Executable lines above an uncovered range in which an explanation may find its text, too."""
WHOLE = "*"


# ---- what coverage.toml says ----


class Run(BaseModel):
    """One campaign: arguments of `tornpage run`, and its exit code: 1 for a control, which must find; 3 where
    a short run misses what its campaign claims."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    args: list[str] = Field(min_length=1)
    exit_code: int = 0
    why: str


class Reason(BaseModel):
    """Why lines are not covered. reachable: a campaign could reach them, so that they count against the aim.
    tested: true: the C tests must get to each range; false: none may; left out: not asked.
    lines: "file:function" -> texts, each found in (or just above) exactly the ranges meant; "*" = all of it.
    text: ranges that contain it need no entry."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    why: str
    reachable: bool
    tested: bool | None = None
    text: str = ""
    lines: dict[str, list[str]] = {}


class Explanations(BaseModel):
    """coverage.toml. aim: percent of the reachable lines of each folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    aim: float = Field(gt=0, le=100)
    run: list[Run] = Field(min_length=1)
    reason: dict[str, Reason]


def load_table(path: Path) -> Explanations:
    """Raises ConfigError naming file and key."""
    try:
        return Explanations.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error


# ---- what gcovr says ----


class Branch(BaseModel):
    count: int


class Line(BaseModel):
    """An executable line."""

    number: int = Field(alias="line_number")
    count: int
    branches: list[Branch]
    noncode: bool = Field(alias="gcovr/noncode")


class Function(BaseModel):
    name: str
    lineno: int


class SourceFile(BaseModel):
    """One file with its counters; only executable lines are kept by read_counts()."""

    file: str
    lines: list[Line]
    functions: list[Function]

    def function_of(self, number: int) -> str:
        started = [f for f in self.functions if f.lineno <= number]
        return max(started, key=lambda f: f.lineno).name if started else ""


class Counts(BaseModel):
    files: list[SourceFile]


def read_counts(text: str) -> list[SourceFile]:
    """gcovr's JSON, in order of file and line."""
    found = Counts.model_validate_json(text).files
    for file in found:
        file.lines = sorted((x for x in file.lines if not x.noncode), key=lambda x: x.number)
    return sorted(found, key=lambda file: file.file)


# ---- uncovered ranges and their reasons ----


@dataclass(frozen=True, slots=True)
class Gap:
    """A run of executable lines of one function, none of them reached. context: their source, and that
    of CONTEXT_LINES executable lines above."""

    file: str
    function: str
    numbers: tuple[int, ...]
    text: str
    context: str

    @property
    def place(self) -> str:
        return f"{Path(self.file).name}:{self.function}"

    @property
    def where(self) -> str:
        first, last = self.numbers[0], self.numbers[-1]
        return f"{self.file}:{first}" + (f"-{last}" if last != first else "")


def gaps_of(file: SourceFile, source: Sequence[str]) -> Iterator[Gap]:
    """The uncovered ranges of a file in the order of its lines."""
    at = 0
    while at < len(file.lines):
        end = at
        function = file.function_of(file.lines[at].number)
        while (
            end < len(file.lines)
            and file.lines[end].count == 0
            and file.function_of(file.lines[end].number) == function
        ):
            end += 1
        if end > at:
            numbers = tuple(line.number for line in file.lines[at:end])
            above = file.lines[max(at - CONTEXT_LINES, 0)].number
            text = _source(source, numbers[0], numbers[-1])
            context = _source(source, above, numbers[-1])
            yield Gap(file.file, function, numbers, text, context)
        at = max(end, at + 1)


def _source(source: Sequence[str], first: int, last: int) -> str:
    """Lines first to last with single spaces. A statement that starts there is taken to its end."""
    while last < len(source) and not source[last - 1].rstrip().endswith((";", "{", "}", "*/")):
        last += 1
    return " ".join(" ".join(source[first - 1 : last]).split())


def explain(gaps: Sequence[Gap], table: Explanations) -> tuple[list[tuple[Gap, str]], list[str]]:
    """Each gap with the name of its reason ("" = none), and what does not fit: gaps without a reason or with
    several, texts that fit no gap."""
    used: set[tuple[str, str, str]] = set()
    explained = []
    problems = []
    for gap in gaps:
        names = []
        for name, reason in table.reason.items():
            texts = [t for t in reason.lines.get(gap.place, []) if t == WHOLE or t in gap.context]
            used |= {(name, gap.place, text) for text in texts}
            if texts:
                names.append(name)
        if not names:
            names = [n for n, r in table.reason.items() if r.text and r.text in gap.text]
        if len(names) != 1:
            found = f"has several reasons: {', '.join(names)}" if names else "has no reason"
            problems.append(f"{gap.where} ({gap.function}) {found}: {gap.text[:100]}")
        explained.append((gap, names[0] if len(names) == 1 else ""))
    for name, reason in table.reason.items():
        for place, texts in reason.lines.items():
            stale = [text for text in texts if (name, place, text) not in used]
            problems += [f"reason {name}: {place}: no uncovered line fits {t!r}" for t in stale]
    return explained, problems


def contradicted(
    explained: Sequence[tuple[Gap, str]], table: Explanations, tested: Sequence[SourceFile]
) -> list[str]:
    """Gaps of which the C tests run other lines than their reason says."""
    run = {(file.file, line.number) for file in tested for line in file.lines if line.count}
    problems = []
    for gap, name in explained:
        want = table.reason[name].tested if name else None
        runs = any((gap.file, number) in run for number in gap.numbers)
        if want is not None and want != runs:
            found = "no test" if want else "a test"
            problems.append(f"{gap.where} ({gap.function}): {name}, but {found} of tests/c runs it")
    return problems


@dataclass(frozen=True, slots=True)
class Total:
    """Of a file or folder. excused: uncovered lines that no campaign could reach."""

    lines: int = 0
    covered: int = 0
    excused: int = 0
    branches: int = 0
    taken: int = 0

    def __add__(self, other: Total) -> Total:
        mine = (self.lines, self.covered, self.excused, self.branches, self.taken)
        its = (other.lines, other.covered, other.excused, other.branches, other.taken)
        return Total(*(a + b for a, b in zip(mine, its, strict=True)))

    @property
    def percent_of_reachable(self) -> float:
        reachable = self.lines - self.excused
        return 100 * self.covered / reachable if reachable else 0.0


def total_of(file: SourceFile, explained: Sequence[tuple[Gap, str]], table: Explanations) -> Total:
    excused = [
        len(gap.numbers)
        for gap, name in explained
        if gap.file == file.file and name and not table.reason[name].reachable
    ]
    branches = [branch.count for line in file.lines for branch in line.branches]
    return Total(
        len(file.lines),
        sum(line.count > 0 for line in file.lines),
        sum(excused),
        len(branches),
        sum(count > 0 for count in branches),
    )


def below_aim(totals: dict[str, Total], aim: float) -> list[str]:
    """Folders that miss the aim, or that have no line at all."""
    return [
        f"{folder}: {total.percent_of_reachable:.2f} % of the reachable lines, the aim is {aim:g} %"
        for folder, total in totals.items()
        if total.percent_of_reachable < aim
    ]
