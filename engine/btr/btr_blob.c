/* Long values in chains of pages.

    store   [ref, 0] ──> [ref, n1]──P1 ──> [ref, n1 + n2]──P1──P2      an mtr per arrow
    free    [ref, n1 + n2]──P1──P2 ──> [ref, n2]──P2 ──> [ref, 0]

1. Each mtr leaves a reference whose length is that of the chain behind it. Who has the reference
   has all pages, and nobody else has one: none is lost or freed twice, however often a crash
   strikes (I11, I17).
2. Pages come from the segment of the leaves and go back to it, so that dropping the index frees
   them.
3. No page is believed: type, index, length and link are checked at each access, and a chain ends
   after as many pages as its length has bytes.
4. (I15) The page that is freed has no other change in its mtr. */
#include "btr/btr_blob.h"

#include <inttypes.h>
#include <string.h>

#include "base/mach.h"
#include "btr/btr_int.h"

void btr_blob_fill(mtr_t *mtr, buf_block_t *block, const btr_t *btr, const byte *part, uint32_t len,
                   page_no_t next)
{
    mtr_write_4(mtr, block, BLOB_PART_LEN, len);
    mtr_write_4(mtr, block, BLOB_NEXT, next);
    mtr_write_8(mtr, block, BLOB_INDEX_ID, btr->id);
    mtr_write_string(mtr, block, BLOB_DATA, part, len);
}

/** Pins the first page of a chain. *part: its length; *next: the page behind it. */
static dberr_t blob_page_get(mtr_t *mtr, const btr_t *btr, const blob_ref_t *ref,
                             buf_block_t **block, uint32_t *part, page_no_t *next)
{
    uint32_t page_size = buf_page_size(mtr->pool);
    TRY(mtr_page_get(mtr, (page_id_t){ref->space, ref->page_no}, block));
    const byte *page = (*block)->frame;
    if (fil_page_get_type(page) != FIL_PAGE_TYPE_BLOB || ref->space != btr->space
        || mach_read_8(page + BLOB_INDEX_ID) != btr->id) {
        return btr_corrupt(mtr->pool, btr, ref->page_no, "not a page of a long value of the index");
    }
    *part = mach_read_4(page + BLOB_PART_LEN);
    *next = mach_read_4(page + BLOB_NEXT);
    if (*part == 0 || *part > blob_part_max(page_size) || *part > ref->len
        || (*part == ref->len) != (*next == FIL_NULL)) {
        return btr_corrupt(mtr->pool, btr, ref->page_no, "length or link of a long value");
    }
    return DB_SUCCESS;
}

dberr_t btr_blob_read(buf_pool_t *pool, const btr_t *btr, const blob_ref_t *ref, byte *to)
{
    blob_ref_t rest = *ref;
    dberr_t err = DB_SUCCESS;
    while (rest.len > 0) {
        mtr_t mtr;
        mtr_start(&mtr, pool, MTR_READ_ONLY);
        buf_block_t *block = NULL;
        uint32_t part = 0;
        err = blob_page_get(&mtr, btr, &rest, &block, &part, &rest.page_no);
        if (err == DB_SUCCESS) {
            memcpy(to, block->frame + BLOB_DATA, part);
            to += part;
            rest.len -= part;
        }
        mtr_commit(&mtr);
        TRY(err);
    }
    return err;
}

/* ---- the reference ---- */

/** Where a reference is, pinned. */
typedef struct blob_place {
    buf_block_t *block;
    uint32_t slot;   /**< of the record; UINT32_MAX: the page is no index page */
    uint32_t offset; /**< in the record or page */
    blob_ref_t ref;
} blob_place_t;

/** Reads the reference of a place whose block, slot and offset are set. */
static dberr_t blob_place_read(mtr_t *mtr, const btr_t *btr, blob_place_t *place)
{
    uint32_t page_size = buf_page_size(mtr->pool);
    const byte *frame = place->block->frame;
    uint32_t end = page_size - FIL_PAGE_TRAILER;
    const byte *from = frame;
    if (place->slot != UINT32_MAX) {
        from = page_rec(frame, page_size, place->slot);
        end = page_rec_len(frame, page_size, place->slot);
    }
    if (place->offset > end || end - place->offset < BLOB_REF_SIZE
        || !blob_ref_read(from + place->offset, &place->ref)) {
        return btr_corrupt(mtr->pool, btr, place->block->id.page_no,
                           "no reference to a long value");
    }
    return DB_SUCCESS;
}

static dberr_t blob_place_find(mtr_t *mtr, const btr_t *btr, const byte *key, uint32_t offset,
                               blob_place_t *place)
{
    dberr_t err = btr_rec_find(mtr, btr, key, &place->block, &place->slot);
    if (err == DB_NOT_FOUND) {
        err = btr_corrupt(mtr->pool, btr, btr->root, "a long value has no row");
    }
    place->offset = offset;
    TRY(err);
    return blob_place_read(mtr, btr, place);
}

static dberr_t blob_place_write(mtr_t *mtr, const blob_place_t *place)
{
    byte bytes[BLOB_REF_SIZE];
    blob_ref_write(bytes, &place->ref);
    if (place->slot != UINT32_MAX) {
        return mtr_rec_update(mtr, place->block, place->slot, place->offset, bytes, sizeof(bytes));
    }
    mtr_write_string(mtr, place->block, place->offset, bytes, sizeof(bytes));
    return DB_SUCCESS;
}

static dberr_t blob_segment(mtr_t *mtr, const btr_t *btr, fseg_header_t *out)
{
    out->offset = PAGE_SEG_LEAF;
    return btr_page_get(mtr->pool, mtr, btr, btr->root, BTR_LEVEL_ANY, &out->block);
}

/* ---- store ---- */

/** Adds a page to the chain, whose last one so far is *last (FIL_NULL: there is none). */
static dberr_t blob_grow(mtr_t *mtr, const btr_t *btr, blob_place_t *place, page_no_t *last,
                         const byte *part, uint32_t len)
{
    fseg_header_t segment;
    TRY(blob_segment(mtr, btr, &segment));
    buf_block_t *before = NULL;
    if (*last != FIL_NULL) {
        TRY(mtr_page_get(mtr, (page_id_t){btr->space, *last}, &before));
    }
    TRY(fsp_reserve(mtr, btr->space, 1));
    buf_block_t *block = NULL;
    TRY(fseg_page_alloc(mtr, segment, *last != FIL_NULL ? *last + 1 : FIL_NULL, FIL_PAGE_TYPE_BLOB,
                        &block));
    btr_blob_fill(mtr, block, btr, part, len, FIL_NULL);
    *last = block->id.page_no;
    if (before != NULL) {
        mtr_write_4(mtr, before, BLOB_NEXT, *last);
    } else {
        place->ref.page_no = *last;
    }
    place->ref.len += len;
    return blob_place_write(mtr, place);
}

dberr_t btr_blob_store(buf_pool_t *pool, const btr_t *btr, const byte *key, uint32_t offset,
                       const byte *value, uint32_t len)
{
    uint32_t part_max = blob_part_max(buf_page_size(pool));
    page_no_t last = FIL_NULL;
    for (uint32_t done = 0; done < len;) {
        uint32_t part = len - done < part_max ? len - done : part_max;
        TRY(buf_log_free_check(pool));
        mtr_t mtr;
        mtr_start(&mtr, pool, MTR_LOG_ALL);
        blob_place_t place;
        dberr_t err = blob_place_find(&mtr, btr, key, offset, &place);
        if (err == DB_SUCCESS && place.ref.len != done) {
            err = btr_corrupt(pool, btr, place.block->id.page_no, "a long value is there already");
        }
        AND_THEN(err, blob_grow(&mtr, btr, &place, &last, value + done, part));
        TRY(mtr_end(&mtr, err));
        done += part;
    }
    buf_env(pool)->stats.blobs_written++;
    return DB_SUCCESS;
}

/* ---- free ---- */

/** Frees the first page of the chain; *done = there is none. */
static dberr_t blob_free_head(mtr_t *mtr, const btr_t *btr, blob_place_t *place, bool *done)
{
    page_no_t page_no = place->ref.page_no;
    *done = place->ref.len == 0;
    if (*done) {
        return DB_SUCCESS;
    }
    buf_block_t *head = NULL;
    uint32_t part = 0;
    page_no_t next = FIL_NULL;
    dberr_t err = blob_page_get(mtr, btr, &place->ref, &head, &part, &next);
    fseg_header_t segment;
    AND_THEN(err, blob_segment(mtr, btr, &segment));
    AND_THEN(err, fseg_page_check(mtr, segment, page_no));
    AND_THEN(err, fseg_page_free(mtr, segment, page_no, FSP_FREE_LOGGED));
    place->ref.page_no = next;
    place->ref.len -= part;
    TRY(err);
    return blob_place_write(mtr, place);
}

/** key NULL: the reference is in a page. */
static dberr_t blob_free_chain(buf_pool_t *pool, const btr_t *btr, const byte *key, page_id_t page,
                               uint32_t offset)
{
    for (bool done = false; !done;) {
        blob_place_t place = {.slot = UINT32_MAX, .offset = offset};
        TRY(buf_log_free_check(pool));
        mtr_t mtr;
        mtr_start(&mtr, pool, MTR_LOG_ALL);
        dberr_t err = DB_SUCCESS;
        if (key != NULL) {
            err = blob_place_find(&mtr, btr, key, offset, &place);
        } else {
            err = mtr_page_get(&mtr, page, &place.block);
            AND_THEN(err, blob_place_read(&mtr, btr, &place));
        }
        AND_THEN(err, blob_free_head(&mtr, btr, &place, &done));
        TRY(mtr_end(&mtr, err));
    }
    return DB_SUCCESS;
}

dberr_t btr_blob_free(buf_pool_t *pool, const btr_t *btr, const byte *key, uint32_t offset)
{
    return blob_free_chain(pool, btr, key, (page_id_t){btr->space, FIL_NULL}, offset);
}

dberr_t btr_blob_free_of_page(buf_pool_t *pool, const btr_t *btr, page_id_t page, uint32_t offset)
{
    return blob_free_chain(pool, btr, NULL, page, offset);
}
