/** ALTER TABLE: what is refused, what is instant, and crashes of both. */
#include "test_api_crash.h"

static const alter_kind_t RENAMES[] = {ALTER_RENAME_COLUMN, ALTER_RENAME_INDEX};

/** A statement whose options cannot be kept is refused, whatever the table, and says what to try. */
static void test_refusals(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t def = index_def("ib", "b", 0);
    ddl_alter_t alter = *ADD_INDEXES("missing", &def, 1);
    alter.algorithm = ALGORITHM_INSTANT;
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    assert_non_null(strstr(engine_error(f->engine), "Try ALGORITHM=NOCOPY"));
    assert_int_equal(engine_start_alter(f->engine, &alter), DB_UNSUPPORTED);
    alter.algorithm = ALGORITHM_NOCOPY;
    assert_int_equal(engine_alter(f->engine, &alter), DB_NOT_FOUND);
    alter.lock = LOCK_NONE;
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    assert_non_null(strstr(engine_error(f->engine), "Try LOCK=SHARED"));
    alter = (ddl_alter_t){
        .kind = ALTER_DROP_INDEX, .table = "missing", .name = "ib", .algorithm = ALGORITHM_INSTANT};
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
}

/** A name changes in the catalogue, and no page of the table does. */
static void test_names_are_instant(void **state)
{
    fixture_t *f = *state;
    engine_status_t before;
    engine_status_t after;
    create_table(f, "t");
    insert_rows(f, "t", 1, 100);
    add_two_indexes(f, "t");
    OK(f, engine_flush_table(f->engine, "t"));
    engine_get_status(f->engine, &before);
    OK(f, rename_part(f->engine, ALTER_RENAME_COLUMN, "t", "b", "d"));
    OK(f, rename_part(f->engine, ALTER_RENAME_INDEX, "t", "ib", "id"));
    OK(f, engine_flush_table(f->engine, "t"));
    engine_get_status(f->engine, &after);
    assert_int_equal(after.stats.data_writes, before.stats.data_writes);
    assert_int_equal(after.stats.alters_instant, 2);
    assert_string_equal(engine_table(f->engine, "t")->cols[1].name, "d");
    assert_int_equal(count_rows(f, "t", "id"), 100);
    update_rows(f, "t", 1, 50, 'x');
    fixture_close(f, true);
    fixture_open(f);
    assert_string_equal(engine_table(f->engine, "t")->cols[1].name, "d");
    assert_int_equal(count_rows(f, "t", "id"), 100);
}

static void test_names_that_cannot_be(void **state)
{
    fixture_t *f = *state;
    engine_t *e = f->engine;
    create_table(f, "t");
    add_two_indexes(f, "t");
    assert_int_equal(rename_part(e, ALTER_RENAME_COLUMN, "t", "b", "a"), DB_ALREADY_EXISTS);
    assert_int_equal(rename_part(e, ALTER_RENAME_COLUMN, "t", "x", "y"), DB_NOT_FOUND);
    assert_int_equal(rename_part(e, ALTER_RENAME_COLUMN, "t", "b", "a b"), DB_ERROR);
    assert_int_equal(rename_part(e, ALTER_RENAME_INDEX, "t", "ib", "ic"), DB_ALREADY_EXISTS);
    assert_int_equal(rename_part(e, ALTER_RENAME_INDEX, "t", "ib", "PRIMARY"), DB_ALREADY_EXISTS);
    assert_int_equal(rename_part(e, ALTER_RENAME_INDEX, "t", "PRIMARY", "x"), DB_NOT_FOUND);
    byte row[8 + B_LEN + 8];
    trx_t *trx = NULL;
    make_row(1, row);
    OK(f, engine_begin(e, &trx));
    OK(f, engine_insert(e, trx, "t", row));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rename_part(e, RENAMES[i], "t", "b", "d"), DB_TABLE_LOCKED);
    }
    OK(f, engine_rollback(e, trx));
    OK(f, rename_part(e, ALTER_RENAME_COLUMN, "t", "b", "d"));
}

/** A crash at any fault point leaves the old name or the new one. */
static void test_name_crashes(void **state)
{
    fixture_t *f = *state;
    const shape_t old_name = {.exists = true, .rows = 100, .n_indexes = 2, .index = "ib"};
    const shape_t new_name = {.exists = true, .rows = 100, .n_indexes = 2, .index = "id"};
    crash_t crash = {.f = f, .table = "t", .every = 1, .nested = true};
    create_table(f, "t");
    insert_rows(f, "t", 1, 100);
    add_two_indexes(f, "t");
    crash_arm(&crash, old_name, new_name);
    OK(f, rename_part(f->engine, ALTER_RENAME_INDEX, "t", "ib", "id"));
    crash_disarm(&crash);
    assert_int_equal(point_count(&crash, "ddl.committed"), 1);
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refusals, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_names_are_instant, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_names_that_cannot_be, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_name_crashes, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
