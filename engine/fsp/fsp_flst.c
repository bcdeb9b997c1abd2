/** Doubly linked lists through pages.

Place: lowest of fsp/; fsp_xdes.c and fsp_inode.c find the pages of nodes. A base has the length and
both ends, a node both neighbours; each end is a page number and an offset.

Invariants
1. an address is followed only if a node of the list's kind can lie there, in a page of that type;
2. a change is made only where the links agree both ways: neighbours point back, ends are the
   base's;
3. all pages are pinned and checked before the first byte changes. */
#include "base/mach.h"
#include "fsp/fsp_int.h"

typedef struct flst_addr {
    page_no_t page_no;
    uint32_t offset;
} flst_addr_t;

/** A node in a pinned page; block = NULL: there is none. */
typedef struct flst_node {
    buf_block_t *block;
    uint32_t offset;
} flst_node_t;

static flst_addr_t flst_read_addr(const byte *at)
{
    return (flst_addr_t){mach_read_4(at), mach_read_2(at + 4)};
}

static void flst_write_addr(const fsp_space_t *space, buf_block_t *block, uint32_t at,
                            flst_node_t to)
{
    byte bytes[FLST_ADDR_SIZE];
    mach_write_4(bytes, to.block != NULL ? to.block->id.page_no : FIL_NULL);
    mach_write_2(bytes + 4, to.block != NULL ? to.offset : 0);
    mtr_write_string(space->mtr, block, at, bytes, FLST_ADDR_SIZE);
}

static bool flst_addr_is(flst_addr_t addr, flst_node_t node)
{
    return node.block != NULL && addr.page_no == node.block->id.page_no
           && addr.offset == node.offset;
}

/** The node at an address; addr may be none. */
static dberr_t flst_get(const fsp_space_t *space, flst_t list, flst_addr_t addr, flst_node_t *out)
{
    *out = (flst_node_t){NULL, 0};
    if (addr.page_no == FIL_NULL) {
        return addr.offset == 0
                   ? DB_SUCCESS
                   : fsp_corrupt(space, list.block->id.page_no, "list: offset of no page");
    }
    if (list.kind == FLST_XDES) {
        xdes_t xdes;
        dberr_t err = xdes_get_by_node(space, addr.page_no, addr.offset, &xdes);
        *out = (flst_node_t){err == DB_SUCCESS ? xdes.block : NULL, addr.offset};
        return err;
    }
    if (addr.offset != FSEG_PAGE_NODE) {
        return fsp_corrupt(space, list.block->id.page_no, "list: impossible address");
    }
    out->offset = addr.offset;
    return fseg_inode_page_get(space, addr.page_no, &out->block);
}

void flst_encode_empty(byte base[FLST_BASE_SIZE])
{
    mach_write_4(base + FLST_LEN, 0);
    mach_write_4(base + FLST_FIRST, FIL_NULL);
    mach_write_2(base + FLST_FIRST + 4, 0);
    mach_write_4(base + FLST_LAST, FIL_NULL);
    mach_write_2(base + FLST_LAST + 4, 0);
}

uint32_t flst_len(flst_t list)
{
    return mach_read_4(list.block->frame + list.offset + FLST_LEN);
}

/** Both ends, checked against the length. */
static dberr_t flst_ends(const fsp_space_t *space, flst_t list, flst_addr_t *first,
                         flst_addr_t *last)
{
    const byte *base = list.block->frame + list.offset;
    uint32_t len = mach_read_4(base + FLST_LEN);
    *first = flst_read_addr(base + FLST_FIRST);
    *last = flst_read_addr(base + FLST_LAST);
    if ((len == 0) != (first->page_no == FIL_NULL) || (len == 0) != (last->page_no == FIL_NULL)
        || len > space->size) {
        return fsp_corrupt(space, list.block->id.page_no, "list: length and ends disagree");
    }
    return DB_SUCCESS;
}

dberr_t flst_first(const fsp_space_t *space, flst_t list, page_no_t *page_no, uint32_t *offset)
{
    flst_addr_t first;
    flst_addr_t last;
    TRY(flst_ends(space, list, &first, &last));
    *page_no = first.page_no;
    *offset = first.offset;
    return DB_SUCCESS;
}

dberr_t flst_add_last(const fsp_space_t *space, flst_t list, buf_block_t *block, uint32_t offset)
{
    flst_addr_t first;
    flst_addr_t last;
    flst_node_t node = {block, offset};
    TRY(flst_ends(space, list, &first, &last));
    flst_node_t old_last;
    TRY(flst_get(space, list, last, &old_last));
    if (old_last.block != NULL
        && (flst_addr_is(last, node)
            || mach_read_4(old_last.block->frame + old_last.offset + FLST_NEXT) != FIL_NULL)) {
        return fsp_corrupt(space, last.page_no, "list: its last node has a successor");
    }
    flst_write_addr(space, block, offset + FLST_PREV, old_last);
    flst_write_addr(space, block, offset + FLST_NEXT, (flst_node_t){NULL, 0});
    if (old_last.block != NULL) {
        flst_write_addr(space, old_last.block, old_last.offset + FLST_NEXT, node);
    } else {
        flst_write_addr(space, list.block, list.offset + FLST_FIRST, node);
    }
    flst_write_addr(space, list.block, list.offset + FLST_LAST, node);
    mtr_write_4(space->mtr, list.block, list.offset + FLST_LEN, flst_len(list) + 1);
    return DB_SUCCESS;
}

/** One side of a node: its neighbour must point back, or the base must. */
static dberr_t flst_neighbour(const fsp_space_t *space, flst_t list, flst_node_t node,
                              uint32_t link, flst_addr_t end, flst_node_t *out)
{
    uint32_t back = link == FLST_PREV ? FLST_NEXT : FLST_PREV;
    flst_addr_t addr = flst_read_addr(node.block->frame + node.offset + link);
    TRY(flst_get(space, list, addr, out));
    if (out->block != NULL) {
        end = flst_read_addr(out->block->frame + out->offset + back);
    }
    return flst_addr_is(end, node) && !flst_addr_is(addr, node)
               ? DB_SUCCESS
               : fsp_corrupt(space, node.block->id.page_no, "list: a neighbour does not link back");
}

dberr_t flst_remove(const fsp_space_t *space, flst_t list, buf_block_t *block, uint32_t offset)
{
    flst_addr_t first;
    flst_addr_t last;
    flst_node_t node = {block, offset};
    TRY(flst_ends(space, list, &first, &last));
    if (flst_len(list) == 0) {
        return fsp_corrupt(space, block->id.page_no, "list: a node of an empty list");
    }
    flst_node_t prev;
    TRY(flst_neighbour(space, list, node, FLST_PREV, first, &prev));
    flst_node_t next;
    TRY(flst_neighbour(space, list, node, FLST_NEXT, last, &next));
    if (prev.block != NULL) {
        flst_write_addr(space, prev.block, prev.offset + FLST_NEXT, next);
    } else {
        flst_write_addr(space, list.block, list.offset + FLST_FIRST, next);
    }
    if (next.block != NULL) {
        flst_write_addr(space, next.block, next.offset + FLST_PREV, prev);
    } else {
        flst_write_addr(space, list.block, list.offset + FLST_LAST, prev);
    }
    mtr_write_4(space->mtr, list.block, list.offset + FLST_LEN, flst_len(list) - 1);
    return DB_SUCCESS;
}

dberr_t flst_move(const fsp_space_t *space, flst_t from, flst_t to, buf_block_t *block,
                  uint32_t offset)
{
    TRY(flst_remove(space, from, block, offset));
    return flst_add_last(space, to, block, offset);
}
