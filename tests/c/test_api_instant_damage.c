/** Instant columns of images that no engine writes: undo records, references, marks, records. */
#include "api/api_int.h"
#include "page/fil_page.h"
#include "test_api_instant.h"
#include "trx/trx_int.h"

/** Of an undo record of metadata, what is left of the record before: too short to be one. */
static void test_hostile_metadata(void **state)
{
    fixture_t *f = *state;
    create_varied(f, 5);
    add_instant(f, "n", "first");
    dict_table_t *table = NULL;
    trx_t *trx = NULL;
    byte *bytes = malloc((size_t)2 * ROW_SIZE_MAX);
    assert_non_null(bytes);
    OK(f, dict_table_copy(trx_sys_dict(f->engine->sys), engine_table(f->engine, "t"), &table));
    dict_row_init(table, bytes + ROW_SIZE_MAX);
    OK(f, trx_begin(f->engine->sys, &trx));
    OK(f, row_set_metadata(trx, table, bytes + ROW_SIZE_MAX));
    undo_rec_t rec;
    roll_ptr_t roll_ptr = 0;
    OK(f, undo_read_last(trx, bytes, &rec, &roll_ptr));
    for (uint32_t len = 1; len < 1 + 8 + DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN; len++) {
        undo_rec_t less = rec;
        less.cols_len = len;
        assert_int_equal(row_undo(trx, &less, roll_ptr), DB_CORRUPTION);
    }
    OK(f, trx_rollback(trx));
    check_text(f, 5, "n", "first");
    free(table);
    free(bytes);
}

/** An undo record that makes of a row more than a page takes. */
static void test_hostile_undo(void **state)
{
    fixture_t *f = *state;
    new_column_t *new = malloc(sizeof(*new));
    byte *bytes = malloc((size_t)2 * ROW_SIZE_MAX);
    trx_t *trx = NULL;
    assert_non_null(new);
    assert_non_null(bytes);
    create_table(f, "t");
    for (const char *name = "uv"; *name != '\0'; name++) {
        const char of_one[2] = {*name, '\0'};
        const ddl_alter_t alter = add_column(new, of_one, DICT_VARCHAR, 1500);
        OK(f, engine_alter(f->engine, &alter));
    }
    insert_whole(f, 1, "short");
    const dict_table_t *table = engine_table(f->engine, "t");
    byte pk[8];
    mach_write_8(pk, dict_bigint_encode(1));
    row_upd_t upd = {.col = find_col(f, "u"), .value = new->row + new->col.row_offset};
    OK(f, engine_begin(f->engine, &trx));
    OK(f, engine_update(f->engine, trx, "t", pk, &upd, 1));
    undo_rec_t rec;
    roll_ptr_t roll_ptr = 0;
    OK(f, undo_read_last(trx, bytes, &rec, &roll_ptr));
    byte *row = bytes + ROW_SIZE_MAX;
    byte *text = malloc(1500);
    assert_non_null(text);
    memset(text, 't', 1500);
    uint32_t len = undo_rec_start(bytes, &rec);
    rec.cols = bytes + len;
    rec.n_cols = 2;
    rec.pk = pk;
    dict_row_init(table, row);
    for (const char *name = "uv"; *name != '\0'; name++) {
        const char of_one[2] = {*name, '\0'};
        dict_col_put(&table->cols[find_col(f, of_one)], row, text, 1500);
        len = undo_rec_add_col(bytes, len, table, find_col(f, of_one), row, NULL);
    }
    rec.cols_len = (uint32_t)(bytes + len - rec.cols);
    assert_int_equal(row_undo(trx, &rec, roll_ptr), DB_CORRUPTION);
    OK(f, engine_rollback(f->engine, trx));
    check_text(f, 1, "u", "short");
    free(text);
    free(bytes);
    free(new);
}

/** A text that is too short to have pages of its own has none, whatever a record says: rows would
not fit. */
static void test_hostile_reference(void **state)
{
    fixture_t *f = *state;
    err_sink_t sink = {.msg = ""};
    create_varied(f, 1);
    add_instant(f, "n", "first");
    dict_table_t *table = NULL;
    byte *bytes = malloc((size_t)2 * ROW_SIZE_MAX);
    assert_non_null(bytes);
    OK(f, dict_table_copy(trx_sys_dict(f->engine->sys), engine_table(f->engine, "t"), &table));
    dict_row_init(table, bytes);
    uint32_t col = find_col(f, "v");
    dict_col_put(&table->cols[col], bytes, (const byte *)"x", 1);
    dict_ext_t *ext = calloc(1, sizeof(*ext));
    assert_non_null(ext);
    ext->n_cols = table->n_cols;
    ext->is[col] = true;
    ext->refs[col] =
        (blob_ref_t){.space = table->space, .page_no = FIL_NULL, .len = 0, .owner = true};
    for (uint32_t len = DICT_LOCAL_MAX; len <= DICT_LOCAL_MAX + 1; len++) {
        byte *rec = bytes + ROW_SIZE_MAX;
        table->cols[col].len = len;
        uint32_t rec_len = dict_row_to_rec(table, bytes, ext, 0, 0, rec);
        assert_int_equal(dict_rec_check(table, rec, rec_len, &sink),
                         len > DICT_LOCAL_MAX ? DB_SUCCESS : DB_CORRUPTION);
    }
    free(ext);
    free(table);
    free(bytes);
}

/** The page of the table's file that `is` says yes to. */
static byte *find_page(fixture_t *f, bool (*is)(const byte *page))
{
    uint64_t size = 0;
    byte *bytes = image_os_bytes(f->os, "t.ibd", &size);
    uint32_t page_size = PAGE_SIZE_MIN;
    for (uint64_t at = 0; at + page_size <= size; at += page_size) {
        if (fil_page_get_type(bytes + at) == FIL_PAGE_INDEX && is(bytes + at)) {
            return bytes + at;
        }
    }
    fail_msg("no such page");
    return NULL;
}

static bool is_marked_root(const byte *page)
{
    return page_instant(page) != 0;
}

/** The leftmost leaf of the only table that has metadata. */
static bool is_first_leaf(const byte *page)
{
    return page_level(page) == 0 && page_rec_size(page) == PAGE_REC_VARIES && page_n_recs(page) > 0
           && fil_page_get_prev(page) == FIL_NULL && fil_page_get_next(page) != FIL_NULL;
}

typedef void (*damage_fn)(byte *page, byte *meta);

static void no_mark(byte *page, byte *meta)
{
    (void)meta;
    page[PAGE_INSTANT] = 0;
}

static void other_mark(byte *page, byte *meta)
{
    (void)meta;
    page[PAGE_INSTANT]++;
}

static void no_metadata(byte *page, byte *meta)
{
    (void)page;
    meta[0] = REC_INFO_INSTANT;
}

static void deleted(byte *page, byte *meta)
{
    (void)page;
    meta[0] |= REC_INFO_DELETE_MARK;
}

static void one_column_less(byte *page, byte *meta)
{
    (void)page;
    meta[1 + 8 + DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN]--;
}

static void with_key(byte *page, byte *meta)
{
    (void)page;
    meta[8] = 1;
}

static void row_of_more_columns(byte *page, byte *meta)
{
    (void)meta;
    byte *rec = page + page_rec_offset(page, PAGE_SIZE_MIN, 1);
    rec[0] |= REC_INFO_INSTANT;
    rec[1 + 8 + DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN] = COLUMNS_MAX;
}

static void row_of_fewer_columns(byte *page, byte *meta)
{
    (void)meta;
    byte *rec = page + page_rec_offset(page, PAGE_SIZE_MIN, 1);
    rec[0] |= REC_INFO_INSTANT;
    rec[1 + 8 + DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN] = 2;
}

/** The scanner says I6 and nothing else, and the engine does not read such rows. */
static void check_damage(fixture_t *f, bool root, damage_fn damage)
{
    create_varied(f, 200);
    add_instant(f, "n", "first");
    add_instant(f, "m", "second");
    purge_all(f);
    fixture_close(f, true);
    byte *page = find_page(f, root ? is_marked_root : is_first_leaf);
    damage(page, page + page_rec_offset(page, PAGE_SIZE_MIN, 0));
    fil_page_stamp(page, PAGE_SIZE_MIN);
    check_report_t report;
    err_sink_t err = {.msg = ""};
    assert_int_equal(check_run(f->os, &report, &err), DB_SUCCESS);
    assert_true(report.n_findings > 0);
    for (uint64_t i = 0; i < report.n_findings && i < CHECK_FINDINGS_MAX; i++) {
        bool mark = damage == deleted && report.findings[i].invariant == 25;
        if (report.findings[i].invariant != 6 && !mark) {
            fail_msg("I%u: %s", report.findings[i].invariant, report.findings[i].what);
        }
    }
    check_report_free(&report);
    fixture_open(f);
    uint64_t n = 0;
    assert_int_equal(engine_scan(f->engine, "t", NULL, count_row_fn, &n), DB_CORRUPTION);
    fixture_empty(f);
    fixture_open(f);
}

static void test_damage(void **state)
{
    fixture_t *f = *state;
    check_damage(f, true, no_mark);
    check_damage(f, true, other_mark);
    check_damage(f, false, no_metadata);
    check_damage(f, false, one_column_less);
    check_damage(f, false, row_of_more_columns);
    check_damage(f, false, row_of_fewer_columns);
    check_damage(f, false, deleted);
    check_damage(f, false, with_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hostile_metadata, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hostile_undo, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hostile_reference, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damage, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
