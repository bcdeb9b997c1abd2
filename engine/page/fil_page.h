/** The envelope that every page has (FORMAT.md, "Page envelope"). Reader and writer share this
file.

    offset  size  field
    0       4     CRC-32C of bytes [4, page_size - 8)
    4       4     page number
    8       4     previous page on the same B+-tree level, or FIL_NULL
    12      4     next page on the same level, or FIL_NULL
    16      8     page LSN: end of the newest mini-transaction that changed the page
    24      2     page type
    26      8     reserved, zero
    34      4     space id
    38      ...   contents
    size-8  4     the checksum again
    size-4  4     low 32 bits of the page LSN */
#ifndef PAGE_FIL_PAGE_H
#define PAGE_FIL_PAGE_H

#include "base/err.h"
#include "base/types.h"

#define FIL_PAGE_CHECKSUM 0
#define FIL_PAGE_OFFSET 4
#define FIL_PAGE_PREV 8
#define FIL_PAGE_NEXT 12
#define FIL_PAGE_LSN 16
#define FIL_PAGE_TYPE 24
#define FIL_PAGE_RESERVED 26
#define FIL_PAGE_SPACE_ID 34
#define FIL_PAGE_DATA 38
#define FIL_PAGE_TRAILER 8 /**< bytes at the end: checksum, low LSN */

typedef enum page_type {
    FIL_PAGE_TYPE_ALLOCATED = 0, /**< fresh, no contents */
    FIL_PAGE_UNDO_LOG = 2,
    FIL_PAGE_INODE = 3,    /**< segment inodes */
    FIL_PAGE_TYPE_SYS = 6, /**< DICT_HDR and RSEG pages */
    FIL_PAGE_TYPE_TRX_SYS = 7,
    FIL_PAGE_TYPE_FSP_HDR = 8, /**< page 0 of a space */
    FIL_PAGE_TYPE_XDES = 9,    /**< a later page of extent descriptors */
    FIL_PAGE_TYPE_BLOB = 10,   /**< part of a long value */
    FIL_PAGE_INDEX = 17855,
    FIL_PAGE_PAGE_COMPRESSED = 34354 /**< in a file only: page_compress.h */
} page_type_t;

typedef enum page_verdict {
    PAGE_OK = 0,
    PAGE_ZERO, /**< every byte is zero */
    PAGE_BAD_CHECKSUM,
    PAGE_BAD_LSN, /**< header and trailer LSN differ */
    PAGE_BAD_ID,  /**< another space id or page number, or reserved bytes not zero */
    /** stored compressed, with the right checksum, and does not decompress to such a page */
    PAGE_BAD_COMPRESSION
} page_verdict_t;

/** Zeroes a page and sets its envelope: number, space, type, PREV = NEXT = FIL_NULL, LSN 0. No
checksum. */
void fil_page_init(byte *page, uint32_t page_size, page_id_t id, page_type_t type);

/** Sets both LSN fields (not the checksum). */
void fil_page_set_lsn(byte *page, uint32_t page_size, lsn_t lsn);

/** Computes and sets both checksums: last step before a page goes to a file. */
void fil_page_stamp(byte *page, uint32_t page_size);

/** CRC-32C of what redo says of a page: PREV, NEXT, type and contents; not of what the flush
adds. */
uint32_t fil_page_contents_checksum(const byte *page, uint32_t page_size);

/** Is this the undamaged image of page id? Reads every byte once. */
page_verdict_t fil_page_verify(const byte *page, uint32_t page_size, page_id_t id);

const char *page_verdict_name(page_verdict_t verdict); /**< "ok", "zero", "bad checksum", ... */
const char *page_type_name(uint32_t type); /**< "index", "undo", "fsp_hdr", ..., "unknown" */

lsn_t fil_page_get_lsn(const byte *page);
uint32_t fil_page_get_type(const byte *page);
page_id_t fil_page_get_id(const byte *page);
page_no_t fil_page_get_prev(const byte *page);
page_no_t fil_page_get_next(const byte *page);

#endif
