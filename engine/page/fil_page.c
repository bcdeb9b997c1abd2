/* The page envelope: stamps and verification. Above os/, below log/.

1. (I5) A page is undamaged only if both checksums, both LSNs, its own number and space, and the
   reserved bytes are right. Nothing of a page is believed before that.
2. Bytes outside the checksum's range are the two checksums and the low LSN; each is compared. */
#include "page/fil_page.h"

#include <string.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/mach.h"

#define TRAILER_LSN 4 /* offset of the low LSN in the trailer */

void fil_page_init(byte *page, uint32_t page_size, page_id_t id, page_type_t type)
{
    CHECK(page_size_is_valid(page_size));
    memset(page, 0, page_size);
    mach_write_4(page + FIL_PAGE_OFFSET, id.page_no);
    mach_write_4(page + FIL_PAGE_PREV, FIL_NULL);
    mach_write_4(page + FIL_PAGE_NEXT, FIL_NULL);
    mach_write_2(page + FIL_PAGE_TYPE, (uint32_t)type);
    mach_write_4(page + FIL_PAGE_SPACE_ID, id.space);
}

void fil_page_set_lsn(byte *page, uint32_t page_size, lsn_t lsn)
{
    mach_write_8(page + FIL_PAGE_LSN, lsn);
    mach_write_4(page + page_size - FIL_PAGE_TRAILER + TRAILER_LSN, (uint32_t)lsn);
}

static uint32_t page_checksum(const byte *page, uint32_t page_size)
{
    return crc32c(page + FIL_PAGE_OFFSET, page_size - FIL_PAGE_TRAILER - FIL_PAGE_OFFSET);
}

void fil_page_stamp(byte *page, uint32_t page_size)
{
    uint32_t checksum = page_checksum(page, page_size);
    mach_write_4(page + FIL_PAGE_CHECKSUM, checksum);
    mach_write_4(page + page_size - FIL_PAGE_TRAILER, checksum);
}

uint32_t fil_page_contents_checksum(const byte *page, uint32_t page_size)
{
    uint32_t links = crc32c(page + FIL_PAGE_PREV, FIL_PAGE_LSN - FIL_PAGE_PREV);
    return links ^ crc32c(page + FIL_PAGE_TYPE, page_size - FIL_PAGE_TRAILER - FIL_PAGE_TYPE);
}

static bool is_zero(const byte *bytes, uint32_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

page_verdict_t fil_page_verify(const byte *page, uint32_t page_size, page_id_t id)
{
    const byte *trailer = page + page_size - FIL_PAGE_TRAILER;
    uint32_t checksum = mach_read_4(page + FIL_PAGE_CHECKSUM);
    page_id_t own = fil_page_get_id(page);
    /* What needs no checksum comes first: zeros have another one, and the halves of a torn page
       differ in it. */
    if (checksum == 0 && is_zero(page, page_size)) {
        return PAGE_ZERO;
    }
    if (checksum != mach_read_4(trailer) || checksum != page_checksum(page, page_size)) {
        return PAGE_BAD_CHECKSUM;
    }
    if (mach_read_4(trailer + TRAILER_LSN) != (uint32_t)fil_page_get_lsn(page)) {
        return PAGE_BAD_LSN;
    }
    if (!page_id_eq(own, id) || mach_read_8(page + FIL_PAGE_RESERVED) != 0) {
        return PAGE_BAD_ID;
    }
    return PAGE_OK;
}

const char *page_verdict_name(page_verdict_t verdict)
{
    switch (verdict) {
    case PAGE_OK:
        return "ok";
    case PAGE_ZERO:
        return "zero";
    case PAGE_BAD_CHECKSUM:
        return "bad checksum";
    case PAGE_BAD_LSN:
        return "bad lsn";
    case PAGE_BAD_ID:
        return "bad id";
    case PAGE_BAD_COMPRESSION:
        return "bad compression";
    }
    return "unknown";
}

const char *page_type_name(uint32_t type)
{
    switch (type) {
    case FIL_PAGE_TYPE_ALLOCATED:
        return "allocated";
    case FIL_PAGE_UNDO_LOG:
        return "undo";
    case FIL_PAGE_INODE:
        return "inode";
    case FIL_PAGE_TYPE_SYS:
        return "sys";
    case FIL_PAGE_TYPE_TRX_SYS:
        return "trx_sys";
    case FIL_PAGE_TYPE_FSP_HDR:
        return "fsp_hdr";
    case FIL_PAGE_TYPE_XDES:
        return "xdes";
    case FIL_PAGE_TYPE_BLOB:
        return "blob";
    case FIL_PAGE_INDEX:
        return "index";
    case FIL_PAGE_PAGE_COMPRESSED:
        return "compressed";
    default:
        return "unknown";
    }
}

lsn_t fil_page_get_lsn(const byte *page)
{
    return mach_read_8(page + FIL_PAGE_LSN);
}

uint32_t fil_page_get_type(const byte *page)
{
    return mach_read_2(page + FIL_PAGE_TYPE);
}

page_id_t fil_page_get_id(const byte *page)
{
    page_id_t id = {mach_read_4(page + FIL_PAGE_SPACE_ID), mach_read_4(page + FIL_PAGE_OFFSET)};
    return id;
}

page_no_t fil_page_get_prev(const byte *page)
{
    return mach_read_4(page + FIL_PAGE_PREV);
}

page_no_t fil_page_get_next(const byte *page)
{
    return mach_read_4(page + FIL_PAGE_NEXT);
}
