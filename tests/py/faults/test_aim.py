"""Which writes a recovery has, and how a fault is drawn from them."""

from __future__ import annotations

import fnmatch
import random
from dataclasses import replace
from pathlib import Path

from builders import make_write
from fake_trace import FakeTrace

from tornpage.faults.aim import RecoveryAim, faults_of, fits
from tornpage.faults.trace import Op
from tornpage.live.writes import Names, list_operations, list_writes, names_of
from tornpage.targets.engine.target import EngineTarget
from tornpage.vocabulary.model import Action, Fault, FaultKind, Site

PAGE = "page_write space=5 page=4 lsn=1 type=index level=0 index=40 dblwr=used load=0"
WRITES = [make_write(n, Site.DATA_PAGE) for n in range(1, 9)]
WRITES += [make_write(n, Site.REDO, "ib_logfile0", 1024) for n in range(1, 9)]


def recovery() -> FakeTrace:
    """Two log writes with one fsync between them, a restored page, and a home write with its fsync."""
    fake = FakeTrace().write("ib_logfile0", 512, 512).fsync("ib_logfile0")
    fake.mark("recv_dblwr_restore space=5 page=4 lsn=1").write("t1.ibd", 16384, 4096)
    fake.mark(PAGE).write("t1.ibd", 16384, 4096).fsync("t1.ibd")
    return fake.write("ib_logfile0", 2048, 512)


def test_a_recovery_has_writes_before_any_statement() -> None:
    """Sites as in a run, counted per file; what doublewrite restores has no marker of a home write."""
    target = EngineTarget(Path("engine"), Path("preload"))
    trace = recovery().trace()
    writes = list_writes(target, trace, 4096)
    assert [(w.file, w.nth, w.site, w.next_fsync) for w in writes] == [
        ("ib_logfile0", 1, Site.CHECKPOINT_HEADER, 1),
        ("t1.ibd", 1, Site.OTHER, 1),
        ("t1.ibd", 2, Site.DATA_PAGE, 1),
        ("ib_logfile0", 2, Site.REDO, 0),
    ]
    assert list_writes(target, trace, 4096, issued=True) == []


def test_changes_of_names_are_operations() -> None:
    """Reads, too. Each is counted as a plan counts it: failed ones, a rename under both names. Each can only
    fail, and by the mask of its kind."""
    fake = FakeTrace().sync_dir().mark("issue n=7").write("a", 0, 512).rename("a", "b")
    fake.record(Op.UNLINK, payload=b"b", result=-5).unlink("b").rename("c", "b").sync_dir()
    fake.open("d", created=True).record(Op.TRUNCATE, file=2, offset=9)
    fake.record(Op.READ, file=2, length=9, result=-5).record(Op.READ, file=2, length=9, result=9)
    target = EngineTarget(Path("engine"), Path("preload"))
    found = list(list_operations(target, fake.trace(), 4096, unit=2048))
    assert {one.promised for one in found} == {2048}  # of the kill behind it
    assert [(one.kind.value, one.file, one.nth, one.line) for one in found] == [
        ("sync_dir", ".", 1, 0),
        ("rename", "a", 1, 7),
        ("unlink", "b", 2, 7),
        ("rename", "c", 1, 7),
        ("sync_dir", ".", 2, 7),
        ("truncate", "d", 1, 7),
        ("read", "d", 2, 7),
    ]
    assert list(list_operations(target, fake.trace(), 4096, issued=True, unit=2048)) == found[1:]
    kinds = ("sync_dir", "rename", "unlink", "truncate", "read", "write", "fsync")
    masks = [f"{kind}:EIO" for kind in kinds]
    fitting = [[mask for mask in (*masks, "none", "all") if fits(mask, one)] for one in found]
    assert fitting == [[f"{one.kind.value}:EIO"] for one in found]
    assert not any(fits(mask, make_write(1, Site.REDO)) for mask in masks[:5])
    assert [one.site for one in found] == [Site.FILE_OP] * 6 + [Site.OTHER]
    fault = faults_of("unlink:EIO", found[2], random.Random(1))[0]
    assert fault == Fault(FaultKind.UNLINK, 2, Action.ERROR, file="b", error="EIO")


def test_of_many_reads_some_are_listed() -> None:
    """Under the number that a plan gives them."""
    fake = FakeTrace().open("d", created=True)
    for _ in range(200):
        fake.record(Op.READ, file=1, length=9, result=9)
    target = EngineTarget(Path("engine"), Path("preload"))
    found = [one.nth for one in list_operations(target, fake.trace(), 4096)]
    assert found == [*range(1, 65), 128, 192]


def test_a_write_of_nothing_is_none() -> None:
    """A plan counts it; nothing of it can be kept or lost. The marker before it is about the next write."""
    target = EngineTarget(Path("engine"), Path("preload"))
    fake = FakeTrace().write("t1.ibd", 0, 0).mark(PAGE).write("t1.ibd", 16384, 0)
    fake.write("t1.ibd", 16384, 4096)
    (write,) = list_writes(target, fake.trace(), 4096)
    assert (write.nth, write.length, write.site) == (3, 4096, Site.DATA_PAGE)


def test_a_write_to_a_replaced_file_is_none() -> None:
    """It has no name by which a plan could call it, and no image has it; the new file's are counted alone."""
    target = EngineTarget(Path("engine"), Path("preload"))
    fake = FakeTrace().open("t1.ibd", created=True).write("new", 0, 512).rename("new", "t1.ibd")
    fake.record(Op.WRITE, file=1, length=512, result=512).write("t1.ibd", 512, 512)
    writes = list_writes(target, fake.trace(), 4096)
    assert [(write.file, write.nth, write.offset) for write in writes] == [
        ("new", 1, 0),
        ("t1.ibd", 1, 512),
    ]


def test_names_that_differ_from_run_to_run_are_a_pattern() -> None:
    """Of their folder, with the parts of the name that all of them have; letters that they share by
    chance are none. What was there before, or is written in every run, is called by its name."""
    one = {"log", "t/tmpab1", "t/tmpac2", "t/log", "d/part-ab.new", "x1/deep", "seen"}
    other = {"log", "t/tmpaz9", "t/log", "d/part-zb.new", "d/part-q1b.new", "x2/deep"}
    names = names_of(one, other, {"seen", "d/old"})
    assert names.stable == {"log", "t/log", "seen", "d/old"}
    told = {
        name: names.aim(name) for name in ("log", "seen", "t/tmpab1", "d/part-ab.new", "x1/deep")
    }
    assert told == {
        "log": "log",
        "seen": "seen",
        "t/tmpab1": "t/*",
        "d/part-ab.new": "d/part-*.new",
        "x1/deep": "*/deep",
    }
    assert names.with_stable({"d/never[1]"}).aim("d/never[1]") == "d/never[1]"
    alone = Names(frozenset({"log"}))
    assert [alone.aim(name) for name in ("log", "new", "d[1]/new")] == ["log", "*", "d[[]1]/*"]
    special = names_of({"a[1].x7"}, {"a[1].y8"}, set())
    assert special.aim("a[1].z9") == "a[[]1].*" and fnmatch.fnmatchcase("a[1].q", "a[[]1].*")


def test_a_pattern_counts_all_that_it_matches() -> None:
    """As the preload does: files with a name of their own too, whichever of them is hit."""
    target = EngineTarget(Path("engine"), Path("preload"))
    fake = FakeTrace().write("t1.ibd", 0, 512).fsync("t1.ibd").write("x7.ibd", 0, 512)
    fake.fsync("x7.ibd").write("t1.ibd", 0, 512).write("x8.ibd", 0, 512).fsync("x8.ibd")
    names = Names(frozenset({"t1.ibd"}), ("*.ibd",))
    writes = list_writes(target, fake.trace(), 4096, names=names)
    assert [(w.file, w.nth, w.next_fsync) for w in writes] == [
        ("t1.ibd", 1, 1),
        ("*.ibd", 2, 2),
        ("t1.ibd", 2, 0),
        ("*.ibd", 4, 3),
    ]
    exact = list_writes(target, fake.trace(), 4096)
    assert [(w.file, w.nth) for w in exact][1::2] == [("x7.ibd", 1), ("x8.ibd", 1)]


def test_what_the_storage_promises_of_pages_holds_wherever_they_lie() -> None:
    """For pages without a marker and for those of a backup; for no log, and for nothing else of a backup."""
    target = EngineTarget(Path("engine"), Path("preload"))
    paths = ["t1.ibd", "b1.backup/t1.ibd", "b1.backup/ibdata1", "b1.backup/undo001"]
    others = ["ib_logfile0", "b1.backup/ib_logfile0", "b1.backup/backup_info", "ib_dblwr"]
    fake = FakeTrace()
    for path in paths + others:
        fake.write(path, 16384, 4096)
    writes = list_writes(target, fake.trace(), 4096, unit=4096)
    assert [(w.file, w.unit) for w in writes] == [(p, 4096) for p in paths] + [
        (p, 512) for p in others
    ]


def test_the_fault_is_at_a_write_of_the_site_and_depends_on_the_seed_only() -> None:
    """The same seed and writes give the same fault; other seeds reach other writes."""
    drawn = [RecoveryAim(Site.REDO, "random", seed).draw(WRITES) for seed in range(40)]
    again = [RecoveryAim(Site.REDO, "random", seed).draw(WRITES) for seed in range(40)]
    assert drawn == again
    faults = [fault for (fault,) in drawn]
    assert {fault.file for fault in faults} == {"ib_logfile0"}
    assert {fault.nth for fault in faults} == set(range(1, 9))
    assert {len(fault.sectors or "") for fault in faults} == {2}


def test_an_error_is_at_the_write_or_at_its_fsync() -> None:
    """The number of an fsync is its own."""
    writes = [replace(write, next_fsync=3) for write in WRITES[:1]]
    aim = RecoveryAim(Site.DATA_PAGE, "write:ENOSPC", 1)
    assert aim.draw(writes)[0] == Fault(
        FaultKind.WRITE, 1, Action.ERROR, file="t1.ibd", error="ENOSPC"
    )
    aim = replace(aim, mask="fsync:EIO")
    failed = Fault(FaultKind.FSYNC, 3, Action.ERROR, file="t1.ibd", error="EIO")
    assert aim.draw(writes)[0] == failed


def test_a_target_that_goes_on_after_an_error_is_killed_half_of_the_time() -> None:
    """Inside one of its next writes, wherever that goes; the fault before it is the same."""
    aims = [RecoveryAim(Site.DATA_PAGE, "write:EIO", seed) for seed in range(200)]
    drawn = [aim.draw(WRITES) for aim in aims]
    kills = [faults[1] for faults in drawn if len(faults) == 2]
    assert 70 < len(kills) < 130 and all(len(faults) in (1, 2) for faults in drawn)
    assert {kill.nth for kill in kills} == set(range(1, 17))
    assert all(kill.follows and kill.action is Action.KILL and kill.file == "*" for kill in kills)
    assert {kill.sectors for kill in kills} >= {"none", "all", "prefix:1", "suffix:1"}
    assert {kill.sector for kill in kills} == {512}


def test_the_kill_behind_an_error_keeps_what_the_storage_promises() -> None:
    """Whatever it hits: the log that the error was at may be torn at sectors, a page behind it may not."""
    fake = FakeTrace().write("ib_logfile0", 2048, 512).write("t1.ibd", 16384, 16384)
    target = EngineTarget(Path("engine"), Path("preload"))
    (log, _page) = list_writes(target, fake.trace(), 16384, unit=4096)
    assert (log.unit, log.promised) == (512, 4096)
    aims = [RecoveryAim(Site.REDO, "write:EIO", seed) for seed in range(20)]
    kills = [fault for aim in aims for fault in aim.draw([log])[1:]]
    assert {kill.sector for kill in kills} == {4096}


def test_a_short_write_is_half_of_it() -> None:
    """Nothing fails: the program is told of what is written. One byte has no half."""
    run = make_write(3, Site.SORT_RUN, "#sql-tmp-33-0", 65000)
    fault = faults_of("write:short", run, random.Random(1))[0]
    short = Fault(FaultKind.WRITE, 3, Action.SHORT, file="#sql-tmp-33-0", bytes=32500)
    assert fits("write:short", run) and fault == short
    assert not fits("write:short", replace(run, length=1))


def test_what_the_storage_writes_whole_is_not_torn() -> None:
    """A page of one unit can only be lost; of two, each is there or not."""
    whole = replace(WRITES[0], unit=4096)
    assert not fits("prefix:1", whole) and not fits("suffix:half", whole) and fits("none", whole)
    halves = replace(WRITES[0], unit=2048)
    rng = random.Random(1)
    drawn = {faults_of("random", halves, rng)[0].sectors for _ in range(40)}
    assert drawn == {"0" * 8, "1111" + "0000", "0000" + "1111"}
    assert faults_of("prefix:1", halves, rng)[0].sectors == "11110000"
    assert faults_of("suffix:half", halves, rng)[0].sectors == "00001111"


def test_without_a_write_that_fits_there_is_no_fault() -> None:
    """Another site, or no fsync behind the write: nothing is hit instead."""
    unsynced = [replace(write, next_fsync=0) for write in WRITES]
    assert not fits("fsync:EIO", unsynced[0]) and fits("write:EIO", unsynced[0])
    assert RecoveryAim(Site.PAGE0, "none", 1).draw(WRITES) == ()
    assert RecoveryAim(Site.REDO, "fsync:EIO", 1).draw(unsynced) == ()
    assert RecoveryAim(Site.REDO, "write:EIO", 1).draw(unsynced)


def test_a_mask_that_tears_leaves_sectors_out_and_keeps_others() -> None:
    """One sector cannot be torn, and no mask may be as long as its write; whole and lost writes fit."""
    one, two, page = (make_write(1, Site.REDO, "ib_logfile0", n) for n in (512, 1024, 4096))
    torn = ["prefix:1", "suffix:1", "prefix:half", "mask:01", "mask:10"]
    assert not any(fits(mask, one) for mask in torn) and all(fits(mask, two) for mask in torn)
    assert [fits("prefix:7", write) for write in (two, page)] == [False, True]
    assert not fits("suffix:8", page) and not fits("mask:11", page) and not fits("prefix:0", page)
    assert all(fits(mask, one) for mask in ("none", "all", "random"))
    for seed in range(200):
        (fault,) = faults_of("random", one if seed % 2 else two, random.Random(seed))
        assert fault.sectors is not None and "0" in fault.sectors
