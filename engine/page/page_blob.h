/** Pages of long values, and the reference to a chain of them (FORMAT.md, "Long values").

    38  4  length of this part, at least 1      50  8  index id, where an index page has it
    42  4  next page of the chain, or FIL_NULL  58  .. the part; behind it zero
    46  4  zero

Reference, in place of the value:

    0   4  space                                12  4  flags, highest bit: not the owner
    4   4  first page; FIL_NULL: no chain       16  4  length of the value; 0 without a chain
    8   4  offset of the part's header, 38 */
#ifndef PAGE_PAGE_BLOB_H
#define PAGE_PAGE_BLOB_H

#include "page/fil_page.h"

#define BLOB_PART_LEN 38
#define BLOB_NEXT 42
#define BLOB_RESERVED 46
#define BLOB_INDEX_ID 50
#define BLOB_DATA 58

#define BLOB_REF_SIZE 20U
#define BLOB_REF_NOT_OWNER 0x80000000U

typedef struct blob_ref {
    space_id_t space;
    page_no_t page_no; /**< FIL_NULL: no chain (yet, or any more) */
    uint32_t len;
    bool owner; /**< the chain goes with what has this reference */
} blob_ref_t;

void blob_ref_write(byte *to, const blob_ref_t *ref);
/** False: no reference. */
WARN_UNUSED bool blob_ref_read(const byte *from, blob_ref_t *out);

/** Bytes of a value that a page takes. */
static inline uint32_t blob_part_max(uint32_t page_size)
{
    return page_size - FIL_PAGE_TRAILER - BLOB_DATA;
}

#endif
