/** ADD COLUMN with ALGORITHM=INSTANT: rows that are without the column and rows that have it,
refusals, crashes. */
#include "test_api_instant.h"
#include "api/api_int.h"
#include "test_api_crash.h"
#include "trx/trx_int.h"

static void test_rows_of_both_kinds(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t on_n = index_def("in", "n", 10);
    create_varied(f, 300);
    uint64_t rebuilt = stats_of(f).tables_rebuilt;
    add_instant(f, "n", "before");
    check_text(f, 7, "n", "before");
    insert_whole(f, 1000, "own");
    update_rows(f, "t", 8, 9, 'x');
    add_instant(f, "m", NULL);
    add_instant(f, "o", "third");
    insert_whole(f, 1001, "all");
    check_text(f, 8, "n", "before");
    check_text(f, 8, "m", NULL);
    check_text(f, 300, "o", "third");
    check_text(f, 1000, "n", "own");
    check_text(f, 1000, "o", "third");
    check_text(f, 1001, "m", "all");
    assert_int_equal(engine_table(f->engine, "t")->n_core, 4);
    assert_int_equal(stats_of(f).columns_added_instant, 3);
    assert_int_equal(stats_of(f).tables_rebuilt, rebuilt);
    OK(f, add_indexes(f->engine, "t", &on_n, 1));
    check_and_reopen(f, 302);
    check_text(f, 8, "n", "before");
    check_text(f, 1000, "o", "third");
    assert_int_equal(count_rows(f, "t", "in"), 302);
    OK(f, rebuild_table(f->engine, "t"));
    assert_int_equal(engine_table(f->engine, "t")->n_core, 7);
    check_text(f, 300, "o", "third");
    check_text(f, 1001, "m", "all");
    check_and_reopen(f, 302);
}

/** Old rows stay what they are through rollback, splits, merges, defragmentation and deletion of
all; the metadata record is the first one of every shape of the tree. */
static void test_tree_changes_around_metadata(void **state)
{
    fixture_t *f = *state;
    create_varied(f, 10);
    add_instant(f, "n", "old");
    trx_t *trx = NULL;
    byte key[8];
    mach_write_8(key, dict_bigint_encode(3));
    OK(f, engine_begin(f->engine, &trx));
    OK(f, engine_delete(f->engine, trx, "t", key));
    OK(f, engine_rollback(f->engine, trx));
    check_text(f, 3, "n", "old");
    for (int64_t a = 1; a <= 390; a++) {
        insert_whole(f, -a, "newer text, to split leaves");
    }
    for (int64_t a = 11; a <= 100; a++) {
        insert_whole(f, a, "newer text, to split leaves");
    }
    assert_true(stats_of(f).btr_splits > 2);
    check_text(f, 3, "n", "old");
    check_and_reopen(f, 490);
    delete_rows(f, "t", -390, -1);
    delete_rows(f, "t", 1, 50);
    purge_all(f);
    const ddl_alter_t pack = {.kind = ALTER_DEFRAGMENT, .table = "t"};
    OK(f, engine_alter(f->engine, &pack));
    check_and_reopen(f, 50);
    delete_rows(f, "t", 51, 100);
    check_and_reopen(f, 0);
    add_instant(f, "m", "of no row");
    insert_whole(f, 1, "x");
    check_text(f, 1, "m", "x");
    check_and_reopen(f, 1);
}

/** Without rows there is nothing to be without. */
static void test_empty_table_needs_none(void **state)
{
    fixture_t *f = *state;
    create_varied(f, 0);
    add_instant(f, "n", "nobody");
    assert_int_equal(engine_table(f->engine, "t")->n_core, 5);
    insert_whole(f, 1, "x");
    add_instant(f, "m", "somebody");
    assert_int_equal(engine_table(f->engine, "t")->n_core, 5);
    check_text(f, 1, "m", "somebody");
    OK(f, engine_alter(f->engine, &(ddl_alter_t){.kind = ALTER_TRUNCATE, .table = "t"}));
    assert_int_equal(engine_table(f->engine, "t")->n_core, 6);
    check_and_reopen(f, 0);
}

static void check_refused(fixture_t *f, const ddl_alter_t *alter, const char *why)
{
    assert_int_equal(engine_alter(f->engine, alter), DB_UNSUPPORTED);
    assert_non_null(strstr(engine_error(f->engine), why));
    assert_non_null(strstr(engine_error(f->engine), "Try ALGORITHM=INPLACE"));
}

static void test_refusals(void **state)
{
    fixture_t *f = *state;
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(new);
    ddl_alter_t alter = add_column(new, "n", DICT_VARCHAR, 100);
    alter.algorithm = ALGORITHM_NOCOPY;
    assert_int_equal(engine_alter(f->engine, &alter), DB_NOT_FOUND);
    create_table(f, "t");
    insert_rows(f, "t", 1, 5);
    check_refused(f, &alter, "records of the table have one size");
    const ddl_alter_t last = alter;
    alter.algorithm = ALGORITHM_INPLACE;
    OK(f, engine_alter(f->engine, &alter));
    alter = last;
    assert_int_equal(engine_alter(f->engine, &alter), DB_ALREADY_EXISTS);
    alter.name = "m";
    memcpy(new->col.name, "m", 2);
    alter.after = "a";
    check_refused(f, &alter, "the last one");
    alter.after = NULL;
    byte text[41];
    memset(text, 'v', sizeof(text));
    dict_col_put(&new->col, new->row, text, sizeof(text));
    check_refused(f, &alter, "too long");
    dict_col_put(&new->col, new->row, text, sizeof(text) - 1);
    assert_int_equal(engine_start_alter(f->engine, &alter), DB_UNSUPPORTED);
    const ddl_alter_t clauses[] = {alter, {.kind = ALTER_REBUILD}};
    ddl_alter_t both = *CLAUSES("t", clauses);
    both.algorithm = ALGORITHM_INSTANT;
    both.col = alter.col;
    both.value = alter.value;
    assert_int_equal(engine_alter(f->engine, &both), DB_UNSUPPORTED);
    OK(f, engine_alter(f->engine, &alter));
    check_value(f, 5, "m", text, 40);
    free(new);
}

/** A crash at any fault point, in recovery too: the column is there with its metadata, or neither
is. */
static void test_crashes(void **state)
{
    fixture_t *f = *state;
    const shape_t full = {.exists = true, .rows = 200, .n_indexes = 2, .index = "ic"};
    crash_t crash = {.f = f, .table = "t", .every = 1, .nested = true};
    create_varied(f, 200);
    OK(f, engine_checkpoint(f->engine, true));
    crash_arm(&crash, full, full);
    add_instant(f, "n", "first");
    update_rows(f, "t", 20, 40, 'x');
    add_instant(f, "m", "second");
    crash_disarm(&crash);
    assert_int_equal(point_count(&crash, "trx.metadata_set"), 2);
    assert_true(crash.crashes > 10);
    check_text(f, 20, "m", "second");
}

/** A transaction that gives `t` one more column by metadata, and is rolled back. */
static void roll_metadata_back(fixture_t *f)
{
    dict_t *dict = trx_sys_dict(f->engine->sys);
    dict_table_t *changed = NULL;
    trx_t *trx = NULL;
    byte *row = malloc(ROW_SIZE_MAX);
    assert_non_null(row);
    OK(f, dict_table_copy(dict, engine_table(f->engine, "t"), &changed));
    changed->cols[changed->n_cols] =
        (dict_col_t){.name = "x", .type = DICT_BIGINT, .len = 8, .nullable = true, .instant = true};
    changed->n_cols++;
    OK(f, dict_table_layout(changed, PAGE_SIZE_MIN, &f->engine->env.err));
    dict_row_init(changed, row);
    OK(f, trx_begin(f->engine->sys, &trx));
    OK(f, row_set_metadata(trx, changed, row));
    OK(f, trx_rollback(trx));
    free(changed);
    free(row);
}

/** The tree is as it was, of several pages or of one. */
static void test_rollback_takes_metadata_back(void **state)
{
    fixture_t *f = *state;
    for (int64_t rows = 2; rows <= 302; rows += 300) {
        create_varied(f, rows);
        roll_metadata_back(f);
        assert_int_equal(count_rows(f, "t", NULL), rows);
        add_instant(f, "n", "stays");
        roll_metadata_back(f);
        check_text(f, rows, "n", "stays");
        check_and_reopen(f, (uint64_t)rows);
        OK(f, engine_drop_table(f->engine, "t"));
    }
}

/** An update of rows with texts of these lengths, which are without the column n, is taken back. */
static void take_back_update(fixture_t *f, const char *text, uint32_t from, uint32_t to)
{
    byte b[B_LEN];
    const row_upd_t upd = {.col = 1, .value = b};
    trx_t *trx = NULL;
    memset(b, 'x', sizeof(b));
    OK(f, engine_begin(f->engine, &trx));
    for (uint32_t len = from; len <= to; len++) {
        byte pk[8];
        mach_write_8(pk, dict_bigint_encode(len));
        OK(f, engine_update(f->engine, trx, "t", pk, &upd, 1));
    }
    OK(f, engine_rollback(f->engine, trx));
    for (uint32_t len = from; len <= to; len++) {
        check_value(f, len, "w", (const byte *)text, len);
        check_text(f, len, "n", "in no row");
    }
}

/** A row that is as long as a page allows, and has no room for the column that was added, comes
back as it was: rollback gives it no column that it did not have. */
static void test_rollback_of_rows_without_room(void **state)
{
    fixture_t *f = *state;
    uint32_t most = page_rec_max(PAGE_SIZE_MIN);
    char *text = malloc(most + 1);
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(text);
    assert_non_null(new);
    memset(text, 't', most);
    create_table(f, "t");
    const ddl_alter_t alter = add_column(new, "w", DICT_VARCHAR, most);
    OK(f, engine_alter(f->engine, &alter));
    uint32_t from = most - 130;
    for (uint32_t len = from; len <= most; len++) {
        text[len] = '\0';
        insert_whole(f, len, text);
        text[len] = 't';
    }
    add_instant(f, "n", "in no row");
    take_back_update(f, text, from, most);
    check_and_reopen(f, most - from + 1);
    take_back_update(f, text, from, most);
    free(new);
    free(text);
}

static void update_text(fixture_t *f, trx_t *trx, const char *name, const char *text)
{
    byte pk[8];
    byte value[DICT_LEN_SIZE + 60] = {0};
    const row_upd_t upd = {.col = find_col(f, name), .value = value};
    mach_write_8(pk, dict_bigint_encode(1));
    mach_write_2(value, (uint32_t)strlen(text));
    memcpy(value + DICT_LEN_SIZE, text, strlen(text));
    OK(f, engine_update(f->engine, trx, "t", pk, &upd, 1));
}

/** A version that is as the metadata record has it, between two that are not: each comes back, with
its entries. */
static void test_rollback_by_version(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t on_n = index_def("in", "n", 0);
    trx_t *trx = NULL;
    create_varied(f, 5);
    add_instant(f, "n", "as added");
    OK(f, add_indexes(f->engine, "t", &on_n, 1));
    for (int ends = 0; ends < 2; ends++) {
        OK(f, engine_begin(f->engine, &trx));
        update_text(f, trx, "n", "own");
        uint64_t savepoint = engine_savepoint(f->engine, trx);
        update_text(f, trx, "n", "as added");
        update_text(f, trx, "v", "another");
        if (ends == 0) {
            OK(f, engine_rollback(f->engine, trx));
            check_text(f, 1, "n", "as added");
        } else {
            OK(f, engine_rollback_to(f->engine, trx, savepoint));
            OK(f, engine_commit(f->engine, trx));
            check_text(f, 1, "n", "own");
        }
        check_and_reopen(f, 5);
    }
}

/** Fixed columns until there may be no more. @return how many */
static uint32_t add_fixed_columns(fixture_t *f)
{
    uint32_t n = 0;
    for (dberr_t err = DB_SUCCESS; err == DB_SUCCESS; n++) {
        char name[8];
        new_column_t *new = malloc(sizeof(*new));
        assert_non_null(new);
        (void)snprintf(name, sizeof(name), "f%u", n);
        ddl_alter_t alter = add_column(new, name, DICT_CHAR, 100);
        alter.algorithm = ALGORITHM_INSTANT;
        dict_col_put(&new->col, new->row, (const byte *)"fixed", 5);
        err = engine_alter(f->engine, &alter);
        free(new);
    }
    assert_non_null(strstr(engine_error(f->engine), "an undo record"));
    return n - 1;
}

/** An undo record has the starts of long texts and the instant columns, though its row has neither:
a table whose undo records would not fit a page is refused. */
static void test_undo_records_fit(void **state)
{
    fixture_t *f = *state;
    new_column_t *new = malloc(sizeof(*new));
    char text[1500];
    assert_non_null(new);
    memset(text, 't', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    create_table(f, "t");
    for (const char *name = "uvw"; *name != '\0'; name++) {
        const char of_one[2] = {*name, '\0'};
        const ddl_alter_t alter = add_column(new, of_one, DICT_VARCHAR, sizeof(text));
        OK(f, engine_alter(f->engine, &alter));
    }
    const ddl_index_def_t defs[] = {index_def("iu", "u", 700), index_def("iv", "v", 700)};
    OK(f, add_indexes(f->engine, "t", defs, 2));
    insert_whole(f, 1, text);
    assert_true(add_fixed_columns(f) > 0);
    trx_t *trx = NULL;
    byte pk[8];
    mach_write_8(pk, dict_bigint_encode(1));
    dict_col_put(&new->col, new->row, (const byte *)"x", 1);
    const row_upd_t upd = {.col = find_col(f, "v"), .value = new->row + new->col.row_offset};
    OK(f, engine_begin(f->engine, &trx));
    OK(f, engine_update(f->engine, trx, "t", pk, &upd, 1));
    OK(f, engine_rollback(f->engine, trx));
    check_text(f, 1, "v", text);
    check_and_reopen(f, 1);
    free(new);
}

static void test_as_many_as_a_table_has(void **state)
{
    fixture_t *f = *state;
    create_varied(f, 50);
    for (uint32_t i = engine_table(f->engine, "t")->n_cols; i <= COLUMNS_MAX; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(try_instant(f, name, name), i < COLUMNS_MAX ? DB_SUCCESS : DB_ERROR);
    }
    check_text(f, 50, "n31", "n31");
    check_and_reopen(f, 50);
}

/** The file of a table goes with its metadata, and the .cfg says so. */
static void test_export_and_import(void **state)
{
    fixture_t *f = *state;
    create_varied(f, 120);
    add_instant(f, "n", "exported");
    insert_whole(f, 500, "own");
    OK(f, engine_rename_table(f->engine, "t", "source"));
    create_varied(f, 3);
    add_instant(f, "n", "gone");
    const ddl_alter_t out = {.kind = ALTER_EXPORT, .table = "source"};
    const ddl_alter_t in = {.kind = ALTER_IMPORT, .table = "t", .name = "source"};
    OK(f, engine_start_alter(f->engine, &out));
    OK(f, engine_alter(f->engine, &in));
    OK(f, engine_finish_alter(f->engine, "source"));
    check_text(f, 120, "n", "exported");
    check_text(f, 500, "n", "own");
    add_instant(f, "m", "later");
    check_text(f, 120, "m", "later");
    check_and_reopen(f, 121);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_of_both_kinds, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_tree_changes_around_metadata, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_empty_table_needs_none, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refusals, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rollback_takes_metadata_back, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rollback_of_rows_without_room, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rollback_by_version, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_undo_records_fit, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_as_many_as_a_table_has, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_export_and_import, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
