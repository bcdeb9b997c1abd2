/** Space management: extents, segments, and pages given out to segments (FORMAT.md, "Extents and
segments"; the layout is in fsp_format.h).

A segment is a set of pages with one purpose: an index has two (leaves; root and inner levels), all
undo logs share one. It owns single pages of shared extents first ("fragments"), and whole extents
once it has half an extent's worth of pages. Its header lies in a page of its user; everything else
is found from there, so a tree can be freed by its root page alone.

All functions take an open MTR_LOG_ALL mtr unless they say otherwise. DB_CORRUPTION: bytes of
header, descriptors, lists or inodes are impossible. DB_OUT_OF_SPACE: full disk, or 2^26 pages. An
error after the mtr has changed something poisons the handle when the mtr is aborted; a full disk is
met before. */
#ifndef FSP_FSP_H
#define FSP_FSP_H

#include "fsp/fsp_format.h"
#include "mtr/mtr.h"

#define INDEX_ID_FIRST 16U
#define FSP_INITIAL_PAGES 4U /**< size of a new space */

/** No mtr grows a space by more, in one FSP_SIZE or several: recovery refuses a record that
does. */
#define FSP_GROW_PAGES_MAX 4096U

/** Where the header of a segment lies: a pinned page and an offset in it. */
typedef struct fseg_header {
    buf_block_t *block;
    uint32_t offset;
} fseg_header_t;

/** What fseg_page_free() tells the log about the page itself. */
typedef enum fsp_free_mode {
    FSP_FREE_LOGGED, /**< OP_FREE_PAGE, the page's only record in the mtr (I15) */
    FSP_FREE_SILENT  /**< nothing: the frame may still be written, any time later */
} fsp_free_mode_t;

/** Formats page 0 of a new space of size_pages pages. Pages with fixed places
(fsp_fixed_pages()) are taken too; their owners create them with mtr_page_create(). */
WARN_UNUSED dberr_t fsp_header_init(mtr_t *mtr, space_id_t space, uint32_t size_pages);

/** Makes the file long enough for n_pages more pages of any segments of the space: for mtrs that
allocate more than once, since a full disk must be met before the first change. */
WARN_UNUSED dberr_t fsp_reserve(mtr_t *mtr, space_id_t space, uint32_t n_pages);

/** Creates a segment and writes its header to header_offset of *page. *page = NULL: the segment
gets its first page now, of this type, and the header goes there. Takes up to two pages. */
WARN_UNUSED dberr_t fseg_create(mtr_t *mtr, space_id_t space, page_type_t type,
                                uint32_t header_offset, buf_block_t **page);

/** Takes a page for the segment, near hint (FIL_NULL: anywhere), and initialises it. */
WARN_UNUSED dberr_t fseg_page_alloc(mtr_t *mtr, fseg_header_t header, page_no_t hint,
                                    page_type_t type, buf_block_t **out);

/** The same without touching the page: for index loads, which must know the number of the next page
before they write this one. The page is created later, in an mtr that may be NO_REDO. */
WARN_UNUSED dberr_t fseg_page_reserve(mtr_t *mtr, fseg_header_t header, page_no_t hint,
                                      page_no_t *out);

/** Frees one page of the segment. DB_CORRUPTION if it is not the segment's. */
WARN_UNUSED dberr_t fseg_page_free(mtr_t *mtr, fseg_header_t header, page_no_t page_no,
                                   fsp_free_mode_t mode);

/** DB_CORRUPTION unless the page is one that the segment uses. Changes nothing; any mtr. */
WARN_UNUSED dberr_t fseg_page_check(mtr_t *mtr, fseg_header_t header, page_no_t page_no);

/** One step of freeing a whole segment: an extent, of whose pages the log says nothing, or one
fragment page. With the last one go inode and header (zeroed). spare_header_page: the header's own
page belongs to the segment and stays, for fseg_free_last(). *done = no step is left. A segment
without a header is done, so a repeat after a crash goes on where it was. */
WARN_UNUSED dberr_t fseg_free_step(mtr_t *mtr, fseg_header_t header, bool spare_header_page,
                                   bool *done);

/** Frees the page that holds the header, all that the segment has left, and the inode. */
WARN_UNUSED dberr_t fseg_free_last(mtr_t *mtr, fseg_header_t header);

#endif
