/** MODIFY COLUMN: another length for a VARCHAR, at once or by a copy. */
#include "test_api_crash.h"

#define LEN_B 40U
#define LEN_C 20U

static dberr_t modify(fixture_t *f, const char *col, uint32_t len, ddl_algorithm_t algorithm)
{
    const ddl_alter_t alter = {.kind = ALTER_MODIFY_COLUMN,
                               .table = "t",
                               .name = col,
                               .type = DICT_VARCHAR,
                               .len = len,
                               .algorithm = algorithm};
    return engine_alter(f->engine, &alter);
}

/** a BIGINT primary key, b VARCHAR(40), c VARCHAR(20); an index on b:10 and one on all of c. */
static void create_varying(fixture_t *f)
{
    const ddl_index_def_t defs[] = {index_def("ib", "b", 10), index_def("ic", "c", 0)};
    dict_table_t *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    define_table(t, "t");
    t->cols[1].type = DICT_VARCHAR;
    t->cols[1].len = LEN_B;
    t->cols[2].type = DICT_VARCHAR;
    t->cols[2].len = LEN_C;
    OK(f, engine_create_table(f->engine, t));
    free(t);
    OK(f, add_indexes(f->engine, "t", defs, 2));
}

/** A row with so many bytes in b, as the table is now. */
static byte *varying_row(fixture_t *f, int64_t a, uint32_t len)
{
    const dict_table_t *t = engine_table(f->engine, "t");
    byte *row = malloc(t->row_size);
    assert_non_null(row);
    byte text[VARCHAR_LEN_MAX];
    memset(text, 'a' + (int)(a % 26), len);
    byte key[8];
    mach_write_8(key, dict_bigint_encode(a));
    dict_row_init(t, row);
    dict_col_put(&t->cols[0], row, key, 8);
    dict_col_put(&t->cols[1], row, text, len);
    dict_col_put(&t->cols[2], row, text, (uint32_t)(a % (LEN_C + 1)));
    return row;
}

static void put_rows(fixture_t *f, int64_t first, int64_t last, uint32_t len, bool commit)
{
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    for (int64_t a = first; a <= last; a++) {
        byte *row = varying_row(f, a, len);
        OK(f, engine_insert(f->engine, trx, "t", row));
        free(row);
    }
    OK(f, commit ? engine_commit(f->engine, trx) : engine_rollback(f->engine, trx));
}

/** Gives b of the row another length. */
static void lengthen_row(fixture_t *f, int64_t a, uint32_t len)
{
    const dict_table_t *t = engine_table(f->engine, "t");
    byte *row = varying_row(f, a, len);
    const row_upd_t upd = {.col = 1, .value = row + t->cols[1].row_offset};
    byte pk[8];
    mach_write_8(pk, dict_bigint_encode(a));
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    OK(f, engine_update(f->engine, trx, "t", pk, &upd, 1));
    OK(f, engine_commit(f->engine, trx));
    free(row);
}

static void check_row(fixture_t *f, int64_t a, uint32_t len)
{
    const dict_table_t *t = engine_table(f->engine, "t");
    byte *wanted = varying_row(f, a, len);
    byte *row = malloc(t->row_size);
    assert_non_null(row);
    byte pk[8];
    mach_write_8(pk, dict_bigint_encode(a));
    OK(f, engine_get(f->engine, "t", pk, row));
    assert_memory_equal(row, wanted, t->row_size);
    free(row);
    free(wanted);
}

static void check_column(fixture_t *f, uint32_t col, uint32_t len)
{
    assert_int_equal(engine_table(f->engine, "t")->cols[col].len, len);
}

/** The catalogue changes, and no page of the table does; what was there before, history included,
is read, undone and purged under the new length. */
static void test_longer_is_instant(void **state)
{
    fixture_t *f = *state;
    create_varying(f);
    put_rows(f, 1, 100, 30, true);
    lengthen_row(f, 7, LEN_B);
    OK(f, engine_flush_table(f->engine, "t"));
    engine_status_t before;
    engine_get_status(f->engine, &before);
    OK(f, modify(f, "b", 9000, ALGORITHM_INSTANT));
    OK(f, engine_flush_table(f->engine, "t"));
    engine_status_t after;
    engine_get_status(f->engine, &after);
    assert_int_equal(after.stats.data_writes, before.stats.data_writes);
    assert_int_equal(after.stats.varchars_extended, 1);
    check_row(f, 1, 30);
    check_row(f, 7, LEN_B);
    put_rows(f, 101, 110, 9000, true);
    put_rows(f, 111, 120, 9000, false);
    lengthen_row(f, 8, 5000);
    purge_all(f);
    fixture_close(f, false); /* a crash: what was acknowledged is there */
    fixture_open(f);
    check_column(f, 1, 9000);
    check_row(f, 8, 5000);
    check_row(f, 101, 9000);
    assert_int_equal(count_rows(f, "t", "ib"), 110);
    assert_int_equal(count_rows(f, "t", "ic"), 110);
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    check_report_free(&report);
    fixture_open(f);
}

/** What the catalogue alone cannot do is refused where nothing else is allowed, and then says what
to try. */
static void test_refusals(void **state)
{
    fixture_t *f = *state;
    ddl_alter_t alter = {
        .kind = ALTER_MODIFY_COLUMN, .table = "t", .name = "b", .type = DICT_CHAR, .len = 50};
    assert_int_equal(modify(f, "b", 50, ALGORITHM_DEFAULT), DB_NOT_FOUND);
    create_varying(f);
    put_rows(f, 1, 30, 30, true);
    assert_int_equal(modify(f, "x", 50, ALGORITHM_DEFAULT), DB_NOT_FOUND);
    assert_int_equal(modify(f, "a", 50, ALGORITHM_COPY), DB_UNSUPPORTED);
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    for (ddl_algorithm_t way = ALGORITHM_INPLACE; way <= ALGORITHM_INSTANT; way++) {
        assert_int_equal(modify(f, "b", LEN_B - 1, way), DB_UNSUPPORTED);
        assert_int_equal(modify(f, "c", LEN_C + 1, way), DB_UNSUPPORTED);
        assert_non_null(strstr(engine_error(f->engine), "an index has all of the column"));
        assert_non_null(strstr(engine_error(f->engine), "Try ALGORITHM=COPY"));
        OK(f, modify(f, "b", LEN_B, way));
        OK(f, modify(f, "c", LEN_C, way));
    }
    alter = (ddl_alter_t){.kind = ALTER_MODIFY_COLUMN,
                          .table = "t",
                          .name = "c",
                          .type = DICT_VARCHAR,
                          .len = 50,
                          .lock = LOCK_NONE};
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    assert_non_null(strstr(engine_error(f->engine), "Try LOCK=SHARED"));
    assert_int_equal(modify(f, "b", VARCHAR_LEN_MAX + 1, ALGORITHM_DEFAULT), DB_ERROR);
    assert_int_equal(modify(f, "c", 3000, ALGORITHM_DEFAULT), DB_ERROR); /* no key is so long */
    check_column(f, 1, LEN_B);
    check_column(f, 2, LEN_C);
    trx_t *trx = NULL;
    byte *row = varying_row(f, 31, 30);
    OK(f, engine_begin(f->engine, &trx));
    OK(f, engine_insert(f->engine, trx, "t", row));
    assert_int_equal(modify(f, "b", 50, ALGORITHM_DEFAULT), DB_TABLE_LOCKED);
    OK(f, engine_rollback(f->engine, trx));
    free(row);
    OK(f, modify(f, "b", 50, ALGORITHM_DEFAULT));
}

/** A copy gives any length that has room for the values; an index of all of the column has all of
it then. */
static void test_copies(void **state)
{
    fixture_t *f = *state;
    create_varying(f);
    put_rows(f, 1, 200, 30, true);
    OK(f, modify(f, "c", 60, ALGORITHM_DEFAULT));
    check_column(f, 2, 60);
    assert_int_equal(engine_table(f->engine, "t")->indexes[2].fields[0].prefix_len, 60);
    assert_int_equal(modify(f, "b", 29, ALGORITHM_DEFAULT), DB_ERROR);
    assert_non_null(strstr(engine_error(f->engine), "column 'b' has a value of 30 bytes"));
    check_column(f, 1, LEN_B);
    OK(f, modify(f, "b", 30, ALGORITHM_DEFAULT));
    OK(f, modify(f, "c", LEN_C, ALGORITHM_COPY));
    lengthen_row(f, 5, 8);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.tables_copied, 3);
    assert_int_equal(status.stats.varchars_extended, 0);
    for (int64_t a = 1; a <= 200; a++) {
        check_row(f, a, a == 5 ? 8 : 30);
    }
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->indexes[1].entries, 200);
    check_report_free(&report);
    fixture_open(f);
    check_column(f, 1, 30);
}

/** A crash at any fault point leaves a table that its catalogue describes, and all of its rows. */
static void test_crashes(void **state)
{
    fixture_t *f = *state;
    const shape_t full = {.exists = true, .rows = 150, .n_indexes = 2, .index = "ic"};
    crash_t crash = {.f = f, .table = "t", .every = 3, .nested = true};
    create_varying(f);
    put_rows(f, 1, 150, LEN_B, true);
    crash_arm(&crash, full, full);
    OK(f, modify(f, "b", 3000, ALGORITHM_INSTANT));
    for (int64_t a = 1; a < 20; a++) {
        lengthen_row(f, a, 2900);
        OK(f, engine_clean_pages(f->engine, (uint32_t)a % 4));
    }
    OK(f, modify(f, "c", 100, ALGORITHM_COPY));
    crash_disarm(&crash);
    assert_true(crash.crashes > 20);
    assert_int_equal(point_count(&crash, "ddl.swapped"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_longer_is_instant, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refusals, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copies, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
