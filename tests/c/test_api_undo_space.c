/** Undo tablespaces: truncation by purge, a crash at each fault point of it, and what is
refused. */
#include "test_api_crash.h"

#define UNDO_BYTES_INITIAL (4U * 4096U)

static uint64_t file_bytes(fixture_t *f, const char *path)
{
    uint64_t size = 0;
    assert_non_null(image_os_bytes(f->os, path, &size));
    return size;
}

static engine_status_t status_of(fixture_t *f)
{
    engine_status_t status;
    engine_get_status(f->engine, &status);
    return status;
}

static void open_with_undo_spaces(fixture_t *f, uint32_t log_format)
{
    fixture_empty(f);
    f->options.undo_tablespaces = 2;
    f->options.max_undo_log_size = UNDO_BYTES_INITIAL;
    f->options.log_format = log_format;
    fixture_open(f);
}

static void closes_clean(fixture_t *f, uint64_t n_rows)
{
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->rows, n_rows);
    check_report_free(&report);
}

/** A space that a transaction made grow is cut when purge has emptied it, one at a time, and grows
again. */
static void check_truncates(fixture_t *f, uint32_t log_format)
{
    open_with_undo_spaces(f, log_format);
    create_table(f, "t");
    for (uint32_t round = 1; round <= 4; round++) {
        insert_rows(f, "t", 1000 * round, 1000 * round + 399);
        insert_rows(f, "t", 1000 * round + 400, 1000 * round + 799);
        assert_true(file_bytes(f, "undo001") > UNDO_BYTES_INITIAL);
        assert_true(file_bytes(f, "undo002") > UNDO_BYTES_INITIAL);
        purge_all(f);
        purge_all(f);
        assert_int_equal(file_bytes(f, "undo001"), UNDO_BYTES_INITIAL);
        assert_int_equal(file_bytes(f, "undo002"), UNDO_BYTES_INITIAL);
        assert_int_equal(status_of(f).stats.undo_truncations, 2 * round);
    }
    closes_clean(f, 4 * 800);
}

/** One space has no free slot: the other serves, in every turn. So a statement of several commits,
as DROP TABLE, does not end in the middle. */
static void test_one_is_full(void **state)
{
    fixture_t *f = *state;
    enum { SLOTS = 64 };
    trx_t *trx[2 * SLOTS];
    byte row[8 + B_LEN + 8] = {0};
    open_with_undo_spaces(f, 0);
    create_table(f, "t");
    create_table(f, "u");
    for (int64_t i = 0; i < 2 * SLOTS; i++) {
        mach_write_8(row, dict_bigint_encode(i));
        OK(f, engine_begin(f->engine, &trx[i]));
        OK(f, engine_insert(f->engine, trx[i], "t", row));
    }
    assert_int_equal(engine_drop_table(f->engine, "u"), DB_OUT_OF_SPACE);
    assert_non_null(engine_table(f->engine, "u"));
    for (uint32_t i = 0; i < 2 * SLOTS; i += 2) {
        OK(f, engine_commit(f->engine, trx[i]));
    }
    OK(f, engine_drop_table(f->engine, "u"));
    create_table(f, "u");
    OK(f, engine_drop_table(f->engine, "u"));
    for (uint32_t i = 1; i < 2 * SLOTS; i += 2) {
        OK(f, engine_commit(f->engine, trx[i]));
    }
    closes_clean(f, 2 * SLOTS);
}

static void test_truncates_10_4(void **state)
{
    check_truncates(*state, LOG_FORMAT_10_4);
}

static void test_truncates_10_5(void **state)
{
    check_truncates(*state, LOG_FORMAT_10_5);
}

/** A space that holds the log of an open transaction, or history, is not cut; new logs go to the
other one. */
static void test_waits_for_its_logs(void **state)
{
    fixture_t *f = *state;
    open_with_undo_spaces(f, LOG_FORMAT_10_4);
    create_table(f, "t");
    insert_rows(f, "t", 1, 400);
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    byte row[8 + B_LEN + 8];
    for (int64_t a = 1001; a <= 1400; a++) {
        make_row(a, row);
        OK(f, engine_insert(f->engine, trx, "t", row));
    }
    purge_all(f);
    assert_int_equal(status_of(f).stats.undo_truncations, 0);
    OK(f, engine_commit(f->engine, trx));
    bool done = false;
    OK(f, engine_purge(f->engine, 1, &done));
    assert_int_equal(status_of(f).stats.undo_truncations, 0);
    uint64_t before = file_bytes(f, "undo001");
    for (int64_t a = 2001; a <= 2010; a++) {
        insert_rows(f, "t", a, a);
    }
    assert_int_equal(file_bytes(f, "undo001"), before); /* the first that was too large */
    purge_all(f);
    purge_all(f);
    assert_int_equal(status_of(f).stats.undo_truncations, 2);
    closes_clean(f, 810);
}

/** A crash at any fault point of purge and truncation leaves all rows and a database that goes on
(I1, I2, I11, I17). */
static void check_crashes(fixture_t *f, uint32_t log_format, bool nested)
{
    crash_t crash = {.f = f, .table = "t", .every = nested ? 5 : 1, .nested = nested};
    shape_t rows = {.exists = true, .rows = 300};
    open_with_undo_spaces(f, log_format);
    create_table(f, "t");
    for (uint32_t round = 0; round < 2; round++) {
        insert_rows(f, "t", 1000 * round + 1, 1000 * round + 300);
        if (round > 0) {
            delete_rows(f, "t", 1, 300);
        }
        OK(f, engine_checkpoint(f->engine, round == 0));
        crash_arm(&crash, rows, rows);
        purge_all(f);
        OK(f, engine_clean_pages(f->engine, 4));
        crash_disarm(&crash);
    }
    assert_true(point_count(&crash, "undo.truncate.logged") >= 2);
    assert_true(point_count(&crash, "fil.shrink") >= 2);
    assert_true(crash.crashes > (nested ? 20 : 300));
    closes_clean(f, 300);
}

static void test_crashes_10_4(void **state)
{
    check_crashes(*state, LOG_FORMAT_10_4, false);
}

static void test_crashes_10_5(void **state)
{
    check_crashes(*state, LOG_FORMAT_10_5, false);
}

static void test_crashes_nested_10_4(void **state)
{
    check_crashes(*state, LOG_FORMAT_10_4, true);
}

static void test_crashes_nested_10_5(void **state)
{
    check_crashes(*state, LOG_FORMAT_10_5, true);
}

/** What is fixed at creation is not changed by an option, and an undo tablespace that is gone is
named (I30). */
static void test_refusals(void **state)
{
    fixture_t *f = *state;
    fixture_close(f, true);
    f->options.undo_tablespaces = 2;
    assert_int_equal(engine_open(f->os, &f->probe, &f->options, false, &f->engine, &f->err),
                     DB_ERROR);
    assert_non_null(strstr(f->err.msg, "no undo tablespaces"));
    f->options.undo_tablespaces = 0;
    fixture_open(f);
    open_with_undo_spaces(f, LOG_FORMAT_10_4);
    create_table(f, "t");
    fixture_close(f, true);
    f->options.undo_tablespaces = 0; /* as the directory has it */
    fixture_open(f);
    fixture_close(f, true);
    assert_int_equal(f->os->vt->unlink(f->os, "undo001"), DB_SUCCESS);
    assert_int_not_equal(engine_open(f->os, &f->probe, &f->options, false, &f->engine, &f->err),
                         DB_SUCCESS);
    check_report_t report;
    assert_int_equal(check_run(f->os, &report, &f->err), DB_SUCCESS);
    assert_int_equal(report.n_findings, 1);
    assert_int_equal(report.findings[0].invariant, 12);
    assert_non_null(strstr(report.findings[0].what, "undo tablespace 1"));
    check_report_free(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_is_full, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_truncates_10_4, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_truncates_10_5, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_waits_for_its_logs, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_10_4, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_10_5, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_nested_10_4, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_nested_10_5, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refusals, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
