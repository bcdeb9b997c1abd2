/* From one redo format to another: only without changes behind the checkpoint, and whole or not at
all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "log/log_int.h"
#include "test_log_fixture.h"

static uint32_t header_format(log_fixture_t *f)
{
    return mach_read_4(lfx_raw(f) + 4);
}

/** Makes the log one of an engine that knew format 104: names and markers were the same there. */
static void make_earlier(log_fixture_t *f)
{
    byte *header = lfx_raw(f);

    mach_write_4(header + 4, 104);
    mach_write_4(header + LOG_CRC_OFFSET, crc32c(header, LOG_CRC_OFFSET));
}

/** What comes behind a checkpoint. */
typedef enum behind { NOTHING, A_NAME, A_CHANGE } behind_t;

/** @return the end of the log */
static lsn_t write_log(log_fixture_t *f, behind_t behind)
{
    log_t *log = efx_log_start(&f->env);
    const redo_rec_t name = {.op = OP_FILE_NAME, .space = 1, .path = "t.ibd", .path_len = 5};

    lfx_append(log, 5, 7, 300);
    lfx_checkpoint(log);
    if (behind == A_NAME) {
        log_append_rec(log, &name, NULL);
    } else if (behind == A_CHANGE) {
        lfx_append(log, 1, 7, 0);
    }
    lsn_t end = log_lsn(log);
    assert_int_equal(log_write_up_to(log, end, true), DB_SUCCESS);
    log_close(log);
    return end;
}

/* The log of a clean close is replaced by an empty one, behind all LSNs of the old. */
static void test_clean(void **state)
{
    log_fixture_t *f = *state;
    lsn_t end = write_log(f, NOTHING);
    make_earlier(f);
    log_t *log = NULL;
    assert_int_equal(log_open(&f->env, &log), DB_UNSUPPORTED);
    assert_non_null(strstr(f->env.err.msg, "redo format 104 of an earlier engine"));
    assert_int_equal(log_convert(&f->env, 0), DB_SUCCESS);
    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    assert_int_equal(log_info(log)->format_id, log_format_10_4.id);
    assert_true(log_info(log)->file_size == FILE_SIZE && log_info(log)->page_size == PAGE_SIZE);
    assert_true(log_info(log)->start_lsn > end && log_info(log)->start_lsn < end + 1024);
    const log_checkpoint_t *ckpt = log_last_checkpoint(log);
    assert_true(ckpt->lsn == log_info(log)->start_lsn + LOG_BLOCK_HDR_SIZE);
    assert_int_equal(ckpt->loads, LOG_LOADS_UNLOGGED); /* as the old slot said */
    efx_scan_t scan = efx_log_scan(log, ckpt->lsn);
    assert_int_equal(scan.e, DB_NOT_FOUND);
    assert_int_equal(scan.groups, 1);
    log_close(log);
    log = efx_log_start(&f->env);
    lfx_append(log, 3, 9, 0);
    log_close(log);
}

/* Whatever may be a change refuses, and nothing is written; so does a log of a format to come. */
static void check_refused(log_fixture_t *f, behind_t behind)
{
    byte *before = malloc(FILE_SIZE);

    assert_non_null(before);
    (void)write_log(f, behind);
    make_earlier(f);
    memcpy(before, lfx_raw(f), FILE_SIZE);
    assert_int_equal(log_convert(&f->env, 0), DB_UNSUPPORTED);
    assert_non_null(strstr(f->env.err.msg, "may hold changes"));
    assert_memory_equal(lfx_raw(f), before, FILE_SIZE);
    mach_write_4(lfx_raw(f) + 4, 999);
    mach_write_4(lfx_raw(f) + LOG_CRC_OFFSET, crc32c(lfx_raw(f), LOG_CRC_OFFSET));
    assert_int_equal(log_convert(&f->env, 0), DB_UNSUPPORTED);
    assert_non_null(strstr(f->env.err.msg, "unknown redo format 999"));
    free(before);
}

static void test_refused(void **state)
{
    check_refused(*state, A_CHANGE);
}

/* A file that the log names may have a torn page that no record is about. */
static void test_named(void **state)
{
    check_refused(*state, A_NAME);
}

/* A log that has the format wanted is left alone. */
static void test_nothing_to_do(void **state)
{
    log_fixture_t *f = *state;

    (void)write_log(f, A_CHANGE);
    assert_int_equal(log_convert(&f->env, 0), DB_SUCCESS);
    assert_int_equal(log_convert(&f->env, log_format_10_4.id), DB_SUCCESS);
    assert_int_equal(header_format(f), log_format_10_4.id);
}

/* What a crash before the rename leaves: the old log, and a new file that counts for nothing. */
static void test_interrupted(void **state)
{
    log_fixture_t *f = *state;
    lsn_t end = write_log(f, NOTHING);
    assert_int_equal(lfx_create_file(f, LOG_FILE_TMP_NAME, FILE_SIZE), DB_SUCCESS);
    make_earlier(f);
    assert_int_equal(log_convert(&f->env, 0), DB_SUCCESS);
    log_t *log = NULL;
    assert_int_equal(log_open(&f->env, &log), DB_SUCCESS);
    assert_true(log_info(log)->start_lsn > end);
    log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clean, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_refused, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_named, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_to_do, lfx_setup, lfx_teardown),
        cmocka_unit_test_setup_teardown(test_interrupted, lfx_setup, lfx_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
