/** ALTER TABLE of several clauses: what they make of a table together, what is refused, and what
others may do meanwhile. */
#include "test_api_fixture.h"

static ddl_alter_t add_clause(const ddl_index_def_t *def)
{
    return (ddl_alter_t){.kind = ALTER_ADD_INDEX, .defs = def, .n_defs = 1};
}

static ddl_alter_t drop_clause(alter_kind_t kind, const char *name)
{
    return (ddl_alter_t){.kind = kind, .name = name};
}

static ddl_alter_t rename_clause(alter_kind_t kind, const char *name, const char *new_name)
{
    return (ddl_alter_t){.kind = kind, .name = name, .new_name = new_name};
}

/** A table of 300 rows with ib(b) and ic(c). */
static void make_table(fixture_t *f)
{
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    add_two_indexes(f, "t");
}

static bool has_index(fixture_t *f, const char *name)
{
    const dict_table_t *table = engine_table(f->engine, "t");
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        if (strcmp(table->indexes[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static stats_t stats_of(fixture_t *f)
{
    engine_status_t status;
    engine_get_status(f->engine, &status);
    return status.stats;
}

static void close_and_scan(fixture_t *f)
{
    check_report_t report;
    fixture_close(f, true);
    scan_clean(f->os, &report);
    check_report_free(&report);
    fixture_open(f);
}

/* ---- in place ---- */

/** A name goes and comes; new indexes speak of columns by their new names. */
static void check_in_place(fixture_t *f, bool optimize, ddl_lock_t lock)
{
    const ddl_index_def_t ib = index_def("ib", "d", 9);
    const ddl_index_def_t ja = index_def("ja", "a", 0);
    const ddl_alter_t clauses[] = {add_clause(&ib), rename_clause(ALTER_RENAME_COLUMN, "b", "d"),
                                   drop_clause(ALTER_DROP_INDEX, "ib"),
                                   rename_clause(ALTER_RENAME_INDEX, "ic", "ix"), add_clause(&ja)};
    ddl_alter_t alter = *CLAUSES("t", clauses);
    alter.lock = lock;
    alter.algorithm = ALGORITHM_NOCOPY;
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    make_table(f);
    uint32_t space = engine_table(f->engine, "t")->space;
    OK(f, engine_start_alter(f->engine, &alter));
    OK(f, engine_step_alter(f->engine, "t", 3, 50));
    assert_int_equal(count_rows(f, "t", "ib"), 300);
    assert_int_equal(count_rows(f, "t", "ic"), 300);
    if (lock == LOCK_NONE) {
        insert_rows(f, "t", 301, 340);
        update_rows(f, "t", 1, 40, 'x');
        delete_rows(f, "t", 41, 80);
    }
    OK(f, engine_finish_alter(f->engine, "t"));
    const dict_table_t *table = engine_table(f->engine, "t");
    assert_int_equal(table->space, space);
    assert_int_equal(table->n_indexes, 4);
    assert_string_equal(table->cols[1].name, "d");
    assert_true(has_index(f, "ib") && has_index(f, "ix") && has_index(f, "ja"));
    assert_false(has_index(f, "ic"));
    assert_int_equal(count_rows(f, "t", "ib"), 300);
    assert_int_equal(count_rows(f, "t", "ja"), 300);
    assert_int_equal(stats_of(f).alters_combined, 1);
    assert_int_equal(stats_of(f).rebuilds_combined, 0);
    assert_int_equal(stats_of(f).indexes_dropped, 1);
    close_and_scan(f);
}

static void test_in_place_not_logged(void **state)
{
    check_in_place(*state, true, LOCK_SHARED);
}

static void test_in_place_logged(void **state)
{
    check_in_place(*state, false, LOCK_SHARED);
}

static void test_in_place_beside_changes(void **state)
{
    check_in_place(*state, true, LOCK_NONE);
}

/** Without a new index nothing is scanned: names alone are instant, indexes that go are not. */
static void test_nothing_to_load(void **state)
{
    fixture_t *f = *state;
    const ddl_alter_t names[] = {rename_clause(ALTER_RENAME_COLUMN, "b", "d"),
                                 rename_clause(ALTER_RENAME_INDEX, "ic", "ix")};
    const ddl_alter_t drops[] = {drop_clause(ALTER_DROP_INDEX, "ib"),
                                 rename_clause(ALTER_RENAME_INDEX, "ix", "ib")};
    ddl_alter_t alter = *CLAUSES("t", names);
    make_table(f);
    alter.algorithm = ALGORITHM_INSTANT;
    OK(f, engine_alter(f->engine, &alter));
    alter = *CLAUSES("t", drops);
    alter.algorithm = ALGORITHM_INSTANT;
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    alter.algorithm = ALGORITHM_DEFAULT;
    alter.lock = LOCK_NONE;
    OK(f, engine_start_alter(f->engine, &alter));
    insert_rows(f, "t", 301, 310);
    OK(f, engine_finish_alter(f->engine, "t"));
    assert_int_equal(count_rows(f, "t", "ib"), 310);
    assert_int_equal(engine_table(f->engine, "t")->n_indexes, 2);
    close_and_scan(f);
}

/** After an abort the table is as before, whichever step it came to. */
static void test_aborted(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t ib = index_def("ib", "d", 0);
    const ddl_alter_t clauses[] = {add_clause(&ib), drop_clause(ALTER_DROP_INDEX, "ib"),
                                   rename_clause(ALTER_RENAME_COLUMN, "b", "d")};
    OK(f, engine_set_log_optimize_ddl(f->engine, true));
    make_table(f);
    for (uint32_t steps = 0; steps < 8; steps++) {
        OK(f, engine_start_alter(f->engine, CLAUSES("t", clauses)));
        OK(f, engine_step_alter(f->engine, "t", steps, 500));
        OK(f, engine_abort_alter(f->engine, "t"));
        assert_string_equal(engine_table(f->engine, "t")->cols[1].name, "b");
        assert_int_equal(engine_table(f->engine, "t")->n_indexes, 3);
        assert_int_equal(count_rows(f, "t", "ib"), 300);
        update_rows(f, "t", 1, 20, (char)('a' + steps));
    }
    close_and_scan(f);
}

/* ---- a new table ---- */

/** A column comes and one goes, with the index on it; a new index is on the new column. */
static void check_rebuilt(fixture_t *f, ddl_algorithm_t algorithm, ddl_lock_t lock)
{
    const dict_col_t col = {
        .name = "e", .type = DICT_BIGINT, .len = DICT_BIGINT_LEN, .row_offset = 1};
    byte value[1 + DICT_BIGINT_LEN] = {0};
    mach_write_8(value + 1, dict_bigint_encode(7));
    ddl_index_def_t je = index_def("je", "e", 0);
    je.n_fields = 2;
    memcpy(je.fields[1].col, "a2", 3);
    je.unique = true;
    const ddl_alter_t clauses[] = {
        drop_clause(ALTER_DROP_COLUMN, "c"),
        drop_clause(ALTER_DROP_INDEX, "ic"),
        add_clause(&je),
        rename_clause(ALTER_RENAME_COLUMN, "a", "a2"),
        {.kind = ALTER_ADD_COLUMN, .name = "e", .col = &col, .after = "a2"}};
    ddl_alter_t alter = *CLAUSES("t", clauses);
    alter.col = &col;
    alter.value = value;
    alter.algorithm = algorithm;
    alter.lock = lock;
    make_table(f);
    OK(f, engine_start_alter(f->engine, &alter));
    OK(f, engine_step_alter(f->engine, "t", 3, 50));
    if (lock == LOCK_NONE) {
        delete_rows(f, "t", 1, 50);
        insert_rows(f, "t", 301, 350);
    }
    OK(f, engine_finish_alter(f->engine, "t"));
    const dict_table_t *table = engine_table(f->engine, "t");
    assert_int_equal(table->n_cols, 3);
    assert_string_equal(table->cols[0].name, "a2");
    assert_string_equal(table->cols[1].name, "e");
    assert_string_equal(table->cols[2].name, "b");
    assert_int_equal(table->n_indexes, 3);
    assert_int_equal(count_rows(f, "t", "je"), 300);
    assert_int_equal(count_rows(f, "t", "ib"), 300);
    assert_int_equal(stats_of(f).columns_added, 1);
    assert_int_equal(stats_of(f).columns_dropped, 1);
    assert_int_equal(stats_of(f).rebuilds_combined, 1);
    close_and_scan(f);
}

static void test_rebuilt(void **state)
{
    check_rebuilt(*state, ALGORITHM_INPLACE, LOCK_SHARED);
}

static void test_rebuilt_beside_changes(void **state)
{
    check_rebuilt(*state, ALGORITHM_DEFAULT, LOCK_NONE);
}

static void test_copied(void **state)
{
    check_rebuilt(*state, ALGORITHM_COPY, LOCK_SHARED);
}

/** A duplicate for the new unique index that is there at the end counts, and only that: of a
rebuild too, whose old unique indexes need no look. */
static void check_duplicate(fixture_t *f, bool rebuild, bool stays)
{
    ddl_index_def_t ub = index_def("ub", "b", 0);
    ub.unique = true;
    ddl_alter_t clauses[] = {
        add_clause(&ub), drop_clause(ALTER_DROP_INDEX, "ib"), {.kind = ALTER_REBUILD}};
    ddl_alter_t alter = *CLAUSES("t", clauses);
    alter.n_clauses -= !rebuild;
    alter.lock = LOCK_NONE;
    make_table(f);
    update_rows(f, "t", 10, 11, 'x');
    OK(f, engine_start_alter(f->engine, &alter));
    OK(f, engine_step_alter(f->engine, "t", 100, 1000));
    if (!stays) {
        update_rows(f, "t", 11, 11, 'y');
        OK(f, engine_finish_alter(f->engine, "t"));
    } else {
        assert_int_equal(engine_finish_alter(f->engine, "t"), DB_DUPLICATE_KEY);
    }
    assert_int_equal(engine_table(f->engine, "t")->n_indexes, 3);
    assert_int_equal(has_index(f, "ub"), !stays);
    assert_int_equal(has_index(f, "ib"), stays);
    close_and_scan(f);
}

static void test_duplicate_in_place(void **state)
{
    check_duplicate(*state, false, true);
}

static void test_duplicate_of_rebuild(void **state)
{
    check_duplicate(*state, true, true);
}

static void test_duplicate_that_goes(void **state)
{
    check_duplicate(*state, true, false);
}

/* ---- refusals ---- */

static void refuse(fixture_t *f, ddl_alter_t one, ddl_alter_t other, dberr_t err, const char *why)
{
    const ddl_alter_t clauses[] = {one, other};
    assert_int_equal(engine_alter(f->engine, CLAUSES("t", clauses)), err);
    assert_non_null(strstr(engine_error(f->engine), why));
    assert_int_equal(engine_table(f->engine, "t")->n_indexes, 3);
    assert_string_equal(engine_table(f->engine, "t")->cols[1].name, "b");
}

static void test_refused(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t jb = index_def("jb", "b", 0);
    const ddl_index_def_t lost = index_def("jx", "x", 0);
    const dict_col_t col = {.name = "e", .type = DICT_BIGINT, .len = DICT_BIGINT_LEN};
    const ddl_alter_t column = {.kind = ALTER_ADD_COLUMN, .name = "e", .col = &col};
    const ddl_alter_t drop = drop_clause(ALTER_DROP_INDEX, "ib");
    const ddl_alter_t names = rename_clause(ALTER_RENAME_COLUMN, "b", "d");
    make_table(f);
    refuse(f, drop, drop, DB_UNSUPPORTED, "both about the name 'ib'");
    refuse(f, drop, rename_clause(ALTER_RENAME_INDEX, "ib", "x"), DB_UNSUPPORTED, "'ib'");
    refuse(f, add_clause(&jb), rename_clause(ALTER_RENAME_INDEX, "ib", "jb"), DB_UNSUPPORTED,
           "'jb'");
    refuse(f, names, rename_clause(ALTER_RENAME_COLUMN, "c", "b"), DB_UNSUPPORTED, "'b'");
    refuse(f, rename_clause(ALTER_RENAME_COLUMN, "c", "b"), names, DB_UNSUPPORTED, "'b'");
    refuse(f, column, column, DB_UNSUPPORTED, "one new column");
    refuse(f, drop, (ddl_alter_t){.kind = ALTER_TRUNCATE}, DB_UNSUPPORTED, "beside others");
    refuse(f, drop, drop_clause(ALTER_DROP_INDEX, "no"), DB_NOT_FOUND, "no index 'no'");
    refuse(f, drop, drop_clause(ALTER_DROP_COLUMN, "c"), DB_ERROR, "is in the index 'ic'");
    refuse(f, names, add_clause(&jb), DB_NOT_FOUND, "no column 'b'");
    refuse(f, names, add_clause(&lost), DB_NOT_FOUND, "no column 'x'");
    refuse(f, drop, rename_clause(ALTER_RENAME_INDEX, "ic", "PRIMARY"), DB_ALREADY_EXISTS,
           "exists");
    const ddl_alter_t none = {.kind = ALTER_CLAUSES, .table = "t"};
    assert_int_equal(engine_alter(f->engine, &none), DB_ERROR);
}

/** What is promised of several clauses is what the least of them can keep. */
static void test_promises(void **state)
{
    fixture_t *f = *state;
    const ddl_alter_t clauses[] = {drop_clause(ALTER_DROP_INDEX, "ib"), {.kind = ALTER_REBUILD}};
    ddl_alter_t alter = *CLAUSES("missing", clauses);
    alter.algorithm = ALGORITHM_NOCOPY;
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    assert_non_null(strstr(engine_error(f->engine), "FORCE with ALGORITHM=NOCOPY"));
    alter.algorithm = ALGORITHM_COPY;
    alter.lock = LOCK_NONE;
    assert_int_equal(engine_alter(f->engine, &alter), DB_UNSUPPORTED);
    alter.lock = LOCK_DEFAULT;
    assert_int_equal(engine_alter(f->engine, &alter), DB_NOT_FOUND);
}

/** Indexes that go are there until the commit: old ones and new ones together are at most 64. */
static void test_too_many(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    char name[8];
    for (uint32_t i = 0; i < INDEXES_MAX - 1; i++) {
        (void)snprintf(name, sizeof(name), "i%u", i);
        const ddl_index_def_t def = index_def(name, "b", 1 + i % 50);
        OK(f, add_indexes(f->engine, "t", &def, 1));
    }
    const ddl_index_def_t again = index_def("i7", "c", 0);
    const ddl_alter_t clauses[] = {drop_clause(ALTER_DROP_INDEX, "i7"), add_clause(&again)};
    assert_int_equal(engine_alter(f->engine, CLAUSES("t", clauses)), DB_ERROR);
    assert_non_null(strstr(engine_error(f->engine), "more than"));
    assert_int_equal(count_rows(f, "t", "i7"), 0);
    const ddl_alter_t drops[] = {drop_clause(ALTER_DROP_INDEX, "i7"),
                                 drop_clause(ALTER_DROP_INDEX, "i9")};
    OK(f, engine_alter(f->engine, CLAUSES("t", drops)));
    assert_int_equal(engine_table(f->engine, "t")->n_indexes, INDEXES_MAX - 2);
}

/** A BIGINT primary key, and the texts u, v and w. */
static void create_texts(fixture_t *f)
{
    static const char *const NAMES[] = {"a", "u", "v", "w"};
    dict_table_t *def = calloc(1, sizeof(*def));
    assert_non_null(def);
    memcpy(def->name, "t", 2);
    for (; def->n_cols < 4; def->n_cols++) {
        dict_col_t *col = &def->cols[def->n_cols];
        memcpy(col->name, NAMES[def->n_cols], 2);
        col->type = def->n_cols == 0 ? DICT_BIGINT : DICT_VARCHAR;
        col->len = def->n_cols == 0 ? DICT_BIGINT_LEN : 1500;
    }
    def->n_indexes = 1;
    def->indexes[0].n_fields = 1;
    OK(f, engine_create_table(f->engine, def));
    free(def);
}

/** The same for undo records: they have the starts of all texts that these indexes look at. What
was refused would keep recovery from reading the catalogue. */
static void test_undo_records_fit(void **state)
{
    fixture_t *f = *state;
    const ddl_index_def_t defs[] = {index_def("iu", "u", 700), index_def("iv", "v", 700)};
    const ddl_index_def_t iw = index_def("iw", "w", 700);
    const ddl_alter_t clauses[] = {drop_clause(ALTER_DROP_INDEX, "iv"), add_clause(&iw)};
    create_texts(f);
    OK(f, add_indexes(f->engine, "t", defs, 2));
    assert_int_equal(engine_start_alter(f->engine, CLAUSES("t", clauses)), DB_ERROR);
    assert_non_null(strstr(engine_error(f->engine), "an undo record has up to 2100 bytes"));
    fixture_close(f, false);
    fixture_open(f);
    for (uint32_t i = 0; i < 2; i++) {
        ddl_alter_t one = clauses[i];
        one.table = "t";
        OK(f, engine_alter(f->engine, &one));
    }
    assert_true(has_index(f, "iw"));
    close_and_scan(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_place_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_in_place_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_in_place_beside_changes, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_to_load, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_aborted, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuilt, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_rebuilt_beside_changes, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copied, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_duplicate_in_place, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_duplicate_of_rebuild, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_duplicate_that_goes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_promises, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_too_many, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_undo_records_fit, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
