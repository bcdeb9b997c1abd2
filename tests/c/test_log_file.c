/* Properties of the redo file: creation, opening, writing, reading, checkpoints, and every way in
which the log may end (I19, I20, I21). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/mach.h"
#include "log/log.h"

#define PAGE_SIZE 4096U
#define FILE_SIZE (64U * PAGE_SIZE)
#define AREA_SIZE (FILE_SIZE - LOG_FILE_HDR_SIZE)

typedef struct fixture {
    probe_t probe;
    env_t env;
    char trace[4096];
    char dir[32];
} fixture_t;

static void keep_mark(void *ctx, const char *text, size_t len)
{
    fixture_t *f = ctx;

    if (strlen(f->trace) + len + 2 < sizeof(f->trace)) {
        strncat(f->trace, text, len);
        strcat(f->trace, "|");
    }
}

static fixture_t *fixture_create(void)
{
    fixture_t *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->env.probe = &f->probe;
    f->probe.mark = keep_mark;
    f->probe.ctx = f;
    return f;
}

static int setup(void **state)
{
    fixture_t *f = fixture_create();

    assert_int_equal(os_mem_create(&f->env.os), DB_SUCCESS);
    assert_int_equal(log_file_create(&f->env, LOG_FILE_NAME, PAGE_SIZE, FILE_SIZE), DB_SUCCESS);
    *state = f;
    return 0;
}

static int setup_posix(void **state)
{
    fixture_t *f = fixture_create();

    strcpy(f->dir, "test_log_XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(os_posix_create(f->dir, false, &f->env.err, &f->env.os), DB_SUCCESS);
    assert_int_equal(log_file_create(&f->env, LOG_FILE_NAME, PAGE_SIZE, FILE_SIZE), DB_SUCCESS);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;

    if (f->dir[0] != '\0') {
        assert_int_equal(env_unlink(&f->env, LOG_FILE_NAME), DB_SUCCESS);
        assert_int_equal(rmdir(f->dir), 0);
    }
    os_destroy(f->env.os);
    free(f);
    return 0;
}

/** Reads from a position to the end: groups seen, and how the reading ended. */
typedef struct scan {
    dberr_t e;
    uint32_t groups;
    uint32_t recs;
    lsn_t end;
    uint32_t epoch;
    uint64_t sum; /* of the values of MLOG_8BYTES records: the payload of these tests */
} scan_t;

static scan_t scan(log_t *log, lsn_t from)
{
    scan_t s = {.e = DB_SUCCESS};
    log_reader_t *reader;
    log_group_t group;

    s.e = log_reader_create(log, from, &reader);
    if (s.e != DB_SUCCESS) {
        return s;
    }
    s.end = from;
    while ((s.e = log_reader_next(reader, &group)) == DB_SUCCESS) {
        assert_true(group.start_lsn == s.end && group.end_lsn > group.start_lsn);
        s.end = group.end_lsn;
        s.groups++;
        s.recs += group.n_recs;
        for (uint32_t i = 0; i < group.n_recs; i++) {
            s.sum += group.recs[i].type == MLOG_8BYTES ? group.recs[i].value : 0;
        }
    }
    assert_true(log_reader_end_lsn(reader) == s.end);
    s.epoch = log_reader_epoch(reader);
    log_reader_free(reader);
    return s;
}

/** Opens the log and goes on at its end, as recovery does. */
static log_t *start(fixture_t *f)
{
    log_t *log;
    log_checkpoint_t ckpt[2];
    uint32_t n;
    scan_t s;

    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    log_checkpoints(log, ckpt, &n);
    s = scan(log, ckpt[0].lsn);
    assert_int_equal(s.e, DB_NOT_FOUND);
    assert_int_equal(log_start_writing(log, &ckpt[0], s.end), DB_SUCCESS);
    return log;
}

/** A group of n records of 8 bytes' values and a string of fill bytes (none when 0). */
static lsn_t append(log_t *log, uint32_t n, uint64_t value, uint32_t fill)
{
    static const byte zeros[PAGE_SIZE_MAX] = {0};
    size_t size = (size_t)n * 100 + fill + 200;
    byte *buf = malloc(size + PAGE_SIZE_MAX);
    redo_rec_t rec = {.type = MLOG_8BYTES, .space = 1, .page_no = 3, .offset = 100, .value = value};
    redo_rec_t string = {.type = MLOG_WRITE_STRING, .space = 1, .page_no = 3, .offset = 100};
    redo_rec_t end = {.type = MLOG_MULTI_REC_END};
    size_t len = 0;
    lsn_t start_lsn;
    lsn_t end_lsn;

    assert_non_null(buf);
    for (uint32_t i = 0; i < n; i++) {
        log_format(log)->encode(&rec, n == 1 && fill == 0, buf, size + PAGE_SIZE_MAX, &len);
    }
    string.data = zeros;
    string.len = fill;
    if (fill > 0) {
        log_format(log)->encode(&string, n == 0, buf, size + PAGE_SIZE_MAX, &len);
    }
    if (n + (fill > 0 ? 1 : 0) > 1) {
        log_format(log)->encode(&end, false, buf, size + PAGE_SIZE_MAX, &len);
    }
    log_append(log, buf, len, &start_lsn, &end_lsn);
    assert_true(end_lsn == log_lsn(log) && start_lsn < end_lsn);
    free(buf);
    return end_lsn;
}

/** The raw bytes of the file. */
static byte *raw(fixture_t *f)
{
    byte *bytes;
    uint64_t size;

    assert_int_equal(os_mem_peek(f->env.os, LOG_FILE_NAME, &bytes, &size), DB_SUCCESS);
    assert_int_equal(size, FILE_SIZE);
    return bytes;
}

static byte *raw_block(fixture_t *f, lsn_t lsn)
{
    return raw(f) + LOG_FILE_HDR_SIZE + (lsn - lsn % 512 - LOG_START_LSN) % AREA_SIZE;
}

static void fix_crc(byte *block)
{
    mach_write_4(block + 508, crc32c(block, 508));
}

/* A new file: checkpoint 0 at LOG_FIRST_LSN, its marker in the log, one valid slot. */
static void test_create(void **state)
{
    fixture_t *f = *state;
    log_checkpoint_t ckpt[2];
    log_reader_t *reader;
    log_group_t group;
    log_t *log;
    uint32_t n;

    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    assert_int_equal(log_info(log)->page_size, PAGE_SIZE);
    assert_int_equal(log_info(log)->file_size, FILE_SIZE);
    assert_int_equal(log_info(log)->start_lsn, LOG_START_LSN);
    log_checkpoints(log, ckpt, &n);
    assert_int_equal(n, 1);
    assert_true(ckpt[0].no == 0 && ckpt[0].lsn == LOG_FIRST_LSN && ckpt[0].epoch == 1
                && ckpt[0].marker_lsn == LOG_FIRST_LSN);
    assert_int_equal(log_reader_create(log, ckpt[0].lsn, &reader), DB_SUCCESS);
    assert_int_equal(log_reader_next(reader, &group), DB_SUCCESS);
    assert_int_equal(group.n_recs, 1);
    assert_int_equal(group.recs[0].type, MLOG_CHECKPOINT);
    assert_true(group.recs[0].value == LOG_FIRST_LSN && group.end_lsn == LOG_FIRST_LSN + 9);
    assert_int_equal(log_reader_next(reader, &group), DB_NOT_FOUND);
    assert_int_equal(log_reader_next(reader, &group), DB_NOT_FOUND);
    log_reader_free(reader);
    log_close(log);
    assert_int_equal(log_file_create(&f->env, "small", PAGE_SIZE, FILE_SIZE - 512), DB_ERROR);
    assert_int_equal(log_file_create(&f->env, "odd", PAGE_SIZE, FILE_SIZE + 1), DB_ERROR);
}

/* What is written up to an LSN is read back, group by group, over any sizes that meet block ends.
*/
static void test_write_and_read(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    lsn_t from = log_lsn(log);
    uint64_t sum = 0;
    uint32_t groups = 0;
    lsn_t written;
    scan_t s;

    for (uint32_t fill = 460; fill < 500; fill++) {
        (void)append(log, 2, fill, fill);
        sum += 2 * fill;
        groups++;
        if (fill % 3 == 0) {
            assert_int_equal(log_write_up_to(log, log_lsn(log), fill % 2 == 0), DB_SUCCESS);
        }
    }
    (void)append(log, 1, 7, 30000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), false), DB_SUCCESS);
    assert_true(log_written_lsn(log) == log_lsn(log) && log_flushed_lsn(log) < log_lsn(log));
    written = log_lsn(log);
    (void)append(log, 1, 1000, 0);
    s = scan(log, from);
    assert_int_equal(s.e, DB_NOT_FOUND);
    assert_true(s.end == written && s.groups == groups + 1 && s.sum == sum + 7);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    assert_true(log_flushed_lsn(log) == log_lsn(log));
    log_close(log);
    log = start(f);
    s = scan(log, from);
    assert_true(s.groups == groups + 2 && s.end == log_lsn(log));
    log_close(log);
}

/* A group that fills its block to the last payload byte ends at the first payload byte of the next,
and the log goes on there, also after a restart. */
static void test_block_end(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    lsn_t from = log_lsn(log);
    uint32_t room = 508 - (uint32_t)(from % 512);
    scan_t s;

    (void)append(log, 0, 0, room - 6); /* type, space, page, offset and length take 6 bytes */
    assert_int_equal(log_lsn(log) % 512, 12);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    s = scan(log, from);
    assert_true(s.groups == 1 && s.end == log_lsn(log));
    log_close(log);
    log = start(f);
    assert_true(log_lsn(log) == s.end);
    (void)append(log, 1, 5, 0);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    s = scan(log, from);
    assert_true(s.groups == 2 && s.sum == 5 && s.end == log_lsn(log));
    log_close(log);
}

static void checkpoint(log_t *log)
{
    lsn_t c = log_lsn(log);
    redo_rec_t marker = {.type = MLOG_CHECKPOINT, .value = c};
    lsn_t end;

    log_append_rec(log, &marker, &end);
    assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
    assert_int_equal(log_checkpoint_write(log, c, c), DB_SUCCESS);
    assert_true(log_checkpoint_lsn(log) == c);
}

/* (I19, I20) Many laps around the area: reading starts at the newest checkpoint, checkpoints
alternate between the slots, and a restart at any point goes on where the log ended. */
static void test_laps(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    uint64_t sum = 0;
    uint64_t no = log_last_checkpoint(log)->no;

    for (uint32_t i = 0; i < 400; i++) {
        log_checkpoint_t ckpt[2];
        uint32_t n;

        if (log_lsn(log) - log_checkpoint_lsn(log) + 9000 > log_capacity(log) || i % 37 == 0) {
            checkpoint(log);
            assert_true(log_last_checkpoint(log)->no == ++no);
            sum = 0;
        }
        (void)append(log, 1 + i % 5, i, (i * 613) % 8000);
        sum += (uint64_t)i * (1 + i % 5);
        if (i % 11 == 0) {
            scan_t s;

            assert_int_equal(log_write_up_to(log, log_lsn(log), i % 2 == 0), DB_SUCCESS);
            s = scan(log, log_checkpoint_lsn(log));
            assert_int_equal(s.e, DB_NOT_FOUND);
            assert_true(s.sum == sum && s.end == log_lsn(log));
        }
        if (i % 23 == 0) {
            lsn_t end = log_lsn(log);

            assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
            log_close(log);
            log = start(f);
            assert_true(log_lsn(log) == end && log_last_checkpoint(log)->no == ++no);
        }
        log_checkpoints(log, ckpt, &n);
        assert_true(n == 2 ? ckpt[0].no == ckpt[1].no + 1 : no == 1);
    }
    assert_true(log_lsn(log) > LOG_START_LSN + 4 * AREA_SIZE);
    log_close(log);
}

/* (I21) Blocks of an earlier life behind the end are never parsed: not after a new epoch started,
not when a later block of the new epoch reached the disk without an earlier one. */
static void test_stale_tail(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    lsn_t from = log_lsn(log);
    byte old_block[512];
    byte stale_block[512];
    lsn_t cut;
    log_t *again;
    scan_t s;

    /* First life: one small group, then a large one whose first block is lost. */
    (void)append(log, 1, 1, 0);
    cut = log_lsn(log);
    assert_int_equal(log_write_up_to(log, cut, true), DB_SUCCESS);
    memcpy(old_block, raw_block(f, cut), 512);
    (void)append(log, 3, 100, 3000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_close(log);
    memcpy(raw_block(f, cut), old_block, 512);
    memcpy(stale_block, raw_block(f, cut + 512), 512);

    /* Second life: goes on at the cut; its group ends in the second block, stale blocks follow. */
    log = start(f);
    assert_true(log_lsn(log) == cut);
    (void)append(log, 1, 10, 600);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    s = scan(log, from);
    assert_true(s.e == DB_NOT_FOUND && s.end == log_lsn(log) && s.sum == 11);

    /* The second block alone is lost: the stale one in its place is whole, but of an older epoch.
    */
    log_close(log);
    memcpy(raw_block(f, cut + 512), stale_block, 512);
    again = start(f);
    assert_true(log_lsn(again) == cut);
    log_close(again);
}

/* (I21) Blocks of the lap before are not parsed when the log ends with a full block. */
static void test_earlier_lap(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    scan_t s;

    while (log_lsn(log) < LOG_START_LSN + AREA_SIZE + 100000) {
        if (log_lsn(log) - log_checkpoint_lsn(log) > AREA_SIZE / 2) {
            checkpoint(log);
        }
        (void)append(log, 1, 1, 1000);
    }
    checkpoint(log);
    (void)append(log, 0, 0, 508 + 2 * LOG_BLOCK_PAYLOAD - (uint32_t)(log_lsn(log) % 512) - 6);
    assert_int_equal(log_lsn(log) % 512, 12);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    s = scan(log, log_checkpoint_lsn(log));
    assert_true(s.e == DB_NOT_FOUND && s.groups == 2 && s.end == log_lsn(log));
    log_close(log);
}

/* (I21) An unfinished group at the end of one life is cut off durably before the next life writes:
a later block of the new life cannot complete it. */
static void test_unfinished_group_is_cut(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    lsn_t from = log_lsn(log);
    byte first[512];
    lsn_t lost;
    scan_t s;

    (void)append(log, 1, 1, 0);
    lost = log_lsn(log);
    (void)append(log, 3, 100, 3000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_close(log);
    memset(raw_block(f, lost + 1024), 0xEE, 512); /* the third block is lost */

    log = start(f);
    assert_true(log_lsn(log) == lost);
    memcpy(first, raw_block(f, lost), 512);
    assert_int_equal(mach_read_2(first + 8), lost % 512);
    for (uint32_t i = (uint32_t)(lost % 512); i < 508; i++) {
        assert_int_equal(first[i], 0);
    }
    (void)append(log, 3, 10, 3000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), false), DB_SUCCESS);
    log_close(log);
    memcpy(raw_block(f, lost), first, 512); /* of this write, all but the first block survives */

    log = start(f);
    s = scan(log, from);
    assert_true(s.e == DB_NOT_FOUND && s.end == lost && s.sum == 1 && log_lsn(log) == lost);
    log_close(log);
}

/* The cut block stays sane when the unfinished group was the first to start in it. */
static void test_cut_at_first_group(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    lsn_t from = log_lsn(log);
    lsn_t lost;
    scan_t s;

    (void)append(log, 1, 1, 600);
    lost = log_lsn(log);
    assert_true(lost - lost % 512 > from);
    (void)append(log, 1, 1, 3000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_close(log);
    memset(raw_block(f, lost + 512), 0, 512);
    log = start(f);
    s = scan(log, from);
    assert_true(s.e == DB_NOT_FOUND && s.end == lost && log_lsn(log) == lost);
    (void)append(log, 1, 7, 0);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    assert_true(scan(log, lost).sum == 7);
    log_close(log);
}

/* A block with right number and checksum was written by the engine: nonsense in it is corruption.
*/
static void test_valid_block_nonsense(void **state)
{
    static const uint32_t BAD_USED[] = {0, 11, 508, 511, 513, 65535};
    fixture_t *f = *state;
    log_t *log = start(f);
    lsn_t from = log_lsn(log);
    byte good[512];
    byte *block;

    (void)append(log, 1, 1, 0);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    block = raw_block(f, from);
    memcpy(good, block, 512);
    for (size_t i = 0; i < sizeof(BAD_USED) / sizeof(BAD_USED[0]); i++) {
        mach_write_2(block + 8, BAD_USED[i]);
        fix_crc(block);
        assert_int_equal(scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
        memcpy(block, good, 512);
    }
    mach_write_2(block + 10, 500); /* first group behind the used bytes */
    fix_crc(block);
    assert_int_equal(scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
    memcpy(block, good, 512);
    mach_write_4(block + 4, 9); /* epoch of the future */
    fix_crc(block);
    assert_int_equal(scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
    memcpy(block, good, 512);
    block[from % 512] = 0x7F; /* no such record */
    fix_crc(block);
    assert_int_equal(scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
    block[from % 512] = MLOG_MULTI_REC_END; /* ends no group */
    fix_crc(block);
    assert_int_equal(scan(log, LOG_FIRST_LSN).e, DB_CORRUPTION);
    memcpy(block, good, 512);
    assert_int_equal(scan(log, LOG_FIRST_LSN).e, DB_NOT_FOUND);

    /* The same nonsense without a right checksum is just the end. */
    block[from % 512] = 0x7F;
    assert_true(scan(log, LOG_FIRST_LSN).e == DB_NOT_FOUND);
    assert_true(scan(log, LOG_FIRST_LSN).end == LOG_FIRST_LSN);
    memcpy(block, good, 512);
    log_close(log);
}

/* Positions that no group can start at are refused. */
static void test_reader_start(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    log_reader_t *reader;
    lsn_t from = log_lsn(log);

    (void)append(log, 3, 1, 2000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    assert_int_equal(log_reader_create(log, LOG_START_LSN, &reader), DB_CORRUPTION);
    assert_int_equal(log_reader_create(log, from + 512 - from % 512 + 508, &reader), DB_CORRUPTION);
    assert_int_equal(log_reader_create(log, 100, &reader), DB_CORRUPTION);
    assert_int_equal(log_reader_create(log, UINT64_MAX - 1000, &reader), DB_CORRUPTION);
    assert_int_equal(log_reader_create(log, from + 1024, &reader), DB_CORRUPTION);
    log_close(log);
}

/* (I30) A damaged header, both slots damaged, or a cut file refuse the log; one damaged slot does
not. */
static void test_open_refuses(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    os_file_t *file;
    log_checkpoint_t ckpt[2];
    uint32_t n;

    log_close(log);
    for (uint32_t i = 0; i < 512; i++) {
        raw(f)[i] ^= 1;
        assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
        raw(f)[i] ^= 1;
    }
    raw(f)[1536 + 20] ^= 1;
    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    log_checkpoints(log, ckpt, &n);
    assert_true(n == 1 && ckpt[0].no == 0);
    log_close(log);
    raw(f)[512 + 20] ^= 1;
    assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
    assert_non_null(strstr(f->env.err.msg, "both checkpoint slots"));
    raw(f)[1536 + 20] ^= 1;
    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    log_checkpoints(log, ckpt, &n);
    assert_true(n == 1 && ckpt[0].no == 1 && ckpt[0].epoch == 2);
    log_close(log);
    memcpy(raw(f) + 512, raw(f) + 1536, 512); /* a right slot in the wrong place */
    memset(raw(f) + 1536, 0, 512);
    assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
    assert_int_equal(env_open(&f->env, LOG_FILE_NAME, OS_OPEN, &file), DB_SUCCESS);
    assert_int_equal(env_truncate(&f->env, file, FILE_SIZE - 1), DB_SUCCESS);
    env_close(&f->env, file);
    assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
    assert_non_null(strstr(f->env.err.msg, "cut"));
    assert_int_equal(env_unlink(&f->env, LOG_FILE_NAME), DB_SUCCESS);
    assert_int_equal(log_open(&f->env, &log), DB_NOT_FOUND);
    assert_int_equal(log_file_create(&f->env, LOG_FILE_NAME, PAGE_SIZE, FILE_SIZE), DB_SUCCESS);
}

/* Markers and fault points, in order with the writes that they describe; counters with them. */
static void test_markers(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    lsn_t from = log_lsn(log);
    uint64_t written = f->env.stats.os_log_written;
    uint64_t fsyncs = f->env.stats.os_log_fsyncs;
    char expected[1000];
    lsn_t end;

    end = append(log, 1, 1, 0);
    atomic_store(&f->probe.armed, true);
    assert_int_equal(log_write_up_to(log, end, false), DB_SUCCESS);
    assert_int_equal(log_write_up_to(log, end, false), DB_SUCCESS);
    assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
    assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
    assert_int_equal(log_checkpoint_write(log, from, from), DB_SUCCESS);
    atomic_store(&f->probe.armed, false);
    (void)snprintf(expected, sizeof(expected),
                   "log_write start=%llu end=%llu|point name=log.before_write|"
                   "point name=log.written|log_durable lsn=%llu|point name=log.synced|"
                   "checkpoint no=2 slot=0 c=%llu marker=%llu|point name=ckpt.slot_written|"
                   "log_durable lsn=%llu|checkpoint_done no=2|point name=ckpt.done|",
                   (unsigned long long)from, (unsigned long long)end, (unsigned long long)end,
                   (unsigned long long)from, (unsigned long long)from, (unsigned long long)end);
    assert_string_equal(f->trace, expected);
    assert_int_equal(f->env.stats.os_log_written - written, 512 + 512);
    assert_int_equal(f->env.stats.os_log_fsyncs - fsyncs, 2);
    assert_int_equal(f->env.stats.checkpoints, 1);
    log_close(log);
}

static dberr_t fail_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    (void)file;
    (void)offset;
    (void)buf;
    (void)len;
    return DB_IO_ERROR;
}

/* (I23) After a failed write nothing becomes written or durable, appends go nowhere and do not
fail, and no checkpoint is taken. */
static void test_io_failure(void **state)
{
    fixture_t *f = *state;
    log_t *log = start(f);
    const os_vtable_t *real = f->env.os->vt;
    os_vtable_t broken = *real;
    lsn_t before = log_lsn(log);
    scan_t s;

    broken.write = fail_write;
    (void)append(log, 1, 1, 0);
    f->env.os->vt = &broken;
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_IO_ERROR);
    f->env.os->vt = real;
    for (uint32_t i = 0; i < 100; i++) {
        (void)append(log, 1, 1, 20000);
    }
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_IO_ERROR);
    assert_true(log_written_lsn(log) == before && log_flushed_lsn(log) == before);
    assert_int_equal(log_checkpoint_write(log, LOG_FIRST_LSN, LOG_FIRST_LSN), DB_IO_ERROR);
    s = scan(log, LOG_FIRST_LSN);
    assert_true(s.end == before);
    log_close(log);
    f->env.io_failed = false;
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Hostile files, with right checksums where a hit was made: opening, reading and going on end with
success or an error, never in a crash or a loop. */
static void test_fuzz(void **state)
{
    fixture_t *f = *state;
    uint64_t seed = 31415926;
    log_t *log = start(f);
    byte *image = malloc(FILE_SIZE);

    assert_non_null(image);
    for (uint32_t i = 0; i < 60; i++) {
        (void)append(log, 1 + i % 3, i, (i * 97) % 700);
    }
    checkpoint(log);
    (void)append(log, 9, 1, 2000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_close(log);
    memcpy(image, raw(f), FILE_SIZE);
    for (uint32_t round = 0; round < 3000; round++) {
        memcpy(raw(f), image, FILE_SIZE);
        for (uint64_t hits = 1 + next_random(&seed) % 3; hits > 0; hits--) {
            byte *block = raw(f) + 512 * (next_random(&seed) % 80);
            uint64_t at = next_random(&seed) % 508;

            block[next_random(&seed) % 2 == 0 ? at : at % 36] = (byte)next_random(&seed);
            fix_crc(block);
        }
        if (log_open(&f->env, &log) == DB_SUCCESS) {
            log_checkpoint_t ckpt[2];
            uint32_t n;

            log_checkpoints(log, ckpt, &n);
            for (uint32_t i = 0; i < n; i++) {
                scan_t s = scan(log, ckpt[i].lsn);

                if (i == n - 1 && s.e == DB_NOT_FOUND
                    && log_start_writing(log, &ckpt[i], s.end) == DB_SUCCESS) {
                    (void)append(log, 1, 1, 0);
                    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
                }
            }
            log_close(log);
        }
        assert_false(f->env.io_failed);
    }
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create, setup_posix, teardown),
        cmocka_unit_test_setup_teardown(test_write_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_and_read, setup_posix, teardown),
        cmocka_unit_test_setup_teardown(test_block_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_laps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_laps, setup_posix, teardown),
        cmocka_unit_test_setup_teardown(test_stale_tail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unfinished_group_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_earlier_lap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_at_first_group, setup, teardown),
        cmocka_unit_test_setup_teardown(test_valid_block_nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reader_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_markers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_io_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fuzz, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
