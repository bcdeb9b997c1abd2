/* Insert, replacement by a record of another size, and page split.

    path, full from level 0 to k-1          after
        [ node, room ]                      [ node, + pointer to N1 ]
        [ node, full ]  level k-1           [ node ] <-> [ N1, + pointer to N0 ]
        [ leaf, full ]  level 0             [ leaf ] <-> [ N0 ] <-> old next leaf

1. Plan first: which pages split, their right siblings pinned and checked, new pages allocated.
   After that only page changes follow, which cannot fail on checked pages.
2. The root keeps its number: when it is full its records move to a new child, and that one splits.
3. A split moves the upper half of the bytes, the new record counted, to a new right page. Both
   halves fit, because no record is longer than half a page. An insert behind the last record of a
   level goes to a new page alone, so that ascending inserts leave full pages.
4. Node pointers whose key is above the new one, on the way, get its key first (btr_search.c, 2).
5. A record of another size takes the old one's place in the same mtr: on its page if that has room
   once the old one is gone, the page's garbage included, otherwise by a split. */
#include "btr/btr_int.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"

typedef struct btr_split_plan {
    uint32_t len;                         /**< of the leaf record */
    uint32_t n_splits;                    /**< full pages of the path, from level 0 */
    bool raise;                           /**< the root is among them */
    buf_block_t *next[BTR_LEVEL_MAX + 1]; /**< right sibling of the page to split, or NULL */
    buf_block_t *page[BTR_LEVEL_MAX + 1]; /**< the new right page */
    buf_block_t *child;                   /**< takes the root's records */
} btr_split_plan_t;

static dberr_t btr_split_alloc(btr_op_t *op, uint32_t level, buf_block_t **out)
{
    page_no_t hint = op->path[level].block->id.page_no + 1;
    fseg_header_t segment;
    TRY(btr_segment(op, level, &segment));
    return fseg_page_alloc(op->mtr, segment, hint, FIL_PAGE_INDEX, out);
}

/** Length of the record that comes to a level. */
static uint32_t btr_level_len(const btr_op_t *op, const btr_split_plan_t *plan, uint32_t level)
{
    return level == 0 ? plan->len : btr_node_rec_size(op->btr);
}

/** For a leaf record of len bytes; freed: bytes of the leaf's records that go before. */
static dberr_t btr_split_plan(btr_op_t *op, uint32_t len, uint32_t freed, btr_split_plan_t *plan)
{
    memset(plan, 0, sizeof(*plan));
    plan->len = len;
    uint32_t n = 0;
    while (
        n <= op->root_level
        && !btr_page_fits(op, op->path[n].block, btr_level_len(op, plan, n), n == 0 ? freed : 0)) {
        n++;
    }
    plan->n_splits = n;
    plan->raise = n > op->root_level;
    if (plan->raise && op->root_level == BTR_LEVEL_MAX) {
        return err_set(&buf_env(op->pool)->err, DB_OUT_OF_SPACE,
                       "index %" PRIu64 " is too deep for one more level", op->btr->id);
    }
    for (uint32_t level = 0; level < n; level++) {
        TRY(btr_sibling_get(op->pool, op->mtr, op->btr, op->path[level].block, true,
                            &plan->next[level]));
    }
    TRY(n > 0 ? fsp_reserve(op->mtr, op->btr->space, n + 1) : DB_SUCCESS);
    for (uint32_t level = 0; level < n; level++) {
        TRY(btr_split_alloc(op, level, &plan->page[level]));
    }
    return plan->raise ? btr_split_alloc(op, op->root_level, &plan->child) : DB_SUCCESS;
}

static void btr_node_rec(const btr_op_t *op, const buf_block_t *child, uint32_t info, byte *rec)
{
    const byte *first = page_rec(child->frame, op->page_size, 0);
    rec[0] = (byte)info;
    memcpy(rec + 1, rec_payload(first), op->btr->key_len);
    mach_write_4(rec + 1 + op->btr->key_len, child->id.page_no);
}

static dberr_t btr_format(btr_op_t *op, buf_block_t *block, uint32_t level)
{
    return mtr_index_create(op->mtr, block, level, op->btr->id, btr_rec_size(op->btr, level),
                            op->btr->key_len);
}

/** Moves the root's records to child; the root becomes its parent and the path one level longer. */
static dberr_t btr_root_raise(btr_op_t *op, buf_block_t *child)
{
    uint32_t level = op->root_level;
    buf_block_t *root = op->path[level].block;
    TRY(btr_format(op, child, level));
    TRY(btr_append_recs(op, child, root, 0, page_n_recs(root->frame), UINT32_MAX));
    TRY(btr_format(op, root, level + 1));
    byte rec[BTR_NODE_REC_MAX];
    btr_node_rec(op, child, REC_INFO_MIN_REC, rec);
    dberr_t err = mtr_rec_insert(op->mtr, root, 0, rec, btr_node_rec_size(op->btr));
    op->path[level].block = child;
    op->path[level + 1] = (btr_step_t){.block = root};
    op->root_level = level + 1;
    return err;
}

/** Links the empty page right in behind block. */
static void btr_link_right(btr_op_t *op, buf_block_t *block, buf_block_t *right, buf_block_t *next)
{
    mtr_write_4(op->mtr, right, FIL_PAGE_PREV, block->id.page_no);
    if (next != NULL) {
        mtr_write_4(op->mtr, right, FIL_PAGE_NEXT, next->id.page_no);
        mtr_write_4(op->mtr, next, FIL_PAGE_PREV, right->id.page_no);
    }
    mtr_write_4(op->mtr, block, FIL_PAGE_NEXT, right->id.page_no);
}

/** Of the page's records and one of len bytes in front of `slot`, so many are the half that
stays. */
static uint32_t btr_split_point(const btr_op_t *op, const byte *page, uint32_t slot, uint32_t len)
{
    uint32_t rec_size = page_rec_size(page);
    uint32_t n = page_n_recs(page);
    uint32_t total = page_data_size(page) + page_rec_cost(rec_size, len);
    uint32_t before = 0;
    for (uint32_t k = 1; k <= n; k++) {
        uint32_t old = k <= slot ? k - 1 : k - 2; /* not asked for when k is the new record */
        uint32_t size =
            before
            + page_rec_cost(rec_size, k == slot + 1 ? len : page_rec_len(page, op->page_size, old));

        if (2 * size >= total) {
            return k > 1 && total - 2 * before < 2 * size - total ? k - 1 : k;
        }
        before = size;
    }
    return n;
}

/** Splits the full page of a level and puts rec, meant for slot, into the half where it belongs. */
static dberr_t btr_page_split(btr_op_t *op, uint32_t level, buf_block_t *right, buf_block_t *next,
                              uint32_t slot, const byte *rec, uint32_t len)
{
    buf_block_t *left = op->path[level].block;
    uint32_t n = page_n_recs(left->frame);
    bool ascending = next == NULL && slot == n;
    uint32_t stay = ascending ? n : btr_split_point(op, left->frame, slot, len);
    bool to_left = slot < stay;
    uint32_t split = to_left ? stay - 1 : stay;
    TRY(btr_format(op, right, level));
    TRY(btr_append_recs(op, right, left, split, n, UINT32_MAX));
    if (split < n) {
        TRY(mtr_list_end_delete(op->mtr, left, split));
    }
    btr_link_right(op, left, right, next);
    buf_env(op->pool)->stats.btr_splits++;
    return mtr_rec_insert(op->mtr, to_left ? left : right, to_left ? slot : slot - stay, rec, len);
}

/** Lowers the first node pointers that lie above the new key. */
static dberr_t btr_lower_keys(btr_op_t *op, const byte *key)
{
    for (uint32_t level = 1; level <= op->root_level; level++) {
        if (op->path[level].low) {
            TRY(mtr_rec_update(op->mtr, op->path[level].block, 0, 1, key, op->btr->key_len));
        }
    }
    return DB_SUCCESS;
}

static dberr_t btr_insert_apply(btr_op_t *op, const btr_split_plan_t *plan, const byte *rec)
{
    uint32_t slot = op->path[0].slot;
    TRY(btr_lower_keys(op, rec_payload(rec)));
    if (plan->raise) {
        TRY(btr_root_raise(op, plan->child));
    }
    byte node_rec[BTR_NODE_REC_MAX];
    for (uint32_t level = 0;; level++) {
        if (level == plan->n_splits) {
            return btr_page_insert(op, op->path[level].block, slot, rec,
                                   btr_level_len(op, plan, level));
        }
        TRY(btr_page_split(op, level, plan->page[level], plan->next[level], slot, rec,
                           btr_level_len(op, plan, level)));
        btr_node_rec(op, plan->page[level], 0, node_rec);
        rec = node_rec;
        slot = op->path[level + 1].slot + 1;
    }
}

dberr_t btr_insert(buf_pool_t *pool, const btr_t *btr, const byte *rec, uint32_t len)
{
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_LOG_ALL));
    dberr_t err = btr_descend(&op, rec_payload(rec), btr->key_len);
    if (err == DB_SUCCESS && op.exact) {
        err = DB_DUPLICATE_KEY;
    }
    btr_split_plan_t plan;
    AND_THEN(err, btr_split_plan(&op, len, 0, &plan));
    AND_THEN(err, btr_insert_apply(&op, &plan, rec));
    return mtr_end(op.mtr, err);
}

/** The info byte of rec in place of the record at the end of the path, whose delete mark stays. */
static byte btr_info_replaced(const btr_op_t *op, const byte *rec)
{
    const byte *old = page_rec(op->path[0].block->frame, op->page_size, op->path[0].slot);
    return (byte)((rec[0] & ~REC_INFO_DELETE_MARK) | (old[0] & REC_INFO_DELETE_MARK));
}

/** The record at the end of the path gets the contents of rec, the same key, and another size or
info byte. */
static dberr_t btr_replace_resized(btr_op_t *op, const byte *rec, uint32_t len)
{
    const byte *page = op->path[0].block->frame;
    uint32_t slot = op->path[0].slot;
    uint32_t freed = page_rec_cost(page_rec_size(page), page_rec_len(page, op->page_size, slot));
    byte resized[PAGE_SIZE_MAX / 2];
    memcpy(resized, rec, len);
    resized[0] = btr_info_replaced(op, rec);
    btr_split_plan_t plan;
    TRY(btr_split_plan(op, len, freed, &plan));
    TRY(mtr_rec_delete(op->mtr, op->path[0].block, slot));
    return btr_insert_apply(op, &plan, resized);
}

dberr_t btr_replace(buf_pool_t *pool, const btr_t *btr, const byte *rec, uint32_t len)
{
    uint32_t from = 1 + btr->key_len;
    CHECK(len > from && len <= btr->leaf_rec_size);
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_LOG_ALL));
    btr_step_t *leaf = &op.path[0];
    dberr_t err = btr_descend(&op, rec_payload(rec), btr->key_len);
    if (err == DB_SUCCESS && !op.exact) {
        err = DB_NOT_FOUND;
    }
    AND_THEN(err,
             page_rec_len(leaf->block->frame, op.page_size, leaf->slot) == len
                     && btr_info_replaced(&op, rec)
                            == *page_rec(leaf->block->frame, op.page_size, leaf->slot)
                 ? mtr_rec_update(op.mtr, leaf->block, leaf->slot, from, rec + from, len - from)
                 : btr_replace_resized(&op, rec, len));
    return mtr_end(op.mtr, err);
}

dberr_t btr_meta_put(buf_pool_t *pool, const btr_t *btr, uint32_t mark, const byte *rec,
                     uint32_t len)
{
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_LOG_ALL));
    dberr_t err = btr_descend(&op, NULL, 0);
    op.path[0].slot = 0;
    if (err == DB_SUCCESS && op.exact) {
        err = btr_replace_resized(&op, rec, len);
    } else {
        btr_split_plan_t plan;
        AND_THEN(err, btr_split_plan(&op, len, 0, &plan));
        AND_THEN(err, btr_insert_apply(&op, &plan, rec));
    }
    if (err == DB_SUCCESS) {
        mtr_write_1(op.mtr, op.path[op.root_level].block, PAGE_INSTANT, mark);
    }
    return mtr_end(op.mtr, err);
}
