/* Bottom-up load of a tree from sorted records (WL#7277).

    level 2  [ R . . . ]                   one page under construction per level, in memory;
    level 1  [ N . . ]      -> written     a page is written when its successor's number is known,
    level 0  [ r r r r . ]  -> written     and its node pointer goes one level up

1. A page is written once, complete: header, records, PREV and NEXT. Nothing is pinned between
   calls.
2. Page numbers are taken by logged mtrs, also when the contents are not logged, so that recovery
   can free an incomplete tree by owner.
3. Level n + 1 begins when level n has its second page, so only the root is alone on its level. */
#include "btr/btr_bulk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "btr/btr_int.h"

typedef struct bulk_level {
    byte *recs; /* of the page under construction; NULL: the level does not exist yet */
    uint32_t n_recs;
    uint32_t max_recs;
    uint32_t rec_size;
    page_no_t page_no; /* reserved for this page */
    page_no_t prev;
} bulk_level_t;

struct btr_bulk {
    buf_pool_t *pool;
    btr_t btr;
    bool redo;
    uint32_t fill_percent;
    page_no_t hint;
    bulk_level_t levels[BTR_LEVEL_MAX + 1];
};

dberr_t btr_bulk_create(buf_pool_t *pool, const btr_t *btr, bool redo, uint32_t fill_percent,
                        btr_bulk_t **out)
{
    btr_bulk_t *bulk;

    CHECK(fill_percent >= 10 && fill_percent <= 100);
    CHECK(btr->id >= INDEX_ID_FIRST && btr->id <= UINT32_MAX && btr->key_len <= BTR_KEY_LEN_MAX);
    bulk = calloc(1, sizeof *bulk);
    if (bulk == NULL) {
        return err_set(&buf_env(pool)->err, DB_OUT_OF_MEMORY, "no memory for an index load");
    }
    bulk->pool = pool;
    bulk->btr = *btr;
    bulk->redo = redo;
    bulk->fill_percent = fill_percent;
    *out = bulk;
    return DB_SUCCESS;
}

void btr_bulk_free(btr_bulk_t *bulk)
{
    if (bulk == NULL) {
        return;
    }
    for (uint32_t level = 0; level <= BTR_LEVEL_MAX; level++) {
        free(bulk->levels[level].recs);
    }
    free(bulk);
}

/** Takes the next page number, in a logged mtr of its own. */
static dberr_t bulk_reserve(btr_bulk_t *bulk, page_no_t *out)
{
    mtr_t mtr;
    dberr_t err = buf_log_free_check(bulk->pool);

    if (err != DB_SUCCESS) {
        return err;
    }
    mtr_start(&mtr, bulk->pool, MTR_LOG_ALL);
    err = fsp_page_reserve(&mtr, bulk->btr.space, (uint32_t)bulk->btr.id, bulk->hint, out);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    bulk->hint = *out + 1;
    mtr_commit(&mtr);
    return DB_SUCCESS;
}

static dberr_t bulk_level_begin(btr_bulk_t *bulk, uint32_t level)
{
    bulk_level_t *l = &bulk->levels[level];
    uint32_t capacity;
    uint32_t least = level == 0 ? 1 : 2;

    l->rec_size = btr_rec_size(&bulk->btr, level);
    capacity = page_capacity(buf_page_size(bulk->pool), l->rec_size);
    CHECK(capacity >= 2);
    l->max_recs = capacity * bulk->fill_percent / 100;
    if (l->max_recs < least) {
        l->max_recs = least;
    }
    l->prev = FIL_NULL;
    l->recs = malloc((size_t)l->max_recs * l->rec_size);
    if (l->recs == NULL) {
        return err_set(&buf_env(bulk->pool)->err, DB_OUT_OF_MEMORY, "no memory for an index load");
    }
    return bulk_reserve(bulk, &l->page_no);
}

static dberr_t bulk_page_fill(btr_bulk_t *bulk, mtr_t *mtr, uint32_t level, page_no_t next)
{
    const bulk_level_t *l = &bulk->levels[level];
    buf_block_t *block = NULL;
    dberr_t err =
        mtr_page_create(mtr, (page_id_t){bulk->btr.space, l->page_no}, FIL_PAGE_INDEX, &block);

    if (err == DB_SUCCESS) {
        err = mtr_index_create(mtr, block, level, bulk->btr.id, l->rec_size, bulk->btr.key_len);
    }
    for (uint32_t i = 0; i < l->n_recs && err == DB_SUCCESS; i++) {
        err = mtr_rec_insert(mtr, block, i, l->recs + (size_t)i * l->rec_size, l->rec_size);
    }
    if (err == DB_SUCCESS && l->prev != FIL_NULL) {
        mtr_write_4(mtr, block, FIL_PAGE_PREV, l->prev);
    }
    if (err == DB_SUCCESS && next != FIL_NULL) {
        mtr_write_4(mtr, block, FIL_PAGE_NEXT, next);
    }
    return err;
}

/** Writes the page under construction of a level into the pool. */
static dberr_t bulk_page_write(btr_bulk_t *bulk, uint32_t level, page_no_t next)
{
    mtr_t mtr;
    dberr_t err = buf_log_free_check(bulk->pool);

    if (err != DB_SUCCESS) {
        return err;
    }
    mtr_start(&mtr, bulk->pool, bulk->redo ? MTR_LOG_ALL : MTR_LOG_NO_REDO);
    if (!bulk->redo) {
        mtr_set_observer(&mtr, bulk->btr.id);
    }
    err = bulk_page_fill(bulk, &mtr, level, next);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_commit(&mtr);
    return DB_SUCCESS;
}

/** Writes the page of a level; *node_rec becomes the pointer to it. */
static dberr_t bulk_page_close(btr_bulk_t *bulk, uint32_t level, page_no_t next, byte *node_rec)
{
    bulk_level_t *l = &bulk->levels[level];
    dberr_t err = bulk_page_write(bulk, level, next);

    if (err != DB_SUCCESS) {
        return err;
    }
    node_rec[0] = l->prev == FIL_NULL ? REC_INFO_MIN_REC : 0;
    memcpy(node_rec + 1, rec_payload(l->recs), bulk->btr.key_len);
    mach_write_4(node_rec + 1 + bulk->btr.key_len, l->page_no);
    l->prev = l->page_no;
    l->page_no = next;
    l->n_recs = 0;
    return DB_SUCCESS;
}

/** Adds a record to a level, closing full pages on the way up. */
static dberr_t bulk_level_add(btr_bulk_t *bulk, uint32_t level, const byte *rec)
{
    byte pending[2][BTR_NODE_REC_MAX]; /* the record to add and the pointer it makes, in turn */

    for (;; level++) {
        bulk_level_t *l;
        page_no_t next = FIL_NULL;
        bool full;
        dberr_t err = DB_SUCCESS;

        if (level > BTR_LEVEL_MAX) {
            return err_set(&buf_env(bulk->pool)->err, DB_OUT_OF_SPACE,
                           "index %" PRIu64 " is too deep for one more level", bulk->btr.id);
        }
        l = &bulk->levels[level];
        if (l->recs == NULL) {
            err = bulk_level_begin(bulk, level);
        }
        full = err == DB_SUCCESS && l->n_recs == l->max_recs;
        if (full) {
            err = bulk_reserve(bulk, &next);
        }
        if (full && err == DB_SUCCESS) {
            err = bulk_page_close(bulk, level, next, pending[level % 2]);
        }
        if (err != DB_SUCCESS) {
            return err;
        }
        memcpy(l->recs + (size_t)l->n_recs * l->rec_size, rec, l->rec_size);
        l->n_recs++;
        if (!full) {
            return DB_SUCCESS;
        }
        rec = pending[level % 2];
    }
}

dberr_t btr_bulk_add(btr_bulk_t *bulk, const byte *rec)
{
    const bulk_level_t *l = &bulk->levels[0];
    dberr_t err;

    if (l->n_recs > 0) {
        const byte *last = l->recs + (size_t)(l->n_recs - 1) * l->rec_size;

        if (memcmp(rec_payload(last), rec_payload(rec), bulk->btr.key_len) >= 0) {
            return err_set(&buf_env(bulk->pool)->err, DB_DUPLICATE_KEY,
                           "index %" PRIu64 ": keys of a load do not ascend", bulk->btr.id);
        }
    }
    err = bulk_level_add(bulk, 0, rec);
    if (err == DB_SUCCESS) {
        buf_env(bulk->pool)->stats.bulk_rows++;
    }
    return err;
}

dberr_t btr_bulk_finish(btr_bulk_t *bulk, page_no_t *root)
{
    byte node_rec[BTR_NODE_REC_MAX];
    uint32_t level = 0;
    dberr_t err = DB_SUCCESS;

    if (bulk->levels[0].recs == NULL) {
        err = bulk_level_begin(bulk, 0);
    }
    while (err == DB_SUCCESS && bulk->levels[level].prev != FIL_NULL) {
        err = bulk_page_close(bulk, level, FIL_NULL, node_rec);
        if (err == DB_SUCCESS) {
            err = bulk_level_add(bulk, level + 1, node_rec);
        }
        level++;
    }
    if (err == DB_SUCCESS) {
        *root = bulk->levels[level].page_no;
        err = bulk_page_write(bulk, level, FIL_NULL);
    }
    return err;
}
