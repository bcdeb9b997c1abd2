/** The scanner on damaged space management (I6, I11), and on files that are not what the catalogue
says (I12): each is reported under its number, and under no other. */
#include "test_check_damage.h"

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
    static const uint32_t HEADER[] = {FSP_FRAG_N_USED,
                                      FSP_FREE,
                                      FSP_FREE_FRAG,
                                      FSP_FULL_FRAG,
                                      FSP_FREE_LIMIT,
                                      FSP_SEG_INODES_FREE,
                                      FSP_FREE + FLST_LAST,
                                      FSP_SEG_INODES_FULL,
                                      FSP_SEG_INODES_FREE + FLST_LAST};
    for (size_t i = 0; i < sizeof(HEADER) / sizeof(*HEADER); i++) {
        items_t it = items_create(true);
        byte *page0 = space_bytes(&it);
        add_4(page0 + HEADER[i], 1);
        expect_stamped(&it, page0, 11);
    }
    static const uint32_t INODE[] = {FSEG_NOT_FULL_N_USED, FSEG_FREE, FSEG_NOT_FULL, FSEG_FULL,
                                     FSEG_MAGIC,           FSEG_FRAGS};
    for (size_t i = 0; i < sizeof(INODE) / sizeof(*INODE); i++) {
        items_t it = items_create(true);
        byte *inode = inode_of(&it, 0, PAGE_SEG_LEAF);
        add_4(inode + INODE[i], 1);
        stamp_at(&it, inode);
        expect_only(&it, 11);
    }
}

static void add_2(byte *at, uint32_t n)
{
    mach_write_2(at, mach_read_2(at) + n);
}

/** Offsets of addresses in lists, also of those that lead to no page: the engine follows none of
them. */
static void test_i11_offsets(void **state)
{
    (void)state;
    static const uint32_t HEADER[] = {FSP_FREE + FLST_FIRST,
                                      FSP_FREE + FLST_LAST,
                                      FSP_FULL_FRAG + FLST_FIRST,
                                      FSP_FULL_FRAG + FLST_LAST,
                                      FSP_SEG_INODES_FULL + FLST_FIRST,
                                      FSP_SEG_INODES_FREE + FLST_FIRST,
                                      FSP_SEG_INODES_FULL + FLST_LAST,
                                      FSP_SEG_INODES_FREE + FLST_LAST};
    for (size_t i = 0; i < sizeof(HEADER) / sizeof(*HEADER); i++) {
        items_t it = items_create(true);
        byte *page0 = space_bytes(&it);
        add_2(page0 + HEADER[i] + 4, 1);
        expect_stamped(&it, page0, 11);
    }
    static const uint32_t NODE[] = {FLST_PREV, FLST_NEXT};
    for (uint32_t i = 0; i < 4; i++) {
        items_t it = items_create(true);
        byte *inode = inode_of(&it, 0, PAGE_SEG_LEAF);
        byte *page = space_bytes(&it) + (size_t)(inode - space_bytes(&it)) / 4096 * 4096;
        add_2(i < 2 ? page + FSEG_PAGE_NODE + NODE[i] + 4
                    : inode + FSEG_FREE + (i == 2 ? FLST_FIRST : FLST_LAST) + 4,
              1);
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

/** Segments have one another's lists of extents, and count what is on them: who owns a page is
right. */
static void test_i11_lists_exchanged(void **state)
{
    (void)state;
    items_t it = items_create(true);
    byte *leaves = inode_of(&it, 0, PAGE_SEG_LEAF);
    byte *other = inode_of(&it, 1, PAGE_SEG_LEAF);
    byte lists[FSEG_MAGIC - FSEG_NOT_FULL_N_USED];
    memcpy(lists, leaves + FSEG_NOT_FULL_N_USED, sizeof(lists));
    memcpy(leaves + FSEG_NOT_FULL_N_USED, other + FSEG_NOT_FULL_N_USED, sizeof(lists));
    memcpy(other + FSEG_NOT_FULL_N_USED, lists, sizeof(lists));
    stamp_at(&it, leaves);
    stamp_at(&it, other);
    expect_only(&it, 11);
}

/** Pages: one that no tree leads to, a leaf of another segment, a fragment named twice, a file
cut. */
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
    page = root(&it, 1);
    byte header[FSEG_HEADER_SIZE];
    memcpy(header, page + PAGE_SEG_LEAF, sizeof(header));
    memcpy(page + PAGE_SEG_LEAF, page + PAGE_SEG_TOP, sizeof(header));
    memcpy(page + PAGE_SEG_TOP, header, sizeof(header));
    expect_stamped(&it, page, 11);
    it = items_create(true);
    page = root(&it, 1);
    memcpy(page + PAGE_SEG_LEAF, root(&it, 0) + PAGE_SEG_LEAF, sizeof(header));
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

/** Where page 0 has its header a later descriptor page has nothing. */
static void test_i6_second_descriptor_page(void **state)
{
    (void)state;
    items_t it = {.db = dbx_create(false)};
    cfx_create_table(it.db, "t1");
    trx_t *trx = cfx_begin(it.db);
    cfx_insert(it.db, trx, "t1", 1, 20 * COVERS);
    ASSERT_OK(it.db, trx_commit(trx));
    dbx_close_clean(it.db);
    byte *page = dbx_home(it.db, "t1.ibd", COVERS);
    assert_int_equal(fil_page_get_type(page), FIL_PAGE_TYPE_XDES);
    page[FSP_XDES - 1] = 1;
    expect_stamped(&it, page, 6);
}

/** Overwrites a BIGINT in the last row of a system table: its page is found by the index id. */
static void set_sys_number(items_t *it, index_id_t id, uint32_t offset, uint64_t value)
{
    uint64_t size = 0;
    byte *bytes = dbx_bytes(it->db, FIL_SYSTEM_PATH, &size);
    for (uint64_t at = 0; at + 4096 <= size; at += 4096) {
        byte *page = bytes + at;
        if (fil_page_get_type(page) == FIL_PAGE_INDEX && page_index_id(page) == id) {
            mach_write_8(rec_at(page, page_n_recs(page) - 1) + offset, value ^ 1ULL << 63);
            dbx_stamp(it->db, page);
            return;
        }
    }
    fail_msg("no page of the system table");
}

#define SYS_TABLES_SPACE (1 + 8 + 6 + 7 + 64)
#define SYS_TABLES_STATUS (SYS_TABLES_SPACE + 16)
#define SYS_INDEXES_STATUS (1 + 16 + 6 + 7 + 64 + 24)

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
    set_sys_number(&it, INDEX_ID_FIRST, SYS_TABLES_STATUS, DICT_INCOMPLETE);
    expect_only(&it, 12);
    it = items_create(true);
    set_sys_number(&it, INDEX_ID_FIRST, SYS_TABLES_SPACE, 99);
    expect_only(&it, 12);
    it = items_create(true);
    set_sys_number(&it, INDEX_ID_FIRST + 2, SYS_INDEXES_STATUS, DICT_INCOMPLETE);
    expect_only(&it, 12);
    it = items_create(true);
    byte *map = dbx_home(it.db, "t1.ibd", 0);
    mach_write_4(map + FSP_SPACE_ID, 9);
    expect_stamped(&it, map, 12);
}

/** A second file with page 0 of the first, whichever is met first. */
static void expect_i12_of_a_copy(const char *path)
{
    items_t it = items_create(true);
    uint64_t size = 0;
    byte *bytes = dbx_bytes(it.db, "t1.ibd", &size);
    os_file_t *file = NULL;
    ASSERT_OK(it.db, env_open(&it.db->env, path, OS_CREATE_NEW, &file));
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
    expect_i12_of_a_copy("t0.ibd");
    expect_i12_of_a_copy("t9.ibd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_i11_counts),
        cmocka_unit_test(test_i11_offsets),
        cmocka_unit_test(test_i11_descriptors),
        cmocka_unit_test(test_i11_lists_exchanged),
        cmocka_unit_test(test_i11_pages),
        cmocka_unit_test(test_i6_space_management),
        cmocka_unit_test(test_i6_second_descriptor_page),
        cmocka_unit_test(test_i12_catalogue_and_files),
        cmocka_unit_test(test_i12_leftovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
