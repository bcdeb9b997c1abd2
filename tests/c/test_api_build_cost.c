/** What an index build costs: memory within sort_buffer_size whatever the number of indexes, nearly
nothing on an empty table, and a flush that looks at the table's own dirty pages. Counted, not
timed. */
#include "test_api_fixture.h"

#define WIDE_LEN 255U
#define WIDE_ROWS 400

static const uint32_t NUMBERS[] = {1, 8, 32, 64};

/** a BIGINT primary key, b and c CHAR(255). */
static void create_wide(fixture_t *f, const char *name)
{
    dict_table_t *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    define_table(t, name);
    t->cols[1].len = WIDE_LEN;
    t->cols[2].type = DICT_CHAR;
    t->cols[2].len = WIDE_LEN;
    OK(f, engine_create_table(f->engine, t));
    free(t);
}

static void insert_wide(fixture_t *f, const char *name)
{
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    byte row[8 + 2 * WIDE_LEN];
    for (int64_t a = 1; a <= WIDE_ROWS; a++) {
        mach_write_8(row, dict_bigint_encode(a));
        memset(row + 8, 'a' + (int)(a * 7 % 23), WIDE_LEN);
        memset(row + 8 + WIDE_LEN, 'a' + (int)(a * 11 % 19), WIDE_LEN);
        OK(f, engine_insert(f->engine, trx, name, row));
    }
    OK(f, engine_commit(f->engine, trx));
}

/** n definitions (b), (b,c), (c,b), ... of the wide table. */
static ddl_index_def_t *definitions(uint32_t n)
{
    ddl_index_def_t *defs = calloc(n, sizeof(*defs));
    assert_non_null(defs);
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "i%u", i);
        defs[i] = index_def(name, i % 2 == 0 ? "b" : "c", 0);
        if (i % 3 != 0) {
            defs[i].n_fields = 2;
            memcpy(defs[i].fields[1].col, i % 2 == 0 ? "c" : "b", 2);
        }
    }
    return defs;
}

static stats_t stats_of(const fixture_t *f)
{
    engine_status_t status;
    engine_get_status(f->engine, &status);
    return status.stats;
}

static void check_memory(fixture_t *f, uint32_t n)
{
    ddl_index_def_t *defs = definitions(n);
    create_wide(f, "t");
    insert_wide(f, "t");
    uint64_t rescans = stats_of(f).build_rescans;
    OK(f, add_indexes(f->engine, "t", defs, n));
    stats_t stats = stats_of(f);
    assert_true(stats.sort_runs > 0);
    assert_true(stats.sort_bytes_max > f->options.sort_buffer_size / 2);
    assert_true(stats.sort_bytes_max <= f->options.sort_buffer_size);
    assert_int_equal(stats.sort_bytes, 0);
    assert_int_equal(stats.build_rescans - rescans, n > 32 ? 2 : n > 8 ? 1 : 0);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    const check_table_t *t = report_table(&report, "t");
    assert_int_equal(t->n_indexes, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(t->indexes[i].entries, WIDE_ROWS);
    }
    check_report_free(&report);
    free(defs);
}

/** The sorts of 1, 8, 32 and 64 indexes of one statement never hold more than sort_buffer_size;
what that is not enough for takes another scan of the table. */
static void test_memory(void **state)
{
    fixture_t *f = *state;
    for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(NUMBERS[0]); i++) {
        check_memory(f, NUMBERS[i]);
        fixture_open(f);
        OK(f, engine_drop_table(f->engine, "t"));
    }
}

/** A build of several scans goes on in steps, and can be given up in any of them. */
static void test_abort_in_later_scan(void **state)
{
    fixture_t *f = *state;
    ddl_index_def_t *defs = definitions(64);
    create_wide(f, "t");
    insert_wide(f, "t");
    OK(f, start_indexes(f->engine, "t", defs, 64));
    while (stats_of(f).build_rescans < 2) {
        OK(f, engine_step_alter(f->engine, "t", 1, 40));
    }
    OK(f, engine_step_alter(f->engine, "t", 5, 40));
    OK(f, engine_abort_alter(f->engine, "t"));
    assert_int_equal(stats_of(f).sort_bytes, 0);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->n_indexes, 0);
    check_report_free(&report);
    free(defs);
}

static stats_t build_on_empty(fixture_t *f, uint32_t n)
{
    ddl_index_def_t *defs = definitions(n);
    create_wide(f, "t");
    stats_t before = stats_of(f);
    OK(f, add_indexes(f->engine, "t", defs, n));
    stats_t after = stats_of(f);
    after.data_fsyncs -= before.data_fsyncs;
    after.os_log_fsyncs -= before.os_log_fsyncs;
    after.data_writes -= before.data_writes;
    OK(f, engine_drop_table(f->engine, "t"));
    free(defs);
    return after;
}

/** 20 indexes on an empty table: no sort buffer however large it may be, no flush, no page written,
and not one fsync of the log more than for a single index. */
static void test_empty_table(void **state)
{
    fixture_t *f = *state;
    f->options.sort_buffer_size = 64ULL << 30;
    f->options.buffer_pool_pages = 512;
    f->options.log_file_size = 4ULL << 20;
    fixture_empty(f);
    fixture_open(f);
    stats_t one = build_on_empty(f, 1);
    stats_t twenty = build_on_empty(f, 20);
    assert_true(twenty.data_fsyncs < 10); /* of a file that grows by 40 pages */
    assert_int_equal(twenty.flush_list_visited, 0);
    assert_int_equal(twenty.data_writes, 0);
    assert_int_equal(twenty.os_log_fsyncs, one.os_log_fsyncs);
    assert_true(twenty.sort_bytes_max < 20 * 1024);
    assert_int_equal(twenty.bulk_rows, 0);
}

/** What the flush of a load costs. */
typedef struct flush_cost {
    uint64_t pages;   /**< of the load */
    uint64_t visited; /**< flush list entries and spaces looked at */
    uint64_t syncs;
} flush_cost_t;

/** The steps of the build that flush are those that walk a flush list; the next one fsyncs. */
static flush_cost_t flush_of_build(fixture_t *f)
{
    const ddl_index_def_t def = index_def("ib", "b", 0);
    flush_cost_t cost = {0};
    bool flushing = false;
    OK(f, start_indexes(f->engine, "t", &def, 1));
    for (uint32_t i = 0; i < 100; i++) {
        stats_t before = stats_of(f);
        OK(f, engine_step_alter(f->engine, "t", 1, 5000));
        stats_t after = stats_of(f);
        uint64_t visited = after.flush_list_visited - before.flush_list_visited;
        if (flushing || visited > 0) {
            cost.pages += after.dblwr_writes - before.dblwr_writes;
            cost.visited += visited + after.spaces_passed - before.spaces_passed;
            cost.syncs += after.data_fsyncs - before.data_fsyncs;
        }
        if (flushing && visited == 0) {
            OK(f, engine_finish_alter(f->engine, "t"));
            return cost;
        }
        flushing = visited > 0;
    }
    fail_msg("no step has flushed");
    return (flush_cost_t){0};
}

/** A build in a pool of so many pages, nearly all of which hold changes of other tables. */
static flush_cost_t flush_cost(fixture_t *f, uint32_t pool_pages, uint32_t n_others)
{
    f->options.buffer_pool_pages = pool_pages;
    f->options.log_file_size = 16ULL << 20;
    fixture_empty(f);
    fixture_open(f);
    create_table(f, "t");
    insert_rows(f, "t", 1, 700);
    char name[16];
    for (uint32_t i = 0; i < n_others; i++) {
        (void)snprintf(name, sizeof(name), "o%u", i);
        create_table(f, name);
    }
    OK(f, engine_checkpoint(f->engine, true));
    for (uint32_t i = 0; i < n_others; i++) {
        (void)snprintf(name, sizeof(name), "o%u", i);
        insert_rows(f, name, 1, 700);
    }
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_true(status.dirty_pages > pool_pages * 7 / 10);
    return flush_of_build(f);
}

/** With a pool 16 times larger, full of the dirty pages of 16 times as many other tables, the flush
before the commit looks at no more than 1.2 times as many entries, and fsyncs no more often. */
static void test_flush_in_larger_pool(void **state)
{
    fixture_t *f = *state;
    flush_cost_t small = flush_cost(f, 128, 4);
    flush_cost_t large = flush_cost(f, 16 * 128, 16 * 4);
    assert_true(small.pages >= 10);
    assert_int_equal(large.pages, small.pages);
    assert_true(large.visited * 10 <= small.visited * 12);
    assert_true(large.syncs <= small.syncs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_abort_in_later_scan, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_empty_table, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_flush_in_larger_pool, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
