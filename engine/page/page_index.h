/** B+-tree pages: slotted records with a directory (FORMAT.md, "Index page"). The records of a page
have one size, or, on leaves of clustered indexes whose rows vary, each its own.

    38  2  number of records           48  1  instant mark; 49  1  level, 0 = leaf
    40  2  heap top (first unused)     50  8  index id
    42  2  heap records, with freed    58  2  record size with its info byte; 0: each has its own
    44  2  first freed record, or 0    60  2  key length in bytes
    46  2  number of freed records     62  2  garbage: bytes of the heap that no record has (size 0)
    64 10  header of the segment of leaves (root only, else zero)
    74 10  header of the segment of the root and the inner levels (the same)
    84  .. record heap, upwards; directory of 2-byte record offsets, downwards from the trailer:
           slot i at page_size - 8 - 2 * (i + 1); slots are in ascending key order, one per record.

Record: 1 info byte, then the payload of record size - 1 bytes, which starts with the key. Keys are
compared with memcmp. A freed record has info REC_INFO_FREED and the offset of the next freed one (2
bytes, 0 at the end) behind it. The payload of a node pointer (level > 0) is the key and a 4-byte
child page number; the first record of the leftmost page of such a level has REC_INFO_MIN_REC and
is smaller than any key.

Where each record has its own size, that stands in the 2 bytes in front of the info byte. There is
no free list: what a deleted record leaves is zero, and garbage until the page is reorganized.

A clustered index whose table has got a column by ALGORITHM=INSTANT has a metadata record: the first
one of the leftmost leaf, with REC_INFO_MIN_REC. The instant mark of its root is the number of
columns that records had before the first such change. Records with REC_INFO_INSTANT say how many
they have.

Changes are deterministic: the same call on the same bytes gives the same bytes. Redo apply relies
on that, and so each of these functions checks what it reads and returns DB_CORRUPTION, leaving the
page unchanged, when the page cannot take the change. */
#ifndef PAGE_PAGE_INDEX_H
#define PAGE_PAGE_INDEX_H

#include "page/fil_page.h"

#define PAGE_N_RECS 38
#define PAGE_HEAP_TOP 40
#define PAGE_N_HEAP 42
#define PAGE_FREE 44
#define PAGE_N_FREE 46
#define PAGE_INSTANT 48
#define PAGE_LEVEL 49
#define PAGE_INDEX_ID 50
#define PAGE_REC_SIZE 58
#define PAGE_KEY_LEN 60
#define PAGE_GARBAGE 62
#define PAGE_SEG_LEAF 64
#define PAGE_SEG_TOP 74
#define PAGE_DATA 84

#define REC_INFO_DELETE_MARK 0x20U
#define REC_INFO_MIN_REC 0x10U
#define REC_INFO_INSTANT 0x40U /**< says how many columns it has (dict/) */
#define REC_INFO_FREED 0x80U

#define BTR_LEVEL_MAX 15U

#define PAGE_REC_VARIES 0U /**< in place of a record size */

typedef struct page_shape {
    uint32_t level;
    index_id_t index_id;
    uint32_t rec_size; /**< info byte included; PAGE_REC_VARIES: each its own, leaves only */
    uint32_t key_len;
} page_shape_t;

/** Turns an initialised page into an empty index page (type FIL_PAGE_INDEX; PREV, NEXT, LSN, the
instant mark and the segment headers stay).
DB_CORRUPTION when the shape is impossible for the page size (fewer than 2 records would fit). */
WARN_UNUSED dberr_t page_index_create(byte *page, uint32_t page_size, const page_shape_t *shape);

uint32_t page_n_recs(const byte *page);
uint32_t page_level(const byte *page);
uint32_t page_instant(const byte *page); /**< the instant mark; 0: none */
index_id_t page_index_id(const byte *page);
uint32_t page_rec_size(const byte *page); /**< of every record, or PAGE_REC_VARIES */
uint32_t page_key_len(const byte *page);
uint32_t page_capacity(uint32_t page_size,
                       uint32_t rec_size); /**< records of one size that fit an empty page */
/** The longest record of a page of records of any size: two fit. */
uint32_t page_rec_max(uint32_t page_size);
/** Is there room for one more record, of len bytes, as the page is? */
bool page_has_room(const byte *page, uint32_t page_size, uint32_t len);
/** Bytes for records and their slots in an empty page. */
uint32_t page_data_max(uint32_t page_size);
/** Bytes that the records take with their slots: what a reorganized page needs. */
uint32_t page_data_size(const byte *page);
/** Bytes that one record of len bytes takes with its slot. rec_size: of the page. */
uint32_t page_rec_cost(uint32_t rec_size, uint32_t len);

/** Every field, slot and the free list, once over the page: invariant I6. On DB_CORRUPTION *why (if
not NULL) is a static phrase that names the broken item. Key order is not looked at. */
WARN_UNUSED dberr_t page_index_validate(const byte *page, uint32_t page_size, const char **why);

/** The record in a slot: info byte first. slot < page_n_recs() of a validated page (CHECK). */
const byte *page_rec(const byte *page, uint32_t page_size, uint32_t slot);
uint32_t page_rec_offset(const byte *page, uint32_t page_size, uint32_t slot);
uint32_t page_rec_len(const byte *page, uint32_t page_size,
                      uint32_t slot); /**< info byte included */

static inline uint32_t rec_info(const byte *rec)
{
    return rec[0];
}

static inline bool rec_is_deleted(const byte *rec)
{
    return (rec[0] & REC_INFO_DELETE_MARK) != 0;
}

static inline bool rec_is_min(const byte *rec)
{
    return (rec[0] & REC_INFO_MIN_REC) != 0;
}

static inline const byte *rec_payload(const byte *rec)
{
    return rec + 1;
}

/** First slot whose key is >= key (page_n_recs() if none); *exact tells equality. key_len may be
shorter than the page's keys: then only that prefix is compared. MIN_REC is smaller than any key. */
uint32_t page_search(const byte *page, uint32_t page_size, const byte *key, uint32_t key_len,
                     bool *exact);

/** A record by its difference to the one before it: an info byte, `shared` bytes as behind the info
byte of that one, the rest. */
typedef struct rec_delta {
    uint32_t info;
    uint32_t shared; /**< 0: it stands for itself */
    const byte *rest;
    uint32_t rest_len; /**< at least 1 */
} rec_delta_t;

/** The difference of rec (info byte and payload, len bytes) to the record in the slot before
`slot`, as it will be inserted there. Points into rec. */
rec_delta_t page_rec_delta(const byte *page, uint32_t page_size, uint32_t slot, const byte *rec,
                           uint32_t len);

/** Inserts a record so that it gets slot `slot`. */
WARN_UNUSED dberr_t page_rec_insert(byte *page, uint32_t page_size, uint32_t slot,
                                    const rec_delta_t *rec);

/** Removes the record of a slot: its space goes to the free list, or is garbage. */
WARN_UNUSED dberr_t page_rec_delete(byte *page, uint32_t page_size, uint32_t slot);

/** Where in the page page_rec_update() would write. DB_CORRUPTION when it would refuse. */
WARN_UNUSED dberr_t page_rec_place(const byte *page, uint32_t page_size, uint32_t slot,
                                   uint32_t rec_offset, const byte *bytes, uint32_t len,
                                   uint32_t *out);

/** Overwrites len bytes of a record from offset rec_offset (0 is the info byte). */
WARN_UNUSED dberr_t page_rec_update(byte *page, uint32_t page_size, uint32_t slot,
                                    uint32_t rec_offset, const byte *bytes, uint32_t len);

/** Removes the records of slots [slot, n) or [0, slot); the page is compacted afterwards. */
WARN_UNUSED dberr_t page_list_end_delete(byte *page, uint32_t page_size, uint32_t slot);
WARN_UNUSED dberr_t page_list_start_delete(byte *page, uint32_t page_size, uint32_t slot);

/** Compacts the page: the heap in slot order, no freed record, no garbage. */
WARN_UNUSED dberr_t page_reorganize(byte *page, uint32_t page_size);

#endif
