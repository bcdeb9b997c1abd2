/* Forward range scan over the leaves.

1. One leaf is pinned at a time; the step to the next one is a new read-only mtr.
2. A step is refused unless the next page links back, and a scan visits no more pages than the space
   has, so that a damaged chain ends in an error. */
#include "btr/btr_int.h"

#include "base/check.h"

static dberr_t btr_cursor_enter(btr_cursor_t *cursor, page_no_t page_no)
{
    const fil_space_t *space = fil_space_get(buf_fil(cursor->pool), cursor->btr->space);

    if (space == NULL || ++cursor->pages_seen > space->size_pages) {
        return btr_corrupt(cursor->pool, cursor->btr, page_no, "the chain of leaves is circular");
    }
    return btr_page_get(cursor->pool, &cursor->mtr, cursor->btr, page_no, 0, &cursor->block);
}

dberr_t btr_cursor_open(btr_cursor_t *cursor, buf_pool_t *pool, const btr_t *btr, const byte *key,
                        uint32_t key_len)
{
    cursor->btr = btr;
    cursor->pool = pool;
    cursor->block = NULL;
    cursor->slot = 0;
    cursor->len = 0;
    cursor->pages_seen = 0;
    cursor->open = false;
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_READ_ONLY));
    dberr_t err = btr_descend(&op, key, key_len);
    if (err != DB_SUCCESS) {
        mtr_abort(op.mtr);
        return err;
    }
    page_no_t page_no = op.path[0].block->id.page_no;
    cursor->slot = op.path[0].slot;
    mtr_commit(op.mtr);

    mtr_start(&cursor->mtr, pool, MTR_READ_ONLY);
    cursor->open = true;
    return btr_cursor_enter(cursor, page_no);
}

/** Moves to the first record of the next leaf. DB_NOT_FOUND at the end. */
static dberr_t btr_cursor_step(btr_cursor_t *cursor)
{
    page_no_t from = cursor->block->id.page_no;
    page_no_t page_no = fil_page_get_next(cursor->block->frame);
    if (page_no == FIL_NULL) {
        return DB_NOT_FOUND;
    }
    mtr_commit(&cursor->mtr);
    cursor->block = NULL;
    mtr_start(&cursor->mtr, cursor->pool, MTR_READ_ONLY);
    dberr_t err = btr_cursor_enter(cursor, page_no);
    if (err == DB_SUCCESS && fil_page_get_prev(cursor->block->frame) != from) {
        err = btr_corrupt(cursor->pool, cursor->btr, page_no, "does not link back to its sibling");
    }
    cursor->slot = 0;
    return err;
}

dberr_t btr_cursor_next(btr_cursor_t *cursor, const byte **rec)
{
    CHECK(cursor->open && cursor->block != NULL);
    if (cursor->slot >= page_n_recs(cursor->block->frame)) {
        TRY(btr_cursor_step(cursor));
    }
    *rec = page_rec(cursor->block->frame, buf_page_size(cursor->pool), cursor->slot);
    cursor->len = page_rec_len(cursor->block->frame, buf_page_size(cursor->pool), cursor->slot);
    cursor->slot++;
    return DB_SUCCESS;
}

void btr_cursor_close(btr_cursor_t *cursor)
{
    if (cursor->open) {
        mtr_commit(&cursor->mtr);
        cursor->open = false;
    }
}
