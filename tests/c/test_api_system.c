/** Tables of the system tablespace: their trees lie in ibdata1, and no file is theirs. */
#include "test_api_crash.h"

static void create_system_table(fixture_t *f, const char *name)
{
    dict_table_t *t = malloc(sizeof(*t));
    assert_non_null(t);
    define_table(t, name);
    t->in_system = true;
    OK(f, engine_create_table(f->engine, t));
    free(t);
}

static dberr_t alter(fixture_t *f, alter_kind_t kind, const char *table, const char *name)
{
    return engine_alter(f->engine, &(ddl_alter_t){.kind = kind, .table = table, .name = name});
}

/** Statements do what they do to any table, and leave it where it is; no file comes or goes, and
those about one are refused. */
static void test_statements(void **state)
{
    fixture_t *f = *state;
    create_system_table(f, "t");
    create_table(f, "o");
    insert_rows(f, "t", 1, 600);
    add_two_indexes(f, "t");
    OK(f, engine_rename_table(f->engine, "t", "u"));
    OK(f, rebuild_table(f->engine, "u"));
    OK(f, drop_index(f->engine, "u", "ib"));
    assert_int_equal(engine_table(f->engine, "u")->space, SPACE_SYSTEM);
    assert_int_equal(count_rows(f, "u", "ic"), 600);
    assert_false(file_exists(f, "t.ibd") || file_exists(f, "u.ibd"));
    assert_int_equal(alter(f, ALTER_EXPORT, "u", NULL), DB_UNSUPPORTED);
    assert_int_equal(alter(f, ALTER_IMPORT, "u", "o"), DB_UNSUPPORTED);
    OK(f, alter(f, ALTER_TRUNCATE, "u", NULL));
    insert_rows(f, "u", 5, 30);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.system_tables, 1);
    assert_int_equal(status.stats.system_index_loads, 2 + 3); /* ADD INDEX, the rebuild */
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "u")->rows, 26);
    assert_int_equal(report_table(&report, "u")->n_indexes, 1);
    check_report_free(&report);
    fixture_open(f);
    OK(f, engine_drop_table(f->engine, "u"));
}

/** Without a file there is nothing that could fill the log. */
static void test_nothing_to_fill_with(void **state)
{
    fixture_t *f = *state;
    create_system_table(f, "t");
    OK(f, engine_place(f->engine, BUF_ACT_FILL, 1));
    insert_rows(f, "t", 1, 10);
    create_table(f, "o");
    OK(f, engine_place(f->engine, BUF_ACT_FILL, 1));
    insert_rows(f, "t", 11, 20);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.placed_fills, 2);
    assert_int_equal(count_rows(f, "t", NULL), 20);
}

/** A crash at any fault point of a statement leaves the table as before it or as after it, and no
page that is nobody's (I11, I12). */
static void check_crashes(fixture_t *f, bool nested)
{
    const shape_t none = {.exists = false};
    const shape_t bare = {.exists = true, .rows = 300};
    const shape_t full = {.exists = true, .rows = 300, .n_indexes = 2};
    crash_t crash = {.f = f, .table = "t", .every = nested ? 17 : 2, .nested = nested};
    fixture_close(f, true);
    f->options.log_write_through = true;
    fixture_open(f);
    crash_arm(&crash, none, (shape_t){.exists = true});
    create_system_table(f, "t");
    crash_disarm(&crash);
    insert_rows(f, "t", 1, 300);
    crash_arm(&crash, bare, full);
    add_two_indexes(f, "t");
    crash_disarm(&crash);
    crash_arm(&crash, full, full);
    OK(f, engine_start_alter(f->engine, REBUILD("t")));
    OK(f, engine_step_alter(f->engine, "t", 7, 1000));
    OK(f, engine_abort_alter(f->engine, "t"));
    OK(f, engine_checkpoint(f->engine, true));
    OK(f, rebuild_table(f->engine, "t"));
    crash_disarm(&crash);
    crash.seen_before = crash.seen_after = 0;
    crash_arm(&crash, full, none);
    OK(f, engine_drop_table(f->engine, "t"));
    crash_disarm(&crash);
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    assert_true(point_count(&crash, "btr.free_step") > 20);
    assert_true(crash.crashes > (nested ? 30 : 100));
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
        cmocka_unit_test_setup_teardown(test_statements, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_to_fill_with, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_nested, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
