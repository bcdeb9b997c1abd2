/** Elementary types and limits of the engine, in InnoDB's words. Depends on nothing. */
#ifndef BASE_TYPES_H
#define BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t byte;
typedef uint64_t lsn_t;      /**< log sequence number: a byte position in the endless redo log */
typedef uint32_t page_no_t;  /**< page number inside a tablespace */
typedef uint32_t space_id_t; /**< tablespace identifier; 0 is the system tablespace */
typedef uint64_t trx_id_t;   /**< transaction identifier, stored in 6 bytes */
typedef uint64_t roll_ptr_t; /**< undo record address, stored in 7 bytes; 0 = no history */
typedef uint64_t table_id_t;
typedef uint64_t index_id_t; /**< below 2^32 */

typedef struct page_id {
    space_id_t space;
    page_no_t page_no;
} page_id_t;

#define FIL_NULL 0xFFFFFFFFU /**< no page */
#define SPACE_SYSTEM 0U      /**< space id of ibdata1 */
#define LSN_MAX UINT64_MAX

#define UNDO_SPACES_MAX 2U /**< undo tablespaces, if there are any */

/** Space id of undo tablespace number 1 and so on: beyond all that tables get. */
static inline space_id_t space_of_undo(uint32_t number)
{
    return 0xFFFFFFF0U + number;
}

static inline bool space_is_undo(space_id_t space)
{
    return space > space_of_undo(0) && space <= space_of_undo(UNDO_SPACES_MAX);
}

#define PAGE_SIZE_MIN 4096U
#define PAGE_SIZE_MAX 65536U
#define SECTOR_SIZE 512U

#define NAME_LEN_MAX 63U  /**< table, column and index names, in bytes */
#define COLUMNS_MAX 32U   /**< columns of a table */
#define INDEXES_MAX 65U   /**< indexes of a table: the clustered one and, as InnoDB, 64 others */
#define CHAR_LEN_MAX 255U /**< bytes of a CHAR(n) column */
#define VARCHAR_LEN_MAX 16000U /**< bytes of a VARCHAR(n) column */
#define ROW_SIZE_MAX 65535U    /**< bytes of a row in memory, as MySQL has it */
#define PATH_LEN_MAX 255U /**< bytes of a path inside the data directory, without the final 0 */

static inline bool page_id_eq(page_id_t a, page_id_t b)
{
    return a.space == b.space && a.page_no == b.page_no;
}

static inline bool page_size_is_valid(uint32_t page_size_bytes)
{
    return page_size_bytes >= PAGE_SIZE_MIN && page_size_bytes <= PAGE_SIZE_MAX
           && (page_size_bytes & (page_size_bytes - 1)) == 0;
}

/** What a storage can promise to write whole: sectors, up to the largest page. */
static inline bool atomic_write_unit_is_valid(uint32_t bytes)
{
    return bytes >= SECTOR_SIZE && bytes <= PAGE_SIZE_MAX && (bytes & (bytes - 1)) == 0;
}

#define EXTENT_PAGES_MIN 8U
#define EXTENT_PAGES_MAX 256U

static inline bool extent_pages_is_valid(uint32_t extent_pages)
{
    return extent_pages >= EXTENT_PAGES_MIN && extent_pages <= EXTENT_PAGES_MAX
           && (extent_pages & (extent_pages - 1)) == 0;
}

/** InnoDB's extent: 1 MiB up to pages of 16k, 64 pages from there on. */
static inline uint32_t extent_pages_default(uint32_t page_size_bytes)
{
    return page_size_bytes < 16384 ? (1U << 20) / page_size_bytes : 64U;
}

#endif
