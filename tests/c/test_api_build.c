/** Index builds in steps: what may happen between two of them, and every way in which one ends. */
#include "test_api_fixture.h"

#include "api/api_int.h"
#include "ddl/merge_sort.h"
#include "trx/undo_format.h"

static const char *const TMP_PREFIX = MERGE_TMP_PREFIX;

static void start_two(fixture_t *f, const char *table)
{
    const ddl_index_def_t defs[] = {index_def("ib", "b", 0), index_def("ic", "c", 0)};
    OK(f, start_indexes(f->engine, table, defs, 2));
}

static dberr_t count_tmp(void *ctx, const char *name)
{
    *(uint32_t *)ctx += strncmp(name, TMP_PREFIX, strlen(TMP_PREFIX)) == 0;
    return DB_SUCCESS;
}

static uint32_t tmp_files(os_t *os)
{
    uint32_t n = 0;
    assert_int_equal(os->vt->list(os, OS_ROOT, count_tmp, &n), DB_SUCCESS);
    return n;
}

static bool is_loaded(const fixture_t *f, const char *table)
{
    const engine_build_t *build = f->engine->builds;
    while (build->table != engine_table(f->engine, table)->id) {
        build = build->next;
    }
    return ddl_build_is_loaded(build->ddl);
}

/** Work on table "o" and names that come and go, another kind for each i. */
static void other_work(fixture_t *f, uint32_t i)
{
    const ddl_index_def_t on_c = index_def("ic", "c", 0);
    bool done = false;
    switch (i % 8) {
    case 0:
        insert_rows(f, "o", i * 10 + 1, i * 10 + 10);
        break;
    case 1:
        OK(f, engine_clean_pages(f->engine, 5));
        break;
    case 2:
        update_rows(f, "o", (i - 2) * 10 + 1, (i - 2) * 10 + 5, 'o');
        break;
    case 3:
        OK(f, engine_checkpoint(f->engine, i % 16 == 3));
        break;
    case 4:
        create_table(f, "n");
        insert_rows(f, "n", 1, 20);
        OK(f, engine_rename_table(f->engine, "n", "m"));
        break;
    case 5:
        OK(f, engine_purge(f->engine, 30, &done));
        OK(f, engine_flush_table(f->engine, "t"));
        break;
    case 6:
        OK(f, add_indexes(f->engine, "o", &on_c, 1));
        OK(f, drop_index(f->engine, "o", "ic"));
        break;
    default:
        OK(f, engine_drop_table(f->engine, "m"));
        break;
    }
}

static void check_interleaved(fixture_t *f, bool optimize)
{
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    create_table(f, "u");
    create_table(f, "o");
    insert_rows(f, "t", 1, 1200);
    insert_rows(f, "u", 1, 700);
    update_rows(f, "t", 10, 300, 'u');
    delete_rows(f, "t", 200, 500);
    start_two(f, "t");
    start_two(f, "u");
    uint32_t steps = 0;
    while (!is_loaded(f, "t") || !is_loaded(f, "u")) {
        OK(f, engine_step_alter(f->engine, "t", 1, 41));
        OK(f, engine_step_alter(f->engine, "u", 1, 67));
        other_work(f, steps++);
    }
    assert_true(steps > 60);
    assert_null(dict_index_get(dict_table_get(f->engine->dict, "t"), "ib"));
    /* Loaded is as far as steps go. */
    OK(f, engine_step_alter(f->engine, "t", 100, 1));
    assert_true(is_loaded(f, "t"));
    OK(f, engine_finish_alter(f->engine, "t"));
    OK(f, engine_finish_alter(f->engine, "u"));
    assert_false(dict_has_build(f->engine->dict));
    assert_int_equal(tmp_files(f->os), 0);
    assert_int_equal(count_rows(f, "t", "ib"), 899);
    assert_int_equal(count_rows(f, "u", "ic"), 700);
    insert_rows(f, "t", 1201, 1250);
    delete_rows(f, "u", 1, 50);
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->indexes[1].entries, 949);
    assert_int_equal(report_table(&report, "u")->indexes[0].entries, 650);
    check_report_free(&report);
}

/** Two builds at once, with DML and DDL on other tables, purge, cleaning and checkpoints between
their steps: complete indexes (I10). Contents not logged. */
static void test_interleaved_not_logged(void **state)
{
    check_interleaved(*state, true);
}

static void test_interleaved_logged(void **state)
{
    check_interleaved(*state, false);
}

/** A table with a running build can be read, not changed, and is free again after it. */
static void test_shared_lock(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t on_b = index_def("ib", "b", 0);
    const ddl_index_def_t on_c = index_def("ic", "c", 0);
    byte row[8 + B_LEN + 8];
    const row_upd_t upd = {.col = 1, .value = row};
    create_table(f, "t");
    create_table(f, "o");
    insert_rows(f, "t", 1, 100);
    assert_int_equal(engine_step_alter(f->engine, "t", 1, 1), DB_NOT_FOUND);
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_NOT_FOUND);
    assert_int_equal(engine_abort_alter(f->engine, "t"), DB_NOT_FOUND);
    assert_int_equal(engine_abort_alter(f->engine, "x"), DB_NOT_FOUND);
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    make_row(1, row);
    OK(f, engine_insert(f->engine, trx, "o", row));
    OK(f, start_indexes(f->engine, "t", &on_b, 1));
    assert_int_equal(engine_update(f->engine, trx, "t", row, &upd, 1), DB_TABLE_LOCKED);
    assert_string_equal(engine_error(f->engine), "table 't': a build is running");
    assert_int_equal(engine_delete(f->engine, trx, "t", row), DB_TABLE_LOCKED);
    make_row(101, row);
    assert_int_equal(engine_insert(f->engine, trx, "t", row), DB_TABLE_LOCKED);
    assert_int_equal(start_indexes(f->engine, "t", &on_b, 1), DB_TABLE_LOCKED);
    assert_int_equal(add_indexes(f->engine, "t", &on_c, 1), DB_TABLE_LOCKED);
    assert_int_equal(drop_index(f->engine, "t", "ib"), DB_TABLE_LOCKED);
    assert_int_equal(engine_drop_table(f->engine, "t"), DB_TABLE_LOCKED);
    assert_int_equal(engine_rename_table(f->engine, "t", "x"), DB_TABLE_LOCKED);
    assert_int_equal(engine_set_log_optimize_ddl(f->engine, false), DB_TABLE_LOCKED);
    assert_int_equal(engine_set_log_optimize_ddl(f->engine, true), DB_TABLE_LOCKED);
    assert_int_equal(engine_scan(f->engine, "t", "ib", count_row_fn, NULL), DB_NOT_FOUND);
    assert_int_equal(count_rows(f, "t", NULL), 100);
    OK(f, engine_insert(f->engine, trx, "o", row));
    OK(f, engine_finish_alter(f->engine, "t"));
    OK(f, engine_insert(f->engine, trx, "t", row));
    assert_int_equal(start_indexes(f->engine, "t", &on_c, 1), DB_TABLE_LOCKED);
    OK(f, engine_commit(f->engine, trx));
    assert_int_equal(start_indexes(f->engine, "t", &on_b, 1), DB_ALREADY_EXISTS);
    OK(f, engine_set_log_optimize_ddl(f->engine, false));
    assert_int_equal(count_rows(f, "t", "ib"), 101);
}

/** An abort after any number of steps leaves nothing, and the same build can start again. */
static void test_abort(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    create_table(f, "o");
    insert_rows(f, "t", 1, 700);
    uint32_t work = 0;
    for (uint32_t steps = 0; steps < 40; steps += 3) {
        start_two(f, "t");
        for (uint32_t i = 0; i < steps; i++) {
            OK(f, engine_step_alter(f->engine, "t", 1, 90));
            other_work(f, work++);
        }
        OK(f, engine_abort_alter(f->engine, "t"));
        assert_int_equal(engine_table(f->engine, "t")->n_indexes, 1);
        assert_int_equal(tmp_files(f->os), 0);
        update_rows(f, "t", 1, 5, 'v');
    }
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->n_indexes, 0);
    check_report_free(&report);
}

/** A clean close aborts; after an unclean one recovery drops what is left, temporary files too. */
static void test_close(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    create_table(f, "u");
    insert_rows(f, "t", 1, 900);
    engine_status_t status;
    for (uint32_t steps = 2; steps < 40; steps += 5) {
        for (uint32_t clean = 0; clean < 2; clean++) {
            start_two(f, "t");
            start_two(f, "u");
            OK(f, engine_step_alter(f->engine, "t", steps, 100));
            uint32_t n_tmp = tmp_files(f->os);
            fixture_close(f, clean == 1);
            assert_int_equal(tmp_files(f->os), clean == 1 ? 0 : n_tmp);
            fixture_open(f);
            engine_get_status(f->engine, &status);
            assert_int_equal(status.stats.recv_indexes_dropped, clean == 1 ? 0 : 4);
            assert_int_equal(engine_table(f->engine, "t")->n_indexes, 1);
            assert_int_equal(tmp_files(f->os), 0);
            insert_rows(f, "t", 1000 * steps + clean, 1000 * steps + clean);
        }
    }
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
}

static dberr_t wipe_tmp(void *ctx, const char *name)
{
    os_t *os = ctx;
    if (strncmp(name, TMP_PREFIX, strlen(TMP_PREFIX)) != 0) {
        return DB_SUCCESS;
    }
    os_file_t *file = NULL;
    assert_int_equal(os->vt->open(os, name, OS_OPEN, &file), DB_SUCCESS);
    uint64_t size = 0;
    assert_int_equal(os->vt->size(file, &size), DB_SUCCESS);
    void *zeros = calloc(1, size);
    assert_non_null(zeros);
    assert_int_equal(os->vt->write(file, 0, zeros, size), DB_SUCCESS);
    free(zeros);
    os->vt->close(file);
    return DB_SUCCESS;
}

/** A build whose step fails aborts itself: here its sort files were overwritten, and two entries
are the same. */
static void test_failed_step(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 900);
    start_two(f, "t");
    OK(f, engine_step_alter(f->engine, "t", 9, 100));
    assert_int_equal(tmp_files(f->os), 2);
    assert_int_equal(f->os->vt->list(f->os, OS_ROOT, wipe_tmp, f->os), DB_SUCCESS);
    assert_int_equal(engine_step_alter(f->engine, "t", 100, 100), DB_DUPLICATE_KEY);
    assert_int_not_equal(engine_error(f->engine)[0], '\0');
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_NOT_FOUND);
    assert_int_equal(tmp_files(f->os), 0);
    insert_rows(f, "t", 901, 910);
    add_two_indexes(f, "t");
    assert_int_equal(count_rows(f, "t", "ib"), 910);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
}

/** Without an undo slot a build can neither commit nor be aborted. It stays, and so does the
table's lock, until there is one. */
static void test_failed_abort(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    create_table(f, "o");
    insert_rows(f, "t", 1, 100);
    start_two(f, "t");
    byte row[8 + B_LEN + 8];
    trx_t *trx[RSEG_N_SLOTS];
    for (uint32_t i = 0; i < RSEG_N_SLOTS; i++) {
        OK(f, engine_begin(f->engine, &trx[i]));
        make_row(i, row);
        OK(f, engine_insert(f->engine, trx[i], "o", row));
    }
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_OUT_OF_SPACE);
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_OUT_OF_SPACE);
    assert_int_equal(engine_abort_alter(f->engine, "t"), DB_OUT_OF_SPACE);
    assert_int_equal(engine_insert(f->engine, trx[0], "t", row), DB_TABLE_LOCKED);
    OK(f, engine_commit(f->engine, trx[0]));
    OK(f, engine_abort_alter(f->engine, "t"));
    add_two_indexes(f, "t");
    assert_int_equal(count_rows(f, "t", "ic"), 100);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_interleaved_not_logged, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_interleaved_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_shared_lock, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_abort, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_close, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_failed_step, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_failed_abort, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
