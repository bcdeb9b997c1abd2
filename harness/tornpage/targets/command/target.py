"""A store behind the commands of its target file."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tornpage.faults.aim import SECTOR
from tornpage.faults.image import files_below, fill_image, keep_files, odd_files
from tornpage.faults.preload import WHOLE
from tornpage.faults.process import ChildResult, run_child, why_not_run
from tornpage.faults.recorder import Recorder, fs_path, why_no_fs
from tornpage.faults.stacks import Note
from tornpage.faults.trace import Trace
from tornpage.faults.under import (
    make_disk,
    mounted_recover,
    mounted_run,
    under_path,
    why_no_disk,
)
from tornpage.oracle.promise import Promise
from tornpage.oracle.rules import Setting
from tornpage.targets.command.answers import recovery_answer, run_answer
from tornpage.targets.command.file import (
    DIR,
    LINES,
    SCRIPT,
    TargetFile,
    load_target_file,
    words_in_braces,
)
from tornpage.targets.filesystems import (
    fs_arguments,
    fs_option,
    recorder_option,
    require_fs,
    under_option,
    without_fs,
)
from tornpage.targets.innodb.rules import is_tablespace
from tornpage.targets.innodb.sites import SITES, site_of_write
from tornpage.targets.option import FS, OWN_OPTIONS, RECORDER, UNDER, TargetOption, disk_of
from tornpage.targets.target import (
    STATEMENTS,
    ByHand,
    Capability,
    Command,
    Recorded,
    RecoveryAnswer,
    RunAnswer,
    last_object,
    recorded_by,
    require_built,
)
from tornpage.vocabulary.errors import (
    ConfigError,
    GoldenRunError,
    MissingError,
    TargetError,
    WorkloadError,
)
from tornpage.vocabulary.model import Site
from tornpage.vocabulary.paths import (
    data_folder,
    fetched_folder,
    is_on_shm,
    package_folder,
    require_floor,
    tmpfs_folder,
)
from tornpage.workloads.workload import page_size_of

__all__ = ["CommandTarget", "Need"]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN = 'cd "$1" && shift && exec "$@"'
ASK = 'cd "$1" && dir=$2 && shift 2 && exec "$@" <<END\n$dir\nEND\n'
"""A recovery of one folder: the line that the explorer writes many times."""
BY_HAND = """printf '%s\\n' "$dir" | """
"""The same, for a person."""
MARKING = "tornpage_mark.py"
"""What a program in Python may load that marks nothing while it recovers."""
FIRST_BYTES = re.compile(r"(.*)@(\d+)")
"""A pattern of sites, and of how many bytes at the beginning of a file."""
NONE: Mapping[str, str] = {}
NAME_MAX = 1024
"""A word that is longer names no file."""
LIBRARY_REMEDY = "install it where the dynamic loader finds it"
RESOLVE = Path(__file__).with_name("resolve.py")
RESOLVE_DEADLINE_S = 30.0
OWN_PROGRAMS = {"{python}": "python", "{programs}": "verifier"}
"""What a command begins with, and which of our programs it is then: none of the target's own."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a target needs and is not here; remedy: a command that brings it, or words."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"


class CommandTarget:
    """A target file: its commands make the work and its states are observed; or they run scripts, and the
    model judges."""

    def __init__(self, path: Path, preload: Path, explorer: Path, name: str = "") -> None:
        """path: of the target file; preload, explorer: absolute paths of the built files; name: by which it
        is known, where that is not the path. ConfigError."""
        self.path = path.resolve()
        self.preload = preload
        self.explorer = explorer
        self.name = name or str(self.path)
        self.file: TargetFile = load_target_file(path)
        self.identity = name or self.file.identity
        self.what = self.file.what
        self.unrecorded = tuple(self.file.ignore)
        self.on_shm = self.file.shm
        self.crossed: Mapping[str, list[str]] = (
            {FS: self.file.file_systems()} if len(self.file.file_systems()) > 1 else {}
        )
        self.lines = self.lines_of({}) if self.file.lines else None
        self.counters = frozenset(self.file.counters)
        self.wrappers = tuple(self.file.wrappers)
        self.sites = frozenset({*self.file.sites, Site.OTHER, *(SITES if self.file.format else ())})
        own = {Capability.RULES} if self.file.format else set()
        oracle = Capability.OBSERVED if self.is_observed else Capability.DETERMINISTIC
        self.capabilities = frozenset({Capability.ACKS, Capability.EXPLORE, oracle, *own})

    def lines_of(self, options: Mapping[str, str]) -> Path:
        """The file of statements that these options name."""
        (place,) = self._filled([self.file.lines], options)
        return self.path.parent / place

    @property
    def is_observed(self) -> bool:
        """Its states are the oracle; else the model is."""
        return self.file.oracle == "observed"

    def check_ready(self) -> None:
        """Raises TargetError if something of ours is not built, ConfigError if a command has no program."""
        require_built(self.preload, self.explorer)
        for need in self.missing():
            raise MissingError(str(need), self.name, need.remedy)
        for key in self._keys():
            self._program(key)
        require_fs(self.explorer, self.file.file_systems(), f"{self.path}: ")
        if not self._template().is_dir():
            raise ConfigError(f"{self.path}: template: {self.file.template}: no such folder")

    def check_needs(self, options: Mapping[str, str]) -> None:
        """MissingError: a program or file that these options name is not here, or their recorder, or the file
        system that is to be under it."""
        if disk := disk_of(options):
            self._check_disk(disk, options)
        if self.is_below(options) and (why := self.why_not_below()):
            raise MissingError(f"recorder=fs: {why}", self.name, why)
        for word, remedy in self._needs_of_options().items():
            if self._find(word, options) is None:
                (place,) = self._filled([word], options)
                what = f"target {self.file.name} needs {place}"
                raise MissingError(f"{what}: {remedy}", self.name, remedy)

    def _check_disk(self, disk: str, options: Mapping[str, str]) -> None:
        """ConfigError: what is recorded of a disk is its writes, and no other choice is left."""
        if options.get(RECORDER, Recorder.FS) != Recorder.FS:
            raise ConfigError(f"{UNDER}={disk}: the recorder of a disk is fs")
        if why := why_no_disk(self.preload, disk):
            raise MissingError(f"{UNDER}={disk}: {why}", self.name, why)

    def _needs_of_options(self) -> dict[str, str]:
        """Which of its needs are what options say."""
        options = {*self.file.options}
        return {
            word: remedy
            for word, remedy in self.file.needs.items()
            if words_in_braces(word) & options
        }

    def missing(self) -> list[Need]:
        """What it needs whatever the options say, and is not here."""
        needs = f"target {self.file.name} needs"
        later = self._needs_of_options()
        found = [
            Need(f"{needs} {Path(word).name}", remedy)
            for word, remedy in self.file.needs.items()
            if word not in later and self._find(word) is None
        ]
        found += [
            Need(f"{needs} {name}", self.file.modules.get(name, LIBRARY_REMEDY))
            for name, place in self._resolved().items()
            if place is None
        ]
        if not self.on_shm:
            found += self._missing_scratch()
        return found

    def _missing_scratch(self) -> list[Need]:
        try:
            wrong = "needs scratch that is not /dev/shm" if is_on_shm(tmpfs_folder(False)) else ""
        except ConfigError as error:
            wrong = str(error)
        remedy = "set TORNPAGE_TMP to another folder, best on a tmpfs"
        return [Need(f"target {self.file.name} {wrong}", remedy)] if wrong else []

    def _find(self, word: str, options: Mapping[str, str] = NONE) -> Path | None:
        """A program by name, or a file by its path, as the commands find it."""
        (place,) = self._filled([word], options)
        path = self.path.parent / place
        if "/" in place:
            return path if path.exists() else None
        found = shutil.which(place, path=self._environment({})["PATH"])
        return Path(found) if found else None

    def _resolved(self) -> dict[str, Path | None]:
        """The file of each module and library, as the Python of the commands finds it; None: there is none.
        TargetError."""
        if not self.file.modules and not self.file.libraries:
            return {}
        lists = [json.dumps([*self.file.modules]), json.dumps(self.file.libraries)]
        words: list[str | Path] = [sys.executable, "-P", RESOLVE, self.path.parent, *lists]
        child = run_child(words, self._environment({}), RESOLVE_DEADLINE_S)
        found = last_object(child.stdout)
        if child.exit_code != 0 or found is None:
            raise TargetError(f"{self.path}: modules and libraries: {child.describe()}")
        return {name: Path(place) if place else None for name, place in found.items()}

    def _template(self) -> Path:
        return self.path.parent / self.file.template

    def _keys(self) -> list[str]:
        return ["prepare", "run", "recover"] if self.file.commands.prepare else ["run", "recover"]

    def _words(self, key: str, options: Mapping[str, str]) -> list[str]:
        return self._filled(shlex.split(getattr(self.file.commands, key)), options)

    def _filled(self, words: list[str], options: Mapping[str, str]) -> list[str]:
        """With this Python, what was fetched, the folder of our own programs and the options of the store in
        place of their names."""
        try:
            own = without_fs(self.explorer, options)
            values = self.file.values({n: v for n, v in own.items() if n not in OWN_OPTIONS})
        except ValueError as error:
            raise ConfigError(f"target {self.file.name}: {error}") from error
        values |= {
            "python": sys.executable,
            "fetched": str(fetched_folder(self.file.name)),
            "programs": str(self.explorer.parent.parent),
        }
        for name, value in values.items():
            words = [word.replace(f"{{{name}}}", value) for word in words]
        return words

    def _program(self, key: str) -> Path:
        """The program of a command, as the working directory and PATH find it."""
        word = self._words(key, {})[0]
        found = self._find(word)
        wrong = (
            "no such program"
            if found is None
            else why_not_run(found, self._environment({})["PATH"])
        )
        if found is None or wrong:
            raise ConfigError(f"{self.path}: commands.{key}: {word}: {wrong}")
        return found

    def _program_name(self, key: str) -> str:
        """That of one of ours, else the key."""
        word = shlex.split(getattr(self.file.commands, key))[0]
        return OWN_PROGRAMS.get(word.partition("/")[0], key)

    def _named_files(self, key: str) -> Iterator[tuple[str, Path]]:
        """What a command is told besides its program, as the script of an interpreter: word and file."""
        for word in self._words(key, {})[1:]:
            if len(word) <= NAME_MAX and (place := self.path.parent / word).is_file():
                yield word, place

    def _environment(self, options: Mapping[str, str]) -> dict[str, str]:
        folders = (data_folder("marking"), package_folder(), fetched_folder(self.file.name))
        python = ":".join(str(folder) for folder in folders)
        base = {"PATH": PATH, "HOME": str(self.path.parent), "LANG": "C.UTF-8"}
        return {**base, "PYTHONPATH": python, **self._own_environment(options)}

    def _own_environment(self, options: Mapping[str, str]) -> dict[str, str]:
        values = self._filled([*self.file.env.values()], options)
        return dict(zip(self.file.env, values, strict=True))

    def _command(self, shell: str, key: str, options: Mapping[str, str], *dirs: str) -> Command:
        """dirs: what the shell text takes besides the working directory."""
        words = self._mounted(key, self._words(key, options), options)
        argv = ("/bin/sh", "-c", shell, "tornpage", str(self.path.parent), *dirs, *words)
        return Command(argv, self._environment(options), self._deadline_s(key))

    def _mounted(self, key: str, words: list[str], options: Mapping[str, str]) -> list[str]:
        """On the disk that these options say; what is prepared comes there afterwards."""
        disk, program = disk_of(options), under_path(self.preload)
        if not disk or key == "prepare":
            return words
        if key == "run":
            return mounted_run(program, disk, DIR, words)
        return mounted_recover(program, disk, words, many=self.file.long_lived)

    def _ignored(self, options: Mapping[str, str]) -> list[str]:
        """Of a disk nothing is left out."""
        return [] if disk_of(options) else self.file.ignore

    def _deadline_s(self, key: str) -> float:
        return self.file.state_deadline_s if key == "recover" else self.file.run_deadline_s

    def programs(self) -> dict[str, Path]:
        """The file, the programs of its commands, files that their words name, what it needs, preload and
        explorer."""
        files = {self._program_name(key): self._program(key) for key in self._keys()}
        files |= {word: place for key in self._keys() for word, place in self._named_files(key)}
        files |= {LINES: self.lines} if self.lines else {}
        for word in self.file.needs.keys() - self._needs_of_options().keys():
            place = self._find(word)
            files |= {word: place} if place is not None and place.is_file() else {}
        files |= {name: place for name, place in self._resolved().items() if place is not None}
        ours = {"preload": self.preload, "explorer": self.explorer}
        ours |= self._recorder_program({})
        return {"target file": self.path, **files, **ours}

    def _recorder_program(self, options: Mapping[str, str]) -> dict[str, Path]:
        """That of a recorder that is none of the preload."""
        programs = {"recorder": fs_path(self.preload)} if self.is_below(options) else {}
        programs |= {UNDER: under_path(self.preload)} if disk_of(options) else {}
        return {name: program for name, program in programs.items() if program.is_file()}

    def chosen_programs(self, options: Mapping[str, str]) -> dict[str, Path]:
        """Those of its needs that these options say, by the name of the file."""
        found = (self._find(word, options) for word in self._needs_of_options())
        chosen = {place.name: place for place in found if place is not None and place.is_file()}
        return chosen | (self._recorder_program(options) if {RECORDER, UNDER} & {*options} else {})

    def files_beside(self) -> dict[str, Path]:
        """Its file, first, then programs, named files and the template that lie in its folder, by their paths
        from there."""
        folder = self.path.parent
        places = [self.path, *self.programs().values()]
        if self.file.template:
            places += files_below(self._template()).values()
        inside = (Path(os.path.normpath(place)) for place in places)
        return {
            str(place.relative_to(folder)): place
            for place in inside
            if place.is_relative_to(folder)
        }

    def is_below(self, options: Mapping[str, str]) -> bool:
        """As these options, or the file, say."""
        return bool(disk_of(options)) or options.get(RECORDER, self.file.recorder) == Recorder.FS

    def why_not_below(self) -> str:
        """It is tried once."""
        return why_no_fs(fs_path(self.preload))

    def recorded(self, command: Command, how: Recorded) -> Command:
        """By the recorder that the options or the file say."""
        below, served = self.is_below(how.options), self.file.server
        command = recorded_by(self.preload, command, how, below=below, served=served)
        own = WHOLE if self.file.format else {}
        return replace(command, env={**command.env, **own})

    def options(self) -> tuple[TargetOption, ...]:
        """The file system, the recorder, what is under it, and those of the store."""
        own = (
            TargetOption(
                name,
                ", ".join(choice.values),
                choice.values[0],
                choice.what,
                partial(self.file.refusal, name),
                choice.absolute,
            )
            for name, choice in self.file.options.items()
        )
        fs = fs_option(self.explorer, self.file.file_systems()[0])
        return (fs, recorder_option(self.file.recorder), under_option(), *own)

    def lay_out(self, data: Path, options: Mapping[str, str]) -> None:
        """Copies the template and runs prepare; then onto a disk, where these options say one. Raises
        GoldenRunError if it fails, ConfigError if the template has what no image can have, TargetError."""
        self._lay_out_files(data, options)
        if disk := disk_of(options):
            keep_files(data)
            make_disk(under_path(self.preload), disk, data)

    def _lay_out_files(self, data: Path, options: Mapping[str, str]) -> None:
        if self.file.template:
            for path, kind in odd_files(self._template()):
                raise ConfigError(f"{self.path}: template: {path} is {kind}")
            fill_image(self._template(), data)
        if not self.file.commands.prepare:
            return
        command = _in_folder(self._command(RUN, "prepare", options), data)
        child = command.run({})
        if child.exit_code != 0:
            require_floor(data)
            raise GoldenRunError(f"prepare failed: {child.describe()}")

    def run_command(
        self,
        data: Path,
        script: Path,
        options: Mapping[str, str],
    ) -> Command:
        """The command `run`."""
        command = _in_folder(self._command(RUN, "run", options), data)
        words = (word.replace(LINES, str(script)) for word in command.argv)
        return replace(command, argv=tuple(word.replace(SCRIPT, str(script)) for word in words))

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:
        """The command `recover` with one line to read."""
        return self._command(ASK, "recover", options, str(data))

    def by_hand(self, options: Mapping[str, str]) -> ByHand:
        """As the file says; else its command `recover`, with what lies beside the file."""
        folder = self.path.parent
        names = {DIR: "DIR", LINES: STATEMENTS, SCRIPT: STATEMENTS}
        run = (names.get(word, word) for word in self._words("run", options))
        work = shlex.join(run).replace(sys.executable, "python3")
        if self.file.by_hand:
            (text,) = self._filled([self.file.by_hand], options)
            named = {word: folder / word for word in text.split() if (folder / word).is_file()}
            return ByHand(text.replace(DIR, '"$dir"'), work, named)
        words = self._words("recover", options)
        settings = [f"{name}={value}" for name, value in self._own_environment(options).items()]
        told = shlex.join([*settings, *words]).replace(sys.executable, "python3")
        files = {**self.files_beside(), MARKING: data_folder("marking") / MARKING}
        return ByHand(f"{BY_HAND}env PYTHONPATH=. {told}", work, files)

    def explore_command(
        self,
        trace: Path,
        allowed: Path,
        options: Mapping[str, str],
    ) -> Command:
        """tornpage-explore --target command --recover ... --trace ... --allowed ..."""
        command = self._command(RUN, "recover", options)
        arguments = ["--target", "command", "--scratch", str(trace.parent)]
        for word in command.argv:
            arguments += ["--recover", word]
        for pattern in self._ignored(options):
            arguments += ["--ignore", pattern]
        for site, pattern in self.file.site_patterns():
            arguments += ["--site", f"{site}={pattern}"]
        for site in sorted(self.sites - {*self.file.sites, Site.OTHER}):
            arguments += ["--site", f"{site}="]  # of single writes, by their contents
        if self.file.long_lived:
            arguments.append("--long-lived")
        if not self.is_observed:
            arguments.append("--scanned")
        arguments += ["--preload", str(self.preload)]
        if self.is_below(options):
            arguments += ["--recorder-fs", str(fs_path(self.preload))]
        arguments += fs_arguments(self.explorer, options, self.file.file_systems()[0])
        arguments += ["--promise", self.promise(options).level]
        arguments += ["--deadline", str(self.file.state_deadline_s)]
        ours = ("--trace", str(trace), "--allowed", str(allowed))
        return replace(command, argv=(str(self.explorer), *arguments, *ours))

    def judge_command(self) -> Command:
        """Of a known format only: what else a stranger writes is not decoded."""
        if not self.file.format:
            raise TargetError(f"no rules on what {self.file.name} writes")
        return self._program_of_format("judge")

    def _program_of_format(self, name: str, *words: str) -> Command:
        argv = ("/usr/bin/env", f"PYTHONPATH={package_folder()}", sys.executable)
        return Command((*argv, "-m", f"tornpage.targets.{self.file.format}.{name}", *words))

    def page_command(self, file: Path, page: int, page_size: int) -> Command | None:
        """Of a known format only."""
        if not self.file.format or not is_tablespace(file.name):
            return None
        return self._program_of_format("show", "page", str(file), str(page), str(page_size))

    def log_command(self, data: Path) -> Command | None:
        """Of a known format only."""
        return self._program_of_format("show", "log", str(data)) if self.file.format else None

    def parts_of(self, trace: Trace, notes: Sequence[Note]) -> None:
        """None: it notes none."""

    def judge_setting(self, options: Mapping[str, str]) -> Setting:
        """The options `page_size`, where it says how many bytes a page has, and `doublewrite`."""
        chosen = {**self.file.values({}), **options}
        try:
            page_size = page_size_of(chosen)
        except WorkloadError:
            page_size = 0
        if page_size < SECTOR:
            page_size = page_size_of({})
        return Setting(page_size, chosen.get("doublewrite", "on") != "off")

    def promise(self, options: Mapping[str, str]) -> Promise:  # noqa: ARG002
        """As the file says."""
        return Promise(self.file.promise.durable, self.file.promise.consistent)

    def damage_pages(self, data: Path, page_size: int) -> bool:  # noqa: ARG002
        """None are known."""
        return False

    def plant_stale_log(self, data: Path, variant: int) -> None:
        """Nothing: nobody knows its log."""

    def parse_run(self, child: ChildResult) -> RunAnswer:
        """See run_answer()."""
        return run_answer(child, observed=self.is_observed)

    def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
        """See recovery_answer()."""
        return recovery_answer(child, self.counters, observed=self.is_observed)

    def site_of(
        self,
        file: str,
        offset: int,
        facts: Mapping[str, str] | None,  # noqa: ARG002
        page_size: int,  # noqa: ARG002
        data: bytes = b"",
    ) -> Site | None:
        """By what is written, where the format is known; by the patterns of the file."""
        if any(fnmatch.fnmatchcase(file, pattern) for pattern in self.file.ignore):
            return None
        known = site_of_write(file, offset, data) if self.file.format else None
        if known is not None:
            return known
        for site, pattern in self.file.site_patterns():
            place = FIRST_BYTES.fullmatch(pattern)
            if place is not None and offset >= int(place[2]):
                continue
            if fnmatch.fnmatchcase(file, place[1] if place is not None else pattern):
                return site
        return Site.OTHER

    def holds_pages(self, file: str) -> bool:  # noqa: ARG002
        """Nobody says so, and no promise of the storage can be given."""
        return False


def _in_folder(command: Command, data: Path) -> Command:
    return replace(command, argv=tuple(word.replace(DIR, str(data)) for word in command.argv))
