/** Crashes at the fault points of DDL: what recovery leaves is the state before the statement or
the one after it. */
#include "test_api_crash.h"

static void check_add_index_crashes(fixture_t *f, bool optimize, bool nested)
{
    crash_t crash = {.f = f, .table = "t", .every = nested ? 3 : 1, .nested = nested};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 600);
    delete_rows(f, "t", 100, 199);
    crash_arm(&crash, (shape_t){true, 500, 0, NULL}, (shape_t){true, 500, 2, NULL});
    add_two_indexes(f, "t");
    crash_disarm(&crash);
    assert_int_equal(point_count(&crash, "ddl.load_begin"), 2);
    assert_int_equal(point_count(&crash, "ddl.flushed"), optimize ? 2 : 0);
    assert_int_equal(point_count(&crash, "ddl.index_load_logged"), optimize ? 2 : 0);
    assert_int_equal(point_count(&crash, "ddl.committed"), 1);
    assert_true(crash.seen_before > 0 && crash.dropped_indexes > 0);
    assert_true(nested || crash.seen_after > 0);
    /* Changes of the loaded pages: recovery must read what the load wrote (MDEV-12699). */
    crash_arm(&crash, (shape_t){true, 500, 2, NULL}, (shape_t){true, 500, 2, NULL});
    update_rows(f, "t", 200, 230, 'x');
    OK(f, engine_flush_log(f->engine));
    crash_disarm(&crash);
    assert_true(!optimize || crash.load_reads > 0);
}

static void check_stepped_crashes(fixture_t *f, bool optimize, bool nested)
{
    const ddl_index_def_t defs[] = {index_def("ib", "b", 0), index_def("ic", "c", 0)};
    const shape_t bare = {.exists = true, .rows = 400};
    const shape_t full = {.exists = true, .rows = 400, .n_indexes = 2};
    crash_t crash = {.f = f, .table = "t", .every = nested ? 23 : 2, .nested = nested};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    create_table(f, "o");
    insert_rows(f, "t", 1, 500);
    delete_rows(f, "t", 300, 399);
    for (uint32_t round = 0; round < 2; round++) {
        crash_arm(&crash, bare, bare);
        OK(f, start_indexes(f->engine, "t", defs, 2));
        OK(f, start_indexes(f->engine, "o", defs, 1));
        for (uint32_t i = 0; i < 12; i++) {
            OK(f, engine_step_alter(f->engine, "t", 1, round == 0 ? 80 : 150));
            OK(f, engine_clean_pages(f->engine, i % 4));
            create_table(f, "n");
            insert_rows(f, "n", 1, 10);
            OK(f, engine_drop_table(f->engine, "n"));
        }
        OK(f, engine_checkpoint(f->engine, round == 1));
        OK(f, engine_abort_alter(f->engine, "o"));
        crash.seen_after = 0;
        if (round == 0) {
            OK(f, engine_abort_alter(f->engine, "t"));
            assert_true(crash.dropped_indexes > 0);
        } else {
            crash.after = full;
            OK(f, engine_finish_alter(f->engine, "t"));
            assert_true(nested || crash.seen_after > 0);
        }
        crash_disarm(&crash);
    }
    assert_true(point_count(&crash, "ddl.load_begin") >= 3);
    assert_true(crash.crashes > (nested ? 20 : 200));
}

/** A build in steps, another one beside it, DDL and cleaning between the steps, an abort, and the
same build again to its end: a crash at any fault point of all that leaves no index until finish has
committed. */
static void test_stepped_not_logged(void **state)
{
    check_stepped_crashes(*state, true, false);
}

static void test_stepped_logged(void **state)
{
    check_stepped_crashes(*state, false, false);
}

static void test_stepped_nested(void **state)
{
    check_stepped_crashes(*state, true, true);
}

/** A crash at any fault point of ADD INDEX leaves no index or the full ones, and nothing else (I10
to I12, I16), with non-logged loads. */
static void test_add_index_not_logged(void **state)
{
    check_add_index_crashes(*state, true, false);
}

static void test_add_index_logged(void **state)
{
    check_add_index_crashes(*state, false, false);
}

/** The same when the recovery crashes again (I17). */
static void test_add_index_nested(void **state)
{
    check_add_index_crashes(*state, true, true);
}

static void test_add_index_logged_nested(void **state)
{
    check_add_index_crashes(*state, false, true);
}

static void check_online_crashes(fixture_t *f, bool optimize, bool rebuild)
{
    const ddl_index_def_t defs[] = {index_def("ib", "b", 0), index_def("ic", "c", 0)};
    const shape_t before = {.exists = true, .rows = 400, .n_indexes = rebuild ? 2 : 0};
    ddl_alter_t alter = rebuild ? *REBUILD("t") : *ADD_INDEXES("t", defs, 2);
    crash_t crash = {.f = f, .table = "t", .every = 17};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 400);
    if (rebuild) {
        add_two_indexes(f, "t");
    }
    crash_arm(&crash, before, before);
    alter.lock = LOCK_NONE;
    OK(f, engine_start_alter(f->engine, &alter));
    for (int64_t i = 0; i < 10; i++) {
        update_rows(f, "t", 1 + i * 30, 80 + i * 30, (char)('a' + i));
        OK(f, engine_step_alter(f->engine, "t", 2, 120));
        OK(f, engine_clean_pages(f->engine, (uint32_t)(i % 4)));
    }
    OK(f, engine_step_alter(f->engine, "t", 100, 120));
    update_rows(f, "t", 1, 20, 'z');
    crash.every = 3;
    crash.after.n_indexes = 2;
    crash.seen_after = 0;
    OK(f, engine_finish_alter(f->engine, "t"));
    crash_disarm(&crash);
    assert_true(crash.seen_after > 0);
    assert_true(point_count(&crash, "ddl.rowlog_applied") > 700);
    assert_int_equal(point_count(&crash, "ddl.applied"), rebuild ? 0 : 2);
    fixture_close(f, true);
}

/** Builds beside changes (LOCK=NONE): a crash while rows change, while the log is applied, or at
the end leaves what was there before or what is there after, with every index right (I10, I26). */
static void test_online_not_logged(void **state)
{
    check_online_crashes(*state, true, false);
}

static void test_online_logged(void **state)
{
    check_online_crashes(*state, false, false);
}

static void test_online_rebuild_not_logged(void **state)
{
    check_online_crashes(*state, true, true);
}

static void test_online_rebuild_logged(void **state)
{
    check_online_crashes(*state, false, true);
}

/** Several clauses: two indexes come, one goes and its name comes again, another one and a column
get other names. Each is there after a crash if all are. */
static void check_clauses_crashes(fixture_t *f, bool optimize, bool rebuild, bool nested)
{
    const ddl_index_def_t on_b = index_def("ib", "d", 0);
    const ddl_index_def_t on_c = index_def("jc", "c", 0);
    const ddl_alter_t clauses[] = {
        {.kind = ALTER_ADD_INDEX, .defs = &on_b, .n_defs = 1},
        {.kind = ALTER_DROP_INDEX, .name = "ib"},
        {.kind = ALTER_RENAME_INDEX, .name = "ic", .new_name = "ix"},
        {.kind = ALTER_ADD_INDEX, .defs = &on_c, .n_defs = 1},
        {.kind = ALTER_RENAME_COLUMN, .name = "b", .new_name = "d"},
        {.kind = ALTER_REBUILD}, /* the last one: only if it is wanted */
    };
    ddl_alter_t alter = *CLAUSES("t", clauses);
    alter.n_clauses -= !rebuild;
    crash_t crash = {.f = f, .table = "t", .every = nested ? 3 : 1, .nested = nested};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 500);
    add_two_indexes(f, "t");
    crash_arm(&crash, (shape_t){true, 500, 2, "ic"}, (shape_t){true, 500, 3, "ix"});
    OK(f, engine_alter(f->engine, &alter));
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    assert_int_equal(point_count(&crash, "ddl.committed"), 2);
    assert_int_equal(point_count(&crash, "ddl.flushed"), !optimize ? 0 : rebuild ? 1 : 2);
    crash.before = crash.after;
    update_rows(f, "t", 200, 230, 'x');
    OK(f, engine_flush_log(f->engine));
    crash_disarm(&crash);
    assert_int_equal(count_rows(f, "t", "ib"), 500);
}

static void test_clauses_not_logged(void **state)
{
    check_clauses_crashes(*state, true, false, false);
}

static void test_clauses_logged(void **state)
{
    check_clauses_crashes(*state, false, false, false);
}

static void test_clauses_nested(void **state)
{
    check_clauses_crashes(*state, true, false, true);
}

static void test_clauses_rebuild_not_logged(void **state)
{
    check_clauses_crashes(*state, true, true, false);
}

static void test_clauses_rebuild_logged(void **state)
{
    check_clauses_crashes(*state, false, true, false);
}

/** CREATE, RENAME, DROP INDEX and DROP TABLE are all or nothing at every fault point. */
static void check_table_crashes(fixture_t *f, bool nested)
{
    const shape_t none = {.exists = false};
    const shape_t empty = {.exists = true};
    const shape_t full = {.exists = true, .rows = 300, .n_indexes = 2};
    const shape_t less = {.exists = true, .rows = 300, .n_indexes = 1};
    crash_t crash = {.f = f, .table = "t", .every = nested ? 2 : 1, .nested = nested};
    crash_arm(&crash, none, empty);
    create_table(f, "t");
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    crash_disarm(&crash);
    insert_rows(f, "t", 1, 300);
    add_two_indexes(f, "t");
    crash.seen_before = crash.seen_after = 0;
    crash_arm(&crash, full, none);
    OK(f, engine_rename_table(f->engine, "t", "u"));
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    crash.seen_before = crash.seen_after = 0;
    crash.table = "u";
    crash_arm(&crash, full, less);
    OK(f, drop_index(f->engine, "u", "ib"));
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    crash.seen_before = crash.seen_after = 0;
    crash_arm(&crash, less, none);
    OK(f, engine_drop_table(f->engine, "u"));
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    crash_disarm(&crash);
    assert_int_equal(point_count(&crash, "fil.create.created"), 1);
    assert_int_equal(point_count(&crash, "fil.rename.renamed"), 1);
    assert_int_equal(point_count(&crash, "fil.delete.unlinked"), 1);
}

static void test_table_statements(void **state)
{
    check_table_crashes(*state, false);
}

static void test_table_statements_nested(void **state)
{
    check_table_crashes(*state, true);
}

/** DROP INDEX frees an extent or a page per mini-transaction; with a log that is written through, a
crash after each of them, and one in its recovery, finds the rest and drops it. */
static void test_drop_in_steps(void **state)
{
    fixture_t *f = *state;
    crash_t crash = {.f = f, .table = "t", .every = 1, .nested = true};
    fixture_close(f, true);
    f->options.log_write_through = true;
    fixture_open(f);
    create_table(f, "t");
    insert_rows(f, "t", 1, 1200);
    add_two_indexes(f, "t");
    crash_arm(&crash, (shape_t){true, 1200, 2, NULL}, (shape_t){true, 1200, 1, NULL});
    OK(f, drop_index(f->engine, "t", "ib"));
    crash_disarm(&crash);
    assert_true(point_count(&crash, "btr.free_step") > 8);
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
}

/** A page number's earlier life must not come back: an index is dropped and another one, not
logged, takes its pages, with the first life's initialisation records still in the log. */
static void test_reused_pages(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t on_b = index_def("ib", "b", 0);
    crash_t crash = {.f = f, .table = "t", .every = 1};
    OK(f, engine_set_log_optimize_ddl(f->engine, false));
    create_table(f, "t");
    insert_rows(f, "t", 1, 400);
    OK(f, add_indexes(f->engine, "t", &on_b, 1));
    OK(f, engine_set_log_optimize_ddl(f->engine, true));
    update_rows(f, "t", 1, 100, 'y');
    OK(f, drop_index(f->engine, "t", "ib"));
    crash_arm(&crash, (shape_t){true, 400, 0, NULL}, (shape_t){true, 400, 1, NULL});
    OK(f, add_indexes(f->engine, "t", &on_b, 1));
    crash.before = crash.after;
    update_rows(f, "t", 50, 60, 'z');
    crash_disarm(&crash);
    assert_true(crash.crashes > 20);
}

/** Commits survive and open transactions vanish, wherever the crash comes; also while purge and
page cleaning run. */
static void test_transactions(void **state)
{
    fixture_t *f = *state;
    crash_t crash = {.f = f, .table = "t", .every = 2};
    create_table(f, "t");
    add_two_indexes(f, "t");
    insert_rows(f, "t", 1, 200);
    trx_t *open = NULL;
    OK(f, engine_begin(f->engine, &open));
    byte row[8 + B_LEN + 8];
    make_row(5000, row);
    OK(f, engine_insert(f->engine, open, "t", row));
    crash_arm(&crash, (shape_t){true, 200, 2, NULL}, (shape_t){true, 260, 2, NULL});
    insert_rows(f, "t", 201, 260);
    assert_true(crash.seen_before > 0 || crash.seen_after > 0);
    crash.before = crash.after;
    OK(f, engine_clean_pages(f->engine, 5));
    OK(f, engine_rollback(f->engine, open));
    crash.after.rows = 60;
    delete_rows(f, "t", 61, 260);
    crash.before = crash.after;
    purge_all(f);
    OK(f, engine_checkpoint(f->engine, false));
    OK(f, engine_checkpoint(f->engine, true));
    crash_disarm(&crash);
    fixture_close(f, false);
}

/** A creation of the database that is cut short is started again, and nothing is refused. */
static void on_bootstrap_point(void *ctx, const char *name)
{
    crash_t *crash = ctx;
    err_sink_t err = {.msg = ""};
    crash->hits++;
    os_t *image = image_os_clone(crash->f->os);
    engine_t *engine = NULL;
    probe_t probe = {.point = NULL};
    if (engine_open(image, &probe, &crash->f->options, true, &engine, &err) != DB_SUCCESS) {
        fail_msg("creation cut at %s: %s", name, err.msg);
    }
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    check_report_t report;
    scan_clean(image, &report);
    check_report_free(&report);
    os_destroy(image);
}

static void test_creation(void **state)
{
    fixture_t *f = *state;
    crash_t crash = {.f = f};
    fixture_empty(f);
    f->probe.point = on_bootstrap_point;
    f->probe.ctx = &crash;
    atomic_store(&f->probe.armed, true);
    fixture_open(f);
    atomic_store(&f->probe.armed, false);
    assert_true(crash.hits > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_add_index_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_add_index_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_add_index_nested, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_add_index_logged_nested, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_stepped_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_stepped_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_stepped_nested, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_online_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_online_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_online_rebuild_not_logged, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_online_rebuild_logged, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_clauses_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_clauses_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_clauses_nested, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_clauses_rebuild_not_logged, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_clauses_rebuild_logged, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_table_statements, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_table_statements_nested, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_drop_in_steps, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_reused_pages, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_transactions, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_creation, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
