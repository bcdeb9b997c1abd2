/** Extent descriptors; free extents, and extents shared by single pages.

Place: in fsp/, between page 0 and the segments.

    not initialised --free limit--> FREE <--> FREE_FRAG <--> FULL_FRAG     pages of several segments
                                      ^
                                      +-----> FSEG                         pages of one segment

Invariants
1. an extent is on exactly one list, that of its state: FREE, FREE_FRAG, FULL_FRAG of page 0, or one
   of the three of its segment (fsp_seg.c);
2. state and bitmap agree: a FREE extent has no used page, FREE_FRAG some but not all, FULL_FRAG
   all; a descriptor that says otherwise is refused;
3. FSP_FRAG_N_USED counts the used pages of FREE_FRAG extents;
4. an extent goes back to FREE with its last page. */
#include "base/mach.h"
#include "fsp/fsp_int.h"

/* ---- descriptors ---- */

static const byte *xdes_bytes(const xdes_t *xdes)
{
    return xdes->block->frame + xdes->offset;
}

uint32_t xdes_state(const xdes_t *xdes)
{
    return mach_read_4(xdes_bytes(xdes) + XDES_STATE);
}

uint64_t xdes_segment(const xdes_t *xdes)
{
    return mach_read_8(xdes_bytes(xdes) + XDES_ID);
}

bool xdes_page_is_used(const xdes_t *xdes, page_no_t page_no)
{
    uint32_t i = page_no - xdes->first;
    return (xdes_bytes(xdes)[XDES_BITMAP + i / 8] >> i % 8 & 1) != 0;
}

bool xdes_covers_page(const fsp_space_t *space, const xdes_t *xdes, page_no_t page_no)
{
    return page_no >= xdes->first && page_no - xdes->first < space->extent_pages;
}

uint32_t xdes_n_used(const fsp_space_t *space, const xdes_t *xdes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < space->extent_pages; i++) {
        n += xdes_page_is_used(xdes, xdes->first + i);
    }
    return n;
}

static bool xdes_is_sane(const fsp_space_t *space, const xdes_t *xdes)
{
    uint32_t n = xdes_n_used(space, xdes);
    bool segment = xdes_segment(xdes) != 0;
    switch (xdes_state(xdes)) {
    case XDES_STATE_FREE:
        return n == 0 && !segment;
    case XDES_STATE_FREE_FRAG:
        return n > 0 && n < space->extent_pages && !segment;
    case XDES_STATE_FULL_FRAG:
        return n == space->extent_pages && !segment;
    case XDES_STATE_FSEG:
        return segment;
    default:
        return false;
    }
}

dberr_t xdes_locate(const fsp_space_t *space, page_no_t page_no, xdes_t *out)
{
    page_no_t xdes_page = page_no - page_no % space->xdes_covers;
    buf_block_t *block = NULL;
    TRY(mtr_page_get(space->mtr, (page_id_t){space->id, xdes_page}, &block));
    if (xdes_page != 0 && fil_page_get_type(block->frame) != FIL_PAGE_TYPE_XDES) {
        return fsp_corrupt(space, xdes_page, "not a descriptor page");
    }
    uint32_t slot = (page_no - xdes_page) / space->extent_pages;
    *out = (xdes_t){block, FSP_XDES + slot * xdes_size(space->extent_pages),
                    page_no - page_no % space->extent_pages};
    return DB_SUCCESS;
}

dberr_t xdes_get(const fsp_space_t *space, page_no_t page_no, xdes_t *out)
{
    xdes_t xdes;
    TRY(page_no < space->free_limit ? xdes_locate(space, page_no, &xdes)
                                    : fsp_corrupt(space, page_no, "lies beyond the free limit"));
    if (!xdes_is_sane(space, &xdes)) {
        return fsp_corrupt(space, xdes.first, "impossible extent descriptor");
    }
    *out = xdes;
    return DB_SUCCESS;
}

dberr_t xdes_get_by_node(const fsp_space_t *space, page_no_t page_no, uint32_t offset, xdes_t *out)
{
    uint32_t size = xdes_size(space->extent_pages);
    uint32_t at = offset - FSP_XDES - XDES_NODE;
    uint32_t slot = at / size;
    if (page_no % space->xdes_covers != 0 || page_no >= space->free_limit
        || offset < FSP_XDES + XDES_NODE || at % size != 0
        || slot >= space->xdes_covers / space->extent_pages) {
        return fsp_corrupt(space, page_no, "list: impossible address of a descriptor");
    }
    return xdes_get(space, page_no + slot * space->extent_pages, out);
}

page_no_t xdes_find_free(const fsp_space_t *space, const xdes_t *xdes, page_no_t from)
{
    for (uint32_t i = 0; i < space->extent_pages; i++) {
        page_no_t page_no = xdes->first + (from - xdes->first + i) % space->extent_pages;
        if (!xdes_page_is_used(xdes, page_no)
            && !mtr_page_is_freed(space->mtr, (page_id_t){space->id, page_no})) {
            return page_no;
        }
    }
    return FIL_NULL;
}

void xdes_set_used(const fsp_space_t *space, const xdes_t *xdes, page_no_t page_no, bool used)
{
    uint32_t i = page_no - xdes->first;
    uint32_t at = xdes->offset + XDES_BITMAP + i / 8;
    uint32_t bit = 1U << i % 8;
    uint32_t old = xdes->block->frame[at];
    mtr_write_1(space->mtr, xdes->block, at, used ? old | bit : old & ~bit);
}

/** The bitmap is cleared on the way to FREE, not here. */
void xdes_set_state(const fsp_space_t *space, const xdes_t *xdes, uint32_t state,
                    uint64_t segment_id)
{
    if (xdes_segment(xdes) != segment_id) {
        mtr_write_8(space->mtr, xdes->block, xdes->offset + XDES_ID, segment_id);
    }
    mtr_write_4(space->mtr, xdes->block, xdes->offset + XDES_STATE, state);
}

/* ---- free extents ---- */

dberr_t fsp_first_extent(const fsp_space_t *space, flst_t list, xdes_t *xdes, bool *found)
{
    page_no_t page_no = FIL_NULL;
    uint32_t offset = 0;
    dberr_t err = flst_first(space, list, &page_no, &offset);
    *found = err == DB_SUCCESS && page_no != FIL_NULL;
    return *found ? xdes_get_by_node(space, page_no, offset, xdes) : err;
}

static dberr_t fsp_extent_choose(fsp_space_t *space, page_no_t hint, xdes_t *out)
{
    if (hint < space->free_limit) {
        dberr_t err = xdes_get(space, hint, out);
        if (err != DB_SUCCESS || xdes_state(out) == XDES_STATE_FREE) {
            return err;
        }
    }
    for (;;) {
        bool found = false;
        uint32_t limit = space->free_limit;
        dberr_t err = fsp_first_extent(space, fsp_list(space, FSP_FREE), out, &found);
        if (err == DB_SUCCESS && found && xdes_state(out) != XDES_STATE_FREE) {
            err = fsp_corrupt(space, out->first, "an extent in use is on the free list");
        }
        if (err != DB_SUCCESS || found) {
            return err;
        }
        TRY(fsp_fill_free_list(space));
        if (space->free_limit == limit) {
            return err_set(&buf_env(space->mtr->pool)->err, DB_OUT_OF_SPACE,
                           "the space has no free extent");
        }
    }
}

dberr_t fsp_extent_alloc(fsp_space_t *space, page_no_t hint, xdes_t *out)
{
    TRY(fsp_extent_choose(space, hint, out));
    return flst_remove(space, fsp_list(space, FSP_FREE), out->block, out->offset + XDES_NODE);
}

dberr_t fsp_extent_free(const fsp_space_t *space, const xdes_t *xdes)
{
    buf_env(space->mtr->pool)->stats.extents_freed++;
    mtr_memset(space->mtr, xdes->block, xdes->offset + XDES_BITMAP, space->extent_pages / 8, 0);
    xdes_set_state(space, xdes, XDES_STATE_FREE, 0);
    return flst_add_last(space, fsp_list(space, FSP_FREE), xdes->block, xdes->offset + XDES_NODE);
}

/* ---- fragment pages ---- */

/** A FREE_FRAG extent with a page that can be given out: that of hint, the first, or a new one. */
static dberr_t fsp_frag_extent(fsp_space_t *space, page_no_t hint, xdes_t *xdes)
{
    bool found = false;
    dberr_t err = DB_SUCCESS;
    if (hint < space->free_limit) {
        err = xdes_get(space, hint, xdes);
        found = err == DB_SUCCESS && xdes_state(xdes) == XDES_STATE_FREE_FRAG;
    }
    if (err == DB_SUCCESS && !found) {
        err = fsp_first_extent(space, fsp_list(space, FSP_FREE_FRAG), xdes, &found);
        if (found && err == DB_SUCCESS && xdes_state(xdes) != XDES_STATE_FREE_FRAG) {
            err = fsp_corrupt(space, xdes->first, "wrong state for the list of shared extents");
        }
    }
    if (err != DB_SUCCESS || (found && xdes_find_free(space, xdes, xdes->first) != FIL_NULL)) {
        return err;
    }
    TRY(fsp_extent_alloc(space, hint, xdes));
    xdes_set_state(space, xdes, XDES_STATE_FREE_FRAG, 0);
    return flst_add_last(space, fsp_list(space, FSP_FREE_FRAG), xdes->block,
                         xdes->offset + XDES_NODE);
}

dberr_t fsp_frag_choose(fsp_space_t *space, page_no_t hint, xdes_t *xdes, page_no_t *page_no)
{
    TRY(fsp_frag_extent(space, hint, xdes));
    page_no_t from = xdes_covers_page(space, xdes, hint) ? hint : xdes->first;
    *page_no = xdes_find_free(space, xdes, from);
    if (*page_no == FIL_NULL) {
        return fsp_corrupt(space, xdes->first, "no free page in a shared extent");
    }
    return *page_no < space->size ? DB_SUCCESS : fsp_extend_to(space, *page_no + 1);
}

dberr_t fsp_frag_take(const fsp_space_t *space, const xdes_t *xdes, page_no_t page_no)
{
    uint32_t n_used = fsp_frag_n_used(space) + 1;
    xdes_set_used(space, xdes, page_no, true);
    if (xdes_n_used(space, xdes) < space->extent_pages) {
        fsp_set_frag_n_used(space, n_used);
        return DB_SUCCESS;
    }
    if (n_used < space->extent_pages) {
        return fsp_corrupt(space, page_no, "more used pages than the header counts");
    }
    fsp_set_frag_n_used(space, n_used - space->extent_pages);
    xdes_set_state(space, xdes, XDES_STATE_FULL_FRAG, 0);
    return flst_move(space, fsp_list(space, FSP_FREE_FRAG), fsp_list(space, FSP_FULL_FRAG),
                     xdes->block, xdes->offset + XDES_NODE);
}

dberr_t fsp_frag_free(const fsp_space_t *space, page_no_t page_no)
{
    xdes_t xdes;
    TRY(xdes_get(space, page_no, &xdes));
    bool full = xdes_state(&xdes) == XDES_STATE_FULL_FRAG;
    uint32_t n_used = fsp_frag_n_used(space) + (full ? space->extent_pages : 0);
    if ((!full && xdes_state(&xdes) != XDES_STATE_FREE_FRAG) || !xdes_page_is_used(&xdes, page_no)
        || n_used == 0) {
        return fsp_corrupt(space, page_no, "to be freed, but not a page of a shared extent");
    }
    bool last = xdes_n_used(space, &xdes) == 1;
    uint32_t node = xdes.offset + XDES_NODE;
    if (full) {
        TRY(flst_move(space, fsp_list(space, FSP_FULL_FRAG), fsp_list(space, FSP_FREE_FRAG),
                      xdes.block, node));
    } else if (last) {
        TRY(flst_remove(space, fsp_list(space, FSP_FREE_FRAG), xdes.block, node));
    }
    fsp_set_frag_n_used(space, n_used - 1);
    if (last) {
        return fsp_extent_free(space, &xdes);
    }
    xdes_set_used(space, &xdes, page_no, false);
    if (full) {
        xdes_set_state(space, &xdes, XDES_STATE_FREE_FRAG, 0);
    }
    return DB_SUCCESS;
}

dberr_t fsp_page_forget(const fsp_space_t *space, page_no_t page_no)
{
    page_id_t id = {space->id, page_no};
    if (mtr_page_is_changed(space->mtr, id)) {
        return fsp_corrupt(space, page_no, "to be freed, but in use by the same change");
    }
    mtr_page_free(space->mtr, id);
    return DB_SUCCESS;
}
