/** The scanner's own tests: one item is damaged by hand, with right checksums where it lies inside
a page, and the scan must report it under its number, and under no other. */
#include <unistd.h>

#include "base/crc32c.h"
#include "page/page_index.h"
#include "test_check_fixture.h"
#include "test_random.h"

/** A purged, cleanly closed database with table t1 of 160 rows and two indexes. */
typedef struct items {
    dbx_t *db;
    index_id_t ids[3]; /**< PRIMARY, ib, ibx */
    page_no_t roots[3];
} items_t;

static items_t items_create(bool purge)
{
    items_t it = {.db = dbx_create(false)};
    dbx_t *db = it.db;
    cfx_create_table(db, "t1");
    trx_t *trx = cfx_begin(db);
    cfx_insert(db, trx, "t1", 1, 160);
    ASSERT_OK(db, trx_commit(trx));
    cfx_add_indexes(db, "t1", "ib", 2);
    trx = cfx_begin(db);
    cfx_update(db, trx, "t1", 1, 30, 1);
    cfx_delete(db, trx, "t1", 31, 40);
    ASSERT_OK(db, trx_commit(trx));
    if (purge) {
        cfx_purge(db);
    }
    const dict_table_t *table = cfx_table(db, "t1");
    assert_int_equal(table->n_indexes, 3);
    for (uint32_t i = 0; i < 3; i++) {
        it.ids[i] = table->indexes[i].id;
        it.roots[i] = table->indexes[i].tree.root;
    }
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    dbx_close(db);
    return it;
}

/** Scans, and fails unless there are findings and all are of this invariant. Frees the database. */
static void expect_only(items_t *it, uint32_t invariant)
{
    check_report_t report;
    cfx_scan(it->db, &report);
    bool ok = report.n_findings > 0;
    for (uint64_t i = 0; i < report.n_findings && i < CHECK_FINDINGS_MAX; i++) {
        ok = ok && report.findings[i].invariant == invariant;
    }
    if (!ok) {
        cfx_print_findings(&report);
        fail_msg("expected findings of I%" PRIu32 " only", invariant);
    }
    check_report_free(&report);
    dbx_free(it->db);
}

/** The same once the damaged page has its right checksums. */
static void expect_stamped(items_t *it, byte *page, uint32_t invariant)
{
    dbx_stamp(it->db, page);
    expect_only(it, invariant);
}

#define COVERS 128U /**< pages per descriptor page: 4096 / 256 * 8 */

/** Descriptor of a page's extent in the bytes of a space. */
static byte *bytes_xdes(byte *bytes, page_no_t page_no)
{
    byte *page = bytes + (size_t)(page_no - page_no % COVERS) * 4096;
    return page + FSP_XDES + page_no % COVERS / FX_EXTENT_PAGES * xdes_size(FX_EXTENT_PAGES);
}

static bool bytes_page_is_used(byte *bytes, page_no_t page_no)
{
    return page_no < mach_read_4(bytes + FSP_FREE_LIMIT)
           && (bytes_xdes(bytes, page_no)[XDES_BITMAP] >> page_no % FX_EXTENT_PAGES & 1) != 0;
}

/** The n-th leaf (from 0) of an index, in page order. */
static byte *leaf(items_t *it, uint32_t index, uint32_t n)
{
    uint64_t size = 0;
    byte *bytes = dbx_bytes(it->db, "t1.ibd", &size);
    for (uint64_t at = 0; at + 4096 <= size; at += 4096) {
        byte *page = bytes + at;
        /* Freed pages keep their old contents: the descriptors tell. */
        if (bytes_page_is_used(bytes, (page_no_t)(at / 4096))
            && fil_page_get_type(page) == FIL_PAGE_INDEX && page_index_id(page) == it->ids[index]
            && page_level(page) == 0 && n-- == 0) {
            return page;
        }
    }
    fail_msg("no such leaf");
    return NULL;
}

static byte *last_leaf(items_t *it, uint32_t index)
{
    for (uint32_t n = 0;; n++) {
        byte *page = leaf(it, index, n);
        if (fil_page_get_next(page) == FIL_NULL) {
            return page;
        }
    }
}

static byte *root(items_t *it, uint32_t index)
{
    return dbx_home(it->db, "t1.ibd", it->roots[index]);
}

/** Record in a slot, to be changed. */
static byte *rec_at(byte *page, uint32_t slot)
{
    return page + page_rec_offset(page, 4096, slot);
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

/** Bytes of the table's space. */
static byte *space_bytes(items_t *it)
{
    uint64_t size = 0;
    return dbx_bytes(it->db, "t1.ibd", &size);
}

/** A leaf of the clustered index in an extent of its segment that is not full. */
static byte *leaf_in_extent(items_t *it)
{
    byte *bytes = space_bytes(it);
    for (uint32_t n = 0;; n++) {
        byte *page = leaf(it, 0, n);
        const byte *xdes = bytes_xdes(bytes, fil_page_get_id(page).page_no);
        if (mach_read_4(xdes + XDES_STATE) == XDES_STATE_FSEG && xdes[XDES_BITMAP] != 0xFF) {
            return page;
        }
    }
}

/** The inode that a root's header leads to. */
static byte *inode_of(items_t *it, uint32_t index, uint32_t header)
{
    const byte *at = root(it, index) + header;
    return space_bytes(it) + (size_t)mach_read_4(at + FSEG_HEADER_PAGE) * 4096
           + mach_read_2(at + FSEG_HEADER_OFFSET);
}

/** Repairs the checksum of the page that a byte of the space lies in. */
static void stamp_at(items_t *it, const byte *at)
{
    byte *bytes = space_bytes(it);
    dbx_stamp(it->db, bytes + (size_t)(at - bytes) / 4096 * 4096);
}

static void add_4(byte *at, uint32_t n)
{
    mach_write_4(at, mach_read_4(at) + n);
}

/** Each count and each list base of page 0 and of an inode. */
static void test_i11_counts(void **state)
{
    (void)state;
    static const uint32_t HEADER[] = {FSP_FRAG_N_USED,     FSP_FREE,
                                      FSP_FREE_FRAG,       FSP_FULL_FRAG,
                                      FSP_SEG_INODES_FREE, FSP_FREE + FLST_LAST,
                                      FSP_FREE_LIMIT,      FSP_SEG_INODES_FULL};
    for (size_t i = 0; i < sizeof HEADER / sizeof *HEADER; i++) {
        items_t it = items_create(true);
        byte *page0 = space_bytes(&it);
        add_4(page0 + HEADER[i], 1);
        expect_stamped(&it, page0, 11);
    }
    static const uint32_t INODE[] = {FSEG_NOT_FULL_N_USED, FSEG_FREE, FSEG_NOT_FULL, FSEG_FULL,
                                     FSEG_MAGIC,           FSEG_FRAGS};
    for (size_t i = 0; i < sizeof INODE / sizeof *INODE; i++) {
        items_t it = items_create(true);
        byte *inode = inode_of(&it, 0, PAGE_SEG_LEAF);
        add_4(inode + INODE[i], 1);
        stamp_at(&it, inode);
        expect_only(&it, 11);
    }
}

/** Descriptors: state, segment, links, a bit too few and too many. */
static void test_i11_descriptors(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        items_t it = items_create(true);
        byte *page = leaf_in_extent(&it);
        page_no_t page_no = fil_page_get_id(page).page_no;
        byte *xdes = bytes_xdes(space_bytes(&it), page_no);
        byte bit = (byte)(1U << page_no % FX_EXTENT_PAGES);
        switch (i) {
        case 0:
            mach_write_4(xdes + XDES_STATE, XDES_STATE_FREE_FRAG);
            break;
        case 1:
            mach_write_8(xdes + XDES_ID, mach_read_8(xdes + XDES_ID) + 1);
            break;
        case 2:
            mach_write_4(xdes + XDES_STATE, 9);
            break;
        case 3:
            mach_write_4(xdes + XDES_NODE + FLST_PREV, 1);
            break;
        case 4:
            mach_write_4(xdes + XDES_NODE + FLST_NEXT, 0);
            mach_write_2(xdes + XDES_NODE + FLST_NEXT + 4, FSP_XDES + XDES_NODE);
            break;
        default: /* a leaf that its extent calls free */
            xdes[XDES_BITMAP] = (byte)(xdes[XDES_BITMAP] & ~bit);
            break;
        }
        stamp_at(&it, xdes);
        expect_only(&it, 11);
    }
}

/** Pages: one that no tree leads to, a leaf of another segment, a fragment named twice, a file cut. */
static void test_i11_pages(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = leaf_in_extent(&it);
    page_no_t page_no = fil_page_get_id(page).page_no;
    byte *xdes = bytes_xdes(space_bytes(&it), page_no);
    while (bytes_page_is_used(space_bytes(&it), page_no)) {
        page_no = page_no / FX_EXTENT_PAGES * FX_EXTENT_PAGES + (page_no + 1) % FX_EXTENT_PAGES;
    }
    xdes[XDES_BITMAP] = (byte)(xdes[XDES_BITMAP] | 1U << page_no % FX_EXTENT_PAGES);
    stamp_at(&it, xdes);
    byte *inode = inode_of(&it, 0, PAGE_SEG_LEAF);
    byte *copy = dbx_home(it.db, "t1.ibd", page_no);
    memcpy(copy, page, 4096);
    mach_write_4(copy + FIL_PAGE_OFFSET, page_no);
    dbx_stamp(it.db, copy);
    if (__builtin_popcount(xdes[XDES_BITMAP]) < (int)FX_EXTENT_PAGES) {
        add_4(inode + FSEG_NOT_FULL_N_USED, 1);
        stamp_at(&it, inode);
    }
    expect_only(&it, 11);
    it = items_create(true);
    byte header[FSEG_HEADER_SIZE];
    page = root(&it, 1);
    memcpy(header, page + PAGE_SEG_LEAF, sizeof header);
    memcpy(page + PAGE_SEG_LEAF, page + PAGE_SEG_TOP, sizeof header);
    memcpy(page + PAGE_SEG_TOP, header, sizeof header);
    expect_stamped(&it, page, 11);
    it = items_create(true);
    page = root(&it, 1);
    memcpy(page + PAGE_SEG_LEAF, root(&it, 0) + PAGE_SEG_LEAF, sizeof header);
    expect_stamped(&it, page, 11);
    it = items_create(true);
    inode = inode_of(&it, 1, PAGE_SEG_LEAF);
    memcpy(inode + FSEG_FRAGS, inode_of(&it, 0, PAGE_SEG_LEAF) + FSEG_FRAGS, 4);
    stamp_at(&it, inode);
    expect_only(&it, 11);
    it = items_create(true);
    os_file_t *file = NULL;
    ASSERT_OK(it.db, env_open(&it.db->env, "t1.ibd", OS_OPEN, &file));
    uint64_t size = 0;
    ASSERT_OK(it.db, env_size(&it.db->env, file, &size));
    ASSERT_OK(it.db, env_truncate(&it.db->env, file, size - 1));
    env_close(&it.db->env, file);
    expect_only(&it, 11);
}

/** Reserved bytes of descriptor pages and free inodes; segment headers outside of a root. */
static void test_i6_space_management(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *page = space_bytes(&it);
    page[4096 - 9] = 1;
    expect_stamped(&it, page, 6);
    it = items_create(true);
    const byte *header = root(&it, 0) + PAGE_SEG_TOP;
    page = dbx_home(it.db, "t1.ibd", mach_read_4(header + FSEG_HEADER_PAGE));
    page[FSEG_INODES + 40 * fseg_inode_size(FX_EXTENT_PAGES) + 20] = 1;
    expect_stamped(&it, page, 6);
    it = items_create(true);
    page = leaf(&it, 0, 1);
    page[PAGE_SEG_LEAF + 3] = 1;
    expect_stamped(&it, page, 6);
}

/** Overwrites a BIGINT in the only row of SYS_TABLES: its page is found by the index id. */
static void set_sys_table_number(items_t *it, uint32_t offset, uint64_t value)
{
    uint64_t size = 0;
    byte *bytes = dbx_bytes(it->db, FIL_SYSTEM_PATH, &size);
    for (uint64_t at = 0; at + 4096 <= size; at += 4096) {
        byte *page = bytes + at;
        if (fil_page_get_type(page) == FIL_PAGE_INDEX && page_index_id(page) == INDEX_ID_FIRST
            && page_n_recs(page) == 1) {
            mach_write_8(rec_at(page, 0) + offset, value ^ 1ULL << 63);
            dbx_stamp(it->db, page);
            return;
        }
    }
    fail_msg("no SYS_TABLES page");
}

#define SYS_TABLES_SPACE (1 + 8 + 6 + 7 + 64)
#define SYS_TABLES_STATUS (SYS_TABLES_SPACE + 16)

static void test_i12_catalogue_and_files(void **state)
{
    (void)state;
    items_t it = items_create(true);
    ASSERT_OK(it.db, env_rename(&it.db->env, "t1.ibd", "t3.ibd"));
    expect_only(&it, 12);
    it = items_create(true);
    ASSERT_OK(it.db, env_unlink(&it.db->env, "t1.ibd"));
    expect_only(&it, 12);
    it = items_create(true);
    set_sys_table_number(&it, SYS_TABLES_STATUS, DICT_INCOMPLETE);
    expect_only(&it, 12);
    it = items_create(true);
    set_sys_table_number(&it, SYS_TABLES_SPACE, 99);
    expect_only(&it, 12);
    it = items_create(true);
    byte *map = dbx_home(it.db, "t1.ibd", 0);
    mach_write_4(map + FSP_SPACE_ID, 9);
    expect_stamped(&it, map, 12);
}

static void test_i12_leftovers(void **state)
{
    (void)state;
    static const char *const names[] = {"#sql-tmp-33-1", "ib_logfile101"};
    for (uint32_t i = 0; i < 2; i++) {
        items_t it = items_create(true);
        os_file_t *file = NULL;
        ASSERT_OK(it.db, env_open(&it.db->env, names[i], OS_CREATE_NEW, &file));
        env_close(&it.db->env, file);
        expect_only(&it, 12);
    }
    items_t it = items_create(true);
    uint64_t size = 0;
    byte *bytes = dbx_bytes(it.db, "t1.ibd", &size);
    os_file_t *file = NULL;
    ASSERT_OK(it.db, env_open(&it.db->env, "t0.ibd", OS_CREATE_NEW, &file));
    ASSERT_OK(it.db, env_write(&it.db->env, file, 0, bytes, 4096));
    env_close(&it.db->env, file);
    check_report_t report;
    cfx_scan(it.db, &report);
    bool found = false;
    for (uint64_t i = 0; i < report.n_findings; i++) {
        found |= report.findings[i].invariant == 12;
    }
    assert_true(found);
    check_report_free(&report);
    dbx_free(it.db);
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
    os_t *os = NULL;
    assert_int_equal(os_mem_create(&os), DB_SUCCESS);
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
    assert_int_equal(os->vt->list(os, unlink_entry, os), DB_SUCCESS);
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
        check_report_t report;
        err_sink_t sink = {.msg = ""};
        if (check_run(dbx_os(image), &report, &sink) == DB_SUCCESS) {
            check_report_free(&report);
        }
        if (dbx_open(image) == DB_SUCCESS && buf_checkpoint_full(image->pool) == DB_SUCCESS) {
            dbx_close(image);
            if (check_run(dbx_os(image), &report, &sink) == DB_SUCCESS) {
                check_report_free(&report);
            }
        }
        dbx_free(image);
    }
    dbx_free(dirty);
    dbx_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_i4_lsn_beyond_log),
        cmocka_unit_test(test_i5_envelope),
        cmocka_unit_test(test_i6_shape),
        cmocka_unit_test(test_i7_order),
        cmocka_unit_test(test_i8_links),
        cmocka_unit_test(test_i9_bounds_and_parents),
        cmocka_unit_test(test_i10_index_agrees),
        cmocka_unit_test(test_i11_counts),
        cmocka_unit_test(test_i11_descriptors),
        cmocka_unit_test(test_i11_pages),
        cmocka_unit_test(test_i6_space_management),
        cmocka_unit_test(test_i12_catalogue_and_files),
        cmocka_unit_test(test_i12_leftovers),
        cmocka_unit_test(test_i25_marks),
        cmocka_unit_test(test_i2_active_transaction),
        cmocka_unit_test(test_needs_recovery),
        cmocka_unit_test(test_on_files),
        cmocka_unit_test(test_hostile_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
