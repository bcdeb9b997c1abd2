/** The page cleaner between statements, and what an index build leaves: the same rows whatever the
cleaner does, the same I/O every time, the load's pages and no others. */
#include "api/api_int.h"
#include "base/crc32c.h"
#include "test_api_fixture.h"
#include "test_tap_os.h"

/** Digest and number of all file operations. */
typedef struct watch {
    uint64_t digest;
    uint32_t n_ops;
} watch_t;

static dberr_t watch_op(void *ctx, const tap_op_t *op)
{
    watch_t *w = ctx;
    byte head[16] = {(byte)op->kind, (byte)op->offset, (byte)(op->offset >> 8),
                     (byte)(op->offset >> 16)};
    w->digest = w->digest * 31 + crc32c(head, sizeof(head));
    if (op->path != NULL) {
        w->digest = w->digest * 31 + crc32c((const byte *)op->path, strlen(op->path));
    }
    if (op->kind == TAP_WRITE) {
        w->digest = w->digest * 31 + crc32c(op->buf, op->len);
    }
    w->n_ops++;
    return DB_SUCCESS;
}

typedef struct outcome {
    watch_t watch;
    uint64_t rows;
    uint64_t hashes[2];
} outcome_t;

static void work(fixture_t *f)
{
    create_table(f, "t");
    for (int64_t i = 0; i < 6; i++) {
        insert_rows(f, "t", 1 + 300 * i, 300 * (i + 1));
        update_rows(f, "t", 1 + 250 * i, 250 * i + 40, (char)('a' + i));
        delete_rows(f, "t", 1 + 200 * i, 200 * i + 20);
        OK(f, engine_checkpoint(f->engine, false));
        if (i == 2) {
            add_two_indexes(f, "t");
        }
        if (i == 4) {
            OK(f, drop_index(f->engine, "t", "ib"));
            OK(f, engine_set_log_optimize_ddl(f->engine, false));
            const ddl_index_def_t def = index_def("ib", "b", 0);
            OK(f, add_indexes(f->engine, "t", &def, 1));
        }
    }
    purge_all(f);
}

static outcome_t run(uint32_t interval, uint32_t seed)
{
    os_t *os = image_os_create();
    tap_t tap = tap_of(os);
    tap.before = watch_op;
    outcome_t out = {.rows = 0};
    tap.ctx = &out.watch;
    fixture_t f = {.engine = NULL};
    f.os = &tap.base;
    fixture_options(&f.options);
    f.options.cleaner_interval = interval;
    f.options.purge_interval = seed % 2 * interval;
    f.options.schedule_seed = seed;
    fixture_open(&f);
    work(&f);
    fixture_close(&f, true);
    check_report_t report;
    scan_clean(os, &report);
    const check_table_t *t = report_table(&report, "t");
    out.rows = t->rows;
    assert_int_equal(t->n_indexes, 2);
    for (uint32_t i = 0; i < 2; i++) {
        out.hashes[i] = t->indexes[i].hash;
    }
    check_report_free(&report);
    os_destroy(os);
    return out;
}

/** Whatever the schedule has cleaner and purge do, the rows are the same; with the same seed and
intervals, so is every file operation, and with another seed it is not. */
static void test_same_rows_same_io(void **state)
{
    static const uint32_t INTERVALS[] = {1, 2, 3, 17};
    outcome_t off = run(0, 0);
    outcome_t again = run(0, 0);
    (void)state;
    assert_true(off.watch.digest == again.watch.digest);
    for (size_t i = 0; i < sizeof(INTERVALS) / sizeof(INTERVALS[0]); i++) {
        outcome_t one = run(INTERVALS[i], (uint32_t)i);
        outcome_t two = run(INTERVALS[i], (uint32_t)i);
        outcome_t other = run(INTERVALS[i], (uint32_t)i + 2);
        assert_true(one.watch.digest == two.watch.digest);
        assert_true(one.watch.digest != other.watch.digest);
        assert_int_equal(one.watch.n_ops, two.watch.n_ops);
        assert_true(one.watch.digest != off.watch.digest);
        assert_int_equal(one.rows, off.rows);
        assert_true(one.hashes[0] == off.hashes[0] && one.hashes[1] == off.hashes[1]);
        assert_true(other.hashes[0] == off.hashes[0] && other.hashes[1] == off.hashes[1]);
    }
}

/** The option cannot be switched, in either direction, as long as an index is being built. */
static void check_switch_refused(fixture_t *f, bool optimize)
{
    const ddl_index_def_t def = index_def("ib", "b", 0);
    const ddl_index_def_t other = index_def("ic", "c", 0);
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    ddl_build_t *build = NULL;
    OK(f, ddl_build_begin(f->engine->sys, ADD_INDEXES("t", &def, 1), &f->options, &build));
    bool done = false;
    while (!done) {
        assert_int_equal(engine_set_log_optimize_ddl(f->engine, !optimize), DB_TABLE_LOCKED);
        assert_non_null(strstr(engine_error(f->engine), "a build is running"));
        OK(f, ddl_build_step(build, 50, &done));
    }
    ddl_build_free(build);
    OK(f, ddl_build_begin(f->engine->sys, ADD_INDEXES("t", &other, 1), &f->options, &build));
    OK(f, ddl_build_abort(build));
    ddl_build_free(build);
    OK(f, engine_set_log_optimize_ddl(f->engine, !optimize));
    OK(f, engine_drop_table(f->engine, "t"));
}

static void test_switch_refused(void **state)
{
    check_switch_refused(*state, true);
    check_switch_refused(*state, false);
}

/** The slot tells how the log behind it was written: recovery goes on in that mode, and only then,
if the option says otherwise, all is drained; if it does not, nothing is. */
static void test_mode_of_the_slot(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 200);
    engine_status_t status;
    for (int i = 0; i < 4; i++) {
        bool same = i % 2 == 0;
        uint64_t no = log_last_checkpoint(f->engine->log)->no;
        lsn_t c = log_checkpoint_lsn(f->engine->log);
        fixture_close(f, false);
        f->options.log_optimize_ddl ^= !same;
        fixture_open(f);
        engine_get_status(f->engine, &status);
        assert_int_equal(buf_log_optimize_ddl(f->engine->pool), f->options.log_optimize_ddl);
        assert_int_equal(log_last_checkpoint(f->engine->log)->loads,
                         f->options.log_optimize_ddl ? LOG_LOADS_UNLOGGED : LOG_LOADS_LOGGED);
        assert_int_equal(status.stats.checkpoints, same ? 0 : 1);
        assert_true(same ? status.lsn_last_checkpoint == c : status.lsn_last_checkpoint > c);
        assert_int_equal(log_last_checkpoint(f->engine->log)->no, no + 1 + !same);
        insert_rows(f, "t", 201 + 50 * i, 250 + 50 * i);
    }
    assert_int_equal(count_rows(f, "t", NULL), 400);
}

/** INDEX_LOAD records of the space in the whole log. */
static uint32_t count_index_loads(fixture_t *f, lsn_t from)
{
    OK(f, engine_flush_log(f->engine));
    log_reader_t *reader = NULL;
    OK(f, log_reader_create(f->engine->log, from, &reader));
    log_group_t group;
    uint32_t n = 0;
    while (log_reader_next(reader, &group) == DB_SUCCESS) {
        for (uint32_t i = 0; i < group.n_recs; i++) {
            n += group.recs[i].op == OP_INDEX_LOAD;
        }
    }
    log_reader_free(reader);
    return n;
}

static uint32_t add_index_loads(fixture_t *f, const char *index, const char *column)
{
    lsn_t from = log_lsn(f->engine->log);
    const ddl_index_def_t def = index_def(index, column, 0);
    OK(f, add_indexes(f->engine, "t", &def, 1));
    return count_index_loads(f, from);
}

static stats_t stats_of(fixture_t *f)
{
    engine_status_t status;
    engine_get_status(f->engine, &status);
    return status.stats;
}

static void open_without_drain(fixture_t *f)
{
    fixture_close(f, true);
    f->options.optimize_ddl_drain = false;
    fixture_open(f);
    create_table(f, "t");
}

/** Without the drain pages that were initialised for a write without a copy, and a load without
redo, share a checkpoint interval (MDEV-19747): these pages, and those of the space that come before
C has passed the INDEX_LOAD, are written with copies. */
static void test_no_drain_index_load(void **state)
{
    fixture_t *f = *state;
    open_without_drain(f);
    OK(f, engine_checkpoint(f->engine, true));
    lsn_t c = log_checkpoint_lsn(f->engine->log);
    OK(f, engine_set_log_optimize_ddl(f->engine, false));
    insert_rows(f, "t", 1, 100);
    OK(f, engine_set_log_optimize_ddl(f->engine, true));
    assert_int_equal(add_index_loads(f, "ib", "b"), 1);
    assert_int_equal(stats_of(f).loads_amid_inits, 1);
    OK(f, engine_set_log_optimize_ddl(f->engine, false));
    assert_int_equal(stats_of(f).dblwr_unskipped, 0);
    insert_rows(f, "t", 101, 200);
    assert_true(stats_of(f).dblwr_unskipped > 0);
    assert_int_equal(log_checkpoint_lsn(f->engine->log), c);
    assert_int_equal(log_last_checkpoint(f->engine->log)->loads, LOG_LOADS_MIXED);
    OK(f, engine_flush_table(f->engine, "t"));
    assert_int_equal(stats_of(f).dblwr_skipped_init, 0);
    OK(f, engine_checkpoint(f->engine, true));
    uint64_t unskipped = stats_of(f).dblwr_unskipped;
    insert_rows(f, "t", 201, 300);
    OK(f, engine_flush_table(f->engine, "t"));
    assert_true(stats_of(f).dblwr_skipped_init > 0);
    assert_int_equal(stats_of(f).dblwr_unskipped, unskipped);
}

/** And the other way round: a load is logged until C has passed the pages that may be torn, those
of the process that was killed too. Who drains again has neither. */
static void test_no_drain_skipped(void **state)
{
    fixture_t *f = *state;
    open_without_drain(f);
    OK(f, engine_set_log_optimize_ddl(f->engine, false));
    insert_rows(f, "t", 1, 100);
    OK(f, engine_flush_table(f->engine, "t"));
    assert_true(stats_of(f).dblwr_skipped_init > 0);
    OK(f, engine_set_log_optimize_ddl(f->engine, true));
    assert_int_equal(add_index_loads(f, "ib", "b"), 0);
    assert_int_equal(stats_of(f).loads_logged_after_skip, 1);
    fixture_close(f, false);
    fixture_open(f);
    assert_int_equal(stats_of(f).checkpoints, 0);
    assert_int_equal(add_index_loads(f, "ic", "c"), 0);
    assert_int_equal(stats_of(f).loads_logged_after_skip, 1);
    OK(f, engine_checkpoint(f->engine, true));
    OK(f, drop_index(f->engine, "t", "ic"));
    assert_int_equal(add_index_loads(f, "ic", "c"), 1);
    fixture_close(f, false);
    f->options.optimize_ddl_drain = true;
    fixture_open(f);
    assert_int_equal(stats_of(f).checkpoints, 1);
    assert_int_equal(log_last_checkpoint(f->engine->log)->loads, LOG_LOADS_UNLOGGED);
    assert_int_equal(count_rows(f, "t", "ic"), 100);
}

/** Any load without redo ends with INDEX_LOAD, given up or not; a logged one never. */
static void test_index_load_after_abort(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t defs[] = {index_def("ib", "b", 0), index_def("ic", "c", 0)};
    create_table(f, "t");
    insert_rows(f, "t", 1, 400);
    uint32_t seen[3] = {0};
    bool done = false;
    for (uint32_t steps = 0; !done; steps++) {
        ddl_build_t *build = NULL;
        lsn_t from = log_lsn(f->engine->log);
        OK(f, ddl_build_begin(f->engine->sys, ADD_INDEXES("t", defs, 2), &f->options, &build));
        for (uint32_t i = 0; i < steps && !done; i++) {
            OK(f, ddl_build_step(build, 40, &done));
        }
        uint32_t before = count_index_loads(f, from);
        if (!done) {
            OK(f, ddl_build_abort(build));
        }
        uint32_t n = count_index_loads(f, from);
        assert_true(n <= 2 && n - before <= 1);
        assert_true(!done || n == 2);
        seen[n] += n > before;
        ddl_build_free(build);
        /* What the given-up load has left in the pool is nobody's: the rows and the map are
           right. */
        assert_int_equal(count_rows(f, "t", NULL), 400);
    }
    assert_true(seen[1] > 5 && seen[2] > 5);
    assert_int_equal(count_rows(f, "t", "ic"), 400);
}

/** While pages of a load are dirty and its tree is not free, no checkpoint passes what is logged of
them; given up, they hold nothing back, and their page numbers are used again. */
static void test_given_up_pages_are_reused(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t def = index_def("ib", "b", 0);
    create_table(f, "t");
    insert_rows(f, "t", 1, 900);
    OK(f, engine_checkpoint(f->engine, true));
    bool done = false;
    for (uint32_t round = 0; round < 3; round++) {
        ddl_build_t *build = NULL;
        OK(f, ddl_build_begin(f->engine->sys, ADD_INDEXES("t", &def, 1), &f->options, &build));
        /* Into the load, whose rows are counted. */
        uint64_t loaded = f->engine->env.stats.bulk_rows;
        while (f->engine->env.stats.bulk_rows < loaded + 600) {
            OK(f, ddl_build_step(build, 100, &done));
        }
        OK(f, ddl_build_abort(build));
        ddl_build_free(build);
        insert_rows(f, "t", 901 + 100 * round, 1000 + 100 * round);
        OK(f, engine_checkpoint(f->engine, round == 1));
        fixture_close(f, false);
        fixture_open(f);
    }
    add_two_indexes(f, "t");
    assert_int_equal(count_rows(f, "t", "ib"), 1200);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_rows_same_io),
        cmocka_unit_test_setup_teardown(test_switch_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_mode_of_the_slot, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_drain_index_load, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_drain_skipped, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_index_load_after_abort, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_given_up_pages_are_reused, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
