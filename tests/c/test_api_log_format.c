/** A database with a 10.5 log: what its recovery compares, what it refuses, what it ignores. */
#include "api/api_int.h"
#include "test_api_fixture.h"

static void start(fixture_t *f, bool checksums)
{
    f->options.log_format = LOG_FORMAT_10_5;
    f->options.log_page_checksums = checksums;
    f->options.log_file_size = 4ULL << 20;
    f->options.buffer_pool_pages = 256;
    fixture_empty(f);
    fixture_open(f);
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    add_two_indexes(f, "t");
}

static stats_t crash_and_open(fixture_t *f)
{
    fixture_close(f, false);
    fixture_open(f);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_true(status.ignores_log_optimize_ddl);
    return status.stats;
}

/** Each page that redo makes is held against the checksum that the running engine logged (I27). */
static void test_compared(void **state)
{
    fixture_t *f = *state;
    start(f, true);
    stats_t stats = crash_and_open(f);
    assert_true(stats.recv_pages_compared > 300 && stats.recv_pages_created > 0);
    assert_int_equal(stats.recv_index_load_reads, 0);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->indexes[1].entries, 300);
    check_report_free(&report);
    fixture_open(f);
    start(f, false);
    assert_int_equal(crash_and_open(f).recv_pages_compared, 0);
}

/** A page that redo makes otherwise than it was is refused by a name of its own. */
static void test_differs(void **state)
{
    fixture_t *f = *state;
    const redo_rec_t wrong = {
        .op = OP_PAGE_CHECKSUM, .space = SPACE_SYSTEM, .page_no = 2, .value = 1};
    start(f, true);
    engine_t *engine = NULL;
    lsn_t end = 0;
    log_append_rec(f->engine->log, &wrong, &end);
    assert_int_equal(log_write_up_to(f->engine->log, end, true), DB_SUCCESS);
    fixture_close(f, false);
    assert_int_equal(engine_open(f->os, &f->probe, &f->options, true, &engine, &f->err),
                     DB_UNRECOVERABLE);
    assert_int_equal(f->err.refusal, REFUSAL_PAGE_DIFFERS);
    assert_non_null(strstr(f->err.msg, "page 2 of ibdata1 is not what it was at"));
    f->engine = NULL;
}

/** log_optimize_ddl may be set, to and fro, and neither drains nor changes how a load is logged. */
static void test_ignored(void **state)
{
    fixture_t *f = *state;
    start(f, false);
    engine_status_t before;
    engine_get_status(f->engine, &before);
    for (uint32_t i = 0; i < 4; i++) {
        OK(f, engine_set_log_optimize_ddl(f->engine, i % 2 == 0));
    }
    engine_status_t after;
    engine_get_status(f->engine, &after);
    assert_int_equal(after.lsn_current, before.lsn_current);
    assert_int_equal(after.stats.checkpoints, before.stats.checkpoints);
    assert_int_equal(log_last_checkpoint(f->engine->log)->loads, LOG_LOADS_LOGGED);
}

/** A 10.5 log leaves torn what is free. Once it is converted an INDEX_LOAD has recovery read such a
page, which is in use again and not yet home. A torn page in use is not hidden by that (I5). */
static void test_converted_torn(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t id = index_def("id", "b", 5);
    start(f, false);
    OK(f, engine_checkpoint(f->engine, true));
    delete_rows(f, "t", 50, 300);
    purge_all(f);
    fixture_close(f, true);
    assert_true(turn_pages(f, "t.ibd", false) > 3);
    f->options.log_format = LOG_FORMAT_10_4;
    fixture_open(f);
    insert_rows(f, "t", 50, 150);
    OK(f, add_indexes(f->engine, "t", &id, 1));
    fixture_close(f, false);
    fixture_open(f);
    assert_int_equal(count_rows(f, "t", "id"), 150);
    f->options.log_format = LOG_FORMAT_10_5;
    fixture_close(f, true);
    fixture_open(f);
    fixture_close(f, true);
    assert_true(turn_pages(f, "t.ibd", true) > 3);
    f->options.log_format = LOG_FORMAT_10_4;
    fixture_open(f);
    uint64_t n = 0;
    assert_int_equal(engine_scan(f->engine, "t", NULL, count_row_fn, &n), DB_CORRUPTION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_compared, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_differs, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_ignored, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_converted_torn, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
