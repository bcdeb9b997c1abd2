/** Crashes: the directory is copied at a fault point, recovered as another database, and scanned.
The copy has everything that was written (the kill model); what was in memory is lost. */
#include <inttypes.h>

#include "test_api_fixture.h"

/** What a table may look like after recovery: as before the statement in flight, or as after it. */
typedef struct shape {
    bool exists;
    uint64_t rows;
    uint32_t n_indexes;
} shape_t;

typedef struct crash {
    fixture_t *f;
    const char *table;
    shape_t before;
    shape_t after;
    uint32_t hits;  /**< fault points met */
    uint32_t every; /**< a crash at each every-th of them */
    uint32_t crashes;
    uint32_t seen_before; /**< how the recoveries ended */
    uint32_t seen_after;
    uint32_t dropped_indexes;
    uint32_t load_reads;
    bool nested; /**< crash in the recoveries too */
    struct names {
        char name[40];
        uint32_t n;
    } points[64];
} crash_t;

static void crash_count_point(crash_t *crash, const char *name)
{
    uint32_t i = 0;
    while (crash->points[i].n > 0 && strcmp(crash->points[i].name, name) != 0) {
        i++;
        assert_true(i < 64);
    }
    (void)snprintf(crash->points[i].name, sizeof(crash->points[i].name), "%s", name);
    crash->points[i].n++;
}

static bool shape_fits(const shape_t *shape, const check_table_t *t)
{
    return t == NULL ? !shape->exists
                     : shape->exists && t->rows == shape->rows && t->n_indexes == shape->n_indexes;
}

/** Recovers image (and destroys it), scans it, and compares the table with what it may be. */
static void recover_and_scan(crash_t *crash, os_t *image, probe_t *probe, const char *point)
{
    engine_t *engine = NULL;
    engine_status_t status;
    err_sink_t err = {.msg = ""};
    check_report_t report;
    if (engine_open(image, probe, &crash->f->options, false, &engine, &err) != DB_SUCCESS) {
        fail_msg("crash at %s (%u): %s", point, crash->hits, err.msg);
    }
    engine_get_status(engine, &status);
    crash->dropped_indexes += (uint32_t)status.stats.recv_indexes_dropped;
    crash->load_reads += (uint32_t)status.stats.recv_index_load_reads;
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    scan_clean(image, &report);
    const check_table_t *t = report_table(&report, crash->table);
    bool before = shape_fits(&crash->before, t);
    bool after = shape_fits(&crash->after, t);
    if (!before && !after) {
        fail_msg("crash at %s (%u): table %s with %" PRIu64 " rows and %u indexes", point,
                 crash->hits, t != NULL ? "found" : "missing", t != NULL ? t->rows : 0,
                 t != NULL ? t->n_indexes : 0);
    }
    for (uint32_t i = 0; t != NULL && i < t->n_indexes; i++) {
        assert_true(t->indexes[i].entries == t->rows);
    }
    crash->seen_before += before;
    crash->seen_after += after;
    check_report_free(&report);
    /* A second open finds nothing to do. */
    assert_int_equal(engine_open(image, &crash->f->probe, &crash->f->options, false, &engine, &err),
                     DB_SUCCESS);
    engine_get_status(engine, &status);
    assert_false(status.recovered);
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    os_destroy(image);
}

/** A fault point inside a recovery: its directory is copied and recovered on its own. */
typedef struct nested {
    crash_t *crash;
    os_t *image;
    uint32_t hits;
} nested_t;

static void on_nested_point(void *ctx, const char *name)
{
    nested_t *nested = ctx;
    os_t *image = NULL;
    probe_t probe = {.point = NULL};
    if (nested->hits++ % 5 != 0) {
        return;
    }
    assert_int_equal(os_mem_clone(nested->image, &image), DB_SUCCESS);
    bool armed = atomic_exchange(&nested->crash->f->probe.armed, false);
    recover_and_scan(nested->crash, image, &probe, name);
    atomic_store(&nested->crash->f->probe.armed, armed);
}

static void on_point(void *ctx, const char *name)
{
    crash_t *crash = ctx;
    os_t *image = NULL;
    crash_count_point(crash, name);
    if (crash->hits++ % crash->every != 0) {
        return;
    }
    assert_int_equal(os_mem_clone(crash->f->os, &image), DB_SUCCESS);
    nested_t nested = {.crash = crash, .image = image, .hits = crash->hits};
    probe_t probe = {.point = on_nested_point, .ctx = &nested};
    atomic_store(&probe.armed, crash->nested);
    crash->crashes++;
    atomic_store(&crash->f->probe.armed, false);
    recover_and_scan(crash, image, &probe, name);
    atomic_store(&crash->f->probe.armed, true);
}

static void crash_arm(crash_t *crash, shape_t before, shape_t after)
{
    crash->before = before;
    crash->after = after;
    crash->f->probe.point = on_point;
    crash->f->probe.ctx = crash;
    atomic_store(&crash->f->probe.armed, true);
}

static void crash_disarm(crash_t *crash)
{
    atomic_store(&crash->f->probe.armed, false);
}

static uint32_t point_count(const crash_t *crash, const char *name)
{
    for (uint32_t i = 0; i < 64 && crash->points[i].n > 0; i++) {
        if (strcmp(crash->points[i].name, name) == 0) {
            return crash->points[i].n;
        }
    }
    return 0;
}

static void check_add_index_crashes(fixture_t *f, bool optimize, bool nested)
{
    crash_t crash = {.f = f, .table = "t", .every = nested ? 3 : 1, .nested = nested};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 600);
    delete_rows(f, "t", 100, 199);
    crash_arm(&crash, (shape_t){true, 500, 0}, (shape_t){true, 500, 2});
    add_two_indexes(f, "t");
    crash_disarm(&crash);
    assert_int_equal(point_count(&crash, "ddl.load_begin"), 2);
    assert_int_equal(point_count(&crash, "ddl.flushed"), optimize ? 2 : 0);
    assert_int_equal(point_count(&crash, "ddl.index_load_logged"), optimize ? 2 : 0);
    assert_int_equal(point_count(&crash, "ddl.committed"), 1);
    assert_true(crash.seen_before > 0 && crash.dropped_indexes > 0);
    assert_true(nested || crash.seen_after > 0);
    /* Changes of the loaded pages: recovery must read what the load wrote (MDEV-12699). */
    crash_arm(&crash, (shape_t){true, 500, 2}, (shape_t){true, 500, 2});
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
    crash_t crash = {.f = f, .table = "t", .every = nested ? 7 : 2, .nested = nested};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    create_table(f, "o");
    insert_rows(f, "t", 1, 500);
    delete_rows(f, "t", 300, 399);
    for (uint32_t round = 0; round < 2; round++) {
        crash_arm(&crash, bare, bare);
        OK(f, engine_start_indexes(f->engine, "t", defs, 2));
        OK(f, engine_start_indexes(f->engine, "o", defs, 1));
        for (uint32_t i = 0; i < 12; i++) {
            OK(f, engine_step_indexes(f->engine, "t", 1, round == 0 ? 80 : 150));
            OK(f, engine_clean_pages(f->engine, i % 4));
            create_table(f, "n");
            insert_rows(f, "n", 1, 10);
            OK(f, engine_drop_table(f->engine, "n"));
        }
        OK(f, engine_checkpoint(f->engine, round == 1));
        OK(f, engine_abort_indexes(f->engine, "o"));
        crash.seen_after = 0;
        if (round == 0) {
            OK(f, engine_abort_indexes(f->engine, "t"));
            assert_true(crash.dropped_indexes > 0);
        } else {
            crash.after = full;
            OK(f, engine_finish_indexes(f->engine, "t"));
            assert_true(nested || crash.seen_after > 0);
        }
        crash_disarm(&crash);
    }
    assert_true(point_count(&crash, "ddl.load_begin") >= 3);
    assert_true(crash.crashes > (nested ? 20 : 200));
}

/** A build in steps, another one beside it, DDL and cleaning between the steps, an abort, and the same build
again to its end: a crash at any fault point of all that leaves no index until finish has committed. */
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
    OK(f, engine_drop_index(f->engine, "u", "ib"));
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

/** DROP INDEX frees an extent or a page per mini-transaction; with a log that is written through, a crash
after each of them, and one in its recovery, finds the rest and drops it. */
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
    crash_arm(&crash, (shape_t){true, 1200, 2}, (shape_t){true, 1200, 1});
    OK(f, engine_drop_index(f->engine, "t", "ib"));
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
    OK(f, engine_add_indexes(f->engine, "t", &on_b, 1));
    OK(f, engine_set_log_optimize_ddl(f->engine, true));
    update_rows(f, "t", 1, 100, 'y');
    OK(f, engine_drop_index(f->engine, "t", "ib"));
    crash_arm(&crash, (shape_t){true, 400, 0}, (shape_t){true, 400, 1});
    OK(f, engine_add_indexes(f->engine, "t", &on_b, 1));
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
    byte row[8 + B_LEN + 8];
    trx_t *open = NULL;
    crash_t crash = {.f = f, .table = "t", .every = 2};
    create_table(f, "t");
    add_two_indexes(f, "t");
    insert_rows(f, "t", 1, 200);
    OK(f, engine_begin(f->engine, &open));
    make_row(5000, row);
    OK(f, engine_insert(f->engine, open, "t", row));
    crash_arm(&crash, (shape_t){true, 200, 2}, (shape_t){true, 260, 2});
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
    os_t *image = NULL;
    err_sink_t err = {.msg = ""};
    engine_t *engine = NULL;
    probe_t probe = {.point = NULL};
    check_report_t report;
    crash->hits++;
    assert_int_equal(os_mem_clone(crash->f->os, &image), DB_SUCCESS);
    if (engine_open(image, &probe, &crash->f->options, true, &engine, &err) != DB_SUCCESS) {
        fail_msg("creation cut at %s: %s", name, err.msg);
    }
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
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
