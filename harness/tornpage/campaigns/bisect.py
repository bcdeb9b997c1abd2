"""Finds the commit that brought a finding: `git bisect` in the sources of the target, with a replay as test.

What was kept decides where it shows the finding at the bad end and not at the good one: it is deterministic
and takes seconds. Where it does not, as of a write that is no more synced, which the kept recording lacks for
ever, new runs decide. Either end is asked first: a search between two that are alike would name any commit.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tornpage.campaigns.replay import Asked
from tornpage.faults.process import ChildResult, run_child
from tornpage.store.memory import Answer
from tornpage.targets.target import last_object
from tornpage.vocabulary.errors import ConfigError

__all__ = ["Bisected", "Step", "Term", "bisect_find"]

GIT_S = 600.0
BUILD_S = 6 * 3600.0
REPLAY_S = 6 * 3600.0
IN_FOLDER = 'cd "$1" && shift && exec "$@"'
FOUND = "is the first bad commit"
LEFT = "The first bad commit could be any of:"


class Term(StrEnum):
    """What `git bisect` is told of a commit."""

    BAD = "bad"
    GOOD = "good"
    SKIP = "skip"
    """It cannot be built, or says nothing of this finding."""


@dataclass(frozen=True, slots=True)
class Step:
    """A commit that was asked. note: why, in words."""

    commit: str
    subject: str
    mark: Term
    note: str


@dataclass(frozen=True, slots=True)
class Bisected:
    """What came of it. asked: what decided; first_bad: "" if it may be any of `candidates`, since they could
    not be asked, or come before such."""

    trial: str
    asked: Asked
    first_bad: str
    subject: str
    candidates: tuple[str, ...]
    steps: tuple[Step, ...]


def bisect_find(
    trial: str,
    replay: Sequence[str],
    source: Path,
    ends: tuple[str, str],
    build: Sequence[str],
    tell: Callable[[Step], None],
) -> Bisected:
    """Bisects between ends (good, bad) in the Git checkout `source`, which is as before at the end, but for
    what was built in it. replay: words that call `tornpage replay --json` of the finding, but for --ask;
    build: a command, or one word that a shell takes; none: nothing is built. tell: hears each step.
    ConfigError: it is no checkout or has changes, or its ends are alike."""
    git = _Git(source)
    good, bad = (git.commit_of(end) for end in ends)
    search = _Search(git, tuple(replay), _shell_text(build), tell)
    with git.bisecting():
        asked = search.choose(good, bad)
        git.mark(Term.BAD, bad)
        said = git.mark(Term.GOOD, good)
        while FOUND not in said and LEFT not in said:
            said = git.mark(search.ask(git.head(), asked).mark)
        first = said.partition(f" {FOUND}")[0].split()[-1] if FOUND in said else ""
        left = tuple(said.partition(LEFT)[2].split("We cannot")[0].split())
        subject = git.subject_of(first) if first else ""
    return Bisected(trial, asked, first, subject, left, tuple(search.steps))


def _shell_text(build: Sequence[str]) -> str:
    """One word is the text of a shell's command, as `make && make install`."""
    return build[0] if len(build) == 1 else shlex.join(build)


class _Git:
    """A checkout."""

    def __init__(self, source: Path) -> None:
        """ConfigError: it is none, is being bisected, or has changes."""
        self.source = source
        if shutil.which("git") is None:
            raise ConfigError("git is not installed, which bisects")
        if self._run("rev-parse", "--is-inside-work-tree").exit_code != 0:
            raise ConfigError(
                f"{source} is in no Git checkout: --source DIR names that of the target"
            )
        if self._said("status", "--porcelain", "--untracked-files=no"):
            raise ConfigError(
                f"{source} has changes: commit or stash them, since other commits are checked out"
            )
        if self._run("bisect", "log").exit_code == 0:
            raise ConfigError(f"{source} is being bisected: `git bisect reset` ends that")

    def commit_of(self, name: str) -> str:
        """The full hash. ConfigError."""
        done = self._run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        if done.exit_code != 0:
            raise ConfigError(f"{self.source}: no commit {name!r}")
        return done.stdout.decode().strip()

    def head(self) -> str:
        """The commit that is checked out."""
        return self.commit_of("HEAD")

    def subject_of(self, commit: str) -> str:
        """The first line of its message."""
        return self._said("show", "--no-patch", "--format=%s", commit)

    @contextmanager
    def bisecting(self) -> Iterator[None]:
        """What is checked out is as before in the end."""
        self._said("bisect", "start")
        try:
            yield
        finally:
            self._said("bisect", "reset")

    def check_out(self, commit: str) -> None:
        """It. ConfigError."""
        self._said("checkout", "--quiet", commit)

    def mark(self, mark: Term, commit: str = "") -> str:
        """What Git says then, which checks out the next one."""
        done = self._run("bisect", mark.value, *([commit] if commit else []))
        said = done.stdout.decode("utf-8", "replace")
        if done.exit_code != 0 and LEFT not in said:
            raise ConfigError(f"git bisect {mark}: {done.describe()}")
        return said

    def _said(self, *words: str) -> str:
        done = self._run(*words)
        if done.exit_code != 0:
            raise ConfigError(f"git {words[0]}: {done.describe()}")
        return done.stdout.decode("utf-8", "replace").strip()

    def _run(self, *words: str) -> ChildResult:
        program = shutil.which("git") or "git"
        return run_child(
            (program, "-C", str(self.source), *words), {**os.environ, "LC_ALL": "C"}, GIT_S
        )


class _Search:
    """Asks commits."""

    def __init__(
        self, git: _Git, replay: tuple[str, ...], build: str, tell: Callable[[Step], None]
    ) -> None:
        self.steps: list[Step] = []
        self._git, self._replay, self._build, self._tell = git, replay, build, tell

    def choose(self, good: str, bad: str) -> Asked:
        """What tells the ends apart. ConfigError: nothing does."""
        self._git.check_out(bad)
        asked = Asked.KEPT
        if self.ask(bad, asked).mark is not Term.BAD:
            asked = Asked.RUN
            self._require(bad, Term.BAD)
        self._git.check_out(good)
        if asked is Asked.KEPT and self.ask(good, asked).mark is Term.GOOD:
            return asked
        self._require(good, Term.GOOD)
        if asked is Asked.KEPT:
            self._git.check_out(bad)
            self._require(bad, Term.BAD)
        return Asked.RUN

    def _require(self, commit: str, mark: Term) -> None:
        step = self.ask(commit, Asked.RUN)
        if step.mark is not mark:
            raise ConfigError(
                f"{commit[:12]} should be {mark}, and new runs say {step.mark}: {step.note}"
            )

    def ask(self, commit: str, asked: Asked) -> Step:
        """The commit that is checked out."""
        mark, note = self._asked(asked)
        step = Step(commit, self._git.subject_of(commit), mark, note)
        self.steps.append(step)
        self._tell(step)
        return step

    def _asked(self, asked: Asked) -> tuple[Term, str]:
        if self._build:
            shell = (
                "/bin/sh",
                "-c",
                IN_FOLDER,
                "sh",
                str(self._git.source),
                "/bin/sh",
                "-c",
                self._build,
            )
            built = run_child(shell, os.environ, BUILD_S)
            if built.exit_code != 0 or built.timed_out:
                return Term.SKIP, f"it cannot be built: {built.describe()}"
        done = run_child((*self._replay, "--ask", asked.value), os.environ, REPLAY_S)
        told = last_object(done.stdout)
        if told is None or "answer" not in told:
            return Term.SKIP, f"it cannot be asked: {done.describe()}"
        note = "; ".join(
            [*told["kept"], *([f"new run: {told['new_run']}"] if told["new_run"] else [])]
        )
        if told["answer"] == Answer.NOT_PLAYED or told["other_finding"]:
            return Term.SKIP, f"{told['note']}: {note}".removesuffix(": ")
        return (Term.BAD if told["answer"] == Answer.REPRODUCED else Term.GOOD), note
