/** Private to fsp/: page 0 as one mtr sees it, lists, descriptors, extents and fragment pages. */
#ifndef FSP_FSP_INT_H
#define FSP_FSP_INT_H

#include "fsp/fsp.h"

/** Page 0 of a space, pinned and checked; size and free_limit follow the mtr's changes. */
typedef struct fsp_space {
    mtr_t *mtr;
    space_id_t id;
    buf_block_t *header;
    uint32_t page_size;
    uint32_t extent_pages;
    uint32_t xdes_covers; /**< pages per descriptor page */
    uint32_t size;
    uint32_t free_limit;
} fsp_space_t;

/** An extent descriptor in a pinned page, checked. */
typedef struct xdes {
    buf_block_t *block;
    uint32_t offset;
    page_no_t first; /**< first page of the extent */
} xdes_t;

/* ---- fsp_space.c ---- */

WARN_UNUSED dberr_t fsp_corrupt(const fsp_space_t *space, page_no_t page_no, const char *what);
WARN_UNUSED dberr_t fsp_space_get(mtr_t *mtr, space_id_t id, fsp_space_t *out);
/** Longer by page numbers: to size pages exactly. File and fsync first, FSP_SIZE afterwards. */
WARN_UNUSED dberr_t fsp_extend_to(fsp_space_t *space, uint32_t size);
/** Moves FSP_FREE_LIMIT on by up to FSP_FREE_ADD extents, which go to FREE; growing if need be. */
WARN_UNUSED dberr_t fsp_fill_free_list(fsp_space_t *space);
uint32_t fsp_frag_n_used(const fsp_space_t *space);
void fsp_set_frag_n_used(const fsp_space_t *space, uint32_t n);

/* ---- fsp_flst.c ---- */

/** What the nodes of a list are. */
typedef enum flst_kind { FLST_XDES, FLST_INODE_PAGES } flst_kind_t;

/** A list: its base in a pinned page. */
typedef struct flst {
    flst_kind_t kind;
    buf_block_t *block;
    uint32_t offset;
} flst_t;

static inline flst_t fsp_list(const fsp_space_t *space, uint32_t offset)
{
    flst_kind_t kind = offset == FSP_SEG_INODES_FULL || offset == FSP_SEG_INODES_FREE
                           ? FLST_INODE_PAGES
                           : FLST_XDES;
    return (flst_t){.kind = kind, .block = space->header, .offset = offset};
}

void flst_encode_empty(byte base[FLST_BASE_SIZE]);
uint32_t flst_len(flst_t list);
/** Address of the first node; *page_no = FIL_NULL if the list is empty. */
WARN_UNUSED dberr_t flst_first(const fsp_space_t *space, flst_t list, page_no_t *page_no,
                               uint32_t *offset);
WARN_UNUSED dberr_t flst_add_last(const fsp_space_t *space, flst_t list, buf_block_t *block,
                                  uint32_t offset);
WARN_UNUSED dberr_t flst_remove(const fsp_space_t *space, flst_t list, buf_block_t *block,
                                uint32_t offset);
/** From one list to the end of another. */
WARN_UNUSED dberr_t flst_move(const fsp_space_t *space, flst_t from, flst_t to, buf_block_t *block,
                              uint32_t offset);

/* ---- fsp_xdes.c ---- */

/** The descriptor of the extent of page_no, which lies below the free limit. */
WARN_UNUSED dberr_t xdes_get(const fsp_space_t *space, page_no_t page_no, xdes_t *out);
/** The same, of any page; what the descriptor says is not checked. */
WARN_UNUSED dberr_t xdes_locate(const fsp_space_t *space, page_no_t page_no, xdes_t *out);
/** The one whose list node has this address. */
WARN_UNUSED dberr_t xdes_get_by_node(const fsp_space_t *space, page_no_t page_no, uint32_t offset,
                                     xdes_t *out);
uint32_t xdes_state(const xdes_t *xdes);
uint64_t xdes_segment(const xdes_t *xdes);
bool xdes_page_is_used(const xdes_t *xdes, page_no_t page_no);
uint32_t xdes_n_used(const fsp_space_t *space, const xdes_t *xdes);
bool xdes_covers_page(const fsp_space_t *space, const xdes_t *xdes, page_no_t page_no);
/** First free page from `from` on, around the extent's end; FIL_NULL if none. What this mtr has
freed is not free yet (I15). */
page_no_t xdes_find_free(const fsp_space_t *space, const xdes_t *xdes, page_no_t from);
void xdes_set_used(const fsp_space_t *space, const xdes_t *xdes, page_no_t page_no, bool used);
void xdes_set_state(const fsp_space_t *space, const xdes_t *xdes, uint32_t state,
                    uint64_t segment_id);

/** First extent of a list; *found = the list is not empty. */
WARN_UNUSED dberr_t fsp_first_extent(const fsp_space_t *space, flst_t list, xdes_t *xdes,
                                     bool *found);
/** Takes an extent from FREE, that of hint if it is there; it is on no list then. */
WARN_UNUSED dberr_t fsp_extent_alloc(fsp_space_t *space, page_no_t hint, xdes_t *out);
/** Gives an extent that is on no list back to FREE, whatever pages it had. */
WARN_UNUSED dberr_t fsp_extent_free(const fsp_space_t *space, const xdes_t *xdes);

/** Chooses a page of a FREE_FRAG extent, making one if there is none; fsp_frag_take() then uses
it. */
WARN_UNUSED dberr_t fsp_frag_choose(fsp_space_t *space, page_no_t hint, xdes_t *xdes,
                                    page_no_t *page_no);
WARN_UNUSED dberr_t fsp_frag_take(const fsp_space_t *space, const xdes_t *xdes, page_no_t page_no);
/** Frees a page of a FREE_FRAG or FULL_FRAG extent in the descriptors. */
WARN_UNUSED dberr_t fsp_frag_free(const fsp_space_t *space, page_no_t page_no);
/** Logs that a page is free, as its only record in the mtr. */
WARN_UNUSED dberr_t fsp_page_forget(const fsp_space_t *space, page_no_t page_no);

/* ---- fsp_inode.c ---- */

/** A segment as one mtr sees it, checked. */
typedef struct fseg {
    fsp_space_t space;
    buf_block_t *inode;
    uint32_t at; /**< of the inode in its page */
    uint64_t id;
} fseg_t;

typedef struct fseg_usage {
    uint32_t reserved; /**< fragments and pages of the extents */
    uint32_t used;
} fseg_usage_t;

WARN_UNUSED dberr_t fseg_inode_page_get(const fsp_space_t *space, page_no_t page_no,
                                        buf_block_t **out);
/** Follows a header. out->inode = NULL if it is zero: there is no segment any more. */
WARN_UNUSED dberr_t fseg_try_get(mtr_t *mtr, fseg_header_t header, fseg_t *out);
WARN_UNUSED dberr_t fseg_get(mtr_t *mtr, fseg_header_t header,
                             fseg_t *out); /**< there must be one */
/** Takes an inode for a new, empty segment; seg->space is set. */
WARN_UNUSED dberr_t fseg_inode_alloc(fseg_t *seg);
/** Frees an inode; its page goes with its last one, unchanged otherwise (I15). */
WARN_UNUSED dberr_t fseg_inode_free(const fseg_t *seg);
WARN_UNUSED dberr_t fseg_usage(const fseg_t *seg, fseg_usage_t *out);
bool fseg_owns(const fseg_t *seg, const xdes_t *xdes); /**< is the extent the segment's? */
flst_t fseg_list(const fseg_t *seg, uint32_t offset);
/** First extent of one of the segment's lists; *found = the list is not empty. */
WARN_UNUSED dberr_t fseg_first_extent(const fseg_t *seg, uint32_t offset, xdes_t *xdes,
                                      bool *found);
uint32_t fseg_n_frag_slots(const fsp_space_t *space);
page_no_t fseg_frag(const fseg_t *seg, uint32_t slot);
void fseg_set_frag(const fseg_t *seg, uint32_t slot, page_no_t page_no);
/** The slot that holds page_no (FIL_NULL: a free one); fseg_n_frag_slots() if there is none. */
uint32_t fseg_frag_slot(const fseg_t *seg, page_no_t page_no);
uint32_t fseg_not_full_n_used(const fseg_t *seg);
void fseg_set_not_full_n_used(const fseg_t *seg, uint32_t n);

#endif
