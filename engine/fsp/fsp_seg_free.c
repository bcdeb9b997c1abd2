/** Freeing: single pages, and whole segments step by step.

Place: top of fsp/, beside fsp_seg.c.

Invariants
1. freeing a whole extent logs nothing of its pages in a 10.4 log. Frames and homes of those pages stay as they are
   until they are given out again; nobody reads them before that;
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
    dberr_t err = page_no < space->size ? xdes_get(space, page_no, xdes)
                                        : fsp_corrupt(space, page_no, "lies beyond the space");
    if (err != DB_SUCCESS) {
        return err;
    }
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
    xdes_t xdes;
    uint32_t frag_slot = 0;
    dberr_t err = fseg_get(mtr, header, &seg);
    return err == DB_SUCCESS ? fseg_find_page(&seg, page_no, &xdes, &frag_slot) : err;
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
    dberr_t err = fseg_unlist(seg, xdes, n_used);
    if (err != DB_SUCCESS) {
        return err;
    }
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
    xdes_t xdes;
    uint32_t frag_slot = 0;
    dberr_t err = fseg_get(mtr, header, &seg);
    if (err == DB_SUCCESS) {
        err = fseg_find_page(&seg, page_no, &xdes, &frag_slot);
    }
    if (err == DB_SUCCESS && mtr_page_is_changed(mtr, (page_id_t){seg.space.id, page_no})) {
        err = fsp_corrupt(&seg.space, page_no, "to be freed, but in use by the same change");
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    if (frag_slot < fseg_n_frag_slots(&seg.space)) {
        fseg_set_frag(&seg, frag_slot, FIL_NULL);
        err = fsp_frag_free(&seg.space, page_no);
    } else {
        err = fseg_extent_page_free(&seg, &xdes, page_no);
    }
    return err == DB_SUCCESS && mode == FSP_FREE_LOGGED ? fsp_page_forget(&seg.space, page_no)
                                                        : err;
}

/** An extent of the segment, full ones first; *found = it has one. */
static dberr_t fseg_some_extent(const fseg_t *seg, xdes_t *xdes, bool *found)
{
    static const uint32_t LISTS[] = {FSEG_FULL, FSEG_NOT_FULL, FSEG_FREE};
    dberr_t err = DB_SUCCESS;
    *found = false;
    for (uint32_t i = 0; err == DB_SUCCESS && i < 3 && !*found; i++) {
        err = fseg_first_extent(seg, LISTS[i], xdes, found);
    }
    return err;
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
    if (err == DB_SUCCESS) {
        err = fsp_extent_free(space, xdes);
    }
    bool logged = log_format(buf_log(space->mtr->pool))->all_frees;
    for (uint32_t i = 0; err == DB_SUCCESS && logged && i < n_used; i++) {
        err = fsp_page_forget(space, used[i]);
    }
    return err;
}

dberr_t fseg_free_step(mtr_t *mtr, fseg_header_t header, bool spare_header_page, bool *done)
{
    fseg_t seg;
    xdes_t xdes;
    bool found = false;
    dberr_t err = fseg_try_get(mtr, header, &seg);
    *done = err == DB_SUCCESS && seg.inode == NULL;
    if (err != DB_SUCCESS || *done) {
        return err;
    }
    err = fseg_some_extent(&seg, &xdes, &found);
    if (err == DB_SUCCESS && found) {
        return fseg_extent_free(&seg, &xdes);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
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
    xdes_t xdes;
    uint32_t frag_slot = 0;
    page_no_t page_no = header.block->id.page_no;
    bool found = false;
    dberr_t err = fseg_get(mtr, header, &seg);
    if (err == DB_SUCCESS) {
        err = fseg_find_page(&seg, page_no, &xdes, &frag_slot);
    }
    if (err == DB_SUCCESS) {
        err = fseg_some_extent(&seg, &xdes, &found);
    }
    if (err == DB_SUCCESS
        && (found || frag_slot == fseg_n_frag_slots(&seg.space)
            || fseg_last_frag(&seg, page_no) < fseg_n_frag_slots(&seg.space))) {
        err = fsp_corrupt(&seg.space, page_no, "not the last page of its segment");
    }
    if (err == DB_SUCCESS) {
        err = fsp_frag_free(&seg.space, page_no);
    }
    if (err == DB_SUCCESS) {
        err = fseg_inode_free(&seg);
    }
    return err == DB_SUCCESS ? fsp_page_forget(&seg.space, page_no) : err;
}
