/** The scanner's own tests: one item is damaged by hand, with right checksums where it lies inside
a page, and the scan must report it under its number, and under no other. */
#include <unistd.h>

#include "base/crc32c.h"
#include "dict/dict_sys.h"
#include "page/page_compress.h"
#include "test_check_damage.h"
#include "test_random.h"
#include "trx/undo_format.h"

static byte *last_leaf(items_t *it, uint32_t index)
{
    for (uint32_t n = 0;; n++) {
        byte *page = leaf(it, index, n);
        if (fil_page_get_next(page) == FIL_NULL) {
            return page;
        }
    }
}

static void test_clean(void **state)
{
    (void)state;
    for (int purge = 0; purge < 2; purge++) {
        items_t it = items_create(purge);
        check_report_t report;
        cfx_scan_clean(it.db, &report);
        assert_int_equal(report.n_tables, 1);
        assert_string_equal(report.tables[0].name, "t1");
        assert_int_equal(report.tables[0].rows, 150);
        assert_int_equal(report.tables[0].n_indexes, 2);
        assert_string_equal(report.tables[0].indexes[0].name, "ib");
        assert_int_equal(report.tables[0].indexes[1].entries, 150);
        assert_true(report.pages_checked > 20);
        assert_true(purge ? report.history_len == 0 : report.history_len > 0);
        check_report_free(&report);
        dbx_free(it.db);
    }
}

static void test_i4_lsn_beyond_log(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = leaf(&it, 0, 2);
    fil_page_set_lsn(page, 4096, 1U << 30);
    expect_stamped(&it, page, 4);
}

/** A compressed page is read like any other; one that vouches for what it does not hold is another
thing than a torn one. */
static void test_i29_compressed(void **state)
{
    (void)state;
    items_t it = items_create(true);
    page_compress(leaf(&it, 1, 0), 4096, PAGE_ALGORITHM_LZ4);
    page_compress(leaf(&it, 0, 2), 4096, PAGE_ALGORITHM_ZSTD);
    check_report_t report;
    cfx_scan_clean(it.db, &report);
    check_report_free(&report);
    dbx_free(it.db);
    it = items_create(true);
    byte *page = leaf(&it, 1, 0);
    page_compress(page, 4096, PAGE_ALGORITHM_LZ4);
    page[PAGE_COMP_DATA] ^= 1;
    expect_only(&it, 5);
    it = items_create(true);
    page = leaf(&it, 1, 0);
    page_compress(page, 4096, PAGE_ALGORITHM_LZ4);
    mach_write_8(page + PAGE_COMP_ALGORITHM, PAGE_ALGORITHM_ZSTD);
    mach_write_4(page, crc32c(page + 4, PAGE_COMP_DATA + mach_read_2(page + PAGE_COMP_LENGTH) - 4));
    expect_only(&it, 29);
}

static void test_i5_envelope(void **state)
{
    (void)state;
    items_t it = items_create(true);
    leaf(&it, 0, 2)[2000] ^= 1;
    expect_only(&it, 5);
    it = items_create(true);
    memset(leaf(&it, 1, 0), 0, 4096);
    expect_only(&it, 5);
    it = items_create(true);
    byte *page = leaf(&it, 1, 0);
    mach_write_4(page + FIL_PAGE_OFFSET, 77);
    expect_stamped(&it, page, 5);
    it = items_create(true);
    dbx_tear(it.db, "t1.ibd", 0);
    expect_only(&it, 5);
}

static void test_i6_shape(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = leaf(&it, 0, 1);
    mach_write_2(page + PAGE_HEAP_TOP, page_n_recs(page) + 1000);
    expect_stamped(&it, page, 6);
    it = items_create(true);
    page = root(&it, 1);
    mach_write_8(page + PAGE_INDEX_ID, it.ids[2]);
    expect_stamped(&it, page, 6);
    it = items_create(true);
    page = root(&it, 1);
    rec_at(page, 0)[0] = 0; /* no minimum record */
    expect_stamped(&it, page, 6);
    it = items_create(true);
    page = dbx_home(it.db, FIL_SYSTEM_PATH, RSEG_PAGE);
    page[56] = 1;
    expect_stamped(&it, page, 6);
    it = items_create(true);
    page = leaf(&it, 0, 1);
    mach_write_2(page + FIL_PAGE_TYPE, FIL_PAGE_TYPE_BLOB); /* nobody has looked at its records */
    mach_write_2(page + PAGE_N_RECS, 4000);
    expect_stamped(&it, page, 6);
}

static void test_i7_order(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = leaf(&it, 0, 1);
    byte *slots = page + 4096 - FIL_PAGE_TRAILER - 8;
    uint32_t third = mach_read_2(slots);
    mach_write_2(slots, mach_read_2(slots + 2));
    mach_write_2(slots + 2, third);
    expect_stamped(&it, page, 7);
}

/** The catalogue calls the index on b unique, and two rows have the same b. */
static void test_i7_unique(void **state)
{
    (void)state;
    dbx_t *db = dbx_create(false);
    items_t it = {.db = db};
    cfx_create_table(db, "t1");
    trx_t *trx = cfx_begin(db);
    byte row[CFX_ROW_MAX];
    for (int64_t a = 1; a <= 3; a++) {
        cfx_row(a == 3 ? 1 : a, 0, row);
        mach_write_8(row, dict_bigint_encode(a));
        ASSERT_OK(db, row_insert(trx, cfx_table(db, "t1"), row));
    }
    ASSERT_OK(db, trx_commit(trx));
    cfx_add_indexes(db, "t1", "ib", 1);
    uint32_t sys_root = dict_sys_table(db->dict, SYS_INDEXES)->indexes[0].tree.root;
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    dbx_close(db);
    byte *page = dbx_home(db, FIL_SYSTEM_PATH, sys_root);
    byte *type = rec_at(page, page_n_recs(page) - 1) + 102;
    assert_int_equal(dict_bigint_decode(mach_read_8(type)), 0);
    mach_write_8(type, dict_bigint_encode(SYS_INDEX_UNIQUE));
    expect_stamped(&it, page, 7);
}

static void test_i8_links(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = leaf(&it, 0, 1);
    mach_write_4(page + FIL_PAGE_NEXT, fil_page_get_id(page).page_no);
    expect_stamped(&it, page, 8);
    it = items_create(true);
    page = leaf(&it, 0, 2);
    mach_write_4(page + FIL_PAGE_PREV, fil_page_get_id(page).page_no);
    expect_stamped(&it, page, 8);
    it = items_create(true);
    page = last_leaf(&it, 2);
    mach_write_4(page + FIL_PAGE_NEXT, 3);
    expect_stamped(&it, page, 8);
}

static void test_i9_bounds_and_parents(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = root(&it, 0);
    assert_int_equal(page_level(page), 1);
    uint32_t slot = 1;
    for (bool same = false; !same; slot += !same) {
        page_no_t child = mach_read_4(rec_at(page, slot) + 9);
        same =
            memcmp(rec_at(page, slot) + 1, rec_at(dbx_home(it.db, "t1.ibd", child), 0) + 1, 8) == 0;
    }
    rec_at(page, slot)[8]++; /* lowest byte of the key */
    expect_stamped(&it, page, 9);
    it = items_create(true);
    page = root(&it, 0);
    memcpy(rec_at(page, 2) + 9, rec_at(page, 1) + 9, 4);
    expect_stamped(&it, page, 9);
}

static void test_i10_index_agrees(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = last_leaf(&it, 1);
    byte *rec = rec_at(page, page_n_recs(page) - 1);
    rec[page_rec_size(page) - 1]++; /* another primary key */
    expect_stamped(&it, page, 10);
    it = items_create(true);
    page = last_leaf(&it, 2);
    assert_int_equal(page_rec_delete(page, 4096, page_n_recs(page) - 1), DB_SUCCESS);
    expect_stamped(&it, page, 10);
    it = items_create(true);
    page = leaf(&it, 0, 0);
    rec_at(page, 0)[1 + 8 + 6 + 7]++; /* column b of a row */
    expect_stamped(&it, page, 10);
}

/** The first transaction id that nobody was given. */
static trx_id_t next_trx_id(const items_t *it)
{
    return mach_read_8(dbx_home(it->db, FIL_SYSTEM_PATH, TRX_SYS_PAGE) + TRX_SYS_MAX_ID);
}

static void test_i25_marks(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = leaf(&it, 0, 0);
    mach_write_6(rec_at(page, 0) + 1 + 8, 1);
    expect_stamped(&it, page, 25);
    it = items_create(false);
    page = leaf(&it, 0, 0);
    mach_write_6(rec_at(page, 0) + 1 + 8, 1ULL << 40);
    expect_stamped(&it, page, 25);
    it = items_create(false);
    page = leaf(&it, 0, 0);
    mach_write_6(rec_at(page, 0) + 1 + 8, next_trx_id(&it));
    expect_stamped(&it, page, 25);
    /* A delete-marked row whose entries are marked too. */
    it = items_create(true);
    page = leaf(&it, 0, 0);
    byte pk[8];
    byte *rec = rec_at(page, 0);
    memcpy(pk, rec + 1, 8);
    rec[0] |= REC_INFO_DELETE_MARK;
    dbx_stamp(it.db, page);
    for (uint32_t index = 1; index < 3; index++) {
        bool marked = false;
        for (uint32_t n = 0; !marked; n++) {
            page = leaf(&it, index, n);
            for (uint32_t slot = 0; slot < page_n_recs(page); slot++) {
                rec = rec_at(page, slot);
                if (memcmp(rec + page_rec_size(page) - 8, pk, 8) == 0) {
                    rec[0] |= REC_INFO_DELETE_MARK;
                    marked = true;
                }
            }
            dbx_stamp(it.db, page);
        }
    }
    expect_only(&it, 25);
}

/** A row of the catalogue. */
static void test_i25_catalogue(void **state)
{
    (void)state;
    items_t it = {.db = dbx_create(false)};
    cfx_create_table(it.db, "t1");
    page_no_t sys_root = dict_sys_table(it.db->dict, SYS_TABLES)->indexes[0].tree.root;
    dbx_close_clean(it.db);
    byte *page = dbx_home(it.db, FIL_SYSTEM_PATH, sys_root);
    mach_write_6(rec_at(page, 0) + 1 + 8, next_trx_id(&it));
    expect_stamped(&it, page, 25);
}

/* A database whose log is applied, but whose open transaction nobody has rolled back. */
static void test_i2_active_transaction(void **state)
{
    (void)state;
    items_t it = {.db = dbx_create(false)};
    cfx_create_table(it.db, "t1");
    trx_t *trx = cfx_begin(it.db);
    cfx_insert(it.db, trx, "t1", 1, 5);
    ASSERT_OK(it.db, buf_checkpoint_full(it.db->pool));
    dbx_close(it.db);
    expect_only(&it, 2);
}

/* With changes in the log behind the checkpoint nothing is checked, and the report says so. */
static void test_needs_recovery(void **state)
{
    (void)state;
    dbx_t *db = dbx_create(false);
    cfx_create_table(db, "t1");
    dbx_close(db);
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    assert_int_equal(check_run(dbx_os(db), &report, &sink), DB_SUCCESS);
    assert_true(report.needs_recovery);
    assert_int_equal(report.n_findings, 0);
    check_report_free(&report);
    dbx_free(db);
    os_t *os = image_os_create();
    assert_int_equal(check_run(os, &report, &sink), DB_NOT_FOUND);
    os_destroy(os);
}

static dberr_t unlink_entry(void *ctx, const char *name)
{
    os_t *os = ctx;
    return os->vt->unlink(os, name);
}

/* The same on real files: a crash with an open transaction, recovery, scan. */
static void test_on_files(void **state)
{
    (void)state;
    char dir[] = "/tmp/tornpage-check-XXXXXX";
    assert_non_null(mkdtemp(dir));
    os_t *os = NULL;
    err_sink_t sink = {.msg = ""};
    assert_int_equal(os_posix_create(dir, false, &sink, &os), DB_SUCCESS);
    dbx_t *db = dbx_alloc(os);
    dbx_bootstrap(db, false);
    cfx_create_table(db, "t1");
    trx_t *trx = cfx_begin(db);
    cfx_insert(db, trx, "t1", 1, 60);
    ASSERT_OK(db, trx_commit(trx));
    cfx_add_indexes(db, "t1", "ib", 2);
    trx = cfx_begin(db);
    cfx_delete(db, trx, "t1", 1, 10);
    dbx_flush_log(db);
    dbx_close(db);
    ASSERT_OK(db, dbx_open(db));
    assert_int_equal(db->env.stats.recv_trx_rolled_back, 1);
    dbx_close_clean(db);
    check_report_t report;
    cfx_scan_clean(db, &report);
    assert_int_equal(report.tables[0].rows, 60);
    check_report_free(&report);
    assert_int_equal(os->vt->list(os, OS_ROOT, unlink_entry, os), DB_SUCCESS);
    dbx_free(db);
    assert_int_equal(rmdir(dir), 0);
}

/** Right checksums around a damaged byte: of its page, or of its log block. */
static void restamp(dbx_t *db, byte *bytes, uint64_t at, bool log)
{
    if (!log) {
        dbx_stamp(db, bytes + at / 4096 * 4096);
        return;
    }
    byte *block = bytes + at / LOG_BLOCK_SIZE * LOG_BLOCK_SIZE;
    mach_write_4(block + LOG_BLOCK_SIZE - 4, crc32c(block, LOG_BLOCK_SIZE - 4));
}

/** What the scanner says of an image that may be anything: it is refused with a line, or read to
its end; nothing else. @return whether something was found wrong */
static bool scan_hostile(dbx_t *image)
{
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    dberr_t err = check_run(dbx_os(image), &report, &sink);
    if (err != DB_SUCCESS) {
        assert_true(err == DB_NOT_FOUND || err == DB_UNRECOVERABLE);
        assert_true(sink.msg[0] != '\0');
        return true;
    }
    bool found = report.n_findings > 0;
    for (uint32_t i = 0; i < report.n_findings && i < CHECK_FINDINGS_MAX; i++) {
        assert_true(report.findings[i].what[0] != '\0');
    }
    check_report_free(&report);
    return found;
}

/* Random damage, with and without right checksums: the scanner and recovery come to an end, with
any verdict. */
static void test_hostile_images(void **state)
{
    (void)state;
    static const char *const files[] = {"t1.ibd", FIL_SYSTEM_PATH, LOG_FILE_NAME, DBLWR_FILE_NAME};
    items_t it = items_create(false);
    dbx_t *base = it.db;
    ASSERT_OK(base, dbx_open(base));
    trx_t *trx = cfx_begin(base);
    cfx_update(base, trx, "t1", 100, 110, 3);
    ASSERT_OK(base, trx_commit(trx));
    trx = cfx_begin(base);
    cfx_insert(base, trx, "t1", 400, 405);
    dbx_flush_log(base);
    dbx_t *dirty = dbx_clone(base);
    uint64_t seed = 42;
    uint32_t n_found = 0;
    uint32_t n_refused = 0;
    for (uint32_t round = 0; round < 300; round++) {
        dbx_t *image = dbx_clone(dirty);
        if (round % 3 == 0) { /* a clean image, so that the scanner looks at all of it */
            ASSERT_OK(image, dbx_open(image));
            dbx_close_clean(image);
        }
        const char *path = files[round % 4];
        uint64_t size = 0;
        byte *bytes = dbx_bytes(image, path, &size);
        size = path == files[2] ? 64 * LOG_BLOCK_SIZE : size; /* where the log is in use */
        for (uint32_t i = 0; i < 1 + round % 5; i++) {
            random_step(&seed);
            uint64_t at = (seed >> 20) % size;
            at = i % 2 == 0 ? at : at / 4096 * 4096 + at % 100; /* headers are small */
            bytes[at] = (byte)(seed >> 12);
            if (round % 2 == 0 || path == files[2]) {
                restamp(image, bytes, at, path == files[2]);
            }
        }
        n_found += scan_hostile(image);
        if (dbx_open(image) == DB_SUCCESS && buf_checkpoint_full(image->pool) == DB_SUCCESS) {
            dbx_close(image);
            (void)scan_hostile(image);
        } else {
            n_refused++;
        }
        dbx_free(image);
    }
    assert_in_range(n_found, 30, 299);
    assert_in_range(n_refused, 30, 299);
    dbx_free(dirty);
    dbx_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_i4_lsn_beyond_log),
        cmocka_unit_test(test_i29_compressed),
        cmocka_unit_test(test_i5_envelope),
        cmocka_unit_test(test_i6_shape),
        cmocka_unit_test(test_i7_order),
        cmocka_unit_test(test_i7_unique),
        cmocka_unit_test(test_i8_links),
        cmocka_unit_test(test_i9_bounds_and_parents),
        cmocka_unit_test(test_i10_index_agrees),
        cmocka_unit_test(test_i25_marks),
        cmocka_unit_test(test_i25_catalogue),
        cmocka_unit_test(test_i2_active_transaction),
        cmocka_unit_test(test_needs_recovery),
        cmocka_unit_test(test_on_files),
        cmocka_unit_test(test_hostile_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
