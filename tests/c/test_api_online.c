/** Builds with LOCK=NONE: the table changes while they go on (I26). */
#include "test_api_fixture.h"

#include "ddl/merge_sort.h"

#define ROWS 1500

/** Adds ib(b) and ic(c), or rebuilds a table that has them, beside changes. */
static void start_online(fixture_t *f, bool rebuild)
{
    const ddl_index_def_t defs[] = {index_def("ib", "b", 0), index_def("ic", "c", 0)};
    ddl_alter_t alter = rebuild ? *REBUILD("t") : *ADD_INDEXES("t", defs, 2);
    alter.lock = LOCK_NONE;
    OK(f, engine_start_alter(f->engine, &alter));
}

static trx_t *begin(fixture_t *f)
{
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    return trx;
}

/** trx NULL: in a transaction of its own. */
static dberr_t change_b(fixture_t *f, trx_t *trx, int64_t a, char c)
{
    byte b[B_LEN];
    const row_upd_t upd = {.col = 1, .value = b};
    trx_t *own = trx == NULL ? begin(f) : NULL;
    memset(b, c, sizeof(b));
    byte pk[8];
    mach_write_8(pk, dict_bigint_encode(a));
    dberr_t err = engine_update(f->engine, own != NULL ? own : trx, "t", pk, &upd, 1);
    if (own != NULL) {
        OK(f, engine_commit(f->engine, own));
    }
    return err;
}

/** Rows that the scan has passed, and rows that it has not: changed, deleted, brought back, and
rolled back; another part of the table for each i, and the same first and last rows. */
static void change_rows(fixture_t *f, int64_t i)
{
    int64_t first = 20 + i * 17 % (ROWS / 2);
    update_rows(f, "t", first, first + 2, (char)('a' + i % 20));
    update_rows(f, "t", 1, 2, (char)('A' + i % 20));
    update_rows(f, "t", ROWS, ROWS, (char)('A' + i % 20));
    insert_rows(f, "t", 10 * ROWS + i, 10 * ROWS + i);
    delete_rows(f, "t", first + 1, first + 1);
    bool done = false;
    if (i % 3 == 0) {
        insert_rows(f, "t", first + 1, first + 1);
        OK(f, engine_purge(f->engine, 50, &done));
    } else {
        byte row[8 + B_LEN + 8];
        trx_t *trx = begin(f);
        make_row(first + 1, row);
        OK(f, engine_insert(f->engine, trx, "t", row));
        OK(f, change_b(f, trx, first + 1, 'r'));
        OK(f, change_b(f, trx, 2, 'r'));
        OK(f, engine_rollback(f->engine, trx));
        insert_rows(f, "t", first + 1, first + 1);
    }
    OK(f, i % 5 == 0 ? engine_checkpoint(f->engine, false) : engine_clean_pages(f->engine, 4));
}

static void check_online(fixture_t *f, bool optimize, bool rebuild)
{
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, ROWS);
    if (rebuild) {
        add_two_indexes(f, "t");
    }
    update_rows(f, "t", 10, 300, 'u');
    start_online(f, rebuild);
    engine_status_t status;
    uint32_t progress = 0;
    for (int64_t i = 0; progress < 10000; i++) {
        change_rows(f, i);
        OK(f, engine_step_alter(f->engine, "t", 1, 37));
        engine_get_status(f->engine, &status);
        assert_true(status.onlineddl_pct_progress >= progress);
        progress = status.onlineddl_pct_progress;
        assert_int_equal(status.onlineddl_rowlog_rows, status.stats.rowlog_records);
    }
    uint64_t applied = status.stats.rowlog_applied;
    OK(f, engine_step_alter(f->engine, "t", 1, 37));
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.rowlog_applied, applied); /* but for the last step, all is done */
    change_rows(f, 1000);
    OK(f, engine_finish_alter(f->engine, "t"));
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.rowlog_applied, status.stats.rowlog_records);
    assert_true(status.stats.rowlog_blocks_written > 0);
    assert_int_equal(status.stats.load_flushes_amid > 0, optimize);
    assert_int_equal(status.onlineddl_rowlog_rows, 0);
    assert_int_equal(status.onlineddl_pct_progress, 0);
    uint64_t rows = count_rows(f, "t", NULL);
    assert_int_equal(count_rows(f, "t", "ib"), rows);
    assert_int_equal(count_rows(f, "t", "ic"), rows);
    /* The indexes are kept from now on, also by what purge and rollback do. */
    update_rows(f, "t", 1, 40, 'z');
    trx_t *trx = begin(f);
    OK(f, change_b(f, trx, 3, 'r'));
    OK(f, engine_rollback(f->engine, trx));
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
}

static void test_add_index(void **state)
{
    check_online(*state, true, false);
}

static void test_add_index_logged(void **state)
{
    check_online(*state, false, false);
}

static void test_rebuild(void **state)
{
    check_online(*state, true, true);
}

static void test_rebuild_logged(void **state)
{
    check_online(*state, false, true);
}

/** While an open transaction has changed the table, a build cannot end, and goes on; it can be
given up, and then the transaction is rolled back over nothing but the old table. */
static void test_open_transaction(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 200);
    for (uint32_t rebuild = 0; rebuild < 2; rebuild++) {
        start_online(f, rebuild != 0);
        trx_t *trx = begin(f);
        OK(f, change_b(f, trx, 5, 'n'));
        assert_int_equal(engine_finish_alter(f->engine, "t"), DB_TABLE_LOCKED);
        OK(f, change_b(f, trx, 6, 'n'));
        OK(f, engine_step_alter(f->engine, "t", 10, 10));
        assert_int_equal(engine_finish_alter(f->engine, "t"), DB_TABLE_LOCKED);
        assert_int_equal(engine_drop_table(f->engine, "t"), DB_TABLE_LOCKED);
        OK(f, engine_abort_alter(f->engine, "t"));
        OK(f, engine_rollback(f->engine, trx));
        start_online(f, rebuild != 0);
        trx = begin(f);
        OK(f, change_b(f, trx, 5, 'm'));
        assert_int_equal(engine_finish_alter(f->engine, "t"), DB_TABLE_LOCKED);
        OK(f, engine_commit(f->engine, trx));
        OK(f, engine_finish_alter(f->engine, "t"));
        assert_int_equal(count_rows(f, "t", "ib"), 200);
    }
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
}

/** More changes than the log has room for: they are made, the build fails in its last step and
leaves nothing (I26). */
static void test_overflow(void **state)
{
    fixture_t *f = *state;
    fixture_empty(f);
    f->options.online_alter_log_max_size = 64 * 1024;
    fixture_open(f);
    create_table(f, "t");
    insert_rows(f, "t", 1, ROWS);
    engine_status_t status;
    for (uint32_t rebuild = 0; rebuild < 2; rebuild++) {
        start_online(f, rebuild != 0);
        for (char c = 'a'; c < 'h'; c++) {
            update_rows(f, "t", 100, 299, c);
            OK(f, engine_step_alter(f->engine, "t", 2, 500));
        }
        engine_get_status(f->engine, &status);
        assert_int_equal(status.stats.rowlog_overflows, 1 + rebuild);
        assert_in_range(status.onlineddl_rowlog_pct_used, 9900, 10000);
        OK(f, engine_step_alter(f->engine, "t", 1000, 500));
        assert_int_equal(engine_finish_alter(f->engine, "t"), DB_ONLINE_LOG_TOO_BIG);
        assert_non_null(strstr(engine_error(f->engine), "online_alter_log_max_size"));
        assert_int_equal(engine_finish_alter(f->engine, "t"), DB_NOT_FOUND);
        assert_int_equal(count_rows(f, "t", NULL), ROWS);
    }
    add_two_indexes(f, "t");
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report); /* a temporary file would be a finding */
    assert_int_equal(report_table(&report, "t")->n_indexes, 2);
    check_report_free(&report);
}

static dberr_t build_unique(fixture_t *f)
{
    ddl_index_def_t def = index_def("ub", "b", 0);
    def.unique = true;
    ddl_alter_t alter = *ADD_INDEXES("t", &def, 1);
    alter.lock = LOCK_NONE;
    OK(f, engine_start_alter(f->engine, &alter));
    OK(f, engine_step_alter(f->engine, "t", 2, 100));
    return DB_SUCCESS;
}

/** What counts is what is there at the end: duplicates that have gone do no harm, whether the scan
has met them or the log; one that has come fails the build. */
static void test_unique(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    OK(f, change_b(f, NULL, 7, 'd'));
    OK(f, change_b(f, NULL, 8, 'd'));
    OK(f, build_unique(f));
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_DUPLICATE_KEY);
    OK(f, build_unique(f));
    OK(f, change_b(f, NULL, 8, 'e'));
    OK(f, engine_finish_alter(f->engine, "t"));
    assert_int_equal(change_b(f, NULL, 8, 'd'), DB_DUPLICATE_KEY);
    OK(f, drop_index(f->engine, "t", "ub"));
    OK(f, build_unique(f));
    OK(f, change_b(f, NULL, 290, 'd'));
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_DUPLICATE_KEY);
    OK(f, build_unique(f));
    OK(f, engine_step_alter(f->engine, "t", 100, 100));
    trx_t *trx = begin(f);
    OK(f, change_b(f, trx, 291, 'd'));
    OK(f, change_b(f, trx, 292, 'x'));
    OK(f, engine_rollback(f->engine, trx));
    OK(f, change_b(f, NULL, 290, 'f'));
    OK(f, engine_finish_alter(f->engine, "t"));
    assert_int_equal(count_rows(f, "t", "ub"), 300);
}

/** The progress of a long merge is seen between its steps. */
static void test_progress_of_the_merge(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 9000);
    start_online(f, false);
    engine_status_t status;
    uint32_t seen = 0;
    uint32_t before = 0;
    for (uint64_t merges = 0; before < 10000; merges = status.stats.sort_merges) {
        OK(f, engine_step_alter(f->engine, "t", 1, 2000));
        engine_get_status(f->engine, &status);
        seen += status.stats.sort_merges > merges && status.onlineddl_pct_progress > before;
        before = status.onlineddl_pct_progress;
    }
    assert_true(seen > 8);
    OK(f, engine_finish_alter(f->engine, "t"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_add_index),      TEST(test_add_index_logged),      TEST(test_rebuild),
        TEST(test_rebuild_logged), TEST(test_open_transaction),      TEST(test_overflow),
        TEST(test_unique),         TEST(test_progress_of_the_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
