"""Reads a finding that packed.py has packed into a store and the folder beside it. Whoever made the file may
want harm: nothing of it is trusted, and until all of it has been looked at nothing is where it stays.

No name leads out of the folder, nothing but files and folders is made, and no more than the file says that
it holds, which is checked before the first byte of it is written. Nothing of it is run: a replay does that.
"""

from __future__ import annotations

import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Self

from pydantic import ValidationError

from tornpage.campaigns.fault_free import script_folder, scripts_of, stored_row
from tornpage.campaigns.fitting import absolute_options, check_options
from tornpage.campaigns.packed import (
    FORMAT,
    IMAGE,
    MANIFEST,
    PAGE,
    TARGET,
    PackedFind,
    zstandard_module,
)
from tornpage.campaigns.runner import load_summary
from tornpage.evidence.evidence import load_evidence
from tornpage.evidence.images import images_of
from tornpage.faults.image import remove_image
from tornpage.faults.scratch import PREFIX
from tornpage.faults.stacks import StackLog
from tornpage.faults.trace import Op, Trace
from tornpage.live.kept import RECORDING, load_crash, load_recording
from tornpage.plans.campaign import Campaign
from tornpage.plans.origin import difference, program_hashes
from tornpage.store.origin import Origin
from tornpage.store.place import Place
from tornpage.store.rows import IMPORT, Run
from tornpage.store.store import Store
from tornpage.targets.registry import identity_of, is_target_file, make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.codec import first_error, from_json
from tornpage.vocabulary.errors import ConfigError, DamagedError, TornpageError, TraceError
from tornpage.vocabulary.outputs import FULL
from tornpage.vocabulary.paths import FLOOR_BYTES, Paths, tmpfs_folder

__all__ = ["Imported", "import_find"]

NONE: Mapping[str, str] = {}
UNPACKED_MAX = 16 << 30
"""Bytes of all files of a finding."""
MANIFEST_MAX = 64 << 20
FILES_MAX = 100_000
NAME_MAX = 4096
NUMBER_MAX = 10**18
WINDOW_MAX = 1 << 27
"""Bytes that the decompression may remember."""
STATE = re.compile(r"\d{1,18}\.[a-z-]{1,40}\.\d{1,18}(/\d{1,18}\.[a-z-]{1,40}\.\d{1,18}){0,2}")
"""The name of a power-loss state."""


@dataclass(frozen=True, slots=True)
class Imported:
    """trial: its name here; there: it was here before; bugs: of its violations; differs: programs that are
    others here than when it was found, in words; own_target: the path of the target file that came along, ""
    where a replay runs no program of the file."""

    trial: str
    there: bool
    bugs: tuple[int, ...]
    differs: str
    own_target: str


def import_find(
    place: Place,
    file: Path,
    paths: Paths,
    out: Path,
    target: str | None = None,
    options: Mapping[str, str] = NONE,
) -> Imported:
    """Puts a finding into the store of this place, which is made if it is not there, and what was kept of it
    into `out`, as a run of its own. target: the full name of the target here, None: as the file has it;
    options: in place of its own. Raises ConfigError, DamagedError naming what is wrong with the file; then
    nothing has been made."""
    is_new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".import-", dir=out))
    try:
        with _opened(file) as archive:
            find = archive.find()
            _check_find(find)
            _check_room(find, out)
            archive.extract(find, folder)
        _check_kept(find, folder / IMAGE)
        find = _with_options(find, _target_of(find, folder, paths, target), options)
        with Store(place) as store:
            known = _known(store, find)
            if known is not None:
                return _imported(store, known, find, paths, there=True)
            return _imported(
                store, _add(store, find, folder, out, target), find, paths, there=False
            )
    finally:
        remove_image(folder)
        if is_new:
            with suppress(OSError):  # what was imported is in it
                out.rmdir()


def _add(store: Store, find: PackedFind, folder: Path, out: Path, target: str | None) -> int:
    """Its run. folder: what was in the archive; target: as of import_find()."""
    run = _begin(store, find)
    place = images_of(out, run.id) / _folder_of(find)
    _put_in_place(folder, place)
    own = str(place.resolve() / find.target) if _has_own(find) else find.target
    _fill(store, run, find, place, target or own)
    return run.id


def _put_in_place(folder: Path, place: Path) -> None:
    """What was kept, and beside it the target and the page."""
    remove_image(place)  # of a run whose store is no more
    place.parent.mkdir(parents=True, exist_ok=True)
    (folder / IMAGE).rename(place)
    for name in (PAGE, TARGET):
        if (folder / name).exists():
            (folder / name).rename(place / name)


# ---- the archive ----


class _Plain(tarfile.TarInfo):
    """A member that is a file or a folder, or the name of one that is long."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """As that of TarInfo. DamagedError."""
        found = super().frombuf(buf, encoding, errors)
        if found.type == tarfile.GNUTYPE_LONGNAME and found.size <= NAME_MAX:
            return found
        if found.type not in (tarfile.REGTYPE, tarfile.DIRTYPE):
            raise DamagedError(f"{found.name}: a link, a device or what no finding has")
        return found


class _Archive:
    """One that is read from its begin to its end."""

    def __init__(self, archive: tarfile.TarFile, stream: IO[bytes]) -> None:
        self._archive, self._stream = archive, stream

    def find(self) -> PackedFind:
        """What the file says of itself. DamagedError."""
        first = self._archive.next()
        if first is None or first.name != MANIFEST or first.size > MANIFEST_MAX:
            raise DamagedError(f"it does not begin with {MANIFEST}")
        content = self._archive.extractfile(first)
        text = content.read() if content is not None else b""
        find = _manifest(text)
        if not 0 < len(find.files) + len(find.folders) <= FILES_MAX:
            raise DamagedError(f"{MANIFEST}: files: none, or more than {FILES_MAX:,}")
        if min(find.files.values()) < 0:
            raise DamagedError(f"{MANIFEST}: files: one has less than no bytes")
        for name in (*find.files, *find.folders):
            _check_name(name)
        return find

    def extract(self, find: PackedFind, folder: Path) -> None:
        """All other members, which must be those that were announced. DamagedError."""
        left: dict[str, int | None] = {**find.files, **dict.fromkeys(find.folders)}
        while (member := self._archive.next()) is not None:
            wanted = left.pop(member.name, -1)
            if wanted != (None if member.isdir() else member.size):
                raise DamagedError(f"{member.name}: {MANIFEST} does not have it so")
            self._archive.extract(member, folder, filter="data")
        if left:
            raise DamagedError(f"{min(left)} is missing")
        while part := self._stream.read(tarfile.RECORDSIZE):
            if part.strip(b"\0"):
                raise DamagedError("something follows behind its end")


@contextmanager
def _opened(file: Path) -> Iterator[_Archive]:
    """DamagedError naming the file for whatever is wrong with it, also while it is read."""
    zstandard = zstandard_module()
    try:
        with file.open("rb") as raw:
            unpacker = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX)
            with (
                unpacker.stream_reader(raw, closefd=False) as stream,
                tarfile.open(fileobj=stream, mode="r|", tarinfo=_Plain) as archive,
            ):
                yield _Archive(archive, stream)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise DamagedError(
            f"{file}: cut, damaged, or no finding that Tornpage has packed"
        ) from error
    except DamagedError as error:
        raise DamagedError(f"{file}: {error}") from error
    except OSError as error:
        if error.errno in FULL:
            raise
        raise ConfigError(f"{error.filename or file}: {error.strerror or error}") from error


def _manifest(text: bytes) -> PackedFind:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{MANIFEST}: {error}") from error
    number = told.get("format") if isinstance(told, dict) else None
    if number is None:
        raise DamagedError(f"{MANIFEST} names no format: it is none of Tornpage's")
    if number != FORMAT:
        made = told.get("version")
        raise DamagedError(
            f"{MANIFEST} has format {number}, and this Tornpage reads {FORMAT}: use Tornpage {made}"
        )
    return from_json(PackedFind, text)


def _check_name(name: str) -> None:
    """A path below image/ or target/, spelled in one way only."""
    path = PurePosixPath(name)
    parts = path.parts
    inside = len(parts) > 1 and parts[0] in (IMAGE, TARGET) and ".." not in parts
    if str(path) != name or "\0" in name or not (inside or name == PAGE):
        raise DamagedError(f"{MANIFEST}: files: {name!r} is none of a finding")


def _check_room(find: PackedFind, out: Path) -> None:
    total = sum(find.files.values())
    if total > UNPACKED_MAX:
        raise DamagedError(f"it holds {total:,} bytes, and a finding at most {UNPACKED_MAX:,}")
    free = shutil.disk_usage(out).free
    if total > free - FLOOR_BYTES:
        raise ConfigError(
            f"{out} has {free >> 20} MiB free, and the finding {total >> 20}: free some"
        )


# ---- what was in it ----


def _with_options(find: PackedFind, target: Target, options: Mapping[str, str]) -> PackedFind:
    """With these in place of its own. ConfigError: it has one that names a file of the other machine, or that
    the target does not have."""
    options = absolute_options([target], options)
    spec = replace(find.spec, options={**find.spec.options, **options})
    for name, value in spec.options.items():
        if "/" in value and name not in options:
            raise ConfigError(
                f"it was found with {name}={value}: --option {name}=PATH names that of this machine"
            )
    check_options(target, find.target, spec.options.items())
    settings = {**find.settings, "options": {**find.settings.get("options", {}), **options}}
    return replace(find, spec=spec, settings=settings)


def _check_find(find: PackedFind) -> None:
    """DamagedError: it is no finding, or names what is not in the file."""
    try:
        campaign = Campaign.model_validate(find.settings)
    except ValidationError as error:
        raise DamagedError(first_error(error, MANIFEST, "settings")) from error
    spec, row = find.spec, find.golden_run
    wrong = {
        "result: it broke nothing": not find.result.violations,
        "number: none of a trial": not 0 <= spec.number < NUMBER_MAX,
        "plan.loss: no state": bool(spec.plan.loss) and STATE.fullmatch(spec.plan.loss) is None,
        "params.path: a file that is not in it": "path" in spec.params or "path" in campaign.params,
        "golden_run: it does not go with the plan": spec.plan.crashes == (row is not None),
        "golden_run: no script of the campaign": row is not None
        and [row.config] != [one.label for one in scripts_of(campaign)][spec.number :][:1],
        "target: neither a name nor in it": find.target not in find.files
        and (_has_own(find) or is_target_file(find.target)),
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise DamagedError(f"{MANIFEST}: {what}")


def _check_kept(find: PackedFind, image: Path) -> None:
    """DamagedError: a part is missing or is not what it should be, or would write somewhere else."""
    if not (image / "data").is_dir():
        raise DamagedError(f"{IMAGE}/data is missing")
    load_evidence(image)
    crash, recording = load_crash(image), load_recording(image)
    if recording is not None:
        for part in (recording.trace, recording.allowed, recording.kinds, recording.found):
            if not part.exists():
                raise DamagedError(f"{part.relative_to(image.parent)} is missing")
    elif find.spec.plan.loss and (image / RECORDING).exists():
        raise DamagedError(f"{IMAGE}/{RECORDING} has no facts")
    for kept in (crash, recording):
        if kept is not None and kept.at is not None:
            _check_place(kept.at)
    for trace in (*image.glob("*.trace"), *image.glob(f"{RECORDING}/trace")):
        _check_trace(trace)


def _check_place(place: Path) -> None:
    """Where images are recovered because their files name it: in scratch of ours, and nowhere else."""
    for on_shm in (True, False):
        with suppress(ConfigError):
            parent = tmpfs_folder(on_shm)
            below = place.relative_to(parent).parts if place.is_relative_to(parent) else ()
            if len(below) > 1 and below[0].startswith(PREFIX) and ".." not in below:
                return
    raise DamagedError(
        f"it wants to be recovered in {place}, which is no scratch here: if it is one there, TORNPAGE_TMP "
        "names its folder"
    )


def _check_trace(trace: Path) -> None:
    """Its files are made again below a folder."""
    try:
        recorded = Trace.load(trace)
        StackLog.load(trace)
    except TraceError as error:
        raise DamagedError(str(error)) from error
    for event in recorded.events(kinds=(Op.OPEN, Op.UNLINK, Op.SYNC_DIR, Op.MKDIR)):
        _check_inside(trace, recorded.text(event))
    for event in recorded.events(kinds=(Op.RENAME, Op.LINK)):
        for name in recorded.renamed(event):
            _check_inside(trace, name)


def _check_inside(trace: Path, name: str) -> None:
    if name.startswith("/") or ".." in name.split("/"):
        raise DamagedError(f"{trace.name} names {name!r}, which is outside of its folder")


# ---- the store ----


def _has_own(find: PackedFind) -> bool:
    return find.target.startswith(f"{TARGET}/")


def _name_in(run: int, find: PackedFind) -> str:
    return f"{run}.{_folder_of(find)}"


def _folder_of(find: PackedFind) -> str:
    number = find.spec.number
    return str(number) if find.spec.plan.crashes else script_folder(number)


def _target_of(find: PackedFind, folder: Path, paths: Paths, target: str | None) -> Target:
    """What it is replayed on. ConfigError: that is not what it was found in."""
    own = str(folder / find.target) if _has_own(find) else find.target
    made = make_target(target or own, paths.build, ready=False)
    if identity_of(made) != find.origin.target:
        raise ConfigError(
            f"{target or find.target} is another target than {find.origin.target}, in which it was found"
        )
    return made


def _known(store: Store, find: PackedFind) -> int | None:
    """The run that this finding has been imported as."""
    for run in store.runs():
        same = (run.origin, run.settings, run.seed) == (find.origin, find.settings, find.seed)
        if run.campaign == IMPORT and same and run.state == "finished":
            with suppress(ConfigError):
                row = stored_row(store, _name_in(run.id, find))
                if row.spec.plan == find.spec.plan:
                    return run.id
    return None


def _begin(store: Store, find: PackedFind) -> Run:
    trials = int(find.spec.plan.crashes)
    return store.begin_run(IMPORT, find.target, find.seed, trials, find.settings, find.origin)


def _fill(store: Store, run: Run, find: PackedFind, image: Path, target: str) -> None:
    """target: where it is found here."""
    store.set_target(run.id, target)
    if find.golden_run is not None:
        store.put_golden_run(run.id, find.golden_run)
    else:
        spec = replace(find.spec, target=target)
        store.start_trial(run.id, spec, find.site, find.mask)
        store.finish_trial(run.id, replace(find.result, image=image.resolve()))
    if find.explained is not None:
        store.put_explanation(_name_in(run.id, find), find.explained)
    done = store.finish_run(run.id)
    store.set_verdict(run.id, load_summary(store, done).verdict)


def _imported(store: Store, run: int, find: PackedFind, paths: Paths, *, there: bool) -> Imported:
    name = _name_in(run, find)
    bugs = tuple(sorted({bug for bug in stored_row(store, name).bugs if bug is not None}))
    target = store.run(run).target
    own = target if _has_own(find) and find.target in Path(target).as_posix() else ""
    return Imported(name, there, bugs, _differs(find, target, paths), own)


def _differs(find: PackedFind, target: str, paths: Paths) -> str:
    """Programs that are not those that have found it, or why that cannot be told."""
    try:
        here = program_hashes(make_target(target, paths.build))
    except TornpageError as error:
        return str(error)
    there = {name: hash_ for name, hash_ in find.origin.programs.items() if name != "campaign"}
    return difference(Origin(programs=there), Origin(programs=here))
