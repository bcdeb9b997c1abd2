/* Compressed pages. Above fil_page.c, beside the page types: what a page holds means nothing here.

1. (I29) What has the right checksum decompresses to a page with the same number, space and LSN;
   that page is stamped, and verified as any other.
2. What zstd works in is made once per thread, because making it asks the processor what it can do,
   which a virtual machine answers slowly. It holds nothing from one page to the next: the same page
   gives the same bytes.
3. Bytes from disk decide neither how much is read nor how much is written: the length is held
   against the page before the checksum is computed, and the libraries get the size of both
   sides. */
#include "page/page_compress.h"

#include <lz4.h>
#include <string.h>
#include <zstd.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/mach.h"

#define ZSTD_LEVEL 3
#define LZ4_ACCELERATION 1

static _Thread_local ZSTD_CCtx *zstd_packer;
static _Thread_local ZSTD_DCtx *zstd_unpacker;

/** @return bytes in `to`, 0: it takes more than room, or there is no memory */
static uint32_t zstd_pack(const byte *page, uint32_t page_size, byte *to, uint32_t room)
{
    if (zstd_packer == NULL) {
        zstd_packer = ZSTD_createCCtx();
    }
    size_t n = zstd_packer == NULL
                   ? 0
                   : ZSTD_compressCCtx(zstd_packer, to, room, page, page_size, ZSTD_LEVEL);
    return ZSTD_isError(n) ? 0 : (uint32_t)n;
}

static bool zstd_unpack(const byte *from, uint32_t length, byte *to, uint32_t page_size)
{
    if (zstd_unpacker == NULL) {
        zstd_unpacker = ZSTD_createDCtx();
    }
    return zstd_unpacker != NULL
           && ZSTD_decompressDCtx(zstd_unpacker, to, page_size, from, length) == page_size;
}

const char *page_algorithm_name(uint64_t algorithm)
{
    switch (algorithm) {
    case PAGE_ALGORITHM_NONE:
        return "none";
    case PAGE_ALGORITHM_LZ4:
        return "lz4";
    case PAGE_ALGORITHM_ZSTD:
        return "zstd";
    default:
        return NULL;
    }
}

static uint32_t comp_length(const byte *page)
{
    return mach_read_2(page + PAGE_COMP_LENGTH);
}

static uint32_t comp_checksum(const byte *page, uint32_t length)
{
    return crc32c(page + FIL_PAGE_OFFSET, PAGE_COMP_DATA + length - FIL_PAGE_OFFSET);
}

/** Does it have the envelope of a compressed page, undamaged? */
static bool comp_is_whole(const byte *page, uint32_t page_size)
{
    uint32_t length = comp_length(page);
    return fil_page_get_type(page) == FIL_PAGE_PAGE_COMPRESSED && length > 0
           && length <= page_size - PAGE_COMP_DATA
           && comp_checksum(page, length) == mach_read_4(page + FIL_PAGE_CHECKSUM);
}

/** @return bytes in `to`, 0: it takes more than room */
static uint32_t comp_run(const byte *page, uint32_t page_size, page_algorithm_t algorithm, byte *to,
                         uint32_t room)
{
    if (algorithm == PAGE_ALGORITHM_LZ4) {
        int n = LZ4_compress_fast((const char *)page, (char *)to, (int)page_size, (int)room,
                                  LZ4_ACCELERATION);
        return n > 0 ? (uint32_t)n : 0;
    }
    return zstd_pack(page, page_size, to, room);
}

void page_compress(byte *page, uint32_t page_size, page_algorithm_t algorithm)
{
    uint32_t room = page_size - PAGE_COMP_BLOCK - PAGE_COMP_DATA;
    CHECK(page_size_is_valid(page_size) && algorithm != PAGE_ALGORITHM_NONE);
    byte packed[PAGE_SIZE_MAX];
    uint32_t length = comp_run(page, page_size, algorithm, packed, room);
    if (length == 0) {
        return;
    }
    mach_write_2(page + FIL_PAGE_TYPE, FIL_PAGE_PAGE_COMPRESSED);
    mach_write_8(page + PAGE_COMP_ALGORITHM, (uint64_t)algorithm);
    mach_write_2(page + PAGE_COMP_LENGTH, length);
    memcpy(page + PAGE_COMP_DATA, packed, length);
    memset(page + PAGE_COMP_DATA + length, 0, page_size - PAGE_COMP_DATA - length);
    mach_write_4(page + FIL_PAGE_CHECKSUM, comp_checksum(page, length));
}

uint32_t page_stored_bytes(const byte *page, uint32_t page_size)
{
    if (!comp_is_whole(page, page_size)) {
        return page_size;
    }
    uint32_t bytes = PAGE_COMP_DATA + comp_length(page);
    return (bytes + PAGE_COMP_BLOCK - 1) / PAGE_COMP_BLOCK * PAGE_COMP_BLOCK;
}

/** False: the payload is none of the algorithm, or of another size. */
static bool decomp_run(const byte *page, uint32_t page_size, byte *to)
{
    const byte *from = page + PAGE_COMP_DATA;
    uint32_t length = comp_length(page);
    switch (mach_read_8(page + PAGE_COMP_ALGORITHM)) {
    case PAGE_ALGORITHM_LZ4:
        return LZ4_decompress_safe((const char *)from, (char *)to, (int)length, (int)page_size)
               == (int)page_size;
    case PAGE_ALGORITHM_ZSTD:
        return zstd_unpack(from, length, to, page_size);
    default:
        return false;
    }
}

/** Of a whole compressed page. */
static void comp_replace(byte *page, uint32_t page_size)
{
    byte plain[PAGE_SIZE_MAX];
    if (!decomp_run(page, page_size, plain)) {
        return;
    }
    bool same = page_id_eq(fil_page_get_id(page), fil_page_get_id(plain))
                && fil_page_get_lsn(page) == fil_page_get_lsn(plain)
                && fil_page_get_type(plain) != FIL_PAGE_PAGE_COMPRESSED;
    if (same) {
        memcpy(page, plain, page_size);
    }
}

void page_decompress(byte *page, uint32_t page_size)
{
    if (comp_is_whole(page, page_size)) {
        comp_replace(page, page_size);
    }
}

static page_verdict_t comp_verify(const byte *page, uint32_t page_size, page_id_t id)
{
    byte copy[PAGE_SIZE_MAX];
    memcpy(copy, page, page_size);
    comp_replace(copy, page_size);
    page_verdict_t verdict = fil_page_verify(copy, page_size, id);
    return verdict == PAGE_BAD_CHECKSUM ? PAGE_BAD_COMPRESSION : verdict;
}

page_verdict_t page_verify_stored(const byte *page, uint32_t page_size, page_id_t id)
{
    return comp_is_whole(page, page_size) ? comp_verify(page, page_size, id)
                                          : fil_page_verify(page, page_size, id);
}
