"""Trace invariants: each rule accepts the right order and reports each way of breaking it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_trace import FakeTrace

from tornpage.oracle.invariants import check_recovery, check_run, describe_rules
from tornpage.oracle.rules import Setting
from tornpage.oracle.rules_recovery import LogHistory
from tornpage.vocabulary.model import Source

LOG = "ib_logfile0"
SETTING = Setting(page_size=4096, log_size=2048 + 64 * 512)


def log_to(fake: FakeTrace, start: int, end: int, sync: bool = True) -> FakeTrace:
    """Writes the log blocks of [start, end) where they belong."""
    first = start // 512 * 512
    length = (end - first + 511) // 512 * 512
    fake.mark(f"log_write start={start} end={end}")
    fake.write(LOG, 2048 + (first - 8192) % (64 * 512), length)
    if sync:
        fake.fsync(LOG).mark(f"log_durable lsn={end}")
    return fake


def page_write(
    fake: FakeTrace, page: int, lsn: int, dblwr: str = "used", why: str = "batch", init: int = 0,
    load: int = 0, space: int = 5, path: str = "t1.ibd", pos: int = 0, oldest: int | None = None,
) -> FakeTrace:  # fmt: skip
    """A home write with its marker; oldest: of the page's changes, if that is not its LSN."""
    pos = pos if dblwr == "used" else -1
    fake.mark(
        f"page_write space={space} page={page} lsn={lsn} type=index level=0 index=40 "
        f"dblwr={dblwr} why={why} init_lsn={init} load={load} "
        f"oldest={lsn if oldest is None else oldest} pos={pos}"
    )
    return fake.write(path, page * 4096, 4096)


def batch(fake: FakeTrace, pages: list[tuple[int, int]]) -> FakeTrace:
    """A complete doublewrite batch of (page, lsn)."""
    fake.mark(f"dblwr_batch slot=0 pages={len(pages)}")
    fake.write("ib_dblwr", 0, 4096 * len(pages)).fsync("ib_dblwr")
    fake.mark("dblwr_synced slot=0")
    for pos, (page, lsn) in enumerate(pages):
        page_write(fake, page, lsn, pos=pos)
    return fake.fsync("t1.ibd").mark("dblwr_done slot=0")


def single(fake: FakeTrace, slot: int, page: int, lsn: int, sync: bool = True) -> FakeTrace:
    """A single-page flush of a load's page up to its home write, behind a batch region of 8 pages."""
    pos = 8 + slot
    fake.mark(f"dblwr_single slot={slot} space=5 page={page} pos={pos}")
    fake.write("ib_dblwr", pos * 4096, 4096)
    if sync:
        fake.fsync("ib_dblwr")
    return page_write(fake, page, lsn, why="single", load=1, pos=pos)


def checkpoint(fake: FakeTrace, no: int, c: int, marker: int) -> FakeTrace:
    """A checkpoint slot write and its fsync."""
    fake.mark(f"checkpoint no={no} slot={no % 2} c={c} marker={marker}")
    fake.write(LOG, 1536 if no % 2 else 512, 512).fsync(LOG)
    return fake.mark(f"checkpoint_done no={no}")


def base() -> FakeTrace:
    """A log that is durable to 9000, with a checkpoint at 8300."""
    fake = FakeTrace().open(LOG).open("ib_dblwr").open("ibdata1").open("t1.ibd")
    return checkpoint(log_to(fake, 8204, 9000), 1, 8300, 8400)


def good_run() -> FakeTrace:
    """A stretch of everything, in the right order."""
    fake = base()
    fake.mark("page_init space=5 page=3 lsn=9100")
    log_to(fake, 9000, 9100)
    page_write(fake, 3, 9100, "skip", "init", 9100).fsync("t1.ibd")
    batch(fake, [(3, 9100), (4, 8900)])
    batch(fake, [(4, 8900)])
    log_to(fake, 9100, 9150)
    checkpoint(fake, 2, 9100, 9120)
    fake.marks("load_begin space=5 index=41 redo=0")
    fake.mark("page_free space=5 page=7 lsn=9090").mark("page_noredo space=5 page=7 lsn=9100")
    single(single(fake, 0, 7, 9100), 1, 7, 9100).fsync("t1.ibd")
    single(fake, 0, 7, 9100).fsync("t1.ibd")
    fake.mark("index_load space=5 index=41 root=7 lsn=9200")
    log_to(fake, 9150, 9200)
    log_to(fake, 9200, 9300).mark("load_end space=5 index=41")
    log_to(fake, 9300, 9400).mark("file_op op=delete path=t1.ibd lsn=9400").unlink("t1.ibd")
    fake.sync_dir().mark("file_op_done op=delete path=t1.ibd").mark("ack n=4")
    log_to(fake, 9400, 9500)
    return checkpoint(fake, 3, 9350, 9450)


def found(fake: FakeTrace) -> list[int]:
    """Invariants reported for a run, all by rules."""
    findings, _ = check_run(fake.trace(), SETTING)
    assert {finding.violation.source for finding in findings} <= {Source.RULE}
    return [finding.violation.invariant for finding in findings]


def test_right_order_is_accepted() -> None:
    """No rule complains about the order that the protocol demands."""
    findings, history = check_run(good_run().trace(), SETTING)
    assert findings == []
    assert history.inits == [(9100, (5, 3))]
    assert history.loads == [(9200, 5)]
    assert history.files == {}
    assert history.deleted == [(9400, 5)]


def test_a_checkpoint_amid_a_batch() -> None:
    """A home write of changes from C on may be unsynced: the page was dirty when C was chosen."""
    fake = base().mark("dblwr_batch slot=0 pages=1").write("ib_dblwr", 0, 4096).fsync("ib_dblwr")
    page_write(fake.mark("dblwr_synced slot=0"), 4, 8900, oldest=8500)
    assert found(checkpoint(fake, 2, 8500, 8600).fsync("t1.ibd").mark("dblwr_done slot=0")) == []


def test_an_interrupted_load_vouches_for_nothing() -> None:
    """Its INDEX_LOAD comes while its pages are dirty; then they are given up."""
    fake = base().mark("load_begin space=5 index=41 redo=0")
    fake.mark("page_noredo space=5 page=7 lsn=8900")
    fake.mark("index_load space=5 index=41 root=7 lsn=9050 aborted=1")
    assert found(fake.mark("page_discard space=5 page=7")) == []


def test_history_knows_a_file_by_all_its_names() -> None:
    """A space that was renamed and then deleted is deleted, under whatever name its pages were written."""
    fake = batch(base(), [(4, 8900)])
    fake.mark("file_op op=rename path=t1.ibd lsn=8950 to=t2.ibd").rename(
        "t1.ibd", "t2.ibd"
    ).sync_dir()
    fake.mark("file_op op=delete path=t2.ibd lsn=8960").unlink("t2.ibd").sync_dir()
    findings, history = check_run(fake.trace(), SETTING)
    assert findings == []
    assert history.deleted == [(8960, 5)]


def test_finding_tells_event_number() -> None:
    """A finding carries the number of the event that shows it, so that a killed run can be cut there."""
    fake = base()
    seq = len(list(fake.trace().events())) + 1
    findings, _ = check_run(page_write(fake, 4, 9001, "skip", "off").trace(), SETTING)
    assert {finding.seq for finding in findings} == {seq}


def _unsynced_log(fake: FakeTrace) -> None:
    log_to(fake, 9000, 9100, sync=False)
    batch(fake, [(4, 9100)])


def _ack_before_fsync(fake: FakeTrace) -> None:
    fake.mark("point name=trx.commit_logged")
    log_to(fake, 9000, 9100, sync=False).mark("ack n=7")


def _early_durable(fake: FakeTrace) -> None:
    fake.mark("log_durable lsn=9100")


def _wrong_place(fake: FakeTrace) -> None:
    fake.mark("log_write start=9000 end=9100").write(LOG, 2048, 512)


def _overwrite(fake: FakeTrace) -> None:
    log_to(fake, 9000, 8192 + 65 * 512)


def _same_slot(fake: FakeTrace) -> None:
    checkpoint(fake, 3, 8500, 8600)


def _marker_not_durable(fake: FakeTrace) -> None:
    checkpoint(fake, 2, 8500, 9000)


def _slot_elsewhere(fake: FakeTrace) -> None:
    fake.mark("checkpoint no=2 slot=0 c=8500 marker=8600").write(LOG, 1536, 512)


def _unsynced_data(fake: FakeTrace) -> None:
    fake.write("t1.ibd", 0, 4096)
    checkpoint(fake, 2, 8500, 8600)


def _init_not_written(fake: FakeTrace) -> None:
    fake.mark("page_init space=5 page=3 lsn=8450")
    checkpoint(fake, 2, 8500, 8600)


def _ack_after_failure(fake: FakeTrace) -> None:
    fake.fsync("t1.ibd", result=-5).mark("ack n=1")


def _checkpoint_after_failure(fake: FakeTrace) -> None:
    fake.write("t1.ibd", 0, 512, result=-28).fsync("t1.ibd")
    checkpoint(fake, 2, 8500, 8600)


def _recovery_done_after_failure(fake: FakeTrace) -> None:
    fake.write("t1.ibd", 0, 512, result=-28).fsync("t1.ibd").mark("recv_done lsn=9000")


def _file_op_not_durable(fake: FakeTrace) -> None:
    fake.mark("file_op op=create path=x.ibd lsn=9001").open("x.ibd", created=True)
    fake.sync_dir()


def _file_op_unlogged(fake: FakeTrace) -> None:
    fake.open("x.ibd", created=True).sync_dir()


def _rename_unlogged(fake: FakeTrace) -> None:
    fake.rename("t1.ibd", "t2.ibd").sync_dir()


def _directory_not_synced(fake: FakeTrace) -> None:
    fake.mark("file_op op=delete path=t1.ibd lsn=8999").unlink("t1.ibd")
    fake.mark("file_op_done op=delete path=t1.ibd").sync_dir()


def _ack_before_directory_sync(fake: FakeTrace) -> None:
    fake.mark("file_op op=delete path=t1.ibd lsn=8999").unlink("t1.ibd").mark("ack n=3")


def _skip_without_init(fake: FakeTrace) -> None:
    page_write(fake, 4, 8900, "skip", "init", 8800)


def _skip_twice(fake: FakeTrace) -> None:
    fake.mark("page_init space=5 page=3 lsn=8900")
    page_write(fake, 3, 8900, "skip", "init", 8900)
    page_write(fake, 3, 8950, "skip", "init", 8900)


def _skip_after_checkpoint(fake: FakeTrace) -> None:
    fake.mark("page_init space=5 page=3 lsn=8300")
    page_write(fake, 3, 8900, "skip", "init", 8300)


def _skip_after_index_load(fake: FakeTrace) -> None:
    fake.mark("index_load space=5 index=41 root=7 lsn=8850")
    fake.mark("page_init space=5 page=3 lsn=8900")
    page_write(fake, 3, 8900, "skip", "init", 8900)


def _index_load_after_skip(fake: FakeTrace) -> None:
    fake.mark("page_init space=5 page=3 lsn=8900")
    page_write(fake, 3, 8900, "skip", "init", 8900)
    fake.fsync("t1.ibd").mark("index_load space=5 index=41 root=7 lsn=8950")


def _skip_although_on(fake: FakeTrace) -> None:
    page_write(fake, 3, 8900, "skip", "off")


def _read_freed(fake: FakeTrace) -> None:
    batch(fake, [(4, 8900)])
    fake.mark("page_free space=5 page=4 lsn=8900").read("t1.ibd", 4 * 4096, 4096)


def _load_not_flushed(fake: FakeTrace) -> None:
    fake.mark("page_noredo space=5 page=7 lsn=8900")
    fake.mark("index_load space=5 index=41 root=7 lsn=8950")


def _load_not_synced(fake: FakeTrace) -> None:
    single(fake, 0, 7, 8900).mark("index_load space=5 index=41 root=7 lsn=8950")


def _load_not_durable(fake: FakeTrace) -> None:
    fake.mark("index_load space=5 index=41 root=7 lsn=9050").mark("load_end space=5 index=41")


def _load_without_record(fake: FakeTrace) -> None:
    fake.marks("load_begin space=5 index=41 redo=0", "load_end space=5 index=41")


def _home_before_area_sync(fake: FakeTrace) -> None:
    fake.mark("dblwr_batch slot=0 pages=1").write("ib_dblwr", 0, 4096)
    page_write(fake, 4, 8900)


def _area_sync_missing(fake: FakeTrace) -> None:
    fake.mark("dblwr_batch slot=0 pages=1").write("ib_dblwr", 0, 4096)
    fake.mark("dblwr_synced slot=0")


def _home_outside_batch(fake: FakeTrace) -> None:
    page_write(fake, 4, 8900)


def _too_many_home_writes(fake: FakeTrace) -> None:
    fake.mark("dblwr_batch slot=0 pages=1").write("ib_dblwr", 0, 4096).fsync("ib_dblwr")
    fake.mark("dblwr_synced slot=0")
    page_write(page_write(fake, 4, 8900), 6, 8900)


def _reuse_before_home_sync(fake: FakeTrace) -> None:
    fake.mark("dblwr_batch slot=0 pages=1").write("ib_dblwr", 0, 4096).fsync("ib_dblwr")
    fake.mark("dblwr_synced slot=0")
    page_write(fake, 4, 8900).mark("dblwr_done slot=0")


def _single_before_area_sync(fake: FakeTrace) -> None:
    single(fake, 0, 7, 8900, sync=False)


def _single_reused_before_home_sync(fake: FakeTrace) -> None:
    single(single(fake, 0, 7, 8900), 0, 8, 8900)


def _changes_before_c_unsynced(fake: FakeTrace) -> None:
    fake.mark("dblwr_batch slot=0 pages=1").write("ib_dblwr", 0, 4096).fsync("ib_dblwr")
    page_write(fake.mark("dblwr_synced slot=0"), 4, 8900, oldest=8450)
    checkpoint(fake, 2, 8500, 8600)


def _short_area(fake: FakeTrace) -> None:
    fake.mark("dblwr_batch slot=0 pages=2").write("ib_dblwr", 0, 4096).fsync("ib_dblwr")


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (_unsynced_log, 4),
        (_ack_before_fsync, 1),
        (_early_durable, 4),
        (_wrong_place, 20),
        (_overwrite, 20),
        (_same_slot, 19),
        (_marker_not_durable, 19),
        (_slot_elsewhere, 19),
        (_unsynced_data, 19),
        (_changes_before_c_unsynced, 19),
        (_init_not_written, 19),
        (_ack_after_failure, 23),
        (_checkpoint_after_failure, 23),
        (_recovery_done_after_failure, 23),
        (_file_op_not_durable, 24),
        (_file_op_unlogged, 24),
        (_rename_unlogged, 24),
        (_directory_not_synced, 24),
        (_ack_before_directory_sync, 24),
        (_skip_without_init, 13),
        (_skip_twice, 13),
        (_skip_after_checkpoint, 13),
        (_skip_after_index_load, 13),
        (_index_load_after_skip, 13),
        (_skip_although_on, 13),
        (_read_freed, 15),
        (_load_not_flushed, 16),
        (_load_not_synced, 16),
        (_load_not_durable, 16),
        (_load_without_record, 16),
        (_home_before_area_sync, 22),
        (_area_sync_missing, 22),
        (_home_outside_batch, 22),
        (_too_many_home_writes, 22),
        (_reuse_before_home_sync, 22),
        (_single_before_area_sync, 22),
        (_single_reused_before_home_sync, 22),
        (_short_area, 22),
    ],
)
def test_each_break_is_reported_under_its_number(
    change: Callable[[FakeTrace], None], number: int
) -> None:
    """One wrong step in an otherwise right run: exactly its invariant is reported, and once."""
    fake = base()
    change(fake)
    assert found(base()) == []
    assert found(fake) == [number]


def test_statement_after_a_failed_sort_file_is_no_violation() -> None:
    """A sort file holds nothing that lasts: its failure ends one statement, not the handle (I23)."""
    fake = base().write("#sql-tmp-33-0", 0, 512, result=-28).mark("ack n=1")
    checkpoint(fake, 2, 8500, 8600)
    assert 23 not in found(fake)


def test_doublewrite_off_by_configuration_is_no_violation() -> None:
    """why=off is what was asked for when doublewrite is off."""
    fake = page_write(base(), 3, 8900, "skip", "off")
    setting = Setting(SETTING.page_size, SETTING.log_size, doublewrite=False)
    assert check_run(fake.trace(), setting)[0] == []


HISTORY = LogHistory(
    inits=[(8250, (5, 2)), (8500, (5, 3)), (8600, (5, 3)), (8700, (6, 2))],
    frees=[(8950, (5, 9))],
    loads=[(8750, 6)],
    written=[(8900, (5, 4)), (8910, (5, 9)), (8100, (5, 6)), (8920, (7, 1)), (8930, (8, 1))],
    noredo=[(8920, (7, 1))],
    deleted=[(8940, 8)],
    files={5: "t1.ibd", 7: "t7.ibd"},
)


def recovery(*texts: str) -> list[int]:
    """Invariants reported for a recovery of [8300, 9000) with these markers before recv.applied."""
    fake = FakeTrace().open(LOG).mark("recv_start c=8300 marker=8400 end=9000")
    fake.marks(*texts).mark("point name=recv.applied")
    found, log = check_recovery(fake.trace(), SETTING, HISTORY, first=True)
    assert log.recv_end == 9000
    return [finding.violation.invariant for finding in found]


GOOD_RECOVERY = (
    "recv_create space=5 page=3 init_lsn=8600",
    "recv_read space=6 page=2 why=index_load",
    "recv_read space=5 page=2 why=redo",
    "recv_read space=5 page=4 why=redo",
    "recv_apply space=5 page=4 from=8880 to=8900 n=1 page_lsn=8200",
    "recv_free space=5 page=9 lsn=8950",
)


def _instead(old: int, new: str) -> tuple[str, ...]:
    return (*GOOD_RECOVERY[:old], new, *GOOD_RECOVERY[old + 1 :])


@pytest.mark.parametrize(
    ("marks", "numbers"),
    [
        (GOOD_RECOVERY, []),
        (_instead(0, "recv_read space=5 page=3 why=redo"), [14]),
        (_instead(0, "recv_create space=5 page=3 init_lsn=8500"), [14]),
        (_instead(1, "recv_create space=6 page=2 init_lsn=8700"), [14]),
        (_instead(2, "recv_read space=5 page=2 why=index_load"), [14]),
        (GOOD_RECOVERY[:3] + GOOD_RECOVERY[5:], [14]),
        (_instead(3, "recv_rollback trx=1"), [14, 14]),
        (_instead(5, "recv_read space=5 page=9 why=redo"), [15]),
        (("recv_dblwr_restore space=5 page=9 lsn=8900", *GOOD_RECOVERY), [15]),
        (("recv_dblwr_restore space=5 page=4 lsn=8900", *GOOD_RECOVERY), []),
        (_instead(4, "recv_apply space=5 page=4 from=1 to=8900 n=1 page_lsn=9001"), [4]),
        ((*GOOD_RECOVERY, "recv_read space=5 page=3 why=redo"), []),
        ((*GOOD_RECOVERY, "recv_apply space=5 page=9 from=1 to=2 n=1 page_lsn=1"), [15]),
        ((*GOOD_RECOVERY, "recv_read space=5 page=9 why=redo"), [15]),
    ],
)
def test_recovery_reads_what_it_must_and_nothing_else(
    marks: tuple[str, ...], numbers: list[int]
) -> None:
    """I14, with I4 and I15 of recovery: one wrong marker at a time."""
    assert recovery(*marks) == numbers


def test_page_that_a_load_took_again_is_not_free_in_recovery() -> None:
    """The log's last word on a page is its free; the non-logged load that took it later is not logged."""
    fake = FakeTrace().mark("recv_start c=8300 marker=8400 end=9000")
    fake.mark("recv_free space=5 page=9 lsn=8950").mark("recv_read space=5 page=9 why=redo")
    for lsn, numbers in ((8940, [15]), (8950, []), (9000, []), (9001, [15])):
        history = LogHistory(noredo=[(lsn, (5, 9))])
        found, _ = check_recovery(fake.trace(), SETTING, history, first=False)
        assert [finding.violation.invariant for finding in found] == numbers


@pytest.mark.parametrize(
    ("cut", "synced", "numbers"), [(True, True, []), (True, False, [21]), (False, True, [21])]
)
def test_the_end_of_the_log_is_cut_before_recovery_appends(
    cut: bool, synced: bool, numbers: list[int]
) -> None:
    """I21: the last block is rewritten up to the end and fsynced, then the log goes on."""
    fake = FakeTrace().open(LOG).mark("recv_start c=8300 marker=8400 end=9000")
    start = 2048 + (9000 - 8192) // 512 * 512
    if cut:
        fake.mark("log_write start=9000 end=9000").write(LOG, start, 512)
    if synced:
        fake.fsync(LOG)
    fake.mark("log_write start=9000 end=9100").write(LOG, start, 512).fsync(LOG)
    found, _ = check_recovery(fake.trace(), SETTING, HISTORY, first=False)
    assert [finding.violation.invariant for finding in found] == numbers


def test_what_a_recovery_has_announced_for_the_log_is_told() -> None:
    """A later recovery may find the log to end there, or anywhere before."""
    fake = FakeTrace().open(LOG).mark("recv_start c=8300 marker=8400 end=9000")
    fake.mark("log_write start=9000 end=9100")
    _, log = check_recovery(fake.trace(), SETTING, HISTORY, first=True)
    assert (log.recv_end, log.announced()[1]) == (9000, 9100)


def test_scanner_may_read_freed_pages_after_the_close() -> None:
    """Reads after the log was closed belong to the scanner."""
    fake = batch(base(), [(4, 8900)])
    fake.mark("page_free space=5 page=4 lsn=8900").close(LOG).read("t1.ibd", 4 * 4096, 4096)
    assert found(fake) == []


def test_every_rule_says_what_it_does_not_verify() -> None:
    """Numbers, description and blind spots are there for all rules."""
    rules = describe_rules()
    covered = {number for numbers, _, _ in rules for number in numbers}
    assert covered == {1, 4, 13, 14, 15, 16, 19, 20, 21, 22, 23, 24}
    assert all(text.startswith("I") and blind for _, text, blind in rules)
