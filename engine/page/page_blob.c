/* References to long values. Beside page_index.c.

1. A reference has one form: what blob_ref_read() takes, blob_ref_write() gives again. */
#include "page/page_blob.h"

#include "base/mach.h"
#include "page/page_index.h"

_Static_assert(BLOB_INDEX_ID == PAGE_INDEX_ID, "whoever looks for an index id finds it");

#define REF_SPACE 0
#define REF_PAGE 4
#define REF_OFFSET 8
#define REF_FLAGS 12
#define REF_LEN 16

void blob_ref_write(byte *to, const blob_ref_t *ref)
{
    mach_write_4(to + REF_SPACE, ref->space);
    mach_write_4(to + REF_PAGE, ref->page_no);
    mach_write_4(to + REF_OFFSET, BLOB_PART_LEN);
    mach_write_4(to + REF_FLAGS, ref->owner ? 0 : BLOB_REF_NOT_OWNER);
    mach_write_4(to + REF_LEN, ref->len);
}

bool blob_ref_read(const byte *from, blob_ref_t *out)
{
    uint32_t flags = mach_read_4(from + REF_FLAGS);
    *out = (blob_ref_t){.space = mach_read_4(from + REF_SPACE),
                        .page_no = mach_read_4(from + REF_PAGE),
                        .len = mach_read_4(from + REF_LEN),
                        .owner = flags == 0};
    return mach_read_4(from + REF_OFFSET) == BLOB_PART_LEN
           && (flags == 0 || flags == BLOB_REF_NOT_OWNER)
           && (out->page_no == FIL_NULL) == (out->len == 0);
}
