/** A closed database to be damaged by hand, and what the scan must say then: on top of
test_check_fixture.h. */
#ifndef TEST_CHECK_DAMAGE_H
#define TEST_CHECK_DAMAGE_H

#include "page/page_index.h"
#include "test_check_fixture.h"

/** A cleanly closed database, purged if so told, with table t1 of 160 rows and two indexes. */
typedef struct items {
    dbx_t *db;
    index_id_t ids[3]; /**< PRIMARY, ib, ibx */
    page_no_t roots[3];
} items_t;

static inline items_t items_create(bool purge)
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
static inline void expect_only(items_t *it, uint32_t invariant)
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
static inline void expect_stamped(items_t *it, byte *page, uint32_t invariant)
{
    dbx_stamp(it->db, page);
    expect_only(it, invariant);
}

#define COVERS 128U /**< pages per descriptor page: 4096 / 256 * 8 */

/** Descriptor of a page's extent in the bytes of a space. */
static inline byte *bytes_xdes(byte *bytes, page_no_t page_no)
{
    byte *page = bytes + (size_t)(page_no - page_no % COVERS) * 4096;
    return page + FSP_XDES + page_no % COVERS / FX_EXTENT_PAGES * xdes_size(FX_EXTENT_PAGES);
}

static inline bool bytes_page_is_used(byte *bytes, page_no_t page_no)
{
    return page_no < mach_read_4(bytes + FSP_FREE_LIMIT)
           && (bytes_xdes(bytes, page_no)[XDES_BITMAP] >> page_no % FX_EXTENT_PAGES & 1) != 0;
}

/** The n-th leaf (from 0) of an index, in page order. */
static inline byte *leaf(items_t *it, uint32_t index, uint32_t n)
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

static inline byte *root(items_t *it, uint32_t index)
{
    return dbx_home(it->db, "t1.ibd", it->roots[index]);
}

/** Record in a slot, to be changed. */
static inline byte *rec_at(byte *page, uint32_t slot)
{
    return page + page_rec_offset(page, 4096, slot);
}

#endif
