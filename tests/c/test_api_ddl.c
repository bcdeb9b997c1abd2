/** Data definition on a running database, and what an aborted index build leaves: nothing. */
#include "test_api_fixture.h"
#include "test_fsp_fixture.h"

#include "api/api_int.h"

/** CREATE, RENAME and DROP TABLE: catalogue and files agree, before and after a restart. */
static void test_table_life(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 50);
    assert_true(file_exists(f, "t.ibd"));
    OK(f, engine_rename_table(f->engine, "t", "u"));
    assert_null(engine_table(f->engine, "t"));
    assert_false(file_exists(f, "t.ibd"));
    assert_true(file_exists(f, "u.ibd"));
    create_table(f, "t");
    insert_rows(f, "u", 51, 60);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report.n_tables, 2);
    assert_int_equal(report_table(&report, "u")->rows, 60);
    assert_int_equal(report_table(&report, "t")->rows, 0);
    check_report_free(&report);
    fixture_open(f);
    assert_int_equal(count_rows(f, "u", NULL), 60);
    OK(f, engine_drop_table(f->engine, "u"));
    assert_false(file_exists(f, "u.ibd"));
    assert_null(engine_table(f->engine, "u"));
    fixture_close(f, true);
    scan_clean(f->os, &report);
    assert_int_equal(report.n_tables, 1);
    check_report_free(&report);
}

/** Refusals change nothing and say why. */
static void test_refusals(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t on_b = index_def("ib", "b", 0);
    const ddl_index_def_t no_col = index_def("ix", "x", 0);
    const ddl_index_def_t long_prefix = index_def("ix", "b", B_LEN + 1);
    const ddl_index_def_t int_prefix = index_def("ix", "a", 4);
    const ddl_index_def_t bad_name = index_def("i/x", "b", 0);
    const ddl_index_def_t twice[] = {on_b, on_b};
    dict_table_t *t = malloc(sizeof(*t));
    assert_non_null(t);
    create_table(f, "t");
    define_table(t, "t");
    assert_int_equal(engine_create_table(f->engine, t), DB_ALREADY_EXISTS);
    define_table(t, "../t");
    assert_int_equal(engine_create_table(f->engine, t), DB_ERROR);
    define_table(t, "");
    assert_int_equal(engine_create_table(f->engine, t), DB_ERROR);
    free(t);
    assert_int_equal(engine_drop_table(f->engine, "u"), DB_NOT_FOUND);
    assert_int_equal(engine_rename_table(f->engine, "t", "t"), DB_ALREADY_EXISTS);
    assert_int_equal(engine_rename_table(f->engine, "t", "a b"), DB_ERROR);
    assert_int_equal(add_indexes(f->engine, "u", &on_b, 1), DB_NOT_FOUND);
    assert_int_equal(add_indexes(f->engine, "t", &no_col, 1), DB_NOT_FOUND);
    assert_int_equal(add_indexes(f->engine, "t", &long_prefix, 1), DB_ERROR);
    assert_int_equal(add_indexes(f->engine, "t", &int_prefix, 1), DB_ERROR);
    assert_int_equal(add_indexes(f->engine, "t", &bad_name, 1), DB_ERROR);
    assert_int_equal(add_indexes(f->engine, "t", twice, 2), DB_ALREADY_EXISTS);
    assert_int_equal(add_indexes(f->engine, "t", twice, 0), DB_ERROR);
    OK(f, add_indexes(f->engine, "t", &on_b, 1));
    assert_int_equal(add_indexes(f->engine, "t", &on_b, 1), DB_ALREADY_EXISTS);
    assert_string_equal(engine_error(f->engine), "index 'ib' exists in table 't'");
    assert_int_equal(drop_index(f->engine, "t", "ic"), DB_NOT_FOUND);
    assert_int_equal(drop_index(f->engine, "t", "PRIMARY"), DB_ERROR);
    assert_int_equal(engine_table(f->engine, "t")->n_indexes, 2);
}

/** A file without a catalogue row is never overwritten, by CREATE or by RENAME. */
static void test_stale_file_is_kept(void **state)
{
    fixture_t *f = *state;
    dict_table_t *t = malloc(sizeof(*t));
    assert_non_null(t);
    create_table(f, "t");
    os_file_t *file = NULL;
    assert_int_equal(f->os->vt->open(f->os, "stale.ibd", OS_CREATE_NEW, &file), DB_SUCCESS);
    assert_int_equal(f->os->vt->write(file, 0, "precious", 8), DB_SUCCESS);
    f->os->vt->close(file);
    define_table(t, "stale");
    assert_int_equal(engine_create_table(f->engine, t), DB_ALREADY_EXISTS);
    free(t);
    assert_int_equal(engine_rename_table(f->engine, "t", "stale"), DB_ALREADY_EXISTS);
    byte *bytes = NULL;
    uint64_t size = 0;
    bytes = image_os_bytes(f->os, "stale.ibd", &size);
    assert_int_equal(size, 8);
    assert_memory_equal(bytes, "precious", 8);
}

/** DDL waits for nobody: a table with changes of an open transaction is refused. */
static void test_locked_table(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t on_b = index_def("ib", "b", 0);
    create_table(f, "t");
    create_table(f, "other");
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    byte row[8 + B_LEN + 8];
    make_row(1, row);
    OK(f, engine_insert(f->engine, trx, "t", row));
    assert_int_equal(add_indexes(f->engine, "t", &on_b, 1), DB_TABLE_LOCKED);
    assert_int_equal(engine_drop_table(f->engine, "t"), DB_TABLE_LOCKED);
    assert_int_equal(engine_rename_table(f->engine, "t", "u"), DB_TABLE_LOCKED);
    /* DDL on another table reloads the catalogue; the lock outlives that. */
    OK(f, add_indexes(f->engine, "other", &on_b, 1));
    assert_int_equal(engine_drop_table(f->engine, "t"), DB_TABLE_LOCKED);
    make_row(2, row);
    OK(f, engine_insert(f->engine, trx, "t", row));
    OK(f, engine_commit(f->engine, trx));
    OK(f, add_indexes(f->engine, "t", &on_b, 1));
    assert_int_equal(count_rows(f, "t", "ib"), 2);
}

static void check_build(fixture_t *f, bool optimize)
{
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 3000);
    update_rows(f, "t", 10, 400, 'u');
    delete_rows(f, "t", 300, 700);
    add_two_indexes(f, "t");
    assert_int_equal(count_rows(f, "t", "ib"), 2599);
    assert_int_equal(count_rows(f, "t", "ic"), 2599);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_true(status.stats.sort_runs > 2);
    assert_int_equal(status.stats.bulk_rows, 2 * 2599);
    insert_rows(f, "t", 3001, 3100);
    delete_rows(f, "t", 1, 50);
    purge_all(f);
    assert_int_equal(count_rows(f, "t", "ib"), 2649);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    const check_table_t *t = report_table(&report, "t");
    assert_int_equal(t->rows, 2649);
    assert_int_equal(t->n_indexes, 2);
    assert_int_equal(t->indexes[0].entries, 2649);
    assert_int_equal(t->indexes[1].entries, 2649);
    check_report_free(&report);
}

/** Two indexes in one statement over live, updated, deleted and unpurged rows, with runs spilled;
then DML and purge on them: all agree (I10). Contents not logged. */
static void test_add_index_not_logged(void **state)
{
    check_build(*state, true);
}

/** The same with logged contents. */
static void test_add_index_logged(void **state)
{
    check_build(*state, false);
}

/** Both ways of loading build the same index. */
static void test_both_loads_agree(void **state)
{
    fixture_t *f = *state;
    for (int i = 0; i < 2; i++) {
        OK(f, engine_set_log_optimize_ddl(f->engine, i == 0));
        create_table(f, i == 0 ? "t1" : "t2");
        insert_rows(f, i == 0 ? "t1" : "t2", 1, 500);
        add_two_indexes(f, i == 0 ? "t1" : "t2");
    }
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    const check_table_t *t1 = report_table(&report, "t1");
    const check_table_t *t2 = report_table(&report, "t2");
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(t1->indexes[i].hash == t2->indexes[i].hash);
    }
    check_report_free(&report);
}

/** An index on an empty table, a prefix index with equal prefixes, and DROP INDEX. */
static void test_small_cases(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t prefix = index_def("ip", "b", 1);
    create_table(f, "t");
    OK(f, add_indexes(f->engine, "t", &prefix, 1));
    assert_int_equal(count_rows(f, "t", "ip"), 0);
    insert_rows(f, "t", 1, 100);
    OK(f, drop_index(f->engine, "t", "ip"));
    assert_null(dict_index_get(dict_table_get(f->engine->dict, "t"), "ip"));
    OK(f, add_indexes(f->engine, "t", &prefix, 1));
    assert_int_equal(count_rows(f, "t", "ip"), 100);
    OK(f, drop_index(f->engine, "t", "ip"));
    insert_rows(f, "t", 101, 110);
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->n_indexes, 0);
    check_report_free(&report);
}

/** Sixty-four indexes besides the clustered one are the limit, and a statement beyond it builds
none of its own. */
static void test_too_many_indexes(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 10);
    char name[16];
    for (uint32_t i = 1; i < INDEXES_MAX - 1; i++) {
        (void)snprintf(name, sizeof(name), "i%u", i);
        const ddl_index_def_t def = index_def(name, "c", 0);
        OK(f, add_indexes(f->engine, "t", &def, 1));
    }
    const ddl_index_def_t two[] = {index_def("x", "b", 0), index_def("y", "b", 0)};
    assert_int_equal(add_indexes(f->engine, "t", two, 2), DB_ERROR);
    assert_int_equal(engine_table(f->engine, "t")->n_indexes, INDEXES_MAX - 1);
    OK(f, add_indexes(f->engine, "t", two, 1));
    assert_int_equal(count_rows(f, "t", "x"), 10);
}

static uint32_t table_n_used(fixture_t *f, const char *table)
{
    return space_n_used(&f->engine->env, f->engine->pool, engine_table(f->engine, table)->space);
}

static dberr_t no_temporary(void *ctx, const char *name)
{
    (void)ctx;
    assert_int_not_equal(name[0], '#');
    return DB_SUCCESS;
}

static void check_aborts(fixture_t *f, bool optimize)
{
    const ddl_index_def_t defs[] = {index_def("ib", "b", 0), index_def("ic", "c", 0)};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 900);
    uint32_t n_used = table_n_used(f, "t");
    engine_options_t options = f->options;
    options.sort_buffer_size = 16U * 1024;
    bool done = false;
    uint32_t steps = 0;
    for (; !done; steps++) {
        ddl_build_t *build = NULL;
        OK(f, ddl_build_begin(f->engine->sys, ADD_INDEXES("t", defs, 2), &options, &build));
        for (uint32_t i = 0; i < steps && !done; i++) {
            OK(f, ddl_build_step(build, 100, &done));
        }
        if (!done) {
            OK(f, ddl_build_abort(build));
            assert_int_equal(table_n_used(f, "t"), n_used);
            assert_int_equal(engine_table(f->engine, "t")->n_indexes, 1);
            assert_int_equal(env_list(&f->engine->env, no_temporary, NULL), DB_SUCCESS);
        }
        ddl_build_free(build);
    }
    assert_true(steps > 30);
    assert_int_equal(count_rows(f, "t", "ib"), 900);
    assert_int_equal(count_rows(f, "t", "ic"), 900);
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
}

/** A build given up after any number of steps leaves no page, no row and no file behind. */
static void test_abort_not_logged(void **state)
{
    check_aborts(*state, true);
}

static void test_abort_logged(void **state)
{
    check_aborts(*state, false);
}

/** What was told when the record of a file operation was in the log. */
typedef struct file_ops {
    fixture_t *f;
    uint32_t n;
    uint64_t age_max;
} file_ops_t;

static void file_ops_mark(void *ctx, const char *text, size_t len)
{
    file_ops_t *ops = ctx;
    if (len < 8 || memcmp(text, "file_op ", 8) != 0) {
        return;
    }
    engine_status_t status;
    engine_get_status(ops->f->engine, &status);
    ops->age_max = status.checkpoint_age > ops->age_max ? status.checkpoint_age : ops->age_max;
    ops->n++;
}

static void file_ops_point(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
}

/** (I20) A create, rename or drop asks for room in the log before its record: with a log that has
just enough for one more mtr, the checkpoint comes first. */
static void test_file_ops_ask_for_room(void **state)
{
    fixture_t *f = *state;
    file_ops_t ops = {.f = f};
    /* Above this age the next mtr waits for a checkpoint (buf_log_free_check): room for two mtrs
    and the names of ibdata1 and one table must be left. */
    uint64_t area = f->options.log_file_size - LOG_FILE_HDR_SIZE;
    uint64_t payload = 2ULL * MTR_LOG_MAX_PAGES * 4096 + 4ULL * LOG_REC_OVERHEAD_MAX + 7 + 5;
    uint64_t age_max = area - area / 8 - (payload / LOG_BLOCK_PAYLOAD + 2) * LOG_BLOCK_SIZE;
    create_table(f, "t");
    f->probe.mark = file_ops_mark;
    f->probe.point = file_ops_point;
    f->probe.ctx = &ops;
    int64_t a = 1;
    for (uint32_t i = 0; i < 3; i++) {
        engine_status_t status = {.checkpoint_age = 0};
        for (; status.checkpoint_age <= age_max; a++) {
            insert_rows(f, i == 0 ? "t" : "u", a, a);
            engine_get_status(f->engine, &status);
            assert_true(a < 5000);
        }
        atomic_store(&f->probe.armed, true);
        if (i == 0) {
            OK(f, engine_rename_table(f->engine, "t", "u"));
        } else if (i == 1) {
            create_table(f, "v");
        } else {
            OK(f, engine_drop_table(f->engine, "u"));
        }
        atomic_store(&f->probe.armed, false);
    }
    assert_int_equal(ops.n, 3);
    assert_true(ops.age_max <= age_max);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_table_life, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refusals, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_stale_file_is_kept, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_locked_table, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_add_index_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_add_index_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_both_loads_agree, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_small_cases, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_too_many_indexes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_abort_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_abort_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_file_ops_ask_for_room, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
