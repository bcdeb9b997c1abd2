"""The target file: what it says of a stranger's store, and where that is wrong."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import xxhash
from pydantic import BaseModel, ConfigDict, Field, StrictBool, field_validator, model_validator

from tornpage.faults.recorder import Recorder
from tornpage.targets.option import DEFAULT_FS, OWN_OPTIONS
from tornpage.vocabulary.closest import meant, some_of, unknown
from tornpage.vocabulary.codec import read_toml
from tornpage.vocabulary.model import Site

__all__ = [
    "DIR",
    "LINES",
    "SCRIPT",
    "Choice",
    "Commands",
    "Fetch",
    "Promise",
    "TargetFile",
    "load_target_file",
    "words_in_braces",
]

PATTERNS_MAX = 24
ALIKE = 0.75
"""From there on a word in braces is one of ours, mistyped; what a shell or awk has in braces is not."""
DIR = "{dir}"
LINES = "{lines}"
SCRIPT = "{script}"
NUMBER = "number"
"""Among the values of an option: any whole number too."""
PATH = "path"
"""As well: any path of what is there."""
BASE = "base"
OURS = frozenset({"dir", "lines", "script", "python", "fetched", "programs", *OWN_OPTIONS})
"""Words in braces that are no option of the store."""

_STRICT = ConfigDict(extra="forbid", frozen=True)
"""The docstring behind a key is what docs/TARGETS.md says of it."""

_IDENTITY = {"commands", "env", "lines", "options", "promise", "template"}
_NOT_IN_CRASHES = (Site.FILE_OP, Site.SORT_RUN, Site.ROW_LOG)
_WORDS = {"options": {"__all__": {"what"}}}

Patterns = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=PATTERNS_MAX)]


class Commands(BaseModel):
    """The commands, with the folder of the file as working directory. There is no shell, but words are split
    as in a shell. If you need one, use `sh -c '...'`."""

    model_config = _STRICT

    prepare: str = ""
    """Makes the initial content of the folder `{dir}`, which is durable before the first recorded
    operation."""
    run: str
    """Works in the folder `{dir}` and marks `ready`, `issue n=N`, `ack n=N`. Prints one line
    `{"n": N, "state": {...}}` for each commit, and one with `"n": 0` when it is ready."""
    recover: str
    """Reads the path of a crashed folder from a line of standard input, recovers it, and answers with one
    line: `{"ok": true, "state": {...}}`, or `{"ok": false, "message": "..."}` if it refuses to start (with
    `"machine": true`: the machine failed)."""

    @field_validator("prepare", "run", "recover")
    @classmethod
    def _splits(cls, text: str) -> str:
        shlex.split(text)  # ValueError: an open quote
        return text

    @model_validator(mode="after")
    def _names_the_folder(self) -> Commands:
        for name in ("prepare", "run"):
            text = getattr(self, name)
            if DIR not in text and (text or name == "run"):
                raise ValueError(f"{name} must have {DIR}, the folder that it works in")
        if DIR in self.recover or not self.recover:
            raise ValueError(f"recover reads its folders from standard input, and has no {DIR}")
        return self


class Choice(BaseModel):
    """An option of the store: `--option NAME=VALUE` puts the value where a command says `{NAME}`."""

    model_config = _STRICT

    values: Annotated[list[str], Field(min_length=1)]
    """The values that can be chosen; the first is the default. `number` stands for any whole number, `path`
    for the path of a file or folder, absolute or from where the command is called."""
    what: str
    """What it is, in a few words."""

    def refusal(self, value: str) -> str:
        """Why it cannot be chosen, "" if it can."""
        kinds = {NUMBER, PATH} & {*self.values}
        if value not in kinds and value in self.values:
            return ""
        if NUMBER in kinds and re.fullmatch(r"-?[0-9]+", value):
            return ""
        if PATH in kinds:
            return (
                "" if value.startswith("/") and Path(value).exists() else "no such file or folder"
            )
        return some_of(self.values, " or ")

    def absolute(self, value: str) -> str:
        """The value, of a path as it is found from everywhere."""
        is_path = PATH in self.values and value not in self.values
        return str(Path(value).absolute()) if is_path else value

    @model_validator(mode="after")
    def _default_is_a_value(self) -> Choice:
        if self.values[0] in (NUMBER, PATH):
            raise ValueError(f"values: the first is the default, and {self.values[0]} is none")
        return self


ProgramName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


class Fetch(BaseModel):
    """What `tornpage target fetch NAME` gets from package registries, with their own clients, into the
    folder `{fetched}`. Python finds packages there; programs built from sources have the names given here."""

    model_config = _STRICT

    pip: list[str] = []
    """Packages of PyPI, as pip takes them, without their dependencies."""
    maven: list[str] = []
    """Artifacts of Maven, as GROUP:NAME:VERSION; the jar is unpacked."""
    debian: str = ""
    """A release of Debian other than this machine's, from which `packages` come."""
    packages: list[str] = []
    """Packages of that release, unpacked and not installed."""
    go: dict[ProgramName, str] = {}
    """Programs to build with go, by name: the folder of each beside the file. They are linked statically,
    with modules as go.sum has them."""
    cargo: dict[ProgramName, str] = {}
    """Programs to build with cargo, by name: the folder of the crate beside the file that has this binary,
    with crates as Cargo.lock has them."""
    links: dict[str, str] = {}
    """Short names in `{fetched}` for folders of what was fetched."""


class Promise(BaseModel):
    """What a crash must leave."""

    model_config = _STRICT

    durable: StrictBool = True
    """What was acknowledged is there."""
    consistent: StrictBool = True
    """The state is that after some acknowledgement, never a mixture. If false, only these break the promise:
    a recovery that fails, hangs or reports findings of its own, and a second one with another result."""

    @model_validator(mode="after")
    def _durable_is_consistent(self) -> Promise:
        if self.durable and not self.consistent:
            raise ValueError(
                "what is durable is consistent: durable = true needs consistent = true"
            )
        return self


class TargetFile(BaseModel):
    """A third-party store."""

    model_config = _STRICT

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
    """What reports call it."""
    base: str = ""
    """Another target file in the same folder, which supplies what this one leaves out; tables are merged key
    by key."""
    what: str = ""
    """One line on it, for lists."""
    ignore: Patterns = []
    """Files that no crash needs, by pattern (`*` matches slashes too): lock files, text logs."""
    format: Literal["", "innodb"] = ""
    """What the files hold, if Tornpage can decode it. Then each write is named by its contents, and the
    rules on bytes are judged; the option `doublewrite` switches some of them off."""
    sites: dict[Site, str | list[str]] = {}
    """What writes are for, by file pattern, with names of `tornpage list sites`; `PATTERN@N`: writes that
    begin in the first N bytes of the file. The first matching pattern counts. A log listed as `redo` is cut
    at each of its sectors. Anything else is `other`."""
    fs: str | Annotated[list[str], Field(min_length=1)] = DEFAULT_FS
    """The file system that loses power: a name of `tornpage list fs`, which shows what each promises. A list:
    each in turn."""
    recorder: Recorder = Recorder.PRELOAD
    """What records the store. `preload`: a library in its processes, which sees calls of the C library, and
    their stacks. `fs`: a file system below it, which sees every request to the
    kernel, from static programs, io_uring and mappings too. It needs /dev/fuse and the right to mount."""
    oracle: Literal["observed", "model"] = "observed"
    """Which states a crash may leave. `observed`: those that the fault-free run printed. `model`: those of
    Tornpage's own model, for a program that runs its scripts and always makes the same writes; run takes the
    path of a script as `{script}` and prints what `engine run --json` does, and recover answers with digests
    (`check`)."""
    counters: list[str] = []
    """Names of the `counters` in recover's answers, for claims of campaigns. If all are 0, the crash had
    left nothing to recover."""
    wrappers: Patterns = []
    """Functions or source files, by pattern, that only pass calls on to the system: a call stack is shown
    from the first other frame on."""
    long_lived: StrictBool = False
    """One recover process answers for many folders, a line each, and keeps nothing of one for the next. If
    false, each folder gets a process."""
    server: StrictBool = False
    """The store is a server: run starts it and is its client. The server is recorded, the client's marks go
    through a socket, and at the end of run the server is killed."""
    lines: str = ""
    """A file with a statement per line, in a language of your own; run gets its path as `{lines}`. The
    number of a statement is its line number. `tornpage shrink` removes lines. The name may have `{NAME}`, the
    value of that option."""
    options: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Choice] = {}
    """Options of the store by name: what can be chosen, and what it means. The commands take the value as
    `{NAME}`."""
    needs: dict[str, str] = {}
    """Programs or files that must be there, each with the command that installs it; `{NAME}` is the value of
    that option. `tornpage doctor` looks for them."""
    modules: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")], str] = {}
    """Modules that `{python}` must be able to load from a file, each with the command that installs it."""
    libraries: list[Annotated[str, Field(min_length=1)]] = []
    """Shared libraries that the commands load, by the name that the dynamic loader takes. Like programs, they
    must be the same when a run is resumed."""
    shm: StrictBool = True
    """Whether the store works on /dev/shm as on any other file system. If false, scratch is in TORNPAGE_TMP,
    else in the folder of temporary files."""
    fetch: Fetch = Fetch()
    """What `tornpage target fetch` gets."""
    template: str = ""
    """A folder whose content is copied, durably, before prepare and run."""
    run_deadline_s: float = Field(default=60.0, gt=0, le=3600)
    """Seconds for prepare and run."""
    state_deadline_s: int = Field(default=20, ge=1, le=600)
    """Seconds for the recovery of one crashed folder; one that takes longer counts as hung."""
    env: dict[str, str] = {}
    """Environment of the commands, besides PATH, HOME (the folder of the file), LANG and what finds the
    marking library. Nothing is inherited."""
    commands: Commands
    """What is run."""
    promise: Promise = Promise()
    """What must hold."""
    by_hand: str = ""
    """Shell commands that start the store on a crashed folder `{dir}` without Tornpage. They may use the
    files beside this one; `tornpage upstream` puts both into its report. Default: the command `recover`."""

    @property
    def identity(self) -> str:
        """Which store it is, wherever the file lies: its name, and a hash of what is run and promised. What
        the other keys say, and the programs, may change without its findings becoming those of another."""
        told = self.model_dump_json(include=_IDENTITY, exclude=_WORDS)
        return f"{self.name}@{xxhash.xxh3_64_hexdigest(told.encode())}"

    def file_systems(self) -> list[str]:
        """At least one; the first is the usual one."""
        return [self.fs] if isinstance(self.fs, str) else [*self.fs]

    def site_patterns(self) -> list[tuple[Site, str]]:
        """In the order of the file."""
        return [
            (site, pattern)
            for site, patterns in self.sites.items()
            for pattern in ([patterns] if isinstance(patterns, str) else patterns)
        ]

    def refusal(self, name: str, value: str) -> str:
        """Why an option of the store does not take a value, "" if it does."""
        why = self.options[name].refusal(value)
        return f"{name}={value}: {why}" if why else ""

    def values(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """Every option of the store with its value. Raises ValueError naming what is wrong with a choice."""
        for name, value in chosen.items():
            if name not in self.options:
                raise ValueError(unknown("option", name, [*sorted(OWN_OPTIONS), *self.options]))
            if refusal := self.refusal(name, value):
                raise ValueError(refusal)
        return {name: chosen.get(name, choice.values[0]) for name, choice in self.options.items()}

    @model_validator(mode="after")
    def _options_are_used(self) -> TargetFile:
        words = self._words_in_braces()
        for name in self.options:
            if name in OURS:
                raise ValueError(f"options: {name} is taken")
            if name not in words:
                raise ValueError(f"options: no command has {{{name}}}")
        return self

    @model_validator(mode="after")
    def _words_are_known(self) -> TargetFile:
        known = {*OURS, *self.options}
        for word in sorted(self._words_in_braces() - known):
            told = meant(word, known, ALIKE)
            if told:
                raise ValueError(f"there is no {{{word}}}{told}")
        return self

    def _words_in_braces(self) -> set[str]:
        commands = (self.commands.prepare, self.commands.run, self.commands.recover)
        texts = [*commands, *self.env.values(), self.lines, self.by_hand]
        return words_in_braces(" ".join(texts))

    @model_validator(mode="after")
    def _by_hand_names_the_folder(self) -> TargetFile:
        if self.by_hand and DIR not in self.by_hand:
            raise ValueError(f"by_hand must have {DIR}, the crashed folder")
        return self

    @model_validator(mode="after")
    def _lines_are_for_run(self) -> TargetFile:
        if bool(self.lines) != (LINES in self.commands.run):
            raise ValueError(f"lines and {LINES} in commands.run belong together")
        return self

    @model_validator(mode="after")
    def _script_is_for_run(self) -> TargetFile:
        if (self.oracle == "model") != (SCRIPT in self.commands.run):
            raise ValueError(f'oracle = "model" and {SCRIPT} in commands.run belong together')
        return self

    @model_validator(mode="after")
    def _sites_are_of_writes(self) -> TargetFile:
        for site in _NOT_IN_CRASHES:
            if site in self.sites:
                raise ValueError(f"sites: {site} is no write of a file that a crash leaves")
        if len(self.site_patterns()) > PATTERNS_MAX:
            raise ValueError(f"sites: more than {PATTERNS_MAX} patterns")
        return self


def words_in_braces(text: str) -> set[str]:
    """Those that stand for something."""
    return set(re.findall(r"\{([a-zA-Z_]\w*)\}", text))


def load_target_file(path: Path) -> TargetFile:
    """Reads it, and its base. Raises ConfigError naming file and key."""
    return read_toml(TargetFile, path, "target file", base=BASE)
