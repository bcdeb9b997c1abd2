"""A finding in one file, FIND.tar.zst, that another machine can read: what is in it, and the making of it.
unpacked.py reads it.

    find.json   PackedFind, the first of all
    README.md   for a person
    image/      what was kept: the crashed image, recordings, what they may leave
    target/     the target file and what lies beside it, unless Tornpage brings the target
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from pydantic import ConfigDict, with_config

from tornpage import __version__
from tornpage.campaigns.fault_free import golden_runs_by_script, stored_row, with_kept_image
from tornpage.faults.image import files_below
from tornpage.store.origin import Origin
from tornpage.store.rows import GoldenRunRow, TrialRow
from tornpage.store.store import Store
from tornpage.targets.registry import files_beside, make_target
from tornpage.vocabulary.cause import Explained
from tornpage.vocabulary.codec import to_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import TrialResult, TrialSpec
from tornpage.vocabulary.outputs import output
from tornpage.vocabulary.paths import Paths
from tornpage.workloads.workload import generate

__all__ = [
    "FORMAT",
    "IMAGE",
    "LEVEL",
    "MANIFEST",
    "PAGE",
    "TARGET",
    "Packed",
    "PackedFind",
    "export_find",
    "zstandard_module",
]

FORMAT = 1
"""Grows when another Tornpage could not read it."""
MANIFEST = "find.json"
PAGE = "README.md"
IMAGE = "image"
TARGET = "target"
LEVEL = 9
"""Of the compression."""
IN_FILES = {"file": "inline", "lines": "lines"}
"""Workloads whose script is in a file, and those that carry it."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class PackedFind:
    """find.json. format: FORMAT; version: of the Tornpage that made it; name: as "3.17", there; run: its name
    of the campaign; target: a name, or the path of the target file below target/, where there is one;
    golden_run: of a run without a fault; files: bytes of each other file, by its path; folders: those that
    are empty; explained: what `tornpage explain` has found."""

    format: int
    version: str
    name: str
    campaign: str
    seed: int
    settings: dict[str, Any]
    origin: Origin
    target: str
    spec: TrialSpec
    site: str
    mask: str
    result: TrialResult
    golden_run: GoldenRunRow | None
    files: Mapping[str, int]
    folders: tuple[str, ...]
    explained: Explained | None = None


@dataclass(frozen=True, slots=True)
class Packed:
    """What was made. size: of the file, unpacked: of what is in it, in bytes."""

    trial: str
    file: Path
    files: int
    unpacked: int
    size: int


def zstandard_module() -> ModuleType:
    """The library, which is an extra. ConfigError."""
    try:
        import zstandard
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error}: pip install 'tornpage[find]'") from error
    return zstandard


def export_find(store: Store, name: str, paths: Paths, out: Path, file: Path) -> Packed:
    """Packs a finding with all that was kept of it. ConfigError: it is none, nothing was kept of it, the file
    is there, its folder is not, or a name is too long for it."""
    zstandard = zstandard_module()
    if file.exists():
        raise ConfigError(f"{file} exists already: name another file")
    if not file.parent.is_dir():
        raise ConfigError(f"{file.parent}: no such folder")
    row = with_kept_image(stored_row(store, name), out)
    image = _image_of(store, row, name, out)
    target = make_target(row.spec.target, paths.build, ready=False)
    beside = files_beside(target)
    sources = {
        **{f"{IMAGE}/{path}": place for path, place in files_below(image).items()},
        **{f"{TARGET}/{path}": place for path, place in beside.items()},
    }
    folders = tuple(f"{IMAGE}/{path}" for path in _empty_folders(image))
    own = next((f"{TARGET}/{path}" for path in beside), "")
    find = _find_of(store, row, name, own)
    page = _page(find, file.name).encode()
    sizes = {path: place.stat().st_size for path, place in sources.items()}
    find = replace(find, files={PAGE: len(page), **sizes}, folders=folders)
    part = file.with_name(f"{file.name}.part")
    with output(file):
        try:
            with part.open("wb") as raw:
                packer = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
                with packer.stream_writer(raw, closefd=False) as stream:
                    _write(stream, find, page, sources)
            part.rename(file)
        finally:
            part.unlink(missing_ok=True)
    total = sum(find.files.values())
    return Packed(name, file, len(find.files), total, file.stat().st_size)


def _image_of(store: Store, row: TrialRow, name: str, out: Path) -> Path:
    """Where what was kept of a finding lies. ConfigError naming another one of its bugs of which something
    was."""
    if row.result is None or not row.result.violations:
        raise ConfigError(f"trial {name} broke no invariant: nothing to export")
    image = row.result.image
    if image is not None and image.is_dir():
        return image
    for other in store.trials(row.run):
        kept = other.result.image if other.result is not None else None
        if kept is not None and kept.is_dir() and {*other.bugs} & {*row.bugs}:
            raise ConfigError(
                f"no image was kept of trial {name}: {other.run}.{other.number} shows the same and has one"
            )
    raise ConfigError(f"nothing was kept of {name} in {out}: `tornpage run` keeps it in its --out")


def _find_of(store: Store, row: TrialRow, name: str, target: str) -> PackedFind:
    """target: the path of its file, "" where it needs none. A script in a file is carried as text."""
    run = store.run(row.run)
    spec, settings = row.spec, dict(run.settings)
    carried = IN_FILES.get(spec.workload)
    if carried is not None:
        text = generate(spec.workload, spec.params, spec.workload_seed).text
        spec = replace(spec, workload=carried, params={"script": text})
        settings |= {"workload": carried, "params": {"script": text}}
    golden_run = None
    if not spec.plan.crashes:
        golden_run = golden_runs_by_script(store, run)[row.number]
    assert row.result is not None, "it broke something"
    return PackedFind(
        format=FORMAT,
        version=__version__,
        name=name,
        campaign=run.campaign,
        seed=run.seed,
        settings=settings,
        origin=run.origin,
        target=target or spec.target,
        spec=replace(spec, target=target or spec.target),
        site=row.site,
        mask=row.mask,
        result=replace(row.result, image=None),
        golden_run=golden_run,
        files={},
        folders=(),
        explained=store.explanations(run.id).get(name),
    )


def _empty_folders(image: Path) -> Iterator[str]:
    for path in sorted(image.rglob("*")):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            yield str(path.relative_to(image))


def _write(stream: IO[bytes], find: PackedFind, page: bytes, sources: Mapping[str, Path]) -> None:
    """Equal for equal files: without times, users and groups."""
    manifest = to_json(find).encode()
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for name, text in ((MANIFEST, manifest), (PAGE, page)):
            archive.addfile(_member(name, len(text)), io.BytesIO(text))
        for folder in find.folders:
            member = _member(folder, 0, 0o755)
            member.type = tarfile.DIRTYPE
            archive.addfile(member)
        for name, place in sources.items():
            mode = 0o755 if place.stat().st_mode & 0o100 else 0o644
            with place.open("rb") as file:
                archive.addfile(_member(name, find.files[name], mode), file)


def _member(name: str, size: int, mode: int = 0o644) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, mode
    return member


def _page(find: PackedFind, file: str) -> str:
    """README.md."""
    findings = "\n".join(f"- I{one.invariant}: {one.what}" for one in find.result.violations)
    programs = "\n".join(f"| {name} | {hash_} |" for name, hash_ in find.origin.programs.items())
    options = ", ".join(f"{name}={value}" for name, value in find.spec.options.items()) or "none"
    number = find.name.partition(".")[2]
    return PAGE_TEXT.format(
        title=f"Finding {find.name} of {find.origin.target or find.target}",
        findings=findings,
        campaign=find.campaign,
        seed=find.seed,
        options=options,
        started=find.origin.started,
        host=find.origin.host,
        command=find.origin.command or "(none)",
        plan=find.spec.plan.name,
        file=file,
        number=number,
        version=find.version,
        revision=find.origin.revision or "unknown",
        programs=programs,
        parts=_parts(find.files),
    )


def _parts(files: Iterable[str]) -> str:
    there = {"/".join(name.split("/")[:2]) for name in files}
    return "\n".join(f"| `{name}` | {what} |" for name, what in PARTS.items() if name in there)


PARTS = {
    "image/data": "the files as the crash left them, before any recovery",
    "image/evidence.json": "the last operations before the crash, pages and rows: what `show` prints",
    "image/confirmed.json": "what real file systems show of it",
    "image/recording": "the recording of the run, with contents, and the files that it began with",
    "image/run.trace": "the recording of the run",
    "image/found": "the files that the run began with",
    "image/crash.json": "what the crash may leave",
    "image/plan.toml": "the faults",
    "image/script": "the statements",
}
"""Of an archive, for a person."""

PAGE_TEXT = """# {title}

{findings}

Found by Tornpage {version} in campaign {campaign}, seed {seed}, options {options}, {started}, on {host}.
Its command: `{command}`. The crash: {plan}.

## See it again

```
pip install 'tornpage[find]'        # {version}
tornpage import {file}     # says which number it has there, such as 1.{number}
tornpage show 1.{number}
tornpage replay 1.{number}     # recovers the image again, crashes the recording again, runs the target again
tornpage shrink 1.{number}
```

`replay` runs the target: programs in `target/` are those of whoever made this file.
`tornpage import --target FILE` takes your own.

Without Tornpage: start the store on a copy of `image/data`.

## What is here

| path | what |
|---|---|
| `find.json` | the finding: plan, verdict, campaign, versions; size of each file |
{parts}

## What ran

The target's sources: {revision}. Hashes (XXH3-64):

| program | hash |
|---|---|
{programs}
"""
