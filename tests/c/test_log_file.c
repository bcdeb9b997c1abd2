/* Properties of the redo file: creation, opening, writing, reading, checkpoints, laps, markers, and
what a failed write leaves (I19, I20, I23). */
#include <inttypes.h>

#include "base/crc32c.h"
#include "log/log_block.h"
#include "test_log_fixture.h"

/* A new file: checkpoint 0 at LOG_FIRST_LSN, its marker in the log, one valid slot. */
static void test_create(void **state)
{
    log_fixture_t *f = *state;
    log_t *log;
    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    assert_int_equal(log_info(log)->page_size, PAGE_SIZE);
    assert_int_equal(log_info(log)->file_size, FILE_SIZE);
    assert_int_equal(log_info(log)->start_lsn, LOG_START_LSN);
    log_checkpoint_t ckpt[2];
    uint32_t n;
    log_checkpoints(log, ckpt, &n);
    assert_int_equal(n, 1);
    assert_true(ckpt[0].no == 0 && ckpt[0].lsn == LOG_FIRST_LSN && ckpt[0].epoch == 1
                && ckpt[0].marker_lsn == LOG_FIRST_LSN);
    log_reader_t *reader;
    assert_int_equal(log_reader_create(log, ckpt[0].lsn, &reader), DB_SUCCESS);
    log_group_t group;
    assert_int_equal(log_reader_next(reader, &group), DB_SUCCESS);
    assert_int_equal(group.n_recs, 1);
    assert_int_equal(group.recs[0].op, OP_CHECKPOINT);
    assert_true(group.recs[0].value == LOG_FIRST_LSN && group.end_lsn == LOG_FIRST_LSN + 9);
    assert_int_equal(log_reader_next(reader, &group), DB_NOT_FOUND);
    assert_int_equal(log_reader_next(reader, &group), DB_NOT_FOUND);
    log_reader_free(reader);
    log_close(log);
    assert_int_equal(lfx_create_file(f, "small", FILE_SIZE - 512), DB_ERROR);
    assert_int_equal(lfx_create_file(f, "odd", FILE_SIZE + 1), DB_ERROR);
}

/* What is written up to an LSN is read back, group by group, over any sizes that meet block ends.
*/
static void test_write_and_read(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    lsn_t from = log_lsn(log);
    uint64_t sum = 0;
    uint32_t groups = 0;
    for (uint32_t fill = 460; fill < 500; fill++) {
        (void)lfx_append(log, 2, fill, fill);
        sum += 2 * fill;
        groups++;
        if (fill % 3 == 0) {
            assert_int_equal(log_write_up_to(log, log_lsn(log), fill % 2 == 0), DB_SUCCESS);
        }
    }
    (void)lfx_append(log, 1, 7, 30000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), false), DB_SUCCESS);
    assert_true(log_written_lsn(log) == log_lsn(log) && log_flushed_lsn(log) < log_lsn(log));
    lsn_t written = log_lsn(log);
    (void)lfx_append(log, 1, 1000, 0);
    efx_scan_t s = efx_log_scan(log, from);
    assert_int_equal(s.e, DB_NOT_FOUND);
    assert_true(s.end == written && s.groups == groups + 1 && s.sum == sum + 7);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    assert_true(log_flushed_lsn(log) == log_lsn(log));
    log_close(log);
    log = efx_log_start(&f->env);
    s = efx_log_scan(log, from);
    assert_true(s.groups == groups + 2 && s.end == log_lsn(log));
    log_close(log);
}

/* A group that fills its block to the last payload byte ends at the first payload byte of the next,
and the log goes on there, also after a restart. */
static void test_block_end(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    lsn_t from = log_lsn(log);
    uint32_t room = 508 - (uint32_t)(from % 512);
    (void)lfx_append(log, 0, 0, room - 6); /* type, space, page, offset and length take 6 bytes */
    assert_int_equal(log_lsn(log) % 512, 12);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    efx_scan_t s = efx_log_scan(log, from);
    assert_true(s.groups == 1 && s.end == log_lsn(log));
    log_close(log);
    log = efx_log_start(&f->env);
    assert_true(log_lsn(log) == s.end);
    (void)lfx_append(log, 1, 5, 0);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    s = efx_log_scan(log, from);
    assert_true(s.groups == 2 && s.sum == 5 && s.end == log_lsn(log));
    log_close(log);
}

/* (I19, I20) Many laps around the area: reading starts at the newest checkpoint, checkpoints
alternate between the slots, and a restart at any point goes on where the log ended. */
static void test_laps(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    uint64_t sum = 0;
    uint64_t no = log_last_checkpoint(log)->no;

    for (uint32_t i = 0; i < 400; i++) {
        if (log_lsn(log) - log_checkpoint_lsn(log) + 9000 > log_capacity(log) || i % 37 == 0) {
            lfx_checkpoint(log);
            assert_true(log_last_checkpoint(log)->no == ++no);
            sum = 0;
        }
        (void)lfx_append(log, 1 + i % 5, i, (i * 613) % 8000);
        sum += (uint64_t)i * (1 + i % 5);
        if (i % 11 == 0) {
            assert_int_equal(log_write_up_to(log, log_lsn(log), i % 2 == 0), DB_SUCCESS);
            efx_scan_t s = efx_log_scan(log, log_checkpoint_lsn(log));
            assert_int_equal(s.e, DB_NOT_FOUND);
            assert_true(s.sum == sum && s.end == log_lsn(log));
        }
        if (i % 23 == 0) {
            lsn_t end = log_lsn(log);

            assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
            log_close(log);
            log = efx_log_start(&f->env);
            assert_true(log_lsn(log) == end && log_last_checkpoint(log)->no == ++no);
        }
        log_checkpoint_t ckpt[2];
        uint32_t n;
        log_checkpoints(log, ckpt, &n);
        assert_true(n == 2 ? ckpt[0].no == ckpt[1].no + 1 : no == 1);
    }
    assert_true(log_lsn(log) > LOG_START_LSN + 4 * AREA_SIZE);
    log_close(log);
}

/* Positions that no group can start at are refused. */
static void test_reader_start(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    lsn_t from = log_lsn(log);

    (void)lfx_append(log, 3, 1, 2000);
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_SUCCESS);
    log_reader_t *reader;
    assert_int_equal(log_reader_create(log, LOG_START_LSN, &reader), DB_CORRUPTION);
    assert_int_equal(log_reader_create(log, from + 512 - from % 512 + 508, &reader), DB_CORRUPTION);
    assert_int_equal(log_reader_create(log, 100, &reader), DB_CORRUPTION);
    assert_int_equal(log_reader_create(log, UINT64_MAX - 1000, &reader), DB_CORRUPTION);
    assert_int_equal(log_reader_create(log, from + 1024, &reader), DB_CORRUPTION);
    log_close(log);
}

static void lfx_reseal(byte *block)
{
    mach_write_4(block + LOG_CRC_OFFSET, crc32c(block, LOG_CRC_OFFSET));
}

/* (I30) A header with a right checksum that says what no engine writes is refused before anybody
divides by it. */
static void test_open_refuses_impossible_sizes(void **state)
{
    /* Each: an offset in the header, a value. */
    static const uint32_t SIZES[][2] = {{8, 0},  {8, 4097},      {28, 0},
                                        {28, 7}, {28, 1U << 20}, {28, UINT32_MAX}};
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);

    log_close(log);
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
        byte *block = lfx_raw(f);
        uint32_t old = mach_read_4(block + SIZES[i][0]);
        mach_write_4(block + SIZES[i][0], SIZES[i][1]);
        lfx_reseal(block);
        assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
        mach_write_4(block + SIZES[i][0], old);
        lfx_reseal(block);
    }
    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    log_close(log);
}

/* (I30) A damaged header, both slots damaged, or a cut file refuse the log; one damaged slot does
not. */
static void test_open_refuses(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    log_close(log);
    for (uint32_t i = 0; i < 512; i++) {
        lfx_raw(f)[i] ^= 1;
        assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
        lfx_raw(f)[i] ^= 1;
    }
    lfx_raw(f)[1536 + 20] ^= 1;
    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    log_checkpoint_t ckpt[2];
    uint32_t n;
    log_checkpoints(log, ckpt, &n);
    assert_true(n == 1 && ckpt[0].no == 0);
    log_close(log);
    lfx_raw(f)[512 + 20] ^= 1;
    assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
    assert_non_null(strstr(f->env.err.msg, "both checkpoint slots"));
    lfx_raw(f)[1536 + 20] ^= 1;
    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    log_checkpoints(log, ckpt, &n);
    assert_true(n == 1 && ckpt[0].no == 1 && ckpt[0].epoch == 2);
    log_close(log);
    memcpy(lfx_raw(f) + 512, lfx_raw(f) + 1536, 512); /* a right slot in the wrong place */
    memset(lfx_raw(f) + 1536, 0, 512);
    assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
    os_file_t *file;
    assert_int_equal(env_open(&f->env, LOG_FILE_NAME, OS_OPEN, &file), DB_SUCCESS);
    assert_int_equal(env_truncate(&f->env, file, FILE_SIZE - 1), DB_SUCCESS);
    env_close(&f->env, file);
    assert_int_equal(log_open(&f->env, &log), DB_UNRECOVERABLE);
    assert_non_null(strstr(f->env.err.msg, "cut"));
    assert_int_equal(env_unlink(&f->env, LOG_FILE_NAME), DB_SUCCESS);
    assert_int_equal(log_open(&f->env, &log), DB_NOT_FOUND);
    assert_int_equal(lfx_create_file(f, LOG_FILE_NAME, FILE_SIZE), DB_SUCCESS);
}

/* Markers and fault points, in order with the writes that they describe; counters with them. */
static void test_markers(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    lsn_t from = log_lsn(log);
    uint64_t written = f->env.stats.os_log_written;
    uint64_t fsyncs = f->env.stats.os_log_fsyncs;
    lsn_t end = lfx_append(log, 1, 1, 0);
    atomic_store(&f->probe.armed, true);
    assert_int_equal(log_write_up_to(log, end, false), DB_SUCCESS);
    assert_int_equal(log_write_up_to(log, end, false), DB_SUCCESS);
    assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
    assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
    assert_int_equal(log_checkpoint_write(log, from, from, LOG_LOADS_UNLOGGED), DB_SUCCESS);
    atomic_store(&f->probe.armed, false);
    char expected[1000];
    (void)snprintf(expected, sizeof(expected),
                   "log_write start=%" PRIu64 " end=%" PRIu64 "|point name=log.before_write|"
                   "point name=log.written|log_durable lsn=%" PRIu64 "|point name=log.synced|"
                   "checkpoint no=2 slot=0 c=%" PRIu64 " marker=%" PRIu64
                   "|point name=ckpt.slot_written|"
                   "log_durable lsn=%" PRIu64 "|checkpoint_done no=2|point name=ckpt.done|",
                   from, end, end, from, from, end);
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
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    const os_vtable_t *real = f->env.os->vt;
    os_vtable_t broken = *real;
    lsn_t before = log_lsn(log);
    broken.write = fail_write;
    (void)lfx_append(log, 1, 1, 0);
    f->env.os->vt = &broken;
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_IO_ERROR);
    f->env.os->vt = real;
    for (uint32_t i = 0; i < 100; i++) {
        (void)lfx_append(log, 1, 1, 20000);
    }
    assert_int_equal(log_write_up_to(log, log_lsn(log), true), DB_IO_ERROR);
    assert_true(log_written_lsn(log) == before && log_flushed_lsn(log) == before);
    assert_int_equal(log_checkpoint_write(log, LOG_FIRST_LSN, LOG_FIRST_LSN, LOG_LOADS_UNLOGGED),
                     DB_IO_ERROR);
    efx_scan_t s = efx_log_scan(log, LOG_FIRST_LSN);
    assert_true(s.end == before);
    log_close(log);
    f->env.io_failed = false;
    f->env.err = (err_sink_t){.msg = ""};
}

/* Written through, the log in the file ends at each group as it is appended, none of them durable;
a failed write is told to whoever next needs the log. */
static void test_write_through(void **state)
{
    log_fixture_t *f = *state;
    log_t *log = efx_log_start(&f->env);
    const os_vtable_t *real = f->env.os->vt;
    os_vtable_t broken = *real;
    lsn_t from = log_lsn(log);

    log_set_write_through(log, true);
    for (uint32_t groups = 1; groups <= 60; groups++) {
        (void)lfx_append(log, 1, 1, 60);
        efx_scan_t s = efx_log_scan(log, from);
        assert_true(s.groups == groups && s.end == log_lsn(log));
    }
    assert_true(log_written_lsn(log) == log_lsn(log) && log_flushed_lsn(log) == from);
    broken.write = fail_write;
    f->env.os->vt = &broken;
    (void)lfx_append(log, 1, 1, 60);
    f->env.os->vt = real;
    assert_true(f->env.io_failed && log_written_lsn(log) < log_lsn(log));
    assert_int_equal(log_write_up_to(log, log_lsn(log), false), DB_IO_ERROR);
    log_close(log);
    f->env.io_failed = false;
    f->env.err = (err_sink_t){.msg = ""};
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_create, lfx_setup_posix, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_write_and_read, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_write_and_read, lfx_setup_posix, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_block_end, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_laps, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_laps, lfx_setup_posix, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_reader_start, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_open_refuses, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_open_refuses_impossible_sizes, lfx_setup,
                                        lfx_teardown),
        cmocka_unit_test_setup_teardown(test_markers, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_io_failure, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_write_through, lfx_setup, lfx_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
