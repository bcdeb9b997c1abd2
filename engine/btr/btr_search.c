/* Descent, lookup, in-place update; creating and freeing a whole tree.

1. The descent pins the path from the root to the leaf in one mtr, and ends after at most
   BTR_LEVEL_MAX + 1 pages whatever the bytes on disk say.
2. The first key of a page may lie above its node pointer's key, once records in front of it were
   deleted. A key between the two belongs to the first child; an insert lowers the node pointer's
   key on its way (btr_insert.c), so that I9 holds at all times. */
#include "btr/btr_int.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"

#define BTR_CREATE_PAGES 3U /**< the root, and at most one inode page per segment */

/** The node pointer to follow. A prefix that equals a key may have more records left of it. */
static void btr_choose_child(const btr_op_t *op, const byte *key, uint32_t key_len,
                             btr_step_t *step)
{
    step->slot = 0;
    step->low = false;
    if (key == NULL) {
        return;
    }
    bool exact = false;
    step->slot = page_search(step->block->frame, op->page_size, key, key_len, &exact);
    if (exact && key_len == op->btr->key_len) {
        return;
    }
    if (step->slot > 0) {
        step->slot--;
    } else {
        step->low = !exact;
    }
}

dberr_t btr_descend(btr_op_t *op, const byte *key, uint32_t key_len)
{
    page_no_t page_no = op->btr->root;
    CHECK(key == NULL || (key_len > 0 && key_len <= op->btr->key_len));
    uint32_t level = BTR_LEVEL_ANY;
    for (;;) {
        buf_block_t *block = NULL;
        TRY(btr_page_get(op->pool, op->mtr, op->btr, page_no, level, &block));
        if (level == BTR_LEVEL_ANY) {
            level = page_level(block->frame);
            op->root_level = level;
        }
        btr_step_t *step = &op->path[level];
        step->block = block;
        if (level == 0) {
            step->low = false;
            if (key != NULL) {
                step->slot = page_search(block->frame, op->page_size, key, key_len, &op->exact);
                return DB_SUCCESS;
            }
            op->exact = page_n_recs(block->frame) > 0
                        && rec_is_min(page_rec(block->frame, op->page_size, 0));
            step->slot = op->exact ? 1 : 0;
            return DB_SUCCESS;
        }
        btr_choose_child(op, key, key_len, step);
        page_no = btr_node_child(op->btr, page_rec(block->frame, op->page_size, step->slot));
        level--;
    }
}

/** Starts an operation and descends to the record; DB_NOT_FOUND. The mtr is open after success
only. */
static dberr_t btr_find(btr_op_t *op, buf_pool_t *pool, const btr_t *btr, const byte *key,
                        mtr_mode_t mode)
{
    TRY(btr_op_start(op, pool, btr, mode));
    dberr_t err = btr_descend(op, key, btr->key_len);
    if (err == DB_SUCCESS && !op->exact) {
        err = DB_NOT_FOUND;
    }
    if (err != DB_SUCCESS) {
        mtr_abort(op->mtr);
    }
    return err;
}

/** Copies the record in a slot of the leaf that was found, and ends the operation. */
static dberr_t btr_copy_rec(const btr_op_t *op, uint32_t slot, byte *rec, uint32_t *len)
{
    const buf_block_t *leaf = op->path[0].block;
    dberr_t err = DB_SUCCESS;
    *len = page_rec_len(leaf->frame, op->page_size, slot);
    if (*len > op->btr->leaf_rec_size) {
        err = btr_corrupt(op->pool, op->btr, leaf->id.page_no, "a record is longer than any row");
    } else {
        memcpy(rec, page_rec(leaf->frame, op->page_size, slot), *len);
    }
    mtr_commit(op->mtr);
    return err;
}

dberr_t btr_get(buf_pool_t *pool, const btr_t *btr, const byte *key, byte *rec, uint32_t *len)
{
    btr_op_t op;
    TRY(btr_find(&op, pool, btr, key, MTR_READ_ONLY));
    return btr_copy_rec(&op, op.path[0].slot, rec, len);
}

dberr_t btr_meta_get(buf_pool_t *pool, const btr_t *btr, byte *rec, uint32_t *len)
{
    btr_op_t op;
    TRY(btr_find(&op, pool, btr, NULL, MTR_READ_ONLY));
    return btr_copy_rec(&op, 0, rec, len);
}

dberr_t btr_is_empty(buf_pool_t *pool, const btr_t *btr, bool *empty)
{
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_READ_ONLY));
    dberr_t err = btr_descend(&op, NULL, 0);
    *empty = err == DB_SUCCESS && op.root_level == 0 && page_n_recs(op.path[0].block->frame) == 0;
    return mtr_end(op.mtr, err);
}

dberr_t btr_key_position(buf_pool_t *pool, const btr_t *btr, const byte *key, uint32_t *out)
{
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_READ_ONLY));
    dberr_t err = btr_descend(&op, key, btr->key_len);
    if (err != DB_SUCCESS) {
        mtr_abort(op.mtr);
        return err;
    }
    uint64_t width = 10000ULL << 32;
    uint64_t before = 0;
    for (uint32_t level = op.root_level + 1; level-- > 0;) {
        uint32_t n_recs = page_n_recs(op.path[level].block->frame);
        width /= n_recs > 0 ? n_recs : 1;
        before += width * op.path[level].slot;
    }
    mtr_commit(op.mtr);
    *out = before < 10000ULL << 32 ? (uint32_t)(before >> 32) : 9999;
    return DB_SUCCESS;
}

dberr_t btr_update(buf_pool_t *pool, const btr_t *btr, const byte *key, uint32_t rec_offset,
                   const byte *bytes, uint32_t len)
{
    CHECK(len > 0 && rec_offset <= btr->leaf_rec_size && len <= btr->leaf_rec_size - rec_offset);
    CHECK(rec_offset > btr->key_len || rec_offset + len <= 1);
    btr_op_t op;
    TRY(btr_find(&op, pool, btr, key, MTR_LOG_ALL));
    dberr_t err = mtr_rec_update(op.mtr, op.path[0].block, op.path[0].slot, rec_offset, bytes, len);
    return mtr_end(op.mtr, err);
}

dberr_t btr_rec_find(mtr_t *mtr, const btr_t *btr, const byte *key, buf_block_t **block,
                     uint32_t *slot)
{
    btr_op_t op = {
        .pool = mtr->pool, .btr = btr, .page_size = buf_page_size(mtr->pool), .mtr = mtr};
    TRY(btr_descend(&op, key, btr->key_len));
    if (!op.exact) {
        return DB_NOT_FOUND;
    }
    *block = op.path[0].block;
    *slot = op.path[0].slot;
    return DB_SUCCESS;
}

/* ---- a whole tree ---- */

dberr_t btr_create(mtr_t *mtr, btr_t *btr)
{
    uint32_t page_size = buf_page_size(mtr->pool);
    dberr_t err = fsp_reserve(mtr, btr->space, BTR_CREATE_PAGES);
    CHECK(btr->id >= INDEX_ID_FIRST
          && 2 * page_rec_cost(btr_rec_size(btr, 0), btr->leaf_rec_size)
                 <= page_data_max(page_size));
    CHECK(page_capacity(page_size, btr_node_rec_size(btr)) >= 2);
    TRY(err);
    buf_block_t *root = NULL;
    TRY(fseg_create(mtr, btr->space, FIL_PAGE_INDEX, PAGE_SEG_TOP, &root));
    TRY(fseg_create(mtr, btr->space, FIL_PAGE_INDEX, PAGE_SEG_LEAF, &root));
    TRY(mtr_index_create(mtr, root, 0, btr->id, btr_rec_size(btr, 0), btr->key_len));
    btr->root = root->id.page_no;
    return DB_SUCCESS;
}

/** The root of a tree of which nothing else need be right. */
static dberr_t btr_root_get(mtr_t *mtr, const btr_t *btr, buf_block_t **out)
{
    buf_block_t *root = NULL;
    TRY(mtr_page_get(mtr, (page_id_t){btr->space, btr->root}, &root));
    if (fil_page_get_type(root->frame) != FIL_PAGE_INDEX || page_index_id(root->frame) != btr->id) {
        return btr_corrupt(mtr->pool, btr, btr->root, "not the root of this index");
    }
    *out = root;
    return DB_SUCCESS;
}

static dberr_t btr_free_segment(buf_pool_t *pool, const btr_t *btr, uint32_t header_offset)
{
    for (bool done = false; !done;) {
        TRY(buf_log_free_check(pool));
        mtr_t mtr;
        mtr_start(&mtr, pool, MTR_LOG_ALL);
        buf_block_t *root = NULL;
        dberr_t err = btr_root_get(&mtr, btr, &root);
        AND_THEN(err, fseg_free_step(&mtr, (fseg_header_t){root, header_offset},
                                     header_offset == PAGE_SEG_TOP, &done));
        if (err != DB_SUCCESS) {
            mtr_abort(&mtr);
            return err;
        }
        mtr_commit(&mtr);
        PROBE_POINT(buf_env(pool)->probe, "btr.free_step");
    }
    return DB_SUCCESS;
}

dberr_t btr_free_but_root(buf_pool_t *pool, const btr_t *btr)
{
    TRY(btr_free_segment(pool, btr, PAGE_SEG_LEAF));
    return btr_free_segment(pool, btr, PAGE_SEG_TOP);
}

dberr_t btr_free_root(mtr_t *mtr, const btr_t *btr)
{
    buf_block_t *root = NULL;
    TRY(btr_root_get(mtr, btr, &root));
    return fseg_free_last(mtr, (fseg_header_t){root, PAGE_SEG_TOP});
}
