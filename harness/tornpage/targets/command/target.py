"""A store that nobody here wrote, behind the commands of its target file.

May import: errors, file, model, observed, option, paths, preload, process, rules, state, target.
"""

from __future__ import annotations

import fnmatch
import json
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import xxhash

from tornpage.faults.preload import preload_environment
from tornpage.faults.process import ChildResult, run_child
from tornpage.oracle.observed import observed_state
from tornpage.oracle.rules import Setting
from tornpage.oracle.state import State
from tornpage.targets.command.file import DIR, LINES, FileSystem, TargetFile, load_target_file
from tornpage.targets.option import TargetOption
from tornpage.targets.target import (
    Capability,
    Command,
    RecoveryAnswer,
    RunAnswer,
    last_object,
)
from tornpage.vocabulary.errors import CensusError, ConfigError, TargetError
from tornpage.vocabulary.model import Site, Violation
from tornpage.vocabulary.paths import data_folder, require_floor

__all__ = ["CommandTarget"]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN = 'cd "$1" && shift && exec "$@"'
ASK = 'cd "$1" && dir=$2 && shift 2 && exec "$@" <<END\n$dir\nEND\n'
"""A recovery of one folder: the line that the explorer writes many times."""
FINDING_INVARIANT = 6
"""Of what a recovery reports about its own structures, if it names no other."""
LINE_SHOWN = 60
PAGE_SIZE = 4096
"""By which reports show a file: nothing is known of it."""
FS = "fs"
FILE_SYSTEMS = get_args(FileSystem)


class CommandTarget:
    """A target file: its commands make the work, and its states are observed."""

    capabilities = frozenset({Capability.ACKS, Capability.EXPLORE, Capability.OBSERVED})

    def __init__(self, path: Path, preload: Path, explorer: Path) -> None:
        """path: of the target file; preload, explorer: absolute paths of the built files. ConfigError."""
        self.path = path.resolve()
        self.name = str(self.path)
        self.file: TargetFile = load_target_file(path)
        self.unrecorded = tuple(self.file.ignore)
        self.crossed: Mapping[str, list[str]] = (
            {FS: self.file.file_systems()} if len(self.file.file_systems()) > 1 else {}
        )
        self.lines = self.path.parent / self.file.lines if self.file.lines else None
        self.sites = frozenset({*self.file.sites, Site.OTHER})
        self.preload = preload
        self.explorer = explorer

    def check_ready(self) -> None:
        """Raises TargetError if something of ours is not built, ConfigError if a command has no program."""
        for path in (self.preload, self.explorer):
            if not os.access(path, os.R_OK):
                raise TargetError(f"{path} is missing: build it first (make setup)")
        for key in self._keys():
            self._program(key)
        if not self._template().is_dir():
            raise ConfigError(f"{self.path}: template: {self.file.template}: no such folder")

    def _template(self) -> Path:
        return self.path.parent / self.file.template

    def _keys(self) -> list[str]:
        return ["prepare", "run", "recover"] if self.file.commands.prepare else ["run", "recover"]

    def _words(self, key: str) -> list[str]:
        return shlex.split(getattr(self.file.commands, key))

    def _program(self, key: str) -> Path:
        """The program of a command, as the working directory and PATH find it."""
        word = self._words(key)[0]
        search = self._environment()["PATH"]
        place = str(self.path.parent / word) if "/" in word else word
        found = shutil.which(place, path=search)
        if found is None:
            raise ConfigError(f"{self.path}: commands.{key}: {word}: no such program")
        return Path(found)

    def _environment(self) -> dict[str, str]:
        marking = data_folder("marking")
        base = {"PATH": PATH, "HOME": str(self.path.parent), "LANG": "C.UTF-8"}
        return {**base, "PYTHONPATH": str(marking), **self.file.env}

    def _command(self, shell: str, key: str, *dirs: str) -> Command:
        """dirs: what the shell text takes besides the working directory."""
        words = self._words(key)
        argv = ("/bin/sh", "-c", shell, "tornpage", str(self.path.parent), *dirs, *words)
        return Command(argv, self._environment(), self._deadline_s(key))

    def _deadline_s(self, key: str) -> float:
        return self.file.state_deadline_s if key == "recover" else self.file.run_deadline_s

    def programs(self) -> dict[str, Path]:
        """The file, the programs of its commands, preload and explorer."""
        files = {key: self._program(key) for key in self._keys()}
        ours = {"preload": self.preload, "explorer": self.explorer}
        return {"target file": self.path, **files, **ours}

    def preload_env(self, data: Path, trace: Path, plan: Path | None) -> dict[str, str]:
        """The variables of faults/README.md."""
        env = preload_environment(self.preload, data, trace, plan)
        if self.file.server:
            env["TORNPAGE_CONTROL"] = f"tornpage-{xxhash.xxh3_64_hexdigest(str(trace).encode())}"
        return env

    def options(self) -> tuple[TargetOption, ...]:
        """The file system; another setting of the store is another file."""
        what = "what an fsync makes durable of names, in power loss"
        return (TargetOption(FS, ", ".join(FILE_SYSTEMS), self.file.file_systems()[0], what),)

    def lay_out(self, data: Path) -> None:
        """Copies the template and runs prepare. Raises CensusError if it fails."""
        if self.file.template:
            shutil.copytree(self._template(), data, dirs_exist_ok=True)
        if not self.file.commands.prepare:
            return
        command = _in_folder(self._command(RUN, "prepare"), data)
        child = run_child(command.argv, command.env, command.deadline_s)
        if child.exit_code != 0:
            require_floor(data)
            raise CensusError(f"prepare failed: {child.describe()}")

    def run_command(
        self,
        data: Path,
        script: Path,
        options: Mapping[str, str],
    ) -> Command:
        """The command `run`."""
        unknown = sorted({*options} - {FS})
        if unknown:
            raise ConfigError(f"target {self.file.name} has no option {unknown[0]!r} (known: {FS})")
        if options.get(FS, "posix") not in FILE_SYSTEMS:
            raise ConfigError(f"fs={options[FS]}: {' or '.join(FILE_SYSTEMS)}")
        command = _in_folder(self._command(RUN, "run"), data)
        return replace(
            command, argv=tuple(word.replace(LINES, str(script)) for word in command.argv)
        )

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:  # noqa: ARG002
        """The command `recover` with one line to read."""
        return self._command(ASK, "recover", str(data))

    def explore_command(
        self,
        trace: Path,
        allowed: Path,
        options: Mapping[str, str],
    ) -> Command:
        """tornpage-explore --target command --recover ... --trace ... --allowed ..."""
        command = self._command(RUN, "recover")
        arguments = ["--target", "command", "--scratch", str(trace.parent)]
        for word in command.argv:
            arguments += ["--recover", word]
        for pattern in self.file.ignore:
            arguments += ["--ignore", pattern]
        for site, pattern in self.file.site_patterns():
            arguments += ["--site", f"{site}={pattern}"]
        if self.file.long_lived:
            arguments.append("--long-lived")
        arguments += ["--preload", str(self.preload)]
        arguments += ["--fs", options.get(FS, self.file.file_systems()[0])]
        arguments += ["--promise", self.file.promise.level]
        arguments += ["--deadline", str(self.file.state_deadline_s)]
        ours = ("--trace", str(trace), "--allowed", str(allowed))
        return Command((str(self.explorer), *arguments, *ours), command.env)

    def judge_command(self) -> Command:
        """There is none: what a stranger writes is not decoded."""
        raise TargetError(f"no rules on what {self.file.name} writes")

    def page_command(self, file: Path, page: int, page_size: int) -> Command | None:  # noqa: ARG002
        """There is none."""
        return None

    def judge_setting(self, options: Mapping[str, str], page_size: int) -> Setting:  # noqa: ARG002
        """Only the size of a page: there are no rules."""
        return Setting(page_size)

    def keeps_acknowledged(self, options: Mapping[str, str]) -> bool:  # noqa: ARG002
        """As promised."""
        return self.file.promise.durable

    def parse_run(self, child: ChildResult) -> RunAnswer:
        """The states that it has told, by number of the statement; if it was killed, as far as it got."""
        message = "" if child.exit_code == 0 else child.describe()
        told: dict[int, State] = {}
        for number, line in enumerate(child.stdout.decode("utf-8", "replace").splitlines(), 1):
            try:
                statement, state = _told(line)
            except ValueError as error:
                what = f"line {number} of its output is {line[:LINE_SHOWN]!r}: {error}"
                return RunAnswer(False, message or what, {}, {}, told)
            told[statement] = state
        return RunAnswer(not message, message, {}, {"page_size": PAGE_SIZE}, told)

    def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
        """The answer, or how recover ended without one."""
        data = last_object(child.stdout)
        if child.timed_out or data is None:
            return RecoveryAnswer(False, message=f"recover gave no answer: {child.describe()}")
        if data.get("ok") is False and isinstance(data.get("message"), str):
            return RecoveryAnswer(False, refused=True, message=data["message"])
        try:
            state = observed_state(data.get("state"))
            findings = tuple(_finding(item) for item in data.get("findings", []))
        except (ValueError, TypeError, KeyError) as error:
            what = f"recover gave no answer of the right form: {error}"
            return RecoveryAnswer(False, message=what)
        if data.get("ok") is not True:
            return RecoveryAnswer(False, message="recover's answer has no `ok`")
        return RecoveryAnswer(ok=True, state=state, findings=findings, recovered=True)

    def site_of(
        self,
        file: str,
        offset: int,  # noqa: ARG002 - sites are files
        facts: Mapping[str, str] | None,  # noqa: ARG002
        page_size: int,  # noqa: ARG002
    ) -> Site | None:
        """By the patterns of the file."""
        if any(fnmatch.fnmatchcase(file, pattern) for pattern in self.file.ignore):
            return None
        for site, pattern in self.file.site_patterns():
            if fnmatch.fnmatchcase(file, pattern):
                return site
        return Site.OTHER


def _in_folder(command: Command, data: Path) -> Command:
    return replace(command, argv=tuple(word.replace(DIR, str(data)) for word in command.argv))


def _told(line: str) -> tuple[int, State]:
    try:
        data = json.loads(line)
    except ValueError:
        raise ValueError("no JSON") from None
    number = data.get("n") if isinstance(data, dict) else None
    if not isinstance(number, int) or number < 0:
        raise ValueError('no object {"n": N, "state": {...}}')
    return number, observed_state(data.get("state"))


def _finding(item: Any) -> Violation:
    if isinstance(item, str):
        return Violation(FINDING_INVARIANT, item)
    number = int(item.get("invariant", FINDING_INVARIANT))
    return Violation(number, str(item["what"]))
