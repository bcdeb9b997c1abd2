/** Private to page/: what page_index.c (changes) and page_check.c (whole pages) share. */
#ifndef PAGE_PAGE_INT_H
#define PAGE_PAGE_INT_H

#include "page/page_index.h"

#define SLOT_SIZE 2U
#define LEN_SIZE 2U  /**< in front of a record that has its own size */
#define LINK_SIZE 2U /**< of a freed record, behind its info byte */
#define REC_SIZE_MIN (1U + LINK_SIZE)
#define CHILD_SIZE 4U /**< of a node pointer */
#define REC_INFO_VALID (REC_INFO_DELETE_MARK | REC_INFO_MIN_REC | REC_INFO_INSTANT)

/** The header of an index page, decoded and found consistent in itself. */
typedef struct page_head {
    uint32_t n_recs;
    uint32_t heap_top;
    uint32_t n_heap;
    uint32_t free;
    uint32_t n_free;
    uint32_t level;
    uint32_t rec_size; /**< or PAGE_REC_VARIES */
    uint32_t key_len;
    uint32_t garbage;
} page_head_t;

/** Decodes the header. NULL when it is consistent, else the broken item. */
const char *page_head_read(const byte *page, uint32_t page_size, page_head_t *h);

/** Length of the record at a valid offset. */
uint32_t page_len_at(const byte *page, const page_head_t *h, uint32_t offset);

/** Offset of the record in a slot < n_recs, or 0 when slot or record is broken. */
uint32_t page_slot_read(const byte *page, uint32_t page_size, const page_head_t *h, uint32_t slot);

/** Is this the offset of a freed record whose link is plausible? *next is its link. */
bool page_free_read(const byte *page, const page_head_t *h, uint32_t offset, uint32_t *next);

#endif
