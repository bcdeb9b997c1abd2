/** On-disk layout of space management: page 0, extent descriptors, segment inodes, lists. Constants
only; all numbers big-endian; everything that is not named here is zero. FORMAT.md, "Extents and
segments", says the same.

E = extent size in pages; a descriptor (XDES) page covers M = page size * E / InnoDB's extent size
pages, from itself on. Page 0 is the first one.

Page 0 (type FSP_HDR); pages M, 2M, ... (type XDES) have zeros from 38 to 153

    38  4  space id
    42  4  FSP_SIZE: committed size in pages
    46  4  FSP_FREE_LIMIT: descriptors of the pages from here on are not initialised; a multiple of
           E
    50  4  page size in bytes
    54  4  format version, 2
    58  4  extent size E
    62  4  used pages in extents of FREE_FRAG
    66  8  next segment id, at first 1
    74  16 list FREE: extents that are free
    90  16 list FREE_FRAG: extents given out page by page, some of them free
    106 16 list FULL_FRAG: the same, all pages used
    122 16 list SEG_INODES_FULL: inode pages without a free slot
    138 16 list SEG_INODES_FREE: inode pages with one
    154 .. descriptors of the M / E extents, 24 + E / 8 bytes each

Descriptor

    0   8  segment id; 0 unless the state is FSEG
    8   12 list node
    20  4  state: 0 not initialised, 1 FREE, 2 FREE_FRAG, 3 FULL_FRAG, 4 FSEG
    24  E/8 bitmap: bit i % 8 of byte i / 8 is set if page i of the extent is used

Inode page (type INODE)

    38  12 list node
    50  .. inodes, 64 + 2E bytes each, as many as fit

Inode; a free one is zero

    0   8  segment id
    8   4  used pages in extents of NOT_FULL
    12  16 list FREE: extents of the segment without a used page
    28  16 list NOT_FULL
    44  16 list FULL
    60  4  magic
    64  4 * E/2  fragment pages, or FIL_NULL

List base: length (4), first node (6), last node (6); node: previous (6), next (6). A node's address
is page number (4) and offset in the page (2) of the node; FIL_NULL, 0 = none.

Segment header, in a page that the user of the segment chooses: space id (4), page (4) and offset
(2) of the inode; zero = no segment. */
#ifndef FSP_FSP_FORMAT_H
#define FSP_FSP_FORMAT_H

#include "page/fil_page.h"

#define FSP_SPACE_ID 38
#define FSP_SIZE 42
#define FSP_FREE_LIMIT 46
#define FSP_PAGE_SIZE 50
#define FSP_VERSION 54
#define FSP_EXTENT_PAGES 58
#define FSP_FRAG_N_USED 62
#define FSP_SEG_ID 66
#define FSP_FREE 74
#define FSP_FREE_FRAG 90
#define FSP_FULL_FRAG 106
#define FSP_SEG_INODES_FULL 122
#define FSP_SEG_INODES_FREE 138
#define FSP_XDES 154

#define FSP_FORMAT_VERSION 2U

#define XDES_ID 0
#define XDES_NODE 8
#define XDES_STATE 20
#define XDES_BITMAP 24

#define XDES_STATE_FREE 1U
#define XDES_STATE_FREE_FRAG 2U
#define XDES_STATE_FULL_FRAG 3U
#define XDES_STATE_FSEG 4U

#define FSEG_PAGE_NODE 38
#define FSEG_INODES 50

#define FSEG_ID 0
#define FSEG_NOT_FULL_N_USED 8
#define FSEG_FREE 12
#define FSEG_NOT_FULL 28
#define FSEG_FULL 44
#define FSEG_MAGIC 60
#define FSEG_FRAGS 64
#define FSEG_MAGIC_VALUE 97937874U

#define FLST_LEN 0
#define FLST_FIRST 4
#define FLST_LAST 10
#define FLST_BASE_SIZE 16U
#define FLST_PREV 0
#define FLST_NEXT 6
#define FLST_ADDR_SIZE 6U

#define FSEG_HEADER_SPACE 0
#define FSEG_HEADER_PAGE 4
#define FSEG_HEADER_OFFSET 8
#define FSEG_HEADER_SIZE 10U

/** The first pages of a space have fixed places and belong to no segment: 0 to 3 of the system
space, 0 and 1 of an undo tablespace, page 0 of others. */
static inline uint32_t fsp_fixed_pages(space_id_t space)
{
    return space == SPACE_SYSTEM ? 4U : space_is_undo(space) ? 2U : 1U;
}

static inline uint32_t xdes_size(uint32_t extent_pages)
{
    return XDES_BITMAP + extent_pages / 8;
}

/** M: pages that one descriptor page covers. */
static inline uint32_t xdes_page_covers(uint32_t page_size, uint32_t extent_pages)
{
    return page_size / extent_pages_default(page_size) * extent_pages;
}

/** Does the descriptor page in this frame have the page, which it covers, as used? */
static inline bool xdes_frame_has_page(const byte *frame, uint32_t page_size, uint32_t extent_pages,
                                       page_no_t page_no)
{
    uint32_t i = page_no % xdes_page_covers(page_size, extent_pages);
    uint32_t at = FSP_XDES + i / extent_pages * xdes_size(extent_pages) + XDES_BITMAP;
    return (frame[at + i % extent_pages / 8] >> i % 8 & 1) != 0;
}

static inline uint32_t fseg_inode_size(uint32_t extent_pages)
{
    return FSEG_FRAGS + 2 * extent_pages;
}

static inline uint32_t fseg_inodes_per_page(uint32_t page_size, uint32_t extent_pages)
{
    return (page_size - FIL_PAGE_TRAILER - FSEG_INODES) / fseg_inode_size(extent_pages);
}

#endif
