/** Long values and rows of any size as the scanner sees them: one item is damaged by hand, and
reported under its number and no other; hostile bytes end the scan, and the engine's reading,
without harm. */
#include "page/page_blob.h"
#include "test_check_damage.h"
#include "test_random.h"

#define N_ROWS 12
#define LONG_MAX 9000U

static void make_row(const dict_table_t *table, int64_t a, uint32_t len, byte *row)
{
    byte number[8];
    mach_write_8(number, dict_bigint_encode(a));
    byte text[LONG_MAX];
    memset(text, 'a' + (int)(a % 26), sizeof(text));
    dict_row_init(table, row);
    dict_col_put(&table->cols[0], row, number, 8);
    dict_col_put(&table->cols[1], row, text, len);
    dict_col_put(&table->cols[2], row, text, (uint32_t)(a % 60));
}

static void insert_rows(dbx_t *db, const int64_t first, uint32_t len)
{
    dict_table_t *table = cfx_table(db, "t1");
    byte *row = malloc(table->row_size);
    trx_t *trx = cfx_begin(db);
    assert_non_null(row);
    for (int64_t a = first; a < first + N_ROWS; a++) {
        make_row(table, a, len, row);
        ASSERT_OK(db, row_insert(trx, table, row));
    }
    ASSERT_OK(db, trx_commit(trx));
    free(row);
}

static void update_row(dbx_t *db, int64_t a, uint32_t len)
{
    dict_table_t *table = cfx_table(db, "t1");
    byte *row = malloc(table->row_size);
    trx_t *trx = cfx_begin(db);
    assert_non_null(row);
    make_row(table, a + 1, len, row);
    byte pk[8];
    mach_write_8(pk, dict_bigint_encode(a));
    row_upd_t upd = {.col = 1, .value = row + table->cols[1].row_offset};
    ASSERT_OK(db, row_update(trx, table, pk, &upd, 1));
    ASSERT_OK(db, trx_commit(trx));
    free(row);
}

/** A closed database: rows with texts of two pages each, some replaced, whose old ones wait for
purge unless that was done; and rows that fit their page. */
static items_t long_create(bool purge)
{
    items_t it = {.db = dbx_create(false)};
    dbx_t *db = it.db;
    dict_table_t *table = calloc(1, sizeof(*table));
    assert_non_null(table);
    snprintf(table->name, sizeof(table->name), "t1");
    table_add_col(table, "a", DICT_BIGINT, 8);
    table_add_col(table, "b", DICT_VARCHAR, LONG_MAX);
    table_add_col(table, "c", DICT_VARCHAR, 100);
    table->cols[1].nullable = true;
    table->indexes[0].n_fields = 1;
    ASSERT_OK(db, ddl_create_table(db->sys, table));
    free(table);
    insert_rows(db, 100, 5000);
    insert_rows(db, 200, 300);
    update_row(db, 101, 6000);
    update_row(db, 102, 10);
    update_row(db, 203, 4000);
    if (purge) {
        cfx_purge(db);
    }
    it.ids[0] = cfx_table(db, "t1")->indexes[0].id;
    it.roots[0] = cfx_table(db, "t1")->indexes[0].tree.root;
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    dbx_close(db);
    return it;
}

/** The n-th page in use of a long value. */
static byte *part(items_t *it, uint32_t n)
{
    uint64_t size = 0;
    byte *bytes = dbx_bytes(it->db, "t1.ibd", &size);
    for (uint64_t at = 0; at + 4096 <= size; at += 4096) {
        if (bytes_page_is_used(bytes, (page_no_t)(at / 4096))
            && fil_page_get_type(bytes + at) == FIL_PAGE_TYPE_BLOB && n-- == 0) {
            return bytes + at;
        }
    }
    fail_msg("no such part");
    return NULL;
}

/** The first part that has another one behind it. */
static byte *first_of_two(items_t *it)
{
    for (uint32_t n = 0;; n++) {
        byte *page = part(it, n);
        if (mach_read_4(page + BLOB_NEXT) != FIL_NULL) {
            return page;
        }
    }
}

/** The n-th reference in a row, and its page. */
static byte *reference(items_t *it, byte **page, uint32_t n)
{
    for (uint32_t i = 0;; i++) {
        *page = leaf(it, 0, i);
        for (uint32_t slot = 0; slot < page_n_recs(*page); slot++) {
            byte *at = rec_at(*page, slot) + 1 + 8 + 13 + 1;
            if (mach_read_2(at) == 0x8014 && n-- == 0) {
                return at + 2;
            }
        }
    }
}

static void test_clean(void **state)
{
    (void)state;
    for (int purge = 0; purge < 2; purge++) {
        items_t it = long_create(purge);
        check_report_t report;
        cfx_scan_clean(it.db, &report);
        assert_int_equal(report.tables[0].rows, 2 * N_ROWS);
        assert_true(purge ? report.history_len == 0 : report.history_len > 0);
        check_report_free(&report);
        dbx_free(it.db);
    }
}

static void test_parts(void **state)
{
    static const struct {
        uint32_t at;
        uint32_t value;
    } WRONG[] = {{BLOB_PART_LEN, 0},
                 {BLOB_PART_LEN, 5001},
                 {BLOB_PART_LEN, 17},
                 {BLOB_NEXT, FIL_NULL},
                 {BLOB_RESERVED, 1},
                 {BLOB_INDEX_ID, 1},
                 {FIL_PAGE_TYPE, (uint32_t)FIL_PAGE_UNDO_LOG << 16}};
    (void)state;
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        items_t it = long_create(true);
        byte *page = first_of_two(&it);
        mach_write_4(page + WRONG[i].at, WRONG[i].value);
        expect_stamped(&it, page, 6);
    }
    items_t it = long_create(true);
    first_of_two(&it)[3000] ^= 1;
    expect_only(&it, 5);
    it = long_create(true);
    byte *page = first_of_two(&it);
    mach_write_4(page + BLOB_NEXT, fil_page_get_id(page).page_no); /* a circle */
    expect_stamped(&it, page, 11);
}

static void test_references(void **state)
{
    (void)state;
    byte *page = NULL;
    byte *other = NULL;
    for (int purge = 0; purge < 2; purge++) {
        items_t it = long_create(purge);
        byte *ref = reference(&it, &page, 0);
        memcpy(ref, reference(&it, &other, 3), BLOB_REF_SIZE); /* two owners, and a lost chain */
        expect_stamped(&it, page, 11);
        it = long_create(purge);
        ref = reference(&it, &page, 0);
        mach_write_4(ref + 4, 1U << 20);
        expect_stamped(&it, page, 11);
        it = long_create(purge);
        ref = reference(&it, &page, 0);
        mach_write_4(ref + 16, 4999);
        expect_stamped(&it, page, 6);
        it = long_create(purge);
        ref = reference(&it, &page, 0);
        mach_write_4(ref + 12, BLOB_REF_NOT_OWNER);
        expect_stamped(&it, page, 6);
        it = long_create(purge);
        ref = reference(&it, &page, 0);
        mach_write_4(ref + 4, FIL_NULL);
        mach_write_4(ref + 16, 0); /* the chain is nobody's */
        expect_stamped(&it, page, 11);
    }
}

/** Bytes of a record that make it no row of the table. */
static void test_records(void **state)
{
    static const struct {
        uint32_t at;
        byte value;
    } WRONG[] = {{22, 2}, {23, 0x7F}, {23, 0x81}, {24, 0x13}};
    (void)state;
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        items_t it = long_create(true);
        byte *page = leaf(&it, 0, 0);
        rec_at(page, 0)[WRONG[i].at] = WRONG[i].value;
        expect_stamped(&it, page, 6);
    }
}

/** Whatever the bytes of leaves and parts are, the scan ends and the engine reads a row or
refuses. */
static void test_hostile(void **state)
{
    (void)state;
    uint64_t seed = 77;
    for (uint32_t round = 0; round < 60; round++) {
        items_t it = long_create(round % 2 == 0);
        for (uint32_t hit = 0; hit < 4; hit++) {
            byte *page =
                random_next(&seed) % 2 == 0 ? part(&it, random_next(&seed) % 8) : leaf(&it, 0, 0);
            uint32_t at = 38 + (uint32_t)(random_next(&seed) % (hit == 0 ? 24 : 1200));
            page[at] = (byte)random_next(&seed);
            dbx_stamp(it.db, page);
        }
        check_report_t report;
        cfx_scan(it.db, &report);
        check_report_free(&report);
        dbx_free(it.db);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),      cmocka_unit_test(test_parts),
        cmocka_unit_test(test_references), cmocka_unit_test(test_records),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
