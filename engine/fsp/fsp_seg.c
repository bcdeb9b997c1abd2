/** Segments: which page a segment gets next.

Place: top of fsp/, beside fsp_seg_free.c.

Invariants
1. an extent of a segment has state FSEG and the segment's id, and is on the list that its bitmap
   says: FREE without a used page, FULL with all used, else NOT_FULL, whose used pages the inode
   counts;
2. a page is used by one segment: in one of its fragment slots, or a used page of one of its
   extents;
3. everything here is logged, also where the pages' contents are not: recovery drops an incomplete
   index through its root and inodes. */
#include "base/check.h"
#include "base/mach.h"
#include "fsp/fsp_int.h"

#define FSEG_SLACK 8U /**< a new extent once less than 1 / FSEG_SLACK of the pages is unused */

/** A page chosen for a segment: in an extent of its own, or to be entered in a fragment slot. */
typedef struct fseg_place {
    page_no_t page_no; /**< FIL_NULL: none found */
    xdes_t xdes;
    uint32_t frag_slot; /**< fseg_n_frag_slots(): no fragment */
} fseg_place_t;

/** Any unused page of the segment's extents; in those that are not full first. */
static dberr_t fseg_choose_any(const fseg_t *seg, fseg_place_t *place)
{
    static const uint32_t LISTS[] = {FSEG_NOT_FULL, FSEG_FREE};
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; i < 2 && place->page_no == FIL_NULL; i++) {
        bool found = false;
        err = fseg_first_extent(seg, LISTS[i], &place->xdes, &found);
        if (err == DB_SUCCESS && found) {
            place->page_no = xdes_find_free(&seg->space, &place->xdes, place->xdes.first);
        }
        TRY(err);
    }
    return err;
}

/** Gives the segment one more extent, and the hinted or the first page of it. */
static dberr_t fseg_choose_new_extent(fseg_t *seg, page_no_t hint, fseg_place_t *place)
{
    fsp_space_t *space = &seg->space;
    TRY(fsp_extent_alloc(space, hint, &place->xdes));
    xdes_set_state(space, &place->xdes, XDES_STATE_FSEG, seg->id);
    place->page_no =
        xdes_find_free(space, &place->xdes,
                       xdes_covers_page(space, &place->xdes, hint) ? hint : place->xdes.first);
    return flst_add_last(space, fseg_list(seg, FSEG_FREE), place->xdes.block,
                         place->xdes.offset + XDES_NODE);
}

/** The order of preference: the hinted page; a new extent if the segment is large and nearly full;
a page near the hint; any page that it has; a fragment while it is small; a new extent. */
static dberr_t fseg_choose(fseg_t *seg, page_no_t hint, fseg_place_t *place)
{
    fsp_space_t *space = &seg->space;
    *place = (fseg_place_t){.page_no = FIL_NULL, .frag_slot = fseg_n_frag_slots(space)};
    fseg_usage_t usage;
    dberr_t err = fseg_usage(seg, &usage);
    bool own = false;
    if (err == DB_SUCCESS && hint < space->free_limit) {
        err = xdes_get(space, hint, &place->xdes);
        own = err == DB_SUCCESS && fseg_owns(seg, &place->xdes);
    }
    if (own) {
        place->page_no = xdes_find_free(space, &place->xdes, hint);
    }
    if (err != DB_SUCCESS || (own && place->page_no == hint)) {
        return err;
    }
    if (usage.used >= fseg_n_frag_slots(space)
        && usage.reserved - usage.used < usage.reserved / FSEG_SLACK) {
        fseg_place_t near = *place;
        err = fseg_choose_new_extent(seg, hint, place);
        if (err != DB_OUT_OF_SPACE) {
            return err;
        }
        *place = near; /* what is left of the present ones will do */
        err = DB_SUCCESS;
    }
    if (place->page_no == FIL_NULL && usage.reserved > usage.used) {
        err = fseg_choose_any(seg, place);
    }
    if (err != DB_SUCCESS || place->page_no != FIL_NULL) {
        return err;
    }
    place->frag_slot = fseg_frag_slot(seg, FIL_NULL);
    if (usage.used < fseg_n_frag_slots(space) && place->frag_slot < fseg_n_frag_slots(space)) {
        return fsp_frag_choose(space, hint, &place->xdes, &place->page_no);
    }
    place->frag_slot = fseg_n_frag_slots(space);
    return fseg_choose_new_extent(seg, hint, place);
}

/** Enters the chosen page as used. */
static dberr_t fseg_take(const fseg_t *seg, const fseg_place_t *place)
{
    const fsp_space_t *space = &seg->space;
    const xdes_t *xdes = &place->xdes;
    uint32_t node = xdes->offset + XDES_NODE;
    if (place->frag_slot < fseg_n_frag_slots(space)) {
        fseg_set_frag(seg, place->frag_slot, place->page_no);
        return fsp_frag_take(space, xdes, place->page_no);
    }
    uint32_t n_used = xdes_n_used(space, xdes) + 1;
    uint32_t not_full = fseg_not_full_n_used(seg) + 1;
    if (n_used == 1) {
        TRY(flst_move(space, fseg_list(seg, FSEG_FREE), fseg_list(seg, FSEG_NOT_FULL), xdes->block,
                      node));
    } else if (n_used == space->extent_pages) {
        if (not_full < n_used) {
            return fsp_corrupt(space, xdes->first, "more used pages than the segment counts");
        }
        not_full -= n_used;
        TRY(flst_move(space, fseg_list(seg, FSEG_NOT_FULL), fseg_list(seg, FSEG_FULL), xdes->block,
                      node));
    }
    xdes_set_used(space, xdes, place->page_no, true);
    fseg_set_not_full_n_used(seg, not_full);
    return DB_SUCCESS;
}

static dberr_t fseg_page_create(fseg_t *seg, page_no_t hint, page_type_t type, buf_block_t **out)
{
    fseg_place_t place;
    TRY(fseg_choose(seg, hint, &place));
    page_id_t id = {seg->space.id, place.page_no};
    buf_block_t *block = NULL;
    TRY(mtr_page_create(seg->space.mtr, id, type, &block));
    TRY(fseg_take(seg, &place));
    *out = block;
    return DB_SUCCESS;
}

dberr_t fseg_page_alloc(mtr_t *mtr, fseg_header_t header, page_no_t hint, page_type_t type,
                        buf_block_t **out)
{
    CHECK(mtr->mode == MTR_LOG_ALL);
    fseg_t seg;
    TRY(fseg_get(mtr, header, &seg));
    return fseg_page_create(&seg, hint, type, out);
}

dberr_t fseg_page_reserve(mtr_t *mtr, fseg_header_t header, page_no_t hint, page_no_t *out)
{
    CHECK(mtr->mode == MTR_LOG_ALL);
    fseg_t seg;
    TRY(fseg_get(mtr, header, &seg));
    fseg_place_t place;
    TRY(fseg_choose(&seg, hint, &place));
    TRY(fseg_take(&seg, &place));
    *out = place.page_no;
    return DB_SUCCESS;
}

dberr_t fseg_create(mtr_t *mtr, space_id_t space, page_type_t type, uint32_t header_offset,
                    buf_block_t **page)
{
    CHECK(mtr->mode == MTR_LOG_ALL);
    fseg_t seg;
    TRY(fsp_space_get(mtr, space, &seg.space));
    TRY(fseg_inode_alloc(&seg));
    if (*page == NULL) {
        TRY(fseg_page_create(&seg, 0, type, page));
    }
    byte header[FSEG_HEADER_SIZE];
    mach_write_4(header + FSEG_HEADER_SPACE, space);
    mach_write_4(header + FSEG_HEADER_PAGE, seg.inode->id.page_no);
    mach_write_2(header + FSEG_HEADER_OFFSET, seg.at);
    mtr_write_string(mtr, *page, header_offset, header, FSEG_HEADER_SIZE);
    return DB_SUCCESS;
}
