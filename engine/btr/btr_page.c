/* Access to the pages of one tree. Lowest file of btr/; the others get every page through here.

1. No page is used before it was checked: type, index id, level, record shape and links at each
   access (bytes of the header), the whole page and its key order (I6, I7) once after it came into
   the pool. Later changes go through mtr/, which keeps a valid page valid, so page_rec() never
   meets a bad slot.
2. A page other than the root has records; a node page has records; the leftmost page of a level
   above the leaves, and only that one, starts with MIN_REC (I9).
3. A level is always the parent's minus one, so that a circle of child pointers ends at level 0. */
#include "btr/btr_int.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"

dberr_t btr_op_start(btr_op_t *op, buf_pool_t *pool, const btr_t *btr, mtr_mode_t mode)
{
    CHECK(btr->id >= INDEX_ID_FIRST && btr->id <= UINT32_MAX);
    CHECK(btr->key_len > 0 && btr->key_len <= BTR_KEY_LEN_MAX && btr->key_len < btr->leaf_rec_size);
    op->pool = pool;
    op->btr = btr;
    op->page_size = buf_page_size(pool);
    op->root_level = 0;
    op->exact = false;
    if (mode == MTR_LOG_ALL) {
        TRY(buf_log_free_check(pool));
    }
    op->mtr = &op->own;
    mtr_start(op->mtr, pool, mode);
    return DB_SUCCESS;
}

dberr_t btr_corrupt(buf_pool_t *pool, const btr_t *btr, page_no_t page_no, const char *what)
{
    return err_set(&buf_env(pool)->err, DB_CORRUPTION,
                   "index %" PRIu64 ", space %" PRIu32 " page %" PRIu32 ": %s", btr->id, btr->space,
                   page_no, what);
}

uint32_t btr_rec_size(const btr_t *btr, uint32_t level)
{
    if (level > 0) {
        return btr_node_rec_size(btr);
    }
    return btr->leaf_varies ? PAGE_REC_VARIES : btr->leaf_rec_size;
}

dberr_t btr_segment(const btr_op_t *op, uint32_t level, fseg_header_t *out)
{
    out->offset = level == 0 ? PAGE_SEG_LEAF : PAGE_SEG_TOP;
    return mtr_page_get(op->mtr, (page_id_t){op->btr->space, op->btr->root}, &out->block);
}

page_no_t btr_node_child(const btr_t *btr, const byte *rec)
{
    return mach_read_4(rec_payload(rec) + btr->key_len);
}

/** What is wrong with the header of a page that should be on this level of the tree; NULL =
nothing. */
static const char *btr_header_fault(const btr_t *btr, const byte *page, page_no_t page_no,
                                    uint32_t level)
{
    bool root = page_no == btr->root;
    if (fil_page_get_type(page) != FIL_PAGE_INDEX) {
        return "not an index page";
    }
    if (page_index_id(page) != btr->id) {
        return "belongs to another index";
    }
    if (page_level(page) > BTR_LEVEL_MAX || (level != BTR_LEVEL_ANY && page_level(page) != level)) {
        return "wrong level";
    }
    if (page_rec_size(page) != btr_rec_size(btr, page_level(page))
        || page_key_len(page) != btr->key_len
        || (btr->instant != BTR_INSTANT_ANY && page_instant(page) != (root ? btr->instant : 0))) {
        return "record shape differs from the catalogue's";
    }
    if (page_n_recs(page) == 0 && (!root || page_level(page) > 0)) {
        return "no records";
    }
    if (root && (fil_page_get_prev(page) != FIL_NULL || fil_page_get_next(page) != FIL_NULL)) {
        return "the root has a sibling";
    }
    return NULL;
}

static bool btr_seg_headers_are_zero(const byte *page)
{
    static const byte ZEROS[PAGE_DATA - PAGE_SEG_LEAF];
    return memcmp(page + PAGE_SEG_LEAF, ZEROS, sizeof(ZEROS)) == 0;
}

/** Everything that the header does not show: slots, free list, order of keys. */
static const char *btr_page_fault(const btr_t *btr, const byte *page, uint32_t page_size)
{
    const char *why = NULL;
    if (page_index_validate(page, page_size, &why) != DB_SUCCESS) {
        return why;
    }
    if (fil_page_get_id(page).page_no != btr->root && !btr_seg_headers_are_zero(page)) {
        return "a segment header in a page that is not the root";
    }
    const byte *prev = NULL;
    for (uint32_t slot = 0; slot < page_n_recs(page); slot++) {
        const byte *rec = page_rec(page, page_size, slot);
        if (prev != NULL && !rec_is_min(prev)
            && memcmp(rec_payload(prev), rec_payload(rec), btr->key_len) >= 0) {
            return "keys do not ascend";
        }
        prev = rec;
    }
    return NULL;
}

/** Has the page a minimum record where there is none, or the other way round? */
static bool btr_min_is_wrong(const btr_t *btr, const byte *page, uint32_t page_size)
{
    bool leaf = page_level(page) == 0;
    bool due = fil_page_get_prev(page) == FIL_NULL && (!leaf || btr->instant != 0);
    if (leaf && btr->instant == BTR_INSTANT_ANY) {
        return false;
    }
    return due != (page_n_recs(page) > 0 && rec_is_min(page_rec(page, page_size, 0)));
}

dberr_t btr_page_get(buf_pool_t *pool, mtr_t *mtr, const btr_t *btr, page_no_t page_no,
                     uint32_t level, buf_block_t **out)
{
    uint32_t page_size = buf_page_size(pool);
    buf_block_t *block = NULL;
    TRY(mtr_page_get(mtr, (page_id_t){btr->space, page_no}, &block));
    const char *fault = btr_header_fault(btr, block->frame, page_no, level);
    if (fault == NULL && block->validated != btr->id) {
        fault = btr_page_fault(btr, block->frame, page_size);
        if (fault == NULL) {
            block->validated = btr->id;
        }
    }
    if (fault == NULL && btr_min_is_wrong(btr, block->frame, page_size)) {
        fault = "minimum record flag";
    }
    if (fault != NULL) {
        return btr_corrupt(pool, btr, page_no, fault);
    }
    *out = block;
    return DB_SUCCESS;
}

dberr_t btr_sibling_get(buf_pool_t *pool, mtr_t *mtr, const btr_t *btr, const buf_block_t *block,
                        bool next, buf_block_t **out)
{
    const byte *page = block->frame;
    page_no_t page_no = next ? fil_page_get_next(page) : fil_page_get_prev(page);
    if (page_no == FIL_NULL) {
        *out = NULL;
        return DB_SUCCESS;
    }
    buf_block_t *sibling = NULL;
    if (page_no == block->id.page_no) {
        return btr_corrupt(pool, btr, page_no, "is its own sibling");
    }
    TRY(btr_page_get(pool, mtr, btr, page_no, page_level(page), &sibling));
    page = sibling->frame;
    if ((next ? fil_page_get_prev(page) : fil_page_get_next(page)) != block->id.page_no) {
        return btr_corrupt(pool, btr, page_no, "does not link back to its sibling");
    }
    *out = sibling;
    return DB_SUCCESS;
}

bool btr_page_fits(const btr_op_t *op, const buf_block_t *block, uint32_t len, uint32_t freed)
{
    uint32_t cost = page_rec_cost(page_rec_size(block->frame), len);
    return page_data_size(block->frame) - freed + cost <= page_data_max(op->page_size);
}

dberr_t btr_page_insert(btr_op_t *op, buf_block_t *block, uint32_t slot, const byte *rec,
                        uint32_t len)
{
    if (!page_has_room(block->frame, op->page_size, len) && btr_page_fits(op, block, len, 0)) {
        TRY(mtr_reorganize(op->mtr, block));
        buf_env(op->pool)->stats.pages_reorganized++;
    }
    return mtr_rec_insert(op->mtr, block, slot, rec, len);
}

dberr_t btr_append_recs(btr_op_t *op, buf_block_t *dst, const buf_block_t *src, uint32_t from,
                        uint32_t to, uint32_t skip)
{
    uint32_t slot = page_n_recs(dst->frame);
    for (uint32_t i = from; i < to; i++) {
        if (i != skip) {
            TRY(btr_page_insert(op, dst, slot++, page_rec(src->frame, op->page_size, i),
                                page_rec_len(src->frame, op->page_size, i)));
        }
    }
    return DB_SUCCESS;
}
