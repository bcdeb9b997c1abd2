/** Freeing: single pages, and whole segments step by step.

Place: top of fsp/, beside fsp_seg.c.

Invariants
1. freeing a whole extent logs nothing of its pages in a 10.4 log. Frames and homes of those pages
   stay as they are until they are given out again; nobody reads them before that;
2. a page whose freeing is logged has no other record in the mtr (I15), and is not given out by it;
3. each step of freeing a segment leaves a whole, smaller segment: a crash between two steps is
   repaired by going on. */
#include "base/mach.h"
#include "fsp/fsp_int.h"

/** The descriptor of a page that the segment uses; *frag_slot as in fseg_place_t. */
static dberr_t fseg_find_page(const fseg_t *seg, page_no_t page_no, xdes_t *xdes,
                              uint32_t *frag_slot)
{
    const fsp_space_t *space = &seg->space;
    TRY(page_no < space->size ? xdes_get(space, page_no, xdes)
                              : fsp_corrupt(space, page_no, "lies beyond the space"));
    *frag_slot = fseg_frag_slot(seg, page_no);
    bool shared =
        xdes_state(xdes) == XDES_STATE_FREE_FRAG || xdes_state(xdes) == XDES_STATE_FULL_FRAG;
    bool frag = *frag_slot < fseg_n_frag_slots(space);
    if (!xdes_page_is_used(xdes, page_no) || (frag ? !shared : !fseg_owns(seg, xdes))) {
        return fsp_corrupt(space, page_no, "does not belong to its segment");
    }
    return DB_SUCCESS;
}

dberr_t fseg_page_check(mtr_t *mtr, fseg_header_t header, page_no_t page_no)
{
    fseg_t seg;
    TRY(fseg_get(mtr, header, &seg));
    xdes_t xdes;
    uint32_t frag_slot = 0;
    return fseg_find_page(&seg, page_no, &xdes, &frag_slot);
}

/** Takes an extent off the segment's list on which n_used pages of it put it. */
static dberr_t fseg_unlist(const fseg_t *seg, const xdes_t *xdes, uint32_t n_used)
{
    const fsp_space_t *space = &seg->space;
    uint32_t not_full = fseg_not_full_n_used(seg);
    uint32_t list = n_used == 0                     ? FSEG_FREE
                    : n_used == space->extent_pages ? FSEG_FULL
                                                    : FSEG_NOT_FULL;
    if (list == FSEG_NOT_FULL && not_full < n_used) {
        return fsp_corrupt(space, xdes->first, "more used pages than the segment counts");
    }
    dberr_t err = flst_remove(space, fseg_list(seg, list), xdes->block, xdes->offset + XDES_NODE);
    if (err == DB_SUCCESS && list == FSEG_NOT_FULL) {
        fseg_set_not_full_n_used(seg, not_full - n_used);
    }
    return err;
}

/** Frees a page of an extent of the segment's own, in descriptor and lists. */
static dberr_t fseg_extent_page_free(const fseg_t *seg, const xdes_t *xdes, page_no_t page_no)
{
    const fsp_space_t *space = &seg->space;
    uint32_t n_used = xdes_n_used(space, xdes);
    if (n_used > 1 && n_used < space->extent_pages) {
        if (fseg_not_full_n_used(seg) < n_used) {
            return fsp_corrupt(space, page_no, "more used pages than the segment counts");
        }
        xdes_set_used(space, xdes, page_no, false);
        fseg_set_not_full_n_used(seg, fseg_not_full_n_used(seg) - 1);
        return DB_SUCCESS;
    }
    TRY(fseg_unlist(seg, xdes, n_used));
    if (n_used == 1) {
        return fsp_extent_free(space, xdes);
    }
    xdes_set_used(space, xdes, page_no, false);
    fseg_set_not_full_n_used(seg, fseg_not_full_n_used(seg) + n_used - 1);
    return flst_add_last(space, fseg_list(seg, FSEG_NOT_FULL), xdes->block,
                         xdes->offset + XDES_NODE);
}

dberr_t fseg_page_free(mtr_t *mtr, fseg_header_t header, page_no_t page_no, fsp_free_mode_t mode)
{
    fseg_t seg;
    TRY(fseg_get(mtr, header, &seg));
    xdes_t xdes;
    uint32_t frag_slot = 0;
    TRY(fseg_find_page(&seg, page_no, &xdes, &frag_slot));
    if (mtr_page_is_changed(mtr, (page_id_t){seg.space.id, page_no})) {
        return fsp_corrupt(&seg.space, page_no, "to be freed, but in use by the same change");
    }
    if (frag_slot < fseg_n_frag_slots(&seg.space)) {
        fseg_set_frag(&seg, frag_slot, FIL_NULL);
        TRY(fsp_frag_free(&seg.space, page_no));
    } else {
        TRY(fseg_extent_page_free(&seg, &xdes, page_no));
    }
    return mode == FSP_FREE_LOGGED ? fsp_page_forget(&seg.space, page_no) : DB_SUCCESS;
}

/** An extent of the segment, full ones first; *found = it has one. */
static dberr_t fseg_some_extent(const fseg_t *seg, xdes_t *xdes, bool *found)
{
    static const uint32_t LISTS[] = {FSEG_FULL, FSEG_NOT_FULL, FSEG_FREE};
    *found = false;
    for (uint32_t i = 0; i < 3 && !*found; i++) {
        TRY(fseg_first_extent(seg, LISTS[i], xdes, found));
    }
    return DB_SUCCESS;
}

/** The last fragment slot in use, the one with page `except` left out. */
static uint32_t fseg_last_frag(const fseg_t *seg, page_no_t except)
{
    for (uint32_t slot = fseg_n_frag_slots(&seg->space); slot-- > 0;) {
        page_no_t page_no = fseg_frag(seg, slot);
        if (page_no != FIL_NULL && page_no != except) {
            return slot;
        }
    }
    return fseg_n_frag_slots(&seg->space);
}

/** Frees the inode of a segment that has nothing left, and zeroes its header. */
static dberr_t fseg_end(const fseg_t *seg, fseg_header_t header)
{
    mtr_memset(seg->space.mtr, header.block, header.offset, FSEG_HEADER_SIZE, 0);
    return fseg_inode_free(seg);
}

/** Gives an extent of the segment back. Some logs say of each of its pages that it is free. */
static dberr_t fseg_extent_free(const fseg_t *seg, const xdes_t *xdes)
{
    const fsp_space_t *space = &seg->space;
    page_no_t used[EXTENT_PAGES_MAX];
    uint32_t n_used = 0;
    for (page_no_t i = xdes->first; i < xdes->first + space->extent_pages; i++) {
        if (xdes_page_is_used(xdes, i)) {
            used[n_used++] = i;
        }
    }
    dberr_t err = fseg_unlist(seg, xdes, n_used);
    AND_THEN(err, fsp_extent_free(space, xdes));
    bool logged = log_format(buf_log(space->mtr->pool))->all_frees;
    TRY(err);
    for (uint32_t i = 0; logged && i < n_used; i++) {
        TRY(fsp_page_forget(space, used[i]));
    }
    return DB_SUCCESS;
}

dberr_t fseg_free_step(mtr_t *mtr, fseg_header_t header, bool spare_header_page, bool *done)
{
    fseg_t seg;
    dberr_t err = fseg_try_get(mtr, header, &seg);
    *done = err == DB_SUCCESS && seg.inode == NULL;
    if (err != DB_SUCCESS || *done) {
        return err;
    }
    xdes_t xdes;
    bool found = false;
    err = fseg_some_extent(&seg, &xdes, &found);
    if (err == DB_SUCCESS && found) {
        return fseg_extent_free(&seg, &xdes);
    }
    TRY(err);
    page_no_t own = spare_header_page ? header.block->id.page_no : FIL_NULL;
    uint32_t slot = fseg_last_frag(&seg, own);
    if (slot < fseg_n_frag_slots(&seg.space)) {
        return fseg_page_free(mtr, header, fseg_frag(&seg, slot), FSP_FREE_LOGGED);
    }
    *done = true;
    return spare_header_page ? DB_SUCCESS : fseg_end(&seg, header);
}

dberr_t fseg_free_last(mtr_t *mtr, fseg_header_t header)
{
    fseg_t seg;
    page_no_t page_no = header.block->id.page_no;
    TRY(fseg_get(mtr, header, &seg));
    xdes_t xdes;
    uint32_t frag_slot = 0;
    TRY(fseg_find_page(&seg, page_no, &xdes, &frag_slot));
    bool found = false;
    TRY(fseg_some_extent(&seg, &xdes, &found));
    if (found || frag_slot == fseg_n_frag_slots(&seg.space)
        || fseg_last_frag(&seg, page_no) < fseg_n_frag_slots(&seg.space)) {
        return fsp_corrupt(&seg.space, page_no, "not the last page of its segment");
    }
    TRY(fsp_frag_free(&seg.space, page_no));
    TRY(fseg_inode_free(&seg));
    return fsp_page_forget(&seg.space, page_no);
}
