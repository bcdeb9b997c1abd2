"""The recorder that is a file system: its verdicts are those of the preload, which sees less."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from e2e_support import Tornpage, call
from test_audit import COMMITS, WAYS, WRITES, store
from test_e2e_sqlite import OPTIONS, record
from test_target_file import changed, make

from tornpage.campaigns.attempt import check_target
from tornpage.faults import recorder
from tornpage.faults.preload import preload_path
from tornpage.faults.recorder import Recorder, fs_path, why_no_fs
from tornpage.faults.trace import Op
from tornpage.live.recording import recorded_run
from tornpage.plans.campaign import fault_free_spec, load_campaign
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import explore
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import GoldenRunError, MissingError
from tornpage.vocabulary.paths import data_folder
from tornpage.workloads.workload import generate

__all__ = ["store"]

FS = {"recorder": "fs"}
LONG = Limits(states=20_000, depth=1)
DEEP = Limits(states=1_500, depth=2)


@pytest.fixture
def mount(build: Path) -> None:
    """Skipped, with the reason, where there can be none."""
    if why := why_no_fs(fs_path(preload_path(build))):
        pytest.skip(why)


@pytest.mark.usefixtures("mount")
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_sqlite_has_the_same_stream(mode: str, build: Path, tmp_path: Path) -> None:
    """Writes with their contents, syncs, names and marks, in the same order; both recorders see the same
    files. Only calls that change nothing are told otherwise: opens, closes, reads; and the mapping
    that the preload marks."""
    streams = []
    for one in Recorder:
        options = {**OPTIONS, "journal_mode": mode, "recorder": one}
        trace = record(build, tmp_path / one, options, generate("sqlite_smoke", {}, 7).text)
        paths: dict[int, str] = {}
        stream = []
        for event in trace.events():
            if event.kind == Op.OPEN:
                paths[event.file] = trace.text(event)
            elif event.kind not in (Op.CLOSE, Op.READ) and event.result >= 0:
                place = (paths.get(event.file, ""), event.offset, event.length, event.flags)
                stream.append((Op(event.kind), *place, event.hash, trace.payload(event)))
        streams.append([one for one in stream if "-shm" not in f"{one[1]} {one[-1]!r}"])
    preload, fs = streams
    assert len(fs) > 500
    assert fs == preload


def explored(
    build: Path, scratch: Path, target: str, options: dict[str, str], limits: Limits
) -> dict[str, Any]:
    """What an exploration of one run comes to: all that it counts of states and their images, and what broke:
    the n-th state of each kind is named without the number that its event has in the stream."""
    campaign = load_campaign("powerloss", data_folder("workloads"), target)
    spec = fault_free_spec(campaign, target, campaign.configs()[0])
    spec = replace(spec, options={**spec.options, **options})
    made = make_target(target, build)
    made.check_needs(spec.options)
    with recorded_run(spec, made, scratch) as recording:
        found = explore(spec, made, recording, limits)
    told = {name: n for name, n in found.summary.items() if name not in ("seconds", "states_per_s")}
    told["broken"] = [
        (re.sub(r"\d+(?=\.[a-z])", "", state), found.alike[state], found.broken[state])
        for state in found.broken
    ]
    return told


@pytest.mark.extended
@pytest.mark.usefixtures("mount")
@pytest.mark.parametrize(
    ("target", "options", "limits", "breaks"),
    [
        ("engine", {}, LONG, False),
        ("engine", {"doublewrite": "off"}, LONG, True),
        ("sqlite", {"journal_mode": "delete", "synchronous": "extra"}, LONG, False),
        ("sqlite", {"synchronous": "off"}, LONG, True),
        ("engine", {"doublewrite": "off"}, DEEP, True),
        ("sqlite", {"synchronous": "off"}, DEEP, True),
    ],
)
def test_both_recorders_have_the_same_verdicts(
    target: str,
    options: dict[str, str],
    limits: Limits,
    breaks: bool,
    build: Path,
    tmp_path: Path,
) -> None:
    """The same states, image by image, and the same findings, at both depths: none where the store is right,
    torn pages and lost commits where it is not."""
    preload, fs = (
        explored(build, tmp_path, target, {**options, "recorder": one}, limits) for one in Recorder
    )
    assert fs == preload
    assert fs["states"] >= limits.states // limits.depth
    assert fs["unvisited"] == fs["records_lost"] == 0
    assert bool(fs["broken"]) == breaks


@pytest.mark.extended
@pytest.mark.usefixtures("mount")
def test_both_recorders_have_the_same_kills(tornpage: Tornpage) -> None:
    """Of a target that always does the same: no run differs from its golden run, and each kill hits what it
    is to hit, inside of recoveries too."""
    found = []
    for one in Recorder:
        options = ["--option", f"recorder={one}", "--option", "doublewrite=off"]
        limits = ["--trials", "24", "--scripts", "1", "--fault-free", "0", "--out", one]
        told = tornpage("run", "smoke", *options, *limits, "--json")
        assert told.code == 1, told.text
        counted = ("exercised", "by_invariant", "by_site", "violations", "counters", "unstable")
        found.append({name: told.data[name] for name in counted})
    assert found[0] == found[1]
    assert found[0]["by_invariant"].keys() == {"I5"}


@pytest.mark.usefixtures("mount")
@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"link"}))
def test_a_way_that_no_preload_sees_is_recorded(way: str, store: Path, build: Path) -> None:
    """Each of the ways that the audit refuses of a preload; the audit finds nothing unseen."""
    target = make_target(str(store), build)
    seen = check_target(target, {"way": way, **FS})
    assert seen.writes >= WRITES
    assert (seen.audited.missing, seen.audited.recoveries) == ("", 4)
    assert seen.audited.mapped == (("header",) if way == "mprotect" else ())


@pytest.mark.usefixtures("mount")
def test_a_link_across_the_edge_fails(store: Path, build: Path) -> None:
    """The folder is a file system of its own: the store sees that, and is not judged by half of it."""
    with pytest.raises(GoldenRunError, match="link: Invalid cross-device link"):
        check_target(make_target(str(store), build), {"way": "link", **FS})


def test_try_takes_it_by_itself(store: Path, tornpage: Tornpage) -> None:
    """Where admission finds what the preload does not see; one line says so. `target check` proposes it."""
    file = store.with_name("inline.toml")
    file.write_text(store.read_text("utf-8").replace('["pwrite", ', "["), "utf-8")
    unseen = "not in the recording: pwrite of header by store; "
    tried = tornpage("try", str(file), "--states", "30", "--trials", "5")
    assert tried.code in (0, 1), tried.text
    assert f"{unseen}recorded by a file system instead, as --option recorder=fs does" in tried.text
    assert (tried.data["commits"], tried.data["not_audited"]) == (COMMITS, "")
    check = call(store.parent, "target", "check", str(file))
    assert check.returncode == 2
    assert f"{unseen}--option recorder=fs records it by a file system" in check.stderr


@pytest.mark.extended
@pytest.mark.usefixtures("mount")
def test_a_target_file_may_say_it(tmp_path: Path, build: Path, tornpage: Tornpage) -> None:
    """Power loss and kills of a correct store are clean by it; without its fsync they are not."""
    file = changed(make(tmp_path), "by_fs")
    file.write_text('recorder = "fs"\n' + file.read_text("utf-8"), "utf-8")
    assert make_target(str(file), build).is_below({})
    clean = tornpage("try", str(file), "--states", "60", "--trials", "20")
    assert clean.code == 0, clean.text
    broken = changed(file, "broken", ("        os.fsync(log)\n", ""))
    assert tornpage("try", str(broken), "--states", "60", "--trials", "5").code == 1


@pytest.mark.usefixtures("mount")
def test_a_sync_of_everything_is_refused(tmp_path: Path, build: Path) -> None:
    """It is the one thing that the file system is not asked for: a store that relies on it is not judged."""
    file = changed(make(tmp_path), "syncs", ("os.fsync(log)", "os.sync()"))
    with pytest.raises(GoldenRunError, match="not in the recording: sync by"):
        check_target(make_target(str(file), build), FS)


def test_without_it_one_line_says_what_to_do(
    tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is not built, and where nothing can be mounted."""
    target = make_target(str(changed(make(tmp_path), "plain")), build)
    no_mount = tmp_path / "tornpage-fs"
    no_mount.write_text("#!/bin/sh\necho 'tornpage-fs: mount: no: do this' >&2; exit 97\n")
    no_mount.chmod(0o755)
    for program, said in (
        (tmp_path / "none", f"recorder=fs: {recorder.NOT_BUILT}"),
        (no_mount, "recorder=fs: tornpage-fs: mount: no: do this"),
    ):
        monkeypatch.setattr("tornpage.targets.command.target.fs_path", lambda _, to=program: to)
        with pytest.raises(MissingError) as error:
            check_target(target, FS)
        assert str(error.value) == said
    shutil.rmtree(tmp_path / "none", ignore_errors=True)
