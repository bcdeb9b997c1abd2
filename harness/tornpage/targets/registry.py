"""The targets that there are, by name. What one is made of is loaded when it is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tornpage.faults.limits import require_limits
from tornpage.faults.preload import preload_path
from tornpage.vocabulary.closest import unknown
from tornpage.vocabulary.errors import ConfigError

if TYPE_CHECKING:
    from tornpage.targets.target import Target

__all__ = [
    "BUNDLED",
    "DEFAULT_TARGET",
    "TARGETS",
    "TARGET_FILE",
    "campaign_parts",
    "explorer_path",
    "family_of",
    "files_beside",
    "full_name",
    "identity_of",
    "is_target_file",
    "make_target",
    "target_name",
    "target_names",
]

FILE_SUFFIX = ".toml"
ENTRY_POINTS = "tornpage.targets"
"""Group of installed ones: the Path of a target file, or what takes a build folder and makes a Target."""
TARGET_FILE = "command"
"""What the campaigns of all target files are called."""


def explorer_path(build: Path) -> Path:
    """The power-loss explorer of a build folder."""
    return build / "explorer" / "tornpage-explore"


DEFAULT_TARGET = "engine"
"""Where nobody says another one."""


def _engine(build: Path) -> Target:
    from tornpage.targets.engine.target import EngineTarget

    return EngineTarget(build / "engine" / "engine", preload_path(build), explorer_path(build))


TARGETS: dict[str, Callable[[Path], Target]] = {DEFAULT_TARGET: _engine}
"""Known targets: name -> constructor that takes the build folder."""


BUNDLED = Path(__file__).resolve().parent / "bundled"
"""Folder with the target files that come with this package: NAME.toml is the target NAME."""


def is_target_file(name: str) -> bool:
    """Whether a target is named by its file."""
    return name.endswith(FILE_SUFFIX)


def target_name(text: str) -> str:
    """What a user calls a target: as full_name(), or the folder NAME that holds NAME.toml, as
    `tornpage target new` makes it. A target of that name comes first."""
    folder = Path(text)
    file = folder / f"{folder.resolve().name}{FILE_SUFFIX}"
    is_folder = not is_target_file(text) and file.is_file() and text not in target_names()
    return full_name(str(file) if is_folder else text)


def full_name(name: str) -> str:
    """Where a target is found again: its name, or the absolute path of a target file that is not bundled."""
    if not is_target_file(name):
        return name
    path = Path(name).resolve()
    return path.stem if path.parent == BUNDLED and path.is_file() else str(path)


def identity_of(target: Target) -> str:
    """Which target it is, in every checkout: a name, of a target file with a hash (TargetFile.identity)."""
    from tornpage.targets.command.target import CommandTarget

    return target.identity if isinstance(target, CommandTarget) else target.name


def files_beside(target: Target) -> dict[str, Path]:
    """What a target is found by on another machine: its file, first, and of what that tells the files that
    lie beside it, by their paths from there. None of one that has a name."""
    from tornpage.targets.command.target import CommandTarget

    if not isinstance(target, CommandTarget) or not is_target_file(target.name):
        return {}
    return target.files_beside()


def family_of(name: str) -> str:
    """Whose campaigns it has: all target files share theirs, but for one whose target runs scripts: the name
    by which it is known. ConfigError: that of a file is another target's."""
    from tornpage.targets.command.file import load_target_file

    name = full_name(name)
    file = Path(name) if is_target_file(name) else _file_of(name)
    if file is None:
        return name
    found = load_target_file(file)
    if found.oracle == "observed":
        return TARGET_FILE
    if not is_target_file(name):
        return name
    if found.name in (TARGET_FILE, *target_names()):
        raise ConfigError(
            f"{file}: name: {found.name} is taken, and would get campaigns that are not its own"
        )
    return found.name


def campaign_parts(name: str) -> tuple[str, str]:
    """Of the name of a campaign of ours, campaign and target: NAME-TARGET is the campaign NAME of that
    target, where it has campaigns of its own."""
    campaign, _, target = name.rpartition("-")
    if target == TARGET_FILE or (target in target_names() and family_of(target) == target):
        return campaign, target
    return name, DEFAULT_TARGET


def target_names() -> list[str]:
    """Every target that has a name: our own, those with a target file in this package, installed ones."""
    bundled = (path.stem for path in BUNDLED.glob(f"*{FILE_SUFFIX}"))
    return sorted({*TARGETS, *bundled, *_installed()})


def make_target(name: str, build: Path, *, ready: bool = True) -> Target:
    """The target of this name, or of this file, from a build folder (as build/release). ready: it must be
    ready to be run. Raises ConfigError, TargetError, MachineError where the limits of this process are too
    low for that."""
    build = build.resolve()
    target = TARGETS[name](build) if name in TARGETS else _from_outside(name, build)
    if ready:
        require_limits()
        target.check_ready()
    return target


def _from_outside(name: str, build: Path) -> Target:
    if is_target_file(name):
        return _of_file(Path(name), build)
    file = _file_of(name)
    if file is not None:
        return _of_file(file, build, name)
    if name not in _installed():
        if Path(name).is_dir():
            raise ConfigError(
                f"{name} is a folder without {Path(name).resolve().name}{FILE_SUFFIX}"
            )
        also = ", or a target file NAME.toml"
        raise ConfigError(unknown("target", name, target_names(), also))
    made = _loaded(name)
    if not callable(made):
        raise ConfigError(f"entry point {name!r}: neither the path of a target file nor callable")
    return cast("Target", made(build))


def _file_of(name: str) -> Path | None:
    """The target file behind a name; None if there is none."""
    if name in TARGETS:
        return None
    bundled = BUNDLED / f"{name}{FILE_SUFFIX}"
    if bundled.parent == BUNDLED and bundled.is_file():
        return bundled
    made = _loaded(name) if name in _installed() else None
    return made if isinstance(made, Path) else None


@cache
def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def _loaded(name: str) -> object:
    """What an entry point gives. ConfigError."""
    try:
        return _installed()[name].load()
    except Exception as error:  # whatever a stranger's module does
        raise ConfigError(f"entry point {name!r}: {type(error).__name__}: {error}") from error


def _of_file(path: Path, build: Path, name: str = "") -> Target:
    from tornpage.targets.command.target import CommandTarget

    return CommandTarget(path, preload_path(build), explorer_path(build), name)
