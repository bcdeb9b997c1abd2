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

/* Pages 0 to 3 of the system space have fixed contents; a root must not take one while it is free.
*/
#define BTR_SYSTEM_HINT 4U

/** The node pointer to follow. A prefix that equals a key may have more records left of it. */
static void btr_choose_child(const btr_op_t *op, const byte *key, uint32_t key_len,
                             btr_step_t *step)
{
    bool exact = false;

    step->slot = 0;
    step->low = false;
    if (key == NULL) {
        return;
    }
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
    uint32_t level = BTR_LEVEL_ANY;

    CHECK(key == NULL || (key_len > 0 && key_len <= op->btr->key_len));
    for (;;) {
        buf_block_t *block = NULL;
        dberr_t err = btr_page_get(op->pool, &op->mtr, op->btr, page_no, level, &block);
        btr_step_t *step;

        if (err != DB_SUCCESS) {
            return err;
        }
        if (level == BTR_LEVEL_ANY) {
            level = page_level(block->frame);
            op->root_level = level;
        }
        step = &op->path[level];
        step->block = block;
        if (level == 0) {
            step->low = false;
            step->slot = key == NULL
                             ? 0
                             : page_search(block->frame, op->page_size, key, key_len, &op->exact);
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
    dberr_t err = btr_op_start(op, pool, btr, mode);

    if (err != DB_SUCCESS) {
        return err;
    }
    err = btr_descend(op, key, btr->key_len);
    if (err == DB_SUCCESS && !op->exact) {
        err = DB_NOT_FOUND;
    }
    if (err != DB_SUCCESS) {
        mtr_abort(&op->mtr);
    }
    return err;
}

dberr_t btr_get(buf_pool_t *pool, const btr_t *btr, const byte *key, byte *rec)
{
    btr_op_t op;
    dberr_t err = btr_find(&op, pool, btr, key, MTR_READ_ONLY);

    if (err == DB_SUCCESS) {
        memcpy(rec, page_rec(op.path[0].block->frame, op.page_size, op.path[0].slot),
               btr->leaf_rec_size);
        mtr_commit(&op.mtr);
    }
    return err;
}

dberr_t btr_update(buf_pool_t *pool, const btr_t *btr, const byte *key, uint32_t rec_offset,
                   const byte *bytes, uint32_t len)
{
    btr_op_t op;
    dberr_t err;

    CHECK(len > 0 && rec_offset <= btr->leaf_rec_size && len <= btr->leaf_rec_size - rec_offset);
    CHECK(rec_offset > btr->key_len || rec_offset + len <= 1);
    err = btr_find(&op, pool, btr, key, MTR_LOG_ALL);
    if (err != DB_SUCCESS) {
        return err;
    }
    err = mtr_rec_update(&op.mtr, op.path[0].block, op.path[0].slot, rec_offset, bytes, len);
    if (err != DB_SUCCESS) {
        mtr_abort(&op.mtr);
        return err;
    }
    mtr_commit(&op.mtr);
    return DB_SUCCESS;
}

dberr_t btr_create(buf_pool_t *pool, btr_t *btr)
{
    page_no_t hint = btr->space == SPACE_SYSTEM ? BTR_SYSTEM_HINT : 0;
    buf_block_t *block = NULL;
    btr_op_t op;
    dberr_t err = btr_op_start(&op, pool, btr, MTR_LOG_ALL);

    if (err != DB_SUCCESS) {
        return err;
    }
    CHECK(page_capacity(op.page_size, btr->leaf_rec_size) >= 2);
    CHECK(page_capacity(op.page_size, btr_node_rec_size(btr)) >= 2);
    err = fsp_page_alloc(&op.mtr, btr->space, (uint32_t)btr->id, hint, FIL_PAGE_INDEX, &block);
    if (err == DB_SUCCESS) {
        err = mtr_index_create(&op.mtr, block, 0, btr->id, btr->leaf_rec_size, btr->key_len);
    }
    if (err != DB_SUCCESS) {
        mtr_abort(&op.mtr);
        return err;
    }
    btr->root = block->id.page_no;
    mtr_commit(&op.mtr);
    return DB_SUCCESS;
}

dberr_t btr_free(buf_pool_t *pool, const btr_t *btr)
{
    CHECK(btr->id >= INDEX_ID_FIRST && btr->id <= UINT32_MAX);
    return fsp_owner_free(pool, btr->space, (uint32_t)btr->id);
}
