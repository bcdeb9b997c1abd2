/** ADD COLUMN, DROP COLUMN, another PRIMARY KEY: rows, refusals, changes meanwhile, crashes. */
#include "test_api_columns.h"
#include "test_api_crash.h"

#define TEXT_LEN 3000U /**< of a value that has pages of its own */

static void create_full(fixture_t *f, int64_t rows)
{
    create_table(f, "t");
    insert_rows(f, "t", 1, rows);
    add_two_indexes(f, "t");
}

/** A new column is at its place, has its value in all rows, a long one too, and the indexes are
those of before; then it goes. By either algorithm, logged or not. */
static void check_columns(fixture_t *f, ddl_algorithm_t algorithm, bool optimize)
{
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_full(f, 200);
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(new);
    byte text[TEXT_LEN];
    memset(text, 'v', sizeof(text));
    ddl_alter_t alter = add_column(new, "n", DICT_VARCHAR, TEXT_LEN);
    dict_col_put(&new->col, new->row, text, TEXT_LEN);
    alter.after = "a";
    alter.algorithm = algorithm;
    OK(f, engine_alter(f->engine, &alter));
    assert_int_equal(find_col(f, "n"), 1);
    check_value(f, 7, "n", text, TEXT_LEN);
    alter = add_column(new, "m", DICT_CHAR, 9);
    alter.after = "";
    alter.algorithm = algorithm;
    OK(f, engine_alter(f->engine, &alter));
    assert_int_equal(find_col(f, "m"), 0);
    check_value(f, 200, "m", NULL, 0);
    check_value(f, 200, "n", text, TEXT_LEN);
    assert_int_equal(count_rows(f, "t", "ib"), 200);
    alter = drop_column("n");
    alter.algorithm = algorithm;
    OK(f, engine_alter(f->engine, &alter));
    assert_int_equal(engine_table(f->engine, "t")->n_cols, 4);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.columns_added, 2);
    assert_int_equal(status.stats.columns_dropped, 1);
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->rows, 200);
    check_report_free(&report);
    fixture_open(f);
    assert_int_equal(find_col(f, "m"), 0);
    free(new);
}

static void test_in_place_not_logged(void **state)
{
    check_columns(*state, ALGORITHM_INPLACE, true);
}

static void test_in_place_logged(void **state)
{
    check_columns(*state, ALGORITHM_DEFAULT, false);
}

static void test_copied(void **state)
{
    check_columns(*state, ALGORITHM_COPY, true);
}

static void test_refusals(void **state)
{
    fixture_t *f = *state;
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(new);
    ddl_alter_t alter = add_column(new, "n", DICT_BIGINT, 8);
    assert_int_equal(engine_alter(f->engine, &alter), DB_NOT_FOUND);
    create_full(f, 5);
    alter.algorithm = ALGORITHM_INSTANT;
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    assert_non_null(strstr(engine_error(f->engine), "Try ALGORITHM=INPLACE"));
    alter = add_column(new, "b", DICT_BIGINT, 8);
    assert_int_equal(engine_alter(f->engine, &alter), DB_ALREADY_EXISTS);
    alter = add_column(new, "n", DICT_BIGINT, 8);
    alter.after = "x";
    assert_int_equal(engine_alter(f->engine, &alter), DB_NOT_FOUND);
    static const struct {
        const char *name;
        dberr_t err;
    } DROPS[] = {{"a", DB_ERROR}, {"b", DB_ERROR}, {"x", DB_NOT_FOUND}};
    for (uint32_t i = 0; i < 3; i++) {
        alter = drop_column(DROPS[i].name);
        assert_int_equal(engine_alter(f->engine, &alter), DROPS[i].err);
    }
    for (uint32_t i = engine_table(f->engine, "t")->n_cols; i <= COLUMNS_MAX; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "n%u", i);
        alter = add_column(new, name, DICT_BIGINT, 8);
        assert_int_equal(engine_alter(f->engine, &alter), i < COLUMNS_MAX ? DB_SUCCESS : DB_ERROR);
    }
    assert_int_equal(count_rows(f, "t", "ib"), 5);
    free(new);
}

/** Rows that change behind the scan and before it have the new column, and no more the old one. */
static void test_rows_change_meanwhile(void **state)
{
    fixture_t *f = *state;
    create_full(f, 100);
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(new);
    ddl_alter_t alter = add_column(new, "n", DICT_VARCHAR, 10);
    dict_col_put(&new->col, new->row, (const byte *)"new", 3);
    alter.lock = LOCK_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        OK(f, engine_start_alter(f->engine, &alter));
        memset(new, 0, sizeof(*new)); /* the build has its own */
        OK(f, engine_step_alter(f->engine, "t", 1, 50));
        update_rows(f, "t", 1, 10, 'x');
        delete_rows(f, "t", 11 + 5 * i, 13 + 5 * i);
        update_rows(f, "t", 90, 95, 'y');
        OK(f, engine_finish_alter(f->engine, "t"));
        if (i == 0) {
            for (int64_t a = 1; a <= 100; a += 3) {
                if (a != 13) {
                    check_value(f, a, "n", (const byte *)"new", 3);
                }
            }
        }
        alter = drop_column("n");
        alter.lock = LOCK_NONE;
    }
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.rowlog_mapped, 2 * 19);
    assert_int_equal(engine_table(f->engine, "t")->n_cols, 3);
    assert_int_equal(count_rows(f, "t", NULL), 94);
    assert_int_equal(count_rows(f, "t", "ib"), 94);
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
    fixture_open(f);
    free(new);
}

/** A crash at any fault point leaves a table that its catalogue describes, and all of its rows. */
static void test_crashes(void **state)
{
    fixture_t *f = *state;
    const shape_t full = {.exists = true, .rows = 60, .n_indexes = 2, .index = "ic"};
    crash_t crash = {.f = f, .table = "t", .every = 2, .nested = true};
    create_full(f, 60);
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(new);
    crash_arm(&crash, full, full);
    for (uint32_t i = 0; i < 2; i++) {
        ddl_alter_t alter = add_column(new, "n", DICT_BIGINT, 8);
        alter.algorithm = i == 0 ? ALGORITHM_INPLACE : ALGORITHM_COPY;
        OK(f, engine_alter(f->engine, &alter));
        alter = drop_column("n");
        OK(f, engine_alter(f->engine, &alter));
    }
    crash_disarm(&crash);
    assert_true(crash.crashes > 20);
    assert_int_equal(point_count(&crash, "ddl.swapped"), 4);
    free(new);
}

/* ---- another primary key ---- */

static dberr_t change_primary(fixture_t *f, const char *first, const char *second,
                              ddl_algorithm_t algorithm)
{
    ddl_index_def_t def = {.name = "PRIMARY", .n_fields = second != NULL ? 2 : 1};
    (void)snprintf(def.fields[0].col, sizeof(def.fields[0].col), "%s", first);
    (void)snprintf(def.fields[1].col, sizeof(def.fields[1].col), "%s",
                   second != NULL ? second : "");
    const ddl_alter_t alter = {
        .kind = ALTER_PRIMARY_KEY, .table = "t", .defs = &def, .n_defs = 1, .algorithm = algorithm};
    return engine_alter(f->engine, &alter);
}

/** The first row in the order of the primary key has this a. */
static dberr_t stop_at_first(void *ctx, const byte *row)
{
    int64_t *a = ctx;
    *a = dict_bigint_decode(mach_read_8(row));
    return DB_NOT_FOUND; /* ends the scan */
}

static int64_t first_row(fixture_t *f)
{
    int64_t a = 0;
    OK(f, engine_scan(f->engine, "t", NULL, stop_at_first, &a));
    return a;
}

/** Rows are in the order of another key, whose sort needs several runs; where the order stays there
is no sort. */
static void check_keys(fixture_t *f, bool optimize)
{
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_full(f, 3000);
    delete_rows(f, "t", 100, 199); /* they wait for purge */
    static const struct {
        const char *first;
        const char *second;
        uint64_t sorted;
    } KEYS[] = {{"c", NULL, 2900}, {"c", "a", 2900}, {"c", NULL, 2900},
                {"a", "c", 5800},  {"b", "a", 8700}, {"c", NULL, 11600}};
    for (uint32_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++) {
        OK(f, change_primary(f, KEYS[i].first, KEYS[i].second, ALGORITHM_DEFAULT));
        engine_status_t status;
        engine_get_status(f->engine, &status);
        assert_int_equal(status.stats.rows_resorted, KEYS[i].sorted);
        assert_int_equal(status.stats.primary_keys_changed, i + 1);
        assert_int_equal(count_rows(f, "t", NULL), 2900);
        assert_int_equal(count_rows(f, "t", "ib"), 2900);
    }
    assert_int_equal(first_row(f), 3000);
    assert_int_equal(change_primary(f, "c", "c", ALGORITHM_DEFAULT), DB_ERROR);
    OK(f, change_primary(f, "a", NULL, ALGORITHM_COPY));
    assert_int_equal(first_row(f), 1);
    update_rows(f, "t", 1, 50, 'x');
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->rows, 2900);
    check_report_free(&report);
    fixture_open(f);
}

static void test_keys_not_logged(void **state)
{
    check_keys(*state, true);
}

static void test_keys_logged(void **state)
{
    check_keys(*state, false);
}

/** Two rows cannot have one key, sorted, in the order of the scan, or copied; changes meanwhile are
not logged. */
static void test_keys_that_cannot_be(void **state)
{
    fixture_t *f = *state;
    create_full(f, 20);
    update_rows(f, "t", 3, 9, 'x');
    assert_int_equal(change_primary(f, "b", NULL, ALGORITHM_INPLACE), DB_DUPLICATE_KEY);
    assert_int_equal(change_primary(f, "b", NULL, ALGORITHM_COPY), DB_DUPLICATE_KEY);
    OK(f, change_primary(f, "b", "a", ALGORITHM_INPLACE));
    assert_int_equal(change_primary(f, "b", NULL, ALGORITHM_INPLACE), DB_DUPLICATE_KEY);
    assert_int_equal(change_primary(f, "x", NULL, ALGORITHM_INPLACE), DB_NOT_FOUND);
    const ddl_alter_t alter = {.kind = ALTER_PRIMARY_KEY, .table = "t", .lock = LOCK_NONE};
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    assert_non_null(strstr(engine_error(f->engine), "Try LOCK=SHARED"));
    assert_int_equal(count_rows(f, "t", "ib"), 20);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.builds_duplicate, 3);
}

static void test_key_crashes(void **state)
{
    fixture_t *f = *state;
    const shape_t full = {.exists = true, .rows = 60, .n_indexes = 2, .index = "ic"};
    crash_t crash = {.f = f, .table = "t", .every = 2, .nested = true};
    create_full(f, 60);
    crash_arm(&crash, full, full);
    OK(f, change_primary(f, "c", NULL, ALGORITHM_INPLACE));
    OK(f, change_primary(f, "c", "b", ALGORITHM_INPLACE));
    OK(f, change_primary(f, "a", NULL, ALGORITHM_COPY));
    crash_disarm(&crash);
    assert_true(crash.crashes > 20);
    assert_int_equal(point_count(&crash, "ddl.swapped"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_place_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_in_place_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copied, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refusals, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rows_change_meanwhile, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_keys_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_keys_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_keys_that_cannot_be, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_key_crashes, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
