/** Segment inodes: where they lie, what they say, creation and end.

Place: in fsp/, above extents, below the choice of pages.

    header (in a page of the user) --> inode --> fragment slots --> single pages of shared extents
                                             --> FREE, NOT_FULL, FULL --> extents of its own

Invariants
1. an inode page is on SEG_INODES_FULL or SEG_INODES_FREE, by whether it has a free slot, and goes
   with its last inode;
2. a segment id is given out once; a header that leads to an inode without id or magic is
   refused. */
#include "base/mach.h"
#include "fsp/fsp_int.h"

uint32_t fseg_n_frag_slots(const fsp_space_t *space)
{
    return space->extent_pages / 2;
}

static uint32_t fseg_inode_at(const fsp_space_t *space, uint32_t i)
{
    return FSEG_INODES + i * fseg_inode_size(space->extent_pages);
}

/** First inode slot that is free (used = false) or in use, `except` left out; its offset, or 0. */
static uint32_t fseg_find_inode(const fsp_space_t *space, const buf_block_t *block, bool used,
                                uint32_t except)
{
    uint32_t n = fseg_inodes_per_page(space->page_size, space->extent_pages);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = fseg_inode_at(space, i);
        if (at != except && (mach_read_8(block->frame + at + FSEG_ID) != 0) == used) {
            return at;
        }
    }
    return 0;
}

dberr_t fseg_inode_page_get(const fsp_space_t *space, page_no_t page_no, buf_block_t **out)
{
    buf_block_t *block = NULL;
    TRY(page_no < space->size ? mtr_page_get(space->mtr, (page_id_t){space->id, page_no}, &block)
                              : fsp_corrupt(space, page_no, "inode page beyond the space"));
    if (fil_page_get_type(block->frame) != FIL_PAGE_INODE) {
        return fsp_corrupt(space, page_no, "not an inode page");
    }
    *out = block;
    return DB_SUCCESS;
}

flst_t fseg_list(const fseg_t *seg, uint32_t offset)
{
    return (flst_t){.kind = FLST_XDES, .block = seg->inode, .offset = seg->at + offset};
}

page_no_t fseg_frag(const fseg_t *seg, uint32_t slot)
{
    return mach_read_4(seg->inode->frame + seg->at + FSEG_FRAGS + 4 * slot);
}

void fseg_set_frag(const fseg_t *seg, uint32_t slot, page_no_t page_no)
{
    mtr_write_4(seg->space.mtr, seg->inode, seg->at + FSEG_FRAGS + 4 * slot, page_no);
}

uint32_t fseg_frag_slot(const fseg_t *seg, page_no_t page_no)
{
    uint32_t slot = 0;
    while (slot < fseg_n_frag_slots(&seg->space) && fseg_frag(seg, slot) != page_no) {
        slot++;
    }
    return slot;
}

uint32_t fseg_not_full_n_used(const fseg_t *seg)
{
    return mach_read_4(seg->inode->frame + seg->at + FSEG_NOT_FULL_N_USED);
}

void fseg_set_not_full_n_used(const fseg_t *seg, uint32_t n)
{
    mtr_write_4(seg->space.mtr, seg->inode, seg->at + FSEG_NOT_FULL_N_USED, n);
}

dberr_t fseg_usage(const fseg_t *seg, fseg_usage_t *out)
{
    uint32_t extent = seg->space.extent_pages;
    uint64_t n_free = flst_len(fseg_list(seg, FSEG_FREE));
    uint64_t n_not_full = flst_len(fseg_list(seg, FSEG_NOT_FULL));
    uint64_t n_full = flst_len(fseg_list(seg, FSEG_FULL));
    uint32_t n_used = fseg_not_full_n_used(seg);
    if ((n_free + n_not_full + n_full) * extent > seg->space.free_limit
        || n_used > n_not_full * extent) {
        return fsp_corrupt(&seg->space, seg->inode->id.page_no, "segment: impossible counts");
    }
    uint32_t n_frags = 0;
    for (uint32_t slot = 0; slot < fseg_n_frag_slots(&seg->space); slot++) {
        n_frags += fseg_frag(seg, slot) != FIL_NULL;
    }
    out->reserved = n_frags + (uint32_t)(n_free + n_not_full + n_full) * extent;
    out->used = n_frags + (uint32_t)n_full * extent + n_used;
    return DB_SUCCESS;
}

dberr_t fseg_try_get(mtr_t *mtr, fseg_header_t header, fseg_t *out)
{
    const byte *bytes = header.block->frame + header.offset;
    space_id_t space_id = mach_read_4(bytes + FSEG_HEADER_SPACE);
    page_no_t page_no = mach_read_4(bytes + FSEG_HEADER_PAGE);
    uint32_t at = mach_read_2(bytes + FSEG_HEADER_OFFSET);
    fseg_t seg = {.at = at};
    TRY(fsp_space_get(mtr, header.block->id.space, &seg.space));
    if (at == 0 && page_no == 0) {
        *out = seg;
        return DB_SUCCESS;
    }
    uint32_t size = fseg_inode_size(seg.space.extent_pages);
    if (space_id != seg.space.id || at < FSEG_INODES || (at - FSEG_INODES) % size != 0
        || (at - FSEG_INODES) / size
               >= fseg_inodes_per_page(seg.space.page_size, seg.space.extent_pages)) {
        return fsp_corrupt(&seg.space, header.block->id.page_no, "impossible segment header");
    }
    TRY(fseg_inode_page_get(&seg.space, page_no, &seg.inode));
    seg.id = mach_read_8(seg.inode->frame + at + FSEG_ID);
    if (seg.id == 0 || seg.id >= mach_read_8(seg.space.header->frame + FSP_SEG_ID)
        || mach_read_4(seg.inode->frame + at + FSEG_MAGIC) != FSEG_MAGIC_VALUE) {
        return fsp_corrupt(&seg.space, page_no, "segment header leads to no inode");
    }
    *out = seg;
    return DB_SUCCESS;
}

dberr_t fseg_get(mtr_t *mtr, fseg_header_t header, fseg_t *out)
{
    TRY(fseg_try_get(mtr, header, out));
    return out->inode == NULL
               ? fsp_corrupt(&out->space, header.block->id.page_no, "no segment header")
               : DB_SUCCESS;
}

static dberr_t fseg_inode_page_create(fsp_space_t *space)
{
    xdes_t xdes;
    page_no_t page_no = FIL_NULL;
    TRY(fsp_frag_choose(space, 0, &xdes, &page_no));
    buf_block_t *block = NULL;
    TRY(mtr_page_create(space->mtr, (page_id_t){space->id, page_no}, FIL_PAGE_INODE, &block));
    TRY(fsp_frag_take(space, &xdes, page_no));
    return flst_add_last(space, fsp_list(space, FSP_SEG_INODES_FREE), block, FSEG_PAGE_NODE);
}

dberr_t fseg_inode_alloc(fseg_t *seg)
{
    fsp_space_t *space = &seg->space;
    if (flst_len(fsp_list(space, FSP_SEG_INODES_FREE)) == 0) {
        TRY(fseg_inode_page_create(space));
    }
    page_no_t page_no = FIL_NULL;
    uint32_t offset = 0;
    TRY(flst_first(space, fsp_list(space, FSP_SEG_INODES_FREE), &page_no, &offset));
    TRY(fseg_inode_page_get(space, page_no, &seg->inode));
    seg->at = fseg_find_inode(space, seg->inode, false, 0);
    if (seg->at == 0) {
        return fsp_corrupt(space, page_no, "no free inode in a page of the list");
    }
    if (fseg_find_inode(space, seg->inode, false, seg->at) == 0) {
        TRY(flst_move(space, fsp_list(space, FSP_SEG_INODES_FREE),
                      fsp_list(space, FSP_SEG_INODES_FULL), seg->inode, FSEG_PAGE_NODE));
    }
    seg->id = mach_read_8(space->header->frame + FSP_SEG_ID);
    mtr_write_8(space->mtr, space->header, FSP_SEG_ID, seg->id + 1);
    byte bytes[FSEG_FRAGS];
    mach_write_8(bytes + FSEG_ID, seg->id);
    mach_write_4(bytes + FSEG_NOT_FULL_N_USED, 0);
    flst_encode_empty(bytes + FSEG_FREE);
    flst_encode_empty(bytes + FSEG_NOT_FULL);
    flst_encode_empty(bytes + FSEG_FULL);
    mach_write_4(bytes + FSEG_MAGIC, FSEG_MAGIC_VALUE);
    mtr_write_string(space->mtr, seg->inode, seg->at, bytes, FSEG_FRAGS);
    mtr_memset(space->mtr, seg->inode, seg->at + FSEG_FRAGS, 4 * fseg_n_frag_slots(space), 0xFF);
    return DB_SUCCESS;
}

dberr_t fseg_inode_free(const fseg_t *seg)
{
    const fsp_space_t *space = &seg->space;
    bool full = fseg_find_inode(space, seg->inode, false, 0) == 0;
    uint32_t list = full ? FSP_SEG_INODES_FULL : FSP_SEG_INODES_FREE;
    if (fseg_find_inode(space, seg->inode, true, seg->at) == 0) {
        page_no_t page_no = seg->inode->id.page_no;
        TRY(flst_remove(space, fsp_list(space, list), seg->inode, FSEG_PAGE_NODE));
        TRY(fsp_frag_free(space, page_no));
        return fsp_page_forget(space, page_no);
    }
    mtr_memset(space->mtr, seg->inode, seg->at, fseg_inode_size(space->extent_pages), 0);
    return full ? flst_move(space, fsp_list(space, list), fsp_list(space, FSP_SEG_INODES_FREE),
                            seg->inode, FSEG_PAGE_NODE)
                : DB_SUCCESS;
}

bool fseg_owns(const fseg_t *seg, const xdes_t *xdes)
{
    return xdes_state(xdes) == XDES_STATE_FSEG && xdes_segment(xdes) == seg->id;
}

dberr_t fseg_first_extent(const fseg_t *seg, uint32_t offset, xdes_t *xdes, bool *found)
{
    TRY(fsp_first_extent(&seg->space, fseg_list(seg, offset), xdes, found));
    return *found && !fseg_owns(seg, xdes)
               ? fsp_corrupt(&seg->space, xdes->first, "an extent of another segment")
               : DB_SUCCESS;
}
