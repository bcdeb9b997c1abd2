/** Page allocation inside a space (FORMAT.md, "Allocation map").

Map pages: page k * M for k = 0, 1, ..., M = page_size / 8. Each maps the pages [kM, (k+1)M), itself
included, with a 4-byte owner per page: 0 = free, else the owner's id. Page 0 (type FSP_HDR) also
has the space header; the others are of type XDES. A page is allocated exactly if its owner is not 0.

    38  4  space id                       (page 0 only, zero in XDES pages)
    42  4  FSP_SIZE: committed size in pages
    46  4  FSP_N_USED: allocated pages, map pages included
    50  4  page size in bytes
    54  4  format version, 1
    58  6  reserved, zero
    64  4 * M  owners

Owners: FSP_OWNER_MAP for map pages and the fixed system pages, FSP_OWNER_UNDO for undo pages, otherwise
an index id (>= INDEX_ID_FIRST). So an index can be dropped without reading any of its pages, which is what
recovery does with an incomplete non-logged load. */
#ifndef FSP_FSP_H
#define FSP_FSP_H

#include "mtr/mtr.h"

#define FSP_SPACE_ID 38
#define FSP_SIZE 42
#define FSP_N_USED 46
#define FSP_PAGE_SIZE 50
#define FSP_VERSION 54
#define FSP_RESERVED 58
#define FSP_MAP 64

#define FSP_OWNER_FREE 0U
#define FSP_OWNER_MAP 1U
#define FSP_OWNER_UNDO 2U
#define INDEX_ID_FIRST 16U

#define FSP_INITIAL_PAGES 8U /**< size of a new space */
#define FSP_EXTEND_PAGES 16U /**< a space grows by this many pages (at least) at a time */
/** No mtr grows a space by more, and each says so in one FSP_SIZE: recovery refuses a record that does. */
#define FSP_GROW_PAGES_MAX 1024U
_Static_assert(FSP_INITIAL_PAGES <= FSP_GROW_PAGES_MAX && FSP_EXTEND_PAGES <= FSP_GROW_PAGES_MAX,
               "a step that recovery would refuse");

static inline uint32_t fsp_map_pages(uint32_t page_size)
{
    return page_size / 8; /**< M: pages that one map page covers */
}

/** Formats page 0 of a new space of size_pages pages, in mtr. */
WARN_UNUSED dberr_t fsp_header_init(mtr_t *mtr, space_id_t space, uint32_t size_pages);

/** Takes a free page for owner, the lowest one >= hint if any, else the lowest, and initialises it (type);
extends the file if none is free (logged: FSP_SIZE). mtr: MTR_LOG_ALL. DB_OUT_OF_SPACE beyond 2^26
pages. */
WARN_UNUSED dberr_t fsp_page_alloc(mtr_t *mtr, space_id_t space, uint32_t owner, page_no_t hint,
                                   page_type_t type, buf_block_t **out);

/** The map half of fsp_page_alloc(): takes a page number and touches no page of it. For index loads, which
must know the number of the next page before they write this one; the page is created later, in an mtr that may be
NO_REDO. */
WARN_UNUSED dberr_t fsp_page_reserve(mtr_t *mtr, space_id_t space, uint32_t owner, page_no_t hint,
                                     page_no_t *out);

/** Takes exactly the page page_no (bootstrap of the fixed system pages). */
WARN_UNUSED dberr_t fsp_page_alloc_at(mtr_t *mtr, space_id_t space, uint32_t owner,
                                      page_no_t page_no, page_type_t type, buf_block_t **out);

/** Frees a page: map entry to 0, MLOG_INIT_FREE_PAGE. DB_CORRUPTION if it does not belong to owner. */
WARN_UNUSED dberr_t fsp_page_free(mtr_t *mtr, page_id_t id, uint32_t owner);

/** Frees all pages of an owner, in several mtrs of at most a few pages of log each; starting over after a
crash is harmless. Reads map pages only. No mtr may be open. */
WARN_UNUSED dberr_t fsp_owner_free(buf_pool_t *pool, space_id_t space, uint32_t owner);

/** Owner of a page by its map entry. */
WARN_UNUSED dberr_t fsp_page_owner(mtr_t *mtr, page_id_t id, uint32_t *owner);

#endif
