/** A page as it lies in a file when it is compressed (FORMAT.md, "Compressed page"). Reader and
writer share this.

    offset  size  field
    0       4     CRC-32C of bytes [4, 40 + length)
    4       22    as the page has them: number, PREV, NEXT, LSN
    24      2     FIL_PAGE_PAGE_COMPRESSED
    26      8     algorithm
    34      4     space id
    38      2     length
    40      ...   the whole page, stamped, compressed: length bytes; zeros up to the next 512;
                  behind them anything */
#ifndef PAGE_PAGE_COMPRESS_H
#define PAGE_PAGE_COMPRESS_H

#include "base/options.h"
#include "page/fil_page.h"

#define PAGE_COMP_ALGORITHM 26
#define PAGE_COMP_LENGTH 38
#define PAGE_COMP_DATA 40
#define PAGE_COMP_BLOCK 512U /**< what is written of a compressed page is a multiple of this */

typedef enum page_algorithm {
    PAGE_ALGORITHM_NONE = PAGE_COMPRESSION_NONE,
    PAGE_ALGORITHM_LZ4 = PAGE_COMPRESSION_LZ4,
    PAGE_ALGORITHM_ZSTD = PAGE_COMPRESSION_ZSTD
} page_algorithm_t;

const char *page_algorithm_name(uint64_t algorithm); /**< "none", "lz4", "zstd"; NULL: unknown */

/** Compresses a stamped page in place; bytes behind what is stored become zero. Unchanged if that
saves no block. */
void page_compress(byte *page, uint32_t page_size, page_algorithm_t algorithm);

/** How many bytes of this page image have to be stored: fewer than page_size if it is
compressed. */
uint32_t page_stored_bytes(const byte *page, uint32_t page_size);

/** Undoes page_compress() in place, whatever lies behind the stored bytes. Pages that are not
compressed, and compressed ones that are damaged, stay as they are: fil_page_verify() refuses the
latter. */
void page_decompress(byte *page, uint32_t page_size);

/** fil_page_verify() of an image as it lies in a file, compressed or not. */
page_verdict_t page_verify_stored(const byte *page, uint32_t page_size, page_id_t id);

#endif
