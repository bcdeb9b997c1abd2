/* Bottom-up load of a tree from sorted records (WL#7277).

    level 2  [ R . . . ]                   one page under construction per level, in memory;
    level 1  [ N . . ]      -> written     a page is written when its successor's number is known,
    level 0  [ r r r r . ]  -> written     and its node pointer goes one level up

1. A page is written once, complete: header, records, PREV and NEXT. Nothing is pinned between
   calls.
2. Page numbers are taken by logged mtrs, also when the contents are not logged, so that recovery
   can free an incomplete tree through its segments.
3. Level n + 1 begins when level n has its second page, so only the topmost page is alone on its
   level.
4. The root was there before. It gets a copy of the topmost page, which is then freed. */
#include "btr/btr_bulk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "btr/btr_blob.h"
#include "btr/btr_int.h"

#define BULK_LEN_SIZE 2U /* in front of each record of a page under construction */

typedef struct bulk_level {
    byte *recs; /* of the page under construction; NULL: the level does not exist yet */
    uint32_t n_recs;
    uint32_t used;     /* bytes of recs */
    uint32_t last;     /* where the last one starts */
    uint32_t size;     /* bytes that they take in the page, slots included */
    uint32_t rec_size; /* or PAGE_REC_VARIES */
    page_no_t page_no; /* reserved for this page */
    page_no_t prev;
} bulk_level_t;

struct btr_bulk {
    buf_pool_t *pool;
    btr_t btr;
    index_id_t observer; /**< 0: contents are logged */
    uint32_t fill_percent;
    bulk_level_t levels[BTR_LEVEL_MAX + 1];
};

dberr_t btr_bulk_create(buf_pool_t *pool, const btr_t *btr, index_id_t observer,
                        uint32_t fill_percent, btr_bulk_t **out)
{
    CHECK(fill_percent >= 10 && fill_percent <= 100);
    CHECK(btr->root != FIL_NULL && btr->key_len <= BTR_KEY_LEN_MAX);
    btr_bulk_t *bulk = calloc(1, sizeof(*bulk));
    if (bulk == NULL) {
        return err_set(&buf_env(pool)->err, DB_OUT_OF_MEMORY, "no memory for an index load");
    }
    bulk->pool = pool;
    bulk->btr = *btr;
    bulk->observer = observer;
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

static dberr_t bulk_root_get(const btr_bulk_t *bulk, mtr_t *mtr, buf_block_t **out)
{
    return btr_page_get(bulk->pool, mtr, &bulk->btr, bulk->btr.root, BTR_LEVEL_ANY, out);
}

static fseg_header_t bulk_segment(buf_block_t *root, uint32_t level)
{
    return (fseg_header_t){root, level == 0 ? PAGE_SEG_LEAF : PAGE_SEG_TOP};
}

/** Takes the next page number of a level, in a logged mtr of its own. With a log of all frees the
page is created, too: its home may be torn, and a hot backup must not ask for it. */
static dberr_t bulk_reserve(btr_bulk_t *bulk, uint32_t level, page_no_t hint, page_no_t *out)
{
    TRY(buf_log_free_check(bulk->pool));
    mtr_t mtr;
    mtr_start(&mtr, bulk->pool, MTR_LOG_ALL);
    buf_block_t *root = NULL;
    dberr_t err = bulk_root_get(bulk, &mtr, &root);
    if (log_format(buf_log(bulk->pool))->all_frees) {
        buf_block_t *page = NULL;
        AND_THEN(err, fseg_page_alloc(&mtr, bulk_segment(root, level), hint,
                                      FIL_PAGE_TYPE_ALLOCATED, &page));
        *out = page != NULL ? page->id.page_no : FIL_NULL;
    } else {
        AND_THEN(err, fseg_page_reserve(&mtr, bulk_segment(root, level), hint, out));
    }
    return mtr_end(&mtr, err);
}

static dberr_t bulk_level_begin(btr_bulk_t *bulk, uint32_t level)
{
    bulk_level_t *l = &bulk->levels[level];
    l->rec_size = btr_rec_size(&bulk->btr, level);
    l->prev = FIL_NULL;
    /* A length in front of each record takes no more than the slot that it has in the page. */
    l->recs = malloc(page_data_max(buf_page_size(bulk->pool)));
    if (l->recs == NULL) {
        return err_set(&buf_env(bulk->pool)->err, DB_OUT_OF_MEMORY, "no memory for an index load");
    }
    return bulk_reserve(bulk, level, bulk->btr.root + 1, &l->page_no);
}

/** Has the page under construction no room for a record of len bytes? The fill factor says so, for
more than the least records that a page has. */
static bool bulk_page_is_full(const btr_bulk_t *bulk, uint32_t level, uint32_t len)
{
    const bulk_level_t *l = &bulk->levels[level];
    uint32_t room = page_data_max(buf_page_size(bulk->pool));
    return l->n_recs >= (level == 0 ? 1U : 2U)
           && l->size + page_rec_cost(l->rec_size, len) > room * bulk->fill_percent / 100;
}

static void bulk_page_append(bulk_level_t *l, const byte *rec, uint32_t len)
{
    mach_write_2(l->recs + l->used, len);
    l->last = l->used + BULK_LEN_SIZE;
    memcpy(l->recs + l->last, rec, len);
    l->used = l->last + len;
    l->size += page_rec_cost(l->rec_size, len);
    l->n_recs++;
}

/** Writes the records of a level's page under construction into a page. */
static dberr_t bulk_page_fill(btr_bulk_t *bulk, mtr_t *mtr, uint32_t level, buf_block_t *block)
{
    const bulk_level_t *l = &bulk->levels[level];
    const byte *at = l->recs;
    TRY(mtr_index_create(mtr, block, level, bulk->btr.id, l->rec_size, bulk->btr.key_len));
    for (uint32_t i = 0; i < l->n_recs; i++) {
        uint32_t len = mach_read_2(at);
        TRY(mtr_rec_insert(mtr, block, i, at + BULK_LEN_SIZE, len));
        at += BULK_LEN_SIZE + len;
    }
    return DB_SUCCESS;
}

static dberr_t bulk_page_create(btr_bulk_t *bulk, mtr_t *mtr, uint32_t level, page_no_t next)
{
    const bulk_level_t *l = &bulk->levels[level];
    buf_block_t *block = NULL;
    dberr_t err =
        mtr_page_create(mtr, (page_id_t){bulk->btr.space, l->page_no}, FIL_PAGE_INDEX, &block);

    AND_THEN(err, bulk_page_fill(bulk, mtr, level, block));
    if (err == DB_SUCCESS && l->prev != FIL_NULL) {
        mtr_write_4(mtr, block, FIL_PAGE_PREV, l->prev);
    }
    if (err == DB_SUCCESS && next != FIL_NULL) {
        mtr_write_4(mtr, block, FIL_PAGE_NEXT, next);
    }
    return err;
}

/** An mtr for contents, logged or not. */
static dberr_t bulk_mtr_start(btr_bulk_t *bulk, mtr_t *mtr)
{
    dberr_t err = buf_log_free_check(bulk->pool);

    mtr_start(mtr, bulk->pool, bulk->observer == 0 ? MTR_LOG_ALL : MTR_LOG_NO_REDO);
    if (bulk->observer != 0) {
        mtr_set_observer(mtr, bulk->observer);
    }
    return err;
}

/** Writes the page under construction of a level into the pool. */
static dberr_t bulk_page_write(btr_bulk_t *bulk, uint32_t level, page_no_t next)
{
    mtr_t mtr;
    dberr_t err = bulk_mtr_start(bulk, &mtr);
    AND_THEN(err, bulk_page_create(bulk, &mtr, level, next));
    return mtr_end(&mtr, err);
}

static dberr_t bulk_root_write(btr_bulk_t *bulk, uint32_t level)
{
    buf_block_t *root = NULL;
    mtr_t mtr;
    dberr_t err = bulk_mtr_start(bulk, &mtr);

    AND_THEN(err, bulk_root_get(bulk, &mtr, &root));
    AND_THEN(err, bulk_page_fill(bulk, &mtr, level, root));
    return mtr_end(&mtr, err);
}

/** Frees the page that the root is a copy of. */
static dberr_t bulk_top_free(btr_bulk_t *bulk, uint32_t level)
{
    page_id_t id = {bulk->btr.space, bulk->levels[level].page_no};
    TRY(buf_log_free_check(bulk->pool));
    mtr_t mtr;
    mtr_start(&mtr, bulk->pool, MTR_LOG_ALL);
    buf_block_t *root = NULL;
    dberr_t err = bulk_root_get(bulk, &mtr, &root);
    AND_THEN(err, fseg_page_free(&mtr, bulk_segment(root, level), id.page_no, FSP_FREE_SILENT));
    buf_block_t *top = buf_page_peek(bulk->pool, id);
    if (err == DB_SUCCESS && top != NULL) {
        top->observer = 0; /* written with or without the load, or never */
    }
    return mtr_end(&mtr, err);
}

/** Writes the page of a level; *node_rec becomes the pointer to it. */
static dberr_t bulk_page_close(btr_bulk_t *bulk, uint32_t level, page_no_t next, byte *node_rec)
{
    bulk_level_t *l = &bulk->levels[level];
    TRY(bulk_page_write(bulk, level, next));
    node_rec[0] = l->prev == FIL_NULL ? REC_INFO_MIN_REC : 0;
    memcpy(node_rec + 1, rec_payload(l->recs + BULK_LEN_SIZE), bulk->btr.key_len);
    mach_write_4(node_rec + 1 + bulk->btr.key_len, l->page_no);
    l->prev = l->page_no;
    l->page_no = next;
    l->n_recs = 0;
    l->used = 0;
    l->size = 0;
    return DB_SUCCESS;
}

/** Adds a record to a level, closing full pages on the way up. */
static dberr_t bulk_level_add(btr_bulk_t *bulk, uint32_t level, const byte *rec, uint32_t len)
{
    byte pending[2][BTR_NODE_REC_MAX]; /* the record to add and the pointer it makes, in turn */

    for (;; level++) {
        dberr_t err = DB_SUCCESS;
        if (level > BTR_LEVEL_MAX) {
            return err_set(&buf_env(bulk->pool)->err, DB_OUT_OF_SPACE,
                           "index %" PRIu64 " is too deep for one more level", bulk->btr.id);
        }
        bulk_level_t *l = &bulk->levels[level];
        if (l->recs == NULL) {
            err = bulk_level_begin(bulk, level);
        }
        bool full = err == DB_SUCCESS && bulk_page_is_full(bulk, level, len);
        page_no_t next = FIL_NULL;
        if (full) {
            err = bulk_reserve(bulk, level, l->page_no + 1, &next);
        }
        TRY(err);
        if (full) {
            TRY(bulk_page_close(bulk, level, next, pending[level % 2]));
        }
        bulk_page_append(l, rec, len);
        if (!full) {
            return DB_SUCCESS;
        }
        rec = pending[level % 2];
        len = btr_node_rec_size(&bulk->btr);
    }
}

dberr_t btr_bulk_add(btr_bulk_t *bulk, const byte *rec, uint32_t len)
{
    const bulk_level_t *l = &bulk->levels[0];
    if (l->n_recs > 0) {
        if (memcmp(rec_payload(l->recs + l->last), rec_payload(rec), bulk->btr.key_len) >= 0) {
            return err_set(&buf_env(bulk->pool)->err, DB_DUPLICATE_KEY,
                           "index %" PRIu64 ": keys of a load do not ascend", bulk->btr.id);
        }
    }
    TRY(bulk_level_add(bulk, 0, rec, len));
    buf_env(bulk->pool)->stats.bulk_rows++;
    return DB_SUCCESS;
}

/** One page of a chain. */
static dberr_t bulk_blob_page(btr_bulk_t *bulk, page_no_t page_no, const byte *part, uint32_t len,
                              page_no_t next)
{
    buf_block_t *block = NULL;
    mtr_t mtr;
    dberr_t err = bulk_mtr_start(bulk, &mtr);

    AND_THEN(err, mtr_page_create(&mtr, (page_id_t){bulk->btr.space, page_no}, FIL_PAGE_TYPE_BLOB,
                                  &block));
    if (err == DB_SUCCESS) {
        btr_blob_fill(&mtr, block, &bulk->btr, part, len, next);
    }
    return mtr_end(&mtr, err);
}

dberr_t btr_bulk_blob(btr_bulk_t *bulk, const byte *value, uint32_t len, blob_ref_t *ref)
{
    uint32_t part_max = blob_part_max(buf_page_size(bulk->pool));
    page_no_t page_no = FIL_NULL;
    TRY(bulk_reserve(bulk, 0, bulk->btr.root + 1, &page_no));
    blob_ref_t first = {.space = bulk->btr.space, .page_no = page_no, .len = len, .owner = true};
    for (uint32_t done = 0; done < len;) {
        uint32_t part = len - done < part_max ? len - done : part_max;
        page_no_t next = FIL_NULL;
        dberr_t err = DB_SUCCESS;
        if (done + part < len) {
            err = bulk_reserve(bulk, 0, page_no + 1, &next);
        }
        AND_THEN(err, bulk_blob_page(bulk, page_no, value + done, part, next));
        TRY(err);
        done += part;
        page_no = next;
    }
    *ref = first;
    buf_env(bulk->pool)->stats.blobs_written++;
    return DB_SUCCESS;
}

dberr_t btr_bulk_finish(btr_bulk_t *bulk)
{
    if (bulk->levels[0].recs == NULL) {
        return DB_SUCCESS; /* no record: the root is an empty leaf already */
    }
    byte node_rec[BTR_NODE_REC_MAX];
    uint32_t level = 0;
    while (bulk->levels[level].prev != FIL_NULL) {
        TRY(bulk_page_close(bulk, level, FIL_NULL, node_rec));
        TRY(bulk_level_add(bulk, level + 1, node_rec, btr_node_rec_size(&bulk->btr)));
        level++;
    }
    TRY(bulk_page_write(bulk, level, FIL_NULL));
    TRY(bulk_root_write(bulk, level));
    return bulk_top_free(bulk, level);
}
