/** Redo bytes of ADD INDEX and FORCE, on a small copy of the table that InnoDB's figures are of: a
BIGINT primary key, b to h CHAR(255) without values; indexes on b, c, d, e(10), f(4), g(5), h(5);
pages of 4k. Of 100,000 rows InnoDB logs 25.7 and 220.0 MB, and 3.5 and 1.4 MB when the contents are
not logged. */
#include "test_api_fixture.h"

#define ROWS 8000
#define N_CHARS 7U
#define CHAR_LEN 255U

/** What 100,000 rows may log, brought down to one. */
typedef struct redo {
    uint64_t add_index;
    uint64_t force;
} redo_t;
static const redo_t LOGGED_PER_ROW = {260, 2135};
static const redo_t UNLOGGED_PER_ROW = {28, 16};

static void create_wide(fixture_t *f)
{
    dict_table_t *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    define_table(t, "t");
    t->n_cols = 1 + N_CHARS;
    for (uint32_t i = 1; i <= N_CHARS; i++) {
        (void)snprintf(t->cols[i].name, sizeof(t->cols[i].name), "%c", 'a' + (int)i);
        t->cols[i].type = DICT_CHAR;
        t->cols[i].len = CHAR_LEN;
    }
    OK(f, engine_create_table(f->engine, t));
    free(t);
}

static void insert_blank_rows(fixture_t *f)
{
    byte row[8 + N_CHARS * CHAR_LEN];
    memset(row, ' ', sizeof(row));
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    for (int64_t a = 1; a <= ROWS; a++) {
        mach_write_8(row, dict_bigint_encode(a));
        OK(f, engine_insert(f->engine, trx, "t", row));
    }
    OK(f, engine_commit(f->engine, trx));
}

static uint64_t lsn_now(fixture_t *f)
{
    engine_status_t status;
    engine_get_status(f->engine, &status);
    return status.lsn_current;
}

/** LSNs that ADD INDEX of the seven indexes takes, and FORCE after that. */
static redo_t redo_of(fixture_t *f, uint32_t log_format, bool optimize)
{
    static const uint32_t PREFIXES[N_CHARS] = {0, 0, 0, 10, 4, 5, 5};
    const ddl_alter_t force = {.kind = ALTER_REBUILD, .table = "t"};
    f->options.log_format = log_format;
    f->options.log_file_size = 64ULL << 20;
    f->options.extent_pages = 0;
    f->options.buffer_pool_pages = 4096;
    f->options.log_optimize_ddl = optimize;
    fixture_empty(f);
    fixture_open(f);
    create_wide(f);
    insert_blank_rows(f);
    OK(f, engine_checkpoint(f->engine, true));
    ddl_index_def_t defs[N_CHARS];
    for (uint32_t i = 0; i < N_CHARS; i++) {
        char name[8];
        char col[2] = {(char)('b' + (int)i), '\0'};
        (void)snprintf(name, sizeof(name), "i%s", col);
        defs[i] = index_def(name, col, PREFIXES[i]);
    }
    lsn_t start = lsn_now(f);
    OK(f, add_indexes(f->engine, "t", defs, N_CHARS));
    lsn_t added = lsn_now(f);
    OK(f, engine_alter(f->engine, &force));
    return (redo_t){.add_index = added - start, .force = lsn_now(f) - added};
}

static void assert_at_most(redo_t redo, redo_t per_row)
{
    assert_true(redo.add_index <= ROWS * per_row.add_index);
    assert_true(redo.force <= ROWS * per_row.force);
}

static void assert_logged(redo_t redo)
{
    assert_at_most(redo, LOGGED_PER_ROW);
    assert_true(redo.add_index
                >= (uint64_t)ROWS * N_CHARS * 7); /* each record of each index is there */
    assert_true(redo.force >= redo.add_index);
}

/** A record of a sorted load costs its difference to the one before, not itself. */
static void test_logged(void **state)
{
    assert_logged(redo_of(*state, LOG_FORMAT_10_4, false));
    assert_logged(redo_of(*state, LOG_FORMAT_10_5, false));
}

/** The 10.5 format knows no other way: log_optimize_ddl changes nothing (MDEV-19747). */
static void test_ignored(void **state)
{
    redo_t on = redo_of(*state, LOG_FORMAT_10_5, true);
    redo_t off = redo_of(*state, LOG_FORMAT_10_5, false);
    assert_int_equal(on.add_index, off.add_index);
    assert_int_equal(on.force, off.force);
}

/** Without contents there is what allocates pages. */
static void test_unlogged(void **state)
{
    assert_at_most(redo_of(*state, LOG_FORMAT_10_4, true), UNLOGGED_PER_ROW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_ignored, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_unlogged, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
