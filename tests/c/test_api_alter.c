/** ALTER TABLE: what is refused, what is instant, and crashes of both. */
#include "test_api_crash.h"

static const alter_kind_t RENAMES[] = {ALTER_RENAME_COLUMN, ALTER_RENAME_INDEX};

/** A statement whose options cannot be kept is refused, whatever the table, and says what to
try. */
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
    assert_int_equal(engine_alter(f->engine, &alter), DB_NOT_FOUND);
    alter.algorithm = ALGORITHM_COPY;
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
    create_table(f, "t");
    insert_rows(f, "t", 1, 100);
    add_two_indexes(f, "t");
    OK(f, engine_flush_table(f->engine, "t"));
    engine_status_t before;
    engine_get_status(f->engine, &before);
    OK(f, rename_part(f->engine, ALTER_RENAME_COLUMN, "t", "b", "d"));
    OK(f, rename_part(f->engine, ALTER_RENAME_INDEX, "t", "ib", "id"));
    OK(f, engine_flush_table(f->engine, "t"));
    engine_status_t after;
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
    assert_int_equal(rename_part(e, ALTER_RENAME_INDEX, "t", "PRIMARY", "x"), DB_ERROR);
    byte row[8 + B_LEN + 8];
    make_row(1, row);
    trx_t *trx = NULL;
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

/* ---- rebuild ---- */

static uint64_t space_of(fixture_t *f, const char *table)
{
    return engine_table(f->engine, table)->space;
}

/** The new table has the rows and indexes of the old one, in another space; marked rows are gone
with their history, and so is the old file. */
static void check_rebuild(fixture_t *f, bool optimize)
{
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 700);
    add_two_indexes(f, "t");
    delete_rows(f, "t", 100, 299);
    fixture_close(f, true);
    check_report_t before;
    scan_clean(f->os, &before);
    fixture_open(f);
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    uint64_t space = space_of(f, "t");
    OK(f, rebuild_table(f->engine, "t"));
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.tables_rebuilt, 1);
    assert_true(space_of(f, "t") > space);
    assert_int_equal(count_rows(f, "t", NULL), 500);
    assert_int_equal(count_rows(f, "t", "ib"), 500);
    purge_all(f);
    update_rows(f, "t", 300, 400, 'x');
    update_rows(f, "t", 300, 400, 'y');
    purge_all(f);
    fixture_close(f, true);
    check_report_t after;
    scan_clean(f->os, &after);
    assert_true(report_table(&after, "t")->hash != report_table(&before, "t")->hash);
    assert_int_equal(report_table(&after, "t")->rows, 500);
    check_report_free(&before);
    check_report_free(&after);
    fixture_open(f);
}

static void test_rebuild_not_logged(void **state)
{
    check_rebuild(*state, true);
}

static void test_rebuild_logged(void **state)
{
    check_rebuild(*state, false);
}

/** The digest stays, also of a table without rows, and of one without indexes. */
static void test_rebuild_changes_nothing(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    create_table(f, "none");
    create_table(f, "bare");
    insert_rows(f, "t", 1, 300);
    insert_rows(f, "bare", 1, 300);
    add_two_indexes(f, "t");
    add_two_indexes(f, "none");
    fixture_close(f, true);
    check_report_t before;
    scan_clean(f->os, &before);
    fixture_open(f);
    OK(f, rebuild_table(f->engine, "t"));
    OK(f, rebuild_table(f->engine, "none"));
    OK(f, rebuild_table(f->engine, "bare"));
    OK(f, rebuild_table(f->engine, "t"));
    fixture_close(f, true);
    check_report_t after;
    scan_clean(f->os, &after);
    assert_int_equal(after.n_tables, before.n_tables);
    for (uint32_t i = 0; i < after.n_tables; i++) {
        const check_table_t *x = &before.tables[i];
        const check_table_t *y = &after.tables[i];
        assert_string_equal(x->name, y->name);
        assert_true(x->rows == y->rows && x->hash == y->hash && x->n_indexes == y->n_indexes);
        for (uint32_t k = 0; k < x->n_indexes; k++) {
            assert_string_equal(x->indexes[k].name, y->indexes[k].name);
            assert_true(x->indexes[k].hash == y->indexes[k].hash);
        }
    }
    check_report_free(&before);
    check_report_free(&after);
    fixture_open(f);
}

/** Between its steps the table can be read; other tables, and the names of files, are
everybody's. */
static void test_rebuild_in_steps(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    create_table(f, "o");
    insert_rows(f, "t", 1, 500);
    add_two_indexes(f, "t");
    byte row[8 + B_LEN + 8];
    make_row(1000, row);
    trx_t *trx = NULL;
    for (uint32_t round = 0; round < 2; round++) {
        OK(f, engine_start_alter(f->engine, REBUILD("t")));
        for (uint32_t i = 0; i < 20; i++) {
            OK(f, engine_step_alter(f->engine, "t", 1, 60));
            OK(f, engine_clean_pages(f->engine, i % 5));
            OK(f, engine_begin(f->engine, &trx));
            assert_int_equal(engine_insert(f->engine, trx, "t", row), DB_TABLE_LOCKED);
            OK(f, engine_rollback(f->engine, trx));
        }
        assert_int_equal(count_rows(f, "t", "ib"), 500 + 10 * round);
        assert_int_equal(rebuild_table(f->engine, "t"), DB_TABLE_LOCKED);
        assert_int_equal(engine_drop_table(f->engine, "t"), DB_TABLE_LOCKED);
        assert_int_equal(engine_set_log_optimize_ddl(f->engine, false), DB_TABLE_LOCKED);
        insert_rows(f, "o", 1 + 10 * round, 10 + 10 * round);
        if (round == 0) {
            OK(f, engine_abort_alter(f->engine, "t"));
            insert_rows(f, "t", 501, 510);
        } else {
            OK(f, engine_finish_alter(f->engine, "t"));
        }
    }
    assert_int_equal(count_rows(f, "t", "ic"), 510);
    OK(f, engine_start_alter(f->engine, REBUILD("t")));
    OK(f, engine_step_alter(f->engine, "t", 3, 60));
    fixture_close(f, true); /* aborts it */
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report.n_tables, 2);
    check_report_free(&report);
    fixture_open(f);
}

/** A crash at any fault point leaves one table with all rows and indexes, and no other file
(I12). */
static void check_rebuild_crashes(fixture_t *f, bool optimize, bool nested)
{
    const shape_t full = {.exists = true, .rows = 500, .n_indexes = 2, .index = "ic"};
    crash_t crash = {.f = f, .table = "t", .every = nested ? 3 : 1, .nested = nested};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 600);
    delete_rows(f, "t", 100, 199);
    add_two_indexes(f, "t");
    crash_arm(&crash, full, full);
    OK(f, rebuild_table(f->engine, "t"));
    OK(f, engine_start_alter(f->engine, REBUILD("t")));
    for (uint32_t i = 0; i < 12; i++) {
        OK(f, engine_step_alter(f->engine, "t", 1, 80));
        OK(f, engine_clean_pages(f->engine, i % 4));
    }
    OK(f, engine_abort_alter(f->engine, "t"));
    OK(f, rebuild_table(f->engine, "t"));
    /* Changes of the loaded pages: recovery must read what the load wrote (MDEV-12699). */
    update_rows(f, "t", 200, 230, 'x');
    OK(f, engine_flush_log(f->engine));
    crash_disarm(&crash);
    assert_int_equal(point_count(&crash, "ddl.swapped"), 2);
    assert_int_equal(point_count(&crash, "fil.rename.renamed"), 4);
    assert_int_equal(point_count(&crash, "ddl.flushed") >= 2, optimize);
    assert_true(!optimize || crash.load_reads > 0);
}

static void test_rebuild_crashes_not_logged(void **state)
{
    check_rebuild_crashes(*state, true, false);
}

static void test_rebuild_crashes_logged(void **state)
{
    check_rebuild_crashes(*state, false, false);
}

static void test_rebuild_crashes_nested(void **state)
{
    check_rebuild_crashes(*state, true, true);
}

/** With LOCK=EXCLUSIVE nobody reads the table, or flushes it, until the build ends, however that
is. */
static void test_exclusive(void **state)
{
    fixture_t *f = *state;
    ddl_alter_t alters[] = {*REBUILD("t"), *COPY("t"), *REBUILD("t")};
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    add_two_indexes(f, "t");
    byte pk[8];
    mach_write_8(pk, dict_bigint_encode(7));
    byte row[8 + B_LEN + 8];
    for (uint32_t i = 0; i < 3; i++) {
        alters[i].lock = LOCK_EXCLUSIVE;
        OK(f, engine_start_alter(f->engine, &alters[i]));
        OK(f, engine_step_alter(f->engine, "t", 2, 60));
        assert_int_equal(engine_get(f->engine, "t", pk, row), DB_TABLE_LOCKED);
        assert_non_null(strstr(engine_error(f->engine), "LOCK=EXCLUSIVE"));
        assert_int_equal(engine_scan(f->engine, "t", "ib", NULL, NULL), DB_TABLE_LOCKED);
        assert_int_equal(engine_flush_table(f->engine, "t"), DB_TABLE_LOCKED);
        OK(f, engine_clean_pages(f->engine, 4));
        OK(f, i == 2 ? engine_abort_alter(f->engine, "t") : engine_finish_alter(f->engine, "t"));
        OK(f, engine_get(f->engine, "t", pk, row));
        assert_int_equal(count_rows(f, "t", "ib"), 300);
    }
    OK(f, engine_start_alter(f->engine, REBUILD("t")));
    OK(f, engine_get(f->engine, "t", pk, row));
    OK(f, engine_abort_alter(f->engine, "t"));
}

/* ---- copy ---- */

/** Every statement can be carried out by a copy, and comes to the same. */
static void test_copies(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t defs[] = {index_def("ib", "b", 0), index_def("ic", "c", 0)};
    ddl_alter_t alters[] = {
        {.kind = ALTER_ADD_INDEX, .defs = defs, .n_defs = 2},
        {.kind = ALTER_REBUILD},
        {.kind = ALTER_RENAME_COLUMN, .name = "b", .new_name = "d"},
        {.kind = ALTER_RENAME_INDEX, .name = "ib", .new_name = "id"},
        {.kind = ALTER_DROP_INDEX, .name = "ic"},
    };
    create_table(f, "t");
    insert_rows(f, "t", 1, 600);
    delete_rows(f, "t", 100, 199);
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t space = space_of(f, "t");
        alters[i].table = "t";
        alters[i].algorithm = ALGORITHM_COPY;
        alters[i].lock = LOCK_NONE;
        assert_int_equal(engine_alter(f->engine, &alters[i]), DB_UNSUPPORTED);
        alters[i].lock = LOCK_SHARED;
        OK(f, engine_alter(f->engine, &alters[i]));
        assert_true(space_of(f, "t") > space);
        assert_int_equal(count_rows(f, "t", NULL), 500);
    }
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.tables_copied, 5);
    assert_int_equal(count_rows(f, "t", "id"), 500);
    assert_int_equal(engine_alter(f->engine, &alters[4]), DB_NOT_FOUND);
    assert_string_equal(engine_table(f->engine, "t")->cols[1].name, "d");
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report); /* no id of a transaction is left */
    assert_int_equal(report.history_len, 0);
    check_report_free(&report);
    fixture_open(f);
}

/** A duplicate for a new unique index is said by the last call, not by the step that meets it. */
static void test_copy_meets_duplicate(void **state)
{
    fixture_t *f = *state;
    ddl_index_def_t def = index_def("ub", "b", 2);
    def.unique = true;
    ddl_alter_t alter = *ADD_INDEXES("t", &def, 1);
    alter.algorithm = ALGORITHM_COPY;
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    OK(f, engine_start_alter(f->engine, &alter));
    OK(f, engine_step_alter(f->engine, "t", 50, 100));
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_DUPLICATE_KEY);
    assert_non_null(strstr(engine_error(f->engine), "'ub'"));
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_NOT_FOUND);
    insert_rows(f, "t", 301, 310);
    OK(f, rebuild_table(f->engine, "t"));
    assert_int_equal(count_rows(f, "t", NULL), 310);
}

/** A crash at any fault point of a copy, of its steps and of what comes between them leaves one
table. */
static void check_copy_crashes(fixture_t *f, bool nested)
{
    const shape_t full = {.exists = true, .rows = 300, .n_indexes = 2, .index = "ic"};
    const shape_t less = {.exists = true, .rows = 300, .n_indexes = 1, .index = "ic"};
    const ddl_alter_t drop = {
        .kind = ALTER_DROP_INDEX, .table = "t", .name = "ib", .algorithm = ALGORITHM_COPY};
    crash_t crash = {.f = f, .table = "t", .every = nested ? 19 : 4, .nested = nested};
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    add_two_indexes(f, "t");
    crash_arm(&crash, full, full);
    OK(f, engine_start_alter(f->engine, COPY("t")));
    for (uint32_t i = 0; i < 3; i++) {
        OK(f, engine_step_alter(f->engine, "t", 1, 60));
        OK(f, engine_clean_pages(f->engine, i % 4));
        purge_all(f);
    }
    OK(f, engine_abort_alter(f->engine, "t"));
    crash.seen_before = 0;
    crash_arm(&crash, full, less);
    OK(f, engine_alter(f->engine, &drop));
    purge_all(f);
    crash_disarm(&crash);
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    assert_int_equal(point_count(&crash, "ddl.copy_begin"), 2);
    assert_int_equal(point_count(&crash, "ddl.swapped"), 1);
}

/** A copy is given up while all undo slots are taken: its file is gone before its rows can go. What
it has inserted has nothing to purge, and the table is locked until giving up succeeds. */
static void test_copy_abort_without_slot(void **state)
{
    fixture_t *f = *state;
    enum { SLOTS = 64 };
    trx_t *trx[SLOTS];
    byte row[8 + B_LEN + 8] = {0};
    create_table(f, "t");
    create_table(f, "u");
    insert_rows(f, "t", 1, 300);
    OK(f, engine_start_alter(f->engine, COPY("t")));
    OK(f, engine_step_alter(f->engine, "t", 2, 60));
    for (int64_t i = 0; i < SLOTS; i++) {
        mach_write_8(row, dict_bigint_encode(i));
        OK(f, engine_begin(f->engine, &trx[i]));
        OK(f, engine_insert(f->engine, trx[i], "u", row));
    }
    assert_int_equal(engine_abort_alter(f->engine, "t"), DB_OUT_OF_SPACE);
    for (uint32_t i = 0; i < SLOTS; i++) {
        OK(f, engine_commit(f->engine, trx[i]));
    }
    purge_all(f);
    OK(f, engine_abort_alter(f->engine, "t"));
    OK(f, engine_alter(f->engine, COPY("t")));
    purge_all(f);
    assert_int_equal(count_rows(f, "t", NULL), 300);
    assert_int_equal(count_rows(f, "u", NULL), SLOTS);
}

static void test_copy_crashes(void **state)
{
    check_copy_crashes(*state, false);
}

static void test_copy_crashes_nested(void **state)
{
    check_copy_crashes(*state, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refusals, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_names_are_instant, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_names_that_cannot_be, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_name_crashes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuild_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuild_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuild_changes_nothing, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuild_in_steps, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuild_crashes_not_logged, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuild_crashes_logged, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_exclusive, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copies, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copy_meets_duplicate, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copy_abort_without_slot, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copy_crashes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copy_crashes_nested, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuild_crashes_nested, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
