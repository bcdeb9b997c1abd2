/** TRUNCATE TABLE: all rows are gone or none; the definition stays. */
#include "test_api_crash.h"

static dberr_t truncate_table(engine_t *engine, const char *table)
{
    const ddl_alter_t alter = {.kind = ALTER_TRUNCATE, .table = table};
    return engine_alter(engine, &alter);
}

/** The table is empty with its indexes, in another space, and takes the same keys again; history of
the rows that are gone is purged without them. */
static void test_rows_are_gone(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 700);
    add_two_indexes(f, "t");
    delete_rows(f, "t", 100, 299);
    uint32_t space = engine_table(f->engine, "t")->space;
    OK(f, truncate_table(f->engine, "t"));
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.tables_truncated, 1);
    assert_true(engine_table(f->engine, "t")->space > space);
    assert_int_equal(count_rows(f, "t", NULL), 0);
    assert_int_equal(count_rows(f, "t", "ib"), 0);
    insert_rows(f, "t", 1, 50);
    purge_all(f);
    OK(f, truncate_table(f->engine, "t"));
    OK(f, truncate_table(f->engine, "t"));
    insert_rows(f, "t", 40, 60);
    assert_int_equal(count_rows(f, "t", "ic"), 21);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report.n_tables, 1);
    assert_int_equal(report_table(&report, "t")->rows, 21);
    assert_int_equal(report_table(&report, "t")->n_indexes, 2);
    check_report_free(&report);
    fixture_open(f);
}

/** A table that is in use, or is none, is refused and keeps its rows. */
static void test_refused(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(truncate_table(f->engine, "t"), DB_NOT_FOUND);
    create_table(f, "t");
    insert_rows(f, "t", 1, 10);
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    byte row[8 + B_LEN + 8];
    make_row(11, row);
    OK(f, engine_insert(f->engine, trx, "t", row));
    assert_int_equal(truncate_table(f->engine, "t"), DB_TABLE_LOCKED);
    OK(f, engine_rollback(f->engine, trx));
    OK(f, engine_start_alter(f->engine, REBUILD("t")));
    assert_int_equal(truncate_table(f->engine, "t"), DB_TABLE_LOCKED);
    OK(f, engine_abort_alter(f->engine, "t"));
    assert_int_equal(count_rows(f, "t", NULL), 10);
}

/** A crash at any fault point leaves the old rows or none, and no other file (I3, I12). */
static void check_crashes(fixture_t *f, bool nested)
{
    const shape_t full = {.exists = true, .rows = 500, .n_indexes = 2, .index = "ic"};
    const shape_t empty = {.exists = true, .rows = 0, .n_indexes = 2, .index = "ic"};
    const shape_t again = {.exists = true, .rows = 30, .n_indexes = 2, .index = "ic"};
    crash_t crash = {.f = f, .table = "t", .every = 1, .nested = nested};
    create_table(f, "t");
    insert_rows(f, "t", 1, 600);
    delete_rows(f, "t", 100, 199);
    add_two_indexes(f, "t");
    crash_arm(&crash, full, empty);
    OK(f, truncate_table(f->engine, "t"));
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    crash_arm(&crash, empty, again);
    insert_rows(f, "t", 1, 30);
    crash_disarm(&crash);
    assert_int_equal(point_count(&crash, "ddl.swapped"), 1);
    assert_int_equal(point_count(&crash, "fil.rename.renamed"), 2);
    assert_int_equal(point_count(&crash, "ddl.load_begin"), 0);
}

static void test_crashes(void **state)
{
    check_crashes(*state, false);
}

static void test_crashes_nested(void **state)
{
    check_crashes(*state, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_are_gone, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_nested, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
