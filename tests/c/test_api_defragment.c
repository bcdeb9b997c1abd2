/** Defragmentation in place: fewer leaves, the same rows, whatever changes or crashes meanwhile. */
#include "api/api_int.h"
#include "test_api_crash.h"

/** As an address that lives as long as the block. */
#define DEFRAGMENT(index_)                                                                         \
    (&(ddl_alter_t){.kind = ALTER_DEFRAGMENT, .table = "t", .name = (index_)})

#define ROWS 900
#define MANY_ROWS 2500 /* more leaves under one parent than the pool has pages */

static void reopen(fixture_t *f, uint32_t n_pages, uint32_t fill_factor)
{
    fixture_close(f, true);
    f->options.defragment_n_pages = n_pages;
    f->options.defragment_fill_factor = fill_factor;
    f->options.defragment_fill_factor_n_recs = 100;
    fixture_open(f);
}

/** Rows 1 to `rows` with two indexes, of which `left` in 5 are left, spread over all pages. */
static void make_holes(fixture_t *f, int64_t rows, int64_t left)
{
    create_table(f, "t");
    add_two_indexes(f, "t");
    insert_rows(f, "t", 1, rows);
    for (int64_t a = 1; a <= rows; a++) {
        if (a % 5 >= left) {
            delete_rows(f, "t", a, a);
        }
    }
    purge_all(f);
}

/** Leaves of an index, by its chain of pages. */
static uint32_t count_leaves(fixture_t *f, const char *name)
{
    dict_table_t *t = dict_table_get(f->engine->dict, "t");
    const dict_index_t *index = dict_index_get(t, name);
    btr_cursor_t cursor;
    OK(f, btr_cursor_open(&cursor, f->engine->pool, &index->tree, NULL, 0));
    const byte *rec = NULL;
    while (btr_cursor_next(&cursor, &rec) == DB_SUCCESS) {
    }
    uint32_t n = (uint32_t)cursor.pages_seen;
    btr_cursor_close(&cursor);
    return n;
}

static check_report_t closed_report(fixture_t *f)
{
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    fixture_open(f);
    return report;
}

/** Every index has about as few leaves as its records need at that fill factor; nothing else has
changed. */
static void check_packs(fixture_t *f, int64_t rows, uint32_t n_pages, uint32_t fill_factor)
{
    static const char *const NAMES[] = {"PRIMARY", "ib", "ic"};
    reopen(f, n_pages, fill_factor);
    make_holes(f, rows, 2);
    check_report_t old = closed_report(f);
    uint32_t before[3];
    for (uint32_t i = 0; i < 3; i++) {
        before[i] = count_leaves(f, NAMES[i]);
    }
    OK(f, engine_alter(f->engine, DEFRAGMENT(NULL)));
    engine_status_t status;
    engine_get_status(f->engine, &status);
    uint32_t all = 0;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t after = count_leaves(f, NAMES[i]);
        assert_true(after <= before[i] && (i > 0 || after <= before[i] * 2 / 3));
        all += before[i] - after;
    }
    assert_int_equal(status.stats.defragment_pages_freed, all);
    assert_true(status.stats.defragment_count > 0);
    OK(f, engine_alter(f->engine, DEFRAGMENT("ib")));
    assert_int_equal(engine_alter(f->engine, DEFRAGMENT("no")), DB_NOT_FOUND);
    check_report_t new = closed_report(f);
    assert_int_equal(report_table(&new, "t")->rows, report_table(&old, "t")->rows);
    assert_true(report_table(&new, "t")->hash == report_table(&old, "t")->hash);
    check_report_free(&old);
    check_report_free(&new);
}

static void test_packs_seven(void **state)
{
    check_packs(*state, ROWS, 7, 100);
}

static void test_packs_two(void **state)
{
    check_packs(*state, ROWS, 2, 100);
}

static void test_packs_with_room(void **state)
{
    check_packs(*state, ROWS, 32, 70);
}

/** A group has fewer leaves than asked for where they would fill the pool. */
static void test_packs_in_a_small_pool(void **state)
{
    fixture_t *f = *state;
    assert_true(f->options.buffer_pool_pages <= 32);
    check_packs(f, MANY_ROWS, 32, 100);
}

/** A table that is full stays as it is: groups are passed without a change. */
static void test_full_table(void **state)
{
    fixture_t *f = *state;
    reopen(f, 7, 90);
    create_table(f, "t");
    insert_rows(f, "t", 1, ROWS);
    uint32_t before = count_leaves(f, "PRIMARY");
    OK(f, engine_alter(f->engine, DEFRAGMENT(NULL)));
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.defragment_count, 0);
    assert_int_equal(count_leaves(f, "PRIMARY"), before);
}

/** Between steps rows come and go, transactions stay open over them and are rolled back;
definitions stay. */
static void test_rows_change_meanwhile(void **state)
{
    fixture_t *f = *state;
    reopen(f, 3, 90);
    make_holes(f, ROWS, 1);
    OK(f, engine_start_alter(f->engine, DEFRAGMENT(NULL)));
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    byte row[8 + B_LEN + 8];
    for (int64_t i = 0; i < 30; i++) {
        make_row(2000 - 3 * i, row);
        OK(f, engine_insert(f->engine, trx, "t", row));
        make_row(5 * i + 2, row);
        OK(f, engine_insert(f->engine, trx, "t", row));
        OK(f, engine_step_alter(f->engine, "t", 1, 1));
        delete_rows(f, "t", 5 * i + 5, 5 * i + 5);
        OK(f, engine_clean_pages(f->engine, 2));
    }
    assert_int_equal(engine_drop_table(f->engine, "t"), DB_TABLE_LOCKED);
    assert_int_equal(engine_alter(f->engine, DEFRAGMENT(NULL)), DB_TABLE_LOCKED);
    OK(f, engine_rollback(f->engine, trx));
    OK(f, engine_step_alter(f->engine, "t", 1000, 1));
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.onlineddl_pct_progress, 10000);
    OK(f, engine_finish_alter(f->engine, "t"));
    OK(f, engine_start_alter(f->engine, DEFRAGMENT("ic")));
    OK(f, engine_step_alter(f->engine, "t", 1, 1));
    OK(f, engine_abort_alter(f->engine, "t"));
    purge_all(f);
    assert_int_equal(count_rows(f, "t", NULL), ROWS / 5 - 30);
    assert_int_equal(count_rows(f, "t", "ib"), ROWS / 5 - 30);
    check_report_t report = closed_report(f);
    assert_int_equal(report_table(&report, "t")->rows, ROWS / 5 - 30);
    check_report_free(&report);
}

static stats_t stats_of(fixture_t *f)
{
    engine_status_t status;
    engine_get_status(f->engine, &status);
    return status.stats;
}

/** Off: it stays where it is, whoever asks; on: it goes on there. Other builds go on. */
static void test_rests_while_off(void **state)
{
    fixture_t *f = *state;
    reopen(f, 3, 90);
    make_holes(f, ROWS, 2);
    OK(f, engine_start_alter(f->engine, DEFRAGMENT(NULL)));
    OK(f, engine_step_alter(f->engine, "t", 2, 1));
    OK(f, engine_set_defragment(f->engine, false));
    stats_t before = stats_of(f);
    assert_int_equal(engine_step_alter(f->engine, "t", 1, 1), DB_PAUSED);
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_PAUSED);
    assert_int_equal(engine_alter(f->engine, DEFRAGMENT(NULL)), DB_PAUSED);
    assert_non_null(strstr(engine_error(f->engine), "rests"));
    create_table(f, "u");
    add_two_indexes(f, "u");
    stats_t after = stats_of(f);
    assert_int_equal(after.defragment_count, before.defragment_count);
    assert_int_equal(after.defragment_pauses, 3);
    OK(f, engine_set_defragment(f->engine, true));
    OK(f, engine_finish_alter(f->engine, "t"));
    assert_true(stats_of(f).defragment_count > before.defragment_count);
    OK(f, engine_set_defragment(f->engine, false));
    OK(f, engine_start_alter(f->engine, DEFRAGMENT(NULL)));
    OK(f, engine_abort_alter(f->engine, "t"));
    fixture_close(f, true);
    fixture_open(f);
    OK(f, engine_alter(f->engine, DEFRAGMENT(NULL)));
}

/** One step after every second commit, up to the last call, which is somebody's; not while off. */
static void test_steps_by_itself(void **state)
{
    fixture_t *f = *state;
    f->options.defragment_interval = 2;
    reopen(f, 3, 90);
    make_holes(f, ROWS, 2);
    OK(f, engine_start_alter(f->engine, DEFRAGMENT(NULL)));
    uint32_t before = count_leaves(f, "PRIMARY");
    stats_t none = stats_of(f);
    assert_int_equal(none.defragment_own_steps, 0);
    OK(f, engine_set_defragment(f->engine, false));
    for (int64_t a = 2000; a < 2010; a++) {
        insert_rows(f, "t", a, a);
    }
    assert_int_equal(stats_of(f).defragment_own_steps, 0);
    OK(f, engine_set_defragment(f->engine, true));
    for (int64_t a = 2010; a < 2020; a++) {
        insert_rows(f, "t", a, a);
    }
    assert_int_equal(stats_of(f).defragment_own_steps, 5);
    for (int64_t a = 2020; a < 2500; a++) {
        insert_rows(f, "t", a, a);
        delete_rows(f, "t", a, a);
    }
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.onlineddl_pct_progress, 10000);
    assert_true(status.stats.defragment_own_steps < 480);
    purge_all(f);
    assert_true(count_leaves(f, "PRIMARY") < before);
    assert_int_equal(engine_drop_table(f->engine, "t"), DB_TABLE_LOCKED);
    OK(f, engine_finish_alter(f->engine, "t"));
    check_report_t report = closed_report(f);
    check_report_free(&report);
}

/** A crash behind any mini-transaction leaves whole trees with all rows (I6 to I11). */
static void check_crashes(fixture_t *f, bool nested)
{
    const shape_t full = {.exists = true, .rows = ROWS / 5 * 2, .n_indexes = 2};
    crash_t crash = {.f = f, .table = "t", .every = nested ? 13 : 1, .nested = nested};
    f->options.log_write_through = true;
    reopen(f, 7, 90);
    make_holes(f, ROWS, 2);
    crash_arm(&crash, full, full);
    OK(f, engine_alter(f->engine, DEFRAGMENT(NULL)));
    crash_disarm(&crash);
    assert_true(point_count(&crash, "btr.packed") > 15);
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
        cmocka_unit_test_setup_teardown(test_packs_seven, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_packs_two, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_packs_with_room, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_packs_in_a_small_pool, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_full_table, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rows_change_meanwhile, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rests_while_off, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_steps_by_itself, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_nested, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
