/** Unique indexes: which keys are taken, which free, and what a refusal leaves behind; builds that
find a duplicate. Rows are those of the fixture: a BIGINT primary key, b CHAR(60), c BIGINT. */
#include "test_api_fixture.h"

#include "api/api_int.h"
#include "dict/dict_sys.h"

static void make(int64_t a, const char *b, int64_t c, byte row[8 + B_LEN + 8])
{
    mach_write_8(row, dict_bigint_encode(a));
    memset(row + 8, ' ', B_LEN);
    memcpy(row + 8, b, strlen(b));
    mach_write_8(row + 8 + B_LEN, dict_bigint_encode(c));
}

/** trx may be NULL: autocommit. */
static dberr_t finish(fixture_t *f, trx_t *trx, trx_t *own, dberr_t err)
{
    if (trx == NULL && err == DB_SUCCESS) {
        OK(f, engine_commit(f->engine, own));
    } else if (trx == NULL) {
        OK(f, engine_rollback(f->engine, own));
    }
    return err;
}

static trx_t *begin(fixture_t *f)
{
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    return trx;
}

static dberr_t insert(fixture_t *f, trx_t *trx, int64_t a, const char *b)
{
    byte row[8 + B_LEN + 8];
    trx_t *own = trx != NULL ? trx : begin(f);
    make(a, b, a, row);
    return finish(f, trx, own, engine_insert(f->engine, own, "t", row));
}

static dberr_t update_b(fixture_t *f, trx_t *trx, int64_t a, const char *b)
{
    byte row[8 + B_LEN + 8];
    trx_t *own = trx != NULL ? trx : begin(f);
    make(a, b, a, row);
    const row_upd_t upd = {.col = 1, .value = row + 8};
    return finish(f, trx, own, engine_update(f->engine, own, "t", row, &upd, 1));
}

static dberr_t update_c(fixture_t *f, trx_t *trx, int64_t a, int64_t c)
{
    byte row[8 + B_LEN + 8];
    make(a, "", c, row);
    const row_upd_t upd = {.col = 2, .value = row + 8 + B_LEN};
    return engine_update(f->engine, trx, "t", row, &upd, 1);
}

static dberr_t delete (fixture_t *f, trx_t *trx, int64_t a)
{
    byte row[8 + B_LEN + 8];
    trx_t *own = trx != NULL ? trx : begin(f);
    make(a, "", a, row);
    return finish(f, trx, own, engine_delete(f->engine, own, "t", row));
}

static ddl_index_def_t unique_def(const char *name, const char *col, uint32_t prefix)
{
    ddl_index_def_t def = index_def(name, col, prefix);
    def.unique = true;
    return def;
}

/** Table t with a plain index in front of the unique one on b, or on its first bytes. */
static void create_unique(fixture_t *f, uint32_t prefix)
{
    const ddl_index_def_t plain = index_def("ic", "c", 0);
    const ddl_index_def_t unique = unique_def("ub", "b", prefix);
    create_table(f, "t");
    OK(f, add_indexes(f->engine, "t", &plain, 1));
    OK(f, add_indexes(f->engine, "t", &unique, 1));
}

/** Closes, and scans: so many rows, as many entries. */
static void expect_rows(fixture_t *f, uint64_t rows)
{
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    const check_table_t *t = report_table(&report, "t");
    assert_int_equal(t->rows, rows);
    for (uint32_t i = 0; i < t->n_indexes; i++) {
        assert_int_equal(t->indexes[i].entries, rows);
    }
    check_report_free(&report);
}

static stats_t stats_of(const fixture_t *f)
{
    engine_status_t status;
    engine_get_status(f->engine, &status);
    return status.stats;
}

/** A refused statement has changed nothing: neither the row nor the index in front of the unique
one; its transaction goes on, and does not lock the table. */
static void test_refused(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t another = index_def("ib", "b", 7);
    create_unique(f, 0);
    OK(f, insert(f, NULL, 1, "one"));
    OK(f, insert(f, NULL, 2, "two"));
    assert_int_equal(insert(f, NULL, 3, "two"), DB_DUPLICATE_KEY);
    assert_int_equal(update_b(f, NULL, 1, "two"), DB_DUPLICATE_KEY);
    trx_t *trx = begin(f);
    assert_int_equal(insert(f, trx, 3, "one"), DB_DUPLICATE_KEY);
    assert_string_equal(engine_error(f->engine),
                        "table t: a row with this key of the unique index ub exists");
    OK(f, add_indexes(f->engine, "t", &another, 1));
    OK(f, insert(f, trx, 3, "three"));
    assert_int_equal(insert(f, trx, 4, "three"), DB_DUPLICATE_KEY);
    assert_int_equal(update_b(f, trx, 1, "three"), DB_DUPLICATE_KEY);
    OK(f, update_b(f, trx, 3, "three"));
    OK(f, engine_commit(f->engine, trx));
    assert_int_equal(stats_of(f).unique_duplicates, 5);
    purge_all(f);
    expect_rows(f, 3);
}

/** Only the prefix counts. */
static void test_prefix(void **state)
{
    fixture_t *f = *state;
    create_unique(f, 2);
    OK(f, insert(f, NULL, 1, "abc"));
    assert_int_equal(insert(f, NULL, 2, "abd"), DB_DUPLICATE_KEY);
    OK(f, insert(f, NULL, 2, "acd"));
    OK(f, update_b(f, NULL, 1, "abd"));
    assert_int_equal(update_b(f, NULL, 2, "abx"), DB_DUPLICATE_KEY);
    expect_rows(f, 2);
}

/** A delete-marked entry of a committed change is no duplicate, purged or not, nor is one of our
own. */
static void test_marked_is_free(void **state)
{
    fixture_t *f = *state;
    create_unique(f, 0);
    OK(f, insert(f, NULL, 1, "one"));
    OK(f, delete (f, NULL, 1));
    OK(f, insert(f, NULL, 2, "one"));
    OK(f, update_b(f, NULL, 2, "two"));
    OK(f, insert(f, NULL, 3, "one"));
    assert_int_equal(insert(f, NULL, 1, "one"), DB_DUPLICATE_KEY);
    OK(f, insert(f, NULL, 1, "uno"));
    trx_t *trx = begin(f);
    OK(f, delete (f, trx, 3));
    OK(f, insert(f, trx, 4, "one"));
    OK(f, engine_rollback(f->engine, trx));
    assert_int_equal(insert(f, NULL, 4, "one"), DB_DUPLICATE_KEY);
    assert_true(stats_of(f).unique_marked >= 3);
    purge_all(f);
    assert_int_equal(insert(f, NULL, 4, "one"), DB_DUPLICATE_KEY);
    OK(f, insert(f, NULL, 5, "five"));
    expect_rows(f, 4);
}

/** What another open transaction has taken or given up is neither a duplicate nor free: a conflict,
until it ends. What it has not touched is what it is. */
static void test_conflicts(void **state)
{
    fixture_t *f = *state;
    create_unique(f, 0);
    OK(f, insert(f, NULL, 1, "one"));
    OK(f, insert(f, NULL, 2, "two"));
    OK(f, insert(f, NULL, 3, "three"));
    OK(f, update_b(f, NULL, 3, "drei"));
    trx_t *trx = begin(f);
    OK(f, delete (f, trx, 1));
    OK(f, update_b(f, trx, 2, "zwei"));
    OK(f, update_b(f, trx, 2, "deux"));
    OK(f, update_c(f, trx, 3, 33));
    OK(f, insert(f, trx, 4, "four"));
    static const char *const open_keys[] = {"one", "two", "zwei", "deux", "four"};
    for (size_t i = 0; i < sizeof(open_keys) / sizeof(open_keys[0]); i++) {
        assert_int_equal(insert(f, NULL, 9, open_keys[i]), DB_LOCK_CONFLICT);
    }
    /* Every version that row 3 may come to has this key, and none the one before it. */
    assert_int_equal(insert(f, NULL, 9, "drei"), DB_DUPLICATE_KEY);
    OK(f, insert(f, NULL, 9, "three"));
    assert_int_equal(stats_of(f).unique_conflicts, 5);
    OK(f, engine_rollback(f->engine, trx));
    assert_int_equal(insert(f, NULL, 8, "one"), DB_DUPLICATE_KEY);
    OK(f, insert(f, NULL, 8, "deux"));
    expect_rows(f, 5);
}

/** A row that another open transaction has revived over its delete-marked version. */
static void test_revived(void **state)
{
    fixture_t *f = *state;
    create_unique(f, 0);
    OK(f, insert(f, NULL, 1, "one"));
    OK(f, delete (f, NULL, 1));
    trx_t *trx = begin(f);
    OK(f, insert(f, trx, 1, "two"));
    assert_int_equal(insert(f, NULL, 2, "two"), DB_LOCK_CONFLICT);
    OK(f, insert(f, NULL, 2, "one"));
    assert_int_equal(update_b(f, trx, 1, "one"), DB_DUPLICATE_KEY);
    OK(f, engine_commit(f->engine, trx));
    assert_int_equal(insert(f, NULL, 3, "two"), DB_DUPLICATE_KEY);
    expect_rows(f, 2);
}

/** Of a transaction that is open: row 1, which had the key "one" when it began, gets that again, by
a statement that is taken back. The key is nobody's until the transaction ends. */
static void check_key_stays(fixture_t *f, trx_t *trx, const char *other)
{
    uint64_t savepoint = engine_savepoint(f->engine, trx);
    OK(f, update_b(f, trx, 1, "one"));
    OK(f, engine_rollback_to(f->engine, trx, savepoint));
    assert_int_equal(insert(f, NULL, 9, "one"), DB_LOCK_CONFLICT);
    assert_int_equal(insert(f, NULL, 9, other), DB_LOCK_CONFLICT);
}

/** What a statement gave back and took again is not free once that statement is taken back: the
versions before it may still come to be the committed one. */
static void test_given_back_and_taken_again(void **state)
{
    fixture_t *f = *state;
    create_unique(f, 0);
    OK(f, insert(f, NULL, 1, "one"));
    trx_t *trx = begin(f);
    OK(f, update_b(f, trx, 1, "two"));
    check_key_stays(f, trx, "two");
    check_key_stays(f, trx, "two");
    OK(f, delete (f, trx, 1));
    OK(f, insert(f, trx, 1, "three"));
    check_key_stays(f, trx, "three");
    OK(f, engine_rollback(f->engine, trx));
    assert_int_equal(insert(f, NULL, 9, "one"), DB_DUPLICATE_KEY);
    trx = begin(f);
    OK(f, update_b(f, trx, 1, "two"));
    check_key_stays(f, trx, "two");
    OK(f, engine_commit(f->engine, trx));
    OK(f, insert(f, NULL, 9, "one"));
    purge_all(f);
    expect_rows(f, 2);
}

/** Ends as a build with a duplicate does, whatever is logged. */
static void check_build(fixture_t *f, bool optimize)
{
    const ddl_index_def_t defs[] = {unique_def("ua", "a", 0), unique_def("ub", "b", 0)};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    create_table(f, "t");
    insert_rows(f, "t", 1, 400);
    OK(f, insert(f, NULL, 500, "same"));
    OK(f, insert(f, NULL, 501, "same"));
    assert_int_equal(add_indexes(f->engine, "t", defs, 2), DB_DUPLICATE_KEY);
    assert_string_equal(engine_error(f->engine),
                        "table 't': two rows have the same key of the unique index 'ub'");
    assert_int_equal(engine_table(f->engine, "t")->n_indexes, 1);
    OK(f, start_indexes(f->engine, "t", defs, 2));
    OK(f, engine_step_alter(f->engine, "t", 1000, 100));
    assert_true(dict_has_build(f->engine->dict));
    assert_int_equal(insert(f, NULL, 502, "same"), DB_TABLE_LOCKED);
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_DUPLICATE_KEY);
    assert_int_equal(engine_finish_alter(f->engine, "t"), DB_NOT_FOUND);
    OK(f, start_indexes(f->engine, "t", defs, 2));
    OK(f, engine_step_alter(f->engine, "t", 1000, 100));
    OK(f, engine_abort_alter(f->engine, "t"));
    assert_int_equal(stats_of(f).builds_duplicate, 2);
    assert_int_equal(stats_of(f).builds_aborted, 3);
    OK(f, delete (f, NULL, 500));
    OK(f, add_indexes(f->engine, "t", defs, 2));
    assert_int_equal(insert(f, NULL, 502, "same"), DB_DUPLICATE_KEY);
    OK(f, delete (f, NULL, 501));
    OK(f, insert(f, NULL, 502, "same"));
    purge_all(f);
    expect_rows(f, 401);
}

static void test_build_not_logged(void **state)
{
    check_build(*state, true);
}

static void test_build_logged(void **state)
{
    check_build(*state, false);
}

/** What a crash leaves is still unique: entries of a transaction that is rolled back come back to a
key that nobody could take meanwhile; and the catalogue knows the index for what it is. */
static void test_recovered(void **state)
{
    fixture_t *f = *state;
    create_unique(f, 0);
    OK(f, insert(f, NULL, 1, "one"));
    trx_t *trx = begin(f);
    OK(f, delete (f, trx, 1));
    OK(f, insert(f, trx, 2, "one"));
    OK(f, engine_flush_log(f->engine));
    fixture_close(f, false);
    fixture_open(f);
    assert_true(engine_table(f->engine, "t")->indexes[2].unique);
    assert_int_equal(insert(f, NULL, 3, "one"), DB_DUPLICATE_KEY);
    OK(f, delete (f, NULL, 1));
    OK(f, insert(f, NULL, 3, "one"));
    expect_rows(f, 1);
}

/** A catalogue of the version before is refused with a line that says so. */
static void test_older_catalogue(void **state)
{
    fixture_t *f = *state;
    fixture_close(f, true);
    byte *bytes = NULL;
    uint64_t size = 0;
    bytes = image_os_bytes(f->os, FIL_SYSTEM_PATH, &size);
    byte *page = bytes + (size_t)DICT_HDR_PAGE * 4096;
    mach_write_4(page + DICT_HDR_VERSION, 1);
    fil_page_stamp(page, 4096);
    assert_int_not_equal(engine_open(f->os, &f->probe, &f->options, true, &f->engine, &f->err),
                         DB_SUCCESS);
    assert_non_null(strstr(f->err.msg, "format version 1, which has no unique indexes"));
    f->engine = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_prefix, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_marked_is_free, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_conflicts, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_revived, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_given_back_and_taken_again, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_build_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_build_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_recovered, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_older_catalogue, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
