/** Redo bytes of ADD INDEX, on a small copy of the table that InnoDB's figures are of: a BIGINT primary
key, b to h CHAR(255) without values; indexes on b, c, d, e(10), f(4), g(5), h(5); pages of 4k. Of 100,000
rows InnoDB logs 25.7 MB, and 3.5 MB when the contents are not logged. */
#include "test_api_fixture.h"

#define ROWS 2000
#define N_CHARS 7U
#define CHAR_LEN 255U

/** What 100,000 rows may log, brought down to one. */
#define LOGGED_PER_ROW 260U
#define UNLOGGED_PER_ROW 28U

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
    trx_t *trx = NULL;
    memset(row, ' ', sizeof(row));
    OK(f, engine_begin(f->engine, &trx));
    for (int64_t a = 1; a <= ROWS; a++) {
        mach_write_8(row, dict_bigint_encode(a));
        OK(f, engine_insert(f->engine, trx, "t", row));
    }
    OK(f, engine_commit(f->engine, trx));
}

/** LSNs that ADD INDEX of the seven indexes takes. */
static uint64_t add_indexes_redo(fixture_t *f, uint32_t log_format, bool optimize)
{
    static const uint32_t PREFIXES[N_CHARS] = {0, 0, 0, 10, 4, 5, 5};
    ddl_index_def_t defs[N_CHARS];
    engine_status_t before;
    engine_status_t after;
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
    for (uint32_t i = 0; i < N_CHARS; i++) {
        char name[8];
        char col[2] = {(char)('b' + (int)i), '\0'};
        (void)snprintf(name, sizeof(name), "i%s", col);
        defs[i] = index_def(name, col, PREFIXES[i]);
    }
    engine_get_status(f->engine, &before);
    OK(f, add_indexes(f->engine, "t", defs, N_CHARS));
    engine_get_status(f->engine, &after);
    return after.lsn_current - before.lsn_current;
}

static void assert_logged(uint64_t redo)
{
    assert_true(redo <= (uint64_t)ROWS * LOGGED_PER_ROW);
    assert_true(redo >= (uint64_t)ROWS * N_CHARS * 7); /* each record of each index is there */
}

/** A record of a sorted load costs its difference to the one before, not itself. */
static void test_logged(void **state)
{
    assert_logged(add_indexes_redo(*state, LOG_FORMAT_10_4, false));
    assert_logged(add_indexes_redo(*state, LOG_FORMAT_10_5, false));
}

/** The 10.5 format knows no other way: log_optimize_ddl changes nothing (MDEV-19747). */
static void test_ignored(void **state)
{
    uint64_t redo = add_indexes_redo(*state, LOG_FORMAT_10_5, true);
    assert_int_equal(redo, add_indexes_redo(*state, LOG_FORMAT_10_5, false));
}

/** Without contents there is what allocates pages. */
static void test_unlogged(void **state)
{
    assert_true(add_indexes_redo(*state, LOG_FORMAT_10_4, true)
                <= (uint64_t)ROWS * UNLOGGED_PER_ROW);
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
