/* B+-tree pages. Above fil_page.c; used by log/ (redo apply) and btr/.

1. (I6) heap top = PAGE_DATA + heap records * record size; every heap record is in exactly one slot
   or once on the free list; heap and directory never meet, even with every heap record in a slot.
2. (I27) Changes are deterministic: freed records are zero but for info byte and link, the gap
   between heap and directory is zero, a list delete rewrites the heap in slot order.
3. A change that returns DB_CORRUPTION has changed no byte.
4. A page with the right checksum may still be hostile: no function reads or writes outside of it,
   each validates the fields, slots and links that it follows. */
#include "page/page_index.h"

#include <string.h>

#include "base/check.h"
#include "base/mach.h"

#define SLOT_SIZE 2U
#define LINK_SIZE 2U /* of a freed record, behind its info byte */
#define REC_SIZE_MIN (1U + LINK_SIZE)
#define CHILD_SIZE 4U /* of a node pointer */
#define REC_INFO_VALID (REC_INFO_DELETE_MARK | REC_INFO_MIN_REC)

/** The header of an index page, decoded and found consistent in itself. */
typedef struct page_head {
    uint32_t n_recs;
    uint32_t heap_top;
    uint32_t n_heap;
    uint32_t free;
    uint32_t n_free;
    uint32_t level;
    uint32_t rec_size;
    uint32_t key_len;
} page_head_t;

uint32_t page_n_recs(const byte *page)
{
    return mach_read_2(page + PAGE_N_RECS);
}

uint32_t page_level(const byte *page)
{
    return mach_read_2(page + PAGE_LEVEL);
}

index_id_t page_index_id(const byte *page)
{
    return mach_read_8(page + PAGE_INDEX_ID);
}

uint32_t page_rec_size(const byte *page)
{
    return mach_read_2(page + PAGE_REC_SIZE);
}

uint32_t page_key_len(const byte *page)
{
    return mach_read_2(page + PAGE_KEY_LEN);
}

uint32_t page_capacity(uint32_t page_size, uint32_t rec_size)
{
    return (page_size - FIL_PAGE_TRAILER - PAGE_DATA) / (rec_size + SLOT_SIZE);
}

static bool shape_is_valid(uint32_t page_size, uint32_t level, uint32_t rec_size, uint32_t key_len)
{
    if (level > BTR_LEVEL_MAX || rec_size < REC_SIZE_MIN || key_len == 0 || key_len > rec_size - 1
        || (level > 0 && key_len + CHILD_SIZE != rec_size - 1)) {
        return false;
    }
    return page_capacity(page_size, rec_size) >= 2;
}

dberr_t page_index_create(byte *page, uint32_t page_size, const page_shape_t *shape)
{
    CHECK(page_size_is_valid(page_size));
    if (!shape_is_valid(page_size, shape->level, shape->rec_size, shape->key_len)) {
        return DB_CORRUPTION;
    }
    memset(page + FIL_PAGE_DATA, 0, PAGE_SEG_LEAF - FIL_PAGE_DATA);
    memset(page + PAGE_DATA, 0, page_size - FIL_PAGE_TRAILER - PAGE_DATA);
    mach_write_2(page + FIL_PAGE_TYPE, FIL_PAGE_INDEX);
    mach_write_2(page + PAGE_HEAP_TOP, PAGE_DATA);
    mach_write_2(page + PAGE_LEVEL, shape->level);
    mach_write_8(page + PAGE_INDEX_ID, shape->index_id);
    mach_write_2(page + PAGE_REC_SIZE, shape->rec_size);
    mach_write_2(page + PAGE_KEY_LEN, shape->key_len);
    return DB_SUCCESS;
}

/** Decodes the header. NULL when it is consistent, else the broken item. */
static const char *head_read(const byte *page, uint32_t page_size, page_head_t *h)
{
    CHECK(page_size_is_valid(page_size));
    h->n_recs = page_n_recs(page);
    h->heap_top = mach_read_2(page + PAGE_HEAP_TOP);
    h->n_heap = mach_read_2(page + PAGE_N_HEAP);
    h->free = mach_read_2(page + PAGE_FREE);
    h->n_free = mach_read_2(page + PAGE_N_FREE);
    h->level = page_level(page);
    h->rec_size = page_rec_size(page);
    h->key_len = page_key_len(page);
    if (fil_page_get_type(page) != FIL_PAGE_INDEX) {
        return "page type";
    }
    if (!shape_is_valid(page_size, h->level, h->rec_size, h->key_len)) {
        return "level, record size or key length";
    }
    if (h->n_heap > page_capacity(page_size, h->rec_size)
        || h->heap_top != PAGE_DATA + h->n_heap * h->rec_size) {
        return "heap top";
    }
    if (h->n_recs + h->n_free != h->n_heap) {
        return "record count";
    }
    if ((h->n_free == 0) != (h->free == 0)) {
        return "free list head";
    }
    return mach_read_2(page + PAGE_RESERVED) == 0 ? NULL : "reserved bytes";
}

/** Is this the offset of a heap record? */
static bool offset_is_valid(const page_head_t *h, uint32_t offset)
{
    return offset >= PAGE_DATA && offset < h->heap_top && (offset - PAGE_DATA) % h->rec_size == 0;
}

static uint32_t slot_pos(uint32_t page_size, uint32_t slot)
{
    return page_size - FIL_PAGE_TRAILER - SLOT_SIZE * (slot + 1);
}

/** Offset of the record in a slot < n_recs, or 0 when slot or record is broken. */
static uint32_t slot_read(const byte *page, uint32_t page_size, const page_head_t *h, uint32_t slot)
{
    uint32_t offset = mach_read_2(page + slot_pos(page_size, slot));

    return offset_is_valid(h, offset) && (page[offset] & ~REC_INFO_VALID) == 0 ? offset : 0;
}

/** Is this the offset of a freed record whose link is plausible? *next is its link. */
static bool free_read(const byte *page, const page_head_t *h, uint32_t offset, uint32_t *next)
{
    if (!offset_is_valid(h, offset) || page[offset] != REC_INFO_FREED) {
        return false;
    }
    *next = mach_read_2(page + offset + 1);
    return *next == 0 || offset_is_valid(h, *next);
}

bool page_has_room(const byte *page, uint32_t page_size)
{
    page_head_t h;

    return head_read(page, page_size, &h) == NULL
           && (h.n_free > 0 || h.n_heap < page_capacity(page_size, h.rec_size));
}

static bool is_zero(const byte *bytes, uint32_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

#define HEAP_MAX ((PAGE_SIZE_MAX - PAGE_DATA) / (REC_SIZE_MIN + SLOT_SIZE) + 1)

typedef struct heap_set {
    byte bits[HEAP_MAX / 8 + 1];
} heap_set_t;

/** Adds the record at offset; false when it is there already. */
static bool heap_set_add(heap_set_t *set, const page_head_t *h, uint32_t offset)
{
    uint32_t n = (offset - PAGE_DATA) / h->rec_size;
    byte bit = (byte)(1U << (n % 8));
    bool fresh = (set->bits[n / 8] & bit) == 0;

    set->bits[n / 8] |= bit;
    return fresh;
}

static const char *validate_slots(const byte *page, uint32_t page_size, const page_head_t *h,
                                  heap_set_t *seen)
{
    /* The first record of the leftmost page of a level above the leaves stands for minus infinity.
    */
    bool min_rec = h->level > 0 && fil_page_get_prev(page) == FIL_NULL;

    for (uint32_t slot = 0; slot < h->n_recs; slot++) {
        uint32_t offset = slot_read(page, page_size, h, slot);

        if (offset == 0) {
            return "directory slot";
        }
        if (!heap_set_add(seen, h, offset)) {
            return "two slots of one record";
        }
        if (((page[offset] & REC_INFO_MIN_REC) != 0) != (min_rec && slot == 0)) {
            return "minimum record flag";
        }
    }
    return NULL;
}

static const char *validate_free_list(const byte *page, const page_head_t *h, heap_set_t *seen)
{
    uint32_t offset = h->free;
    uint32_t next = 0;

    for (uint32_t i = 0; i < h->n_free; i++) {
        if (!free_read(page, h, offset, &next) || !heap_set_add(seen, h, offset)) {
            return "free list";
        }
        if (!is_zero(page + offset + REC_SIZE_MIN, h->rec_size - REC_SIZE_MIN)) {
            return "bytes of a freed record";
        }
        offset = next;
    }
    return offset == 0 ? NULL : "free list end";
}

dberr_t page_index_validate(const byte *page, uint32_t page_size, const char **why)
{
    heap_set_t seen = {{0}};
    page_head_t h;
    const char *broken = head_read(page, page_size, &h);

    if (broken == NULL) {
        broken = validate_slots(page, page_size, &h, &seen);
    }
    if (broken == NULL) {
        broken = validate_free_list(page, &h, &seen);
    }
    if (broken == NULL
        && !is_zero(page + h.heap_top,
                    page_size - FIL_PAGE_TRAILER - SLOT_SIZE * h.n_recs - h.heap_top)) {
        broken = "bytes between heap and directory";
    }
    if (broken != NULL && why != NULL) {
        *why = broken;
    }
    return broken == NULL ? DB_SUCCESS : DB_CORRUPTION;
}

uint32_t page_rec_offset(const byte *page, uint32_t page_size, uint32_t slot)
{
    page_head_t h;
    uint32_t offset;

    CHECK(head_read(page, page_size, &h) == NULL && slot < h.n_recs);
    offset = slot_read(page, page_size, &h, slot);
    CHECK(offset != 0);
    return offset;
}

const byte *page_rec(const byte *page, uint32_t page_size, uint32_t slot)
{
    return page + page_rec_offset(page, page_size, slot);
}

/** Compares the record in a slot with a key prefix. A broken slot counts as greater. */
static int rec_compare(const byte *page, uint32_t page_size, const page_head_t *h, uint32_t slot,
                       const byte *key, uint32_t key_len)
{
    uint32_t offset = slot_read(page, page_size, h, slot);

    if (offset == 0) {
        return 1;
    }
    if ((page[offset] & REC_INFO_MIN_REC) != 0) {
        return -1;
    }
    return memcmp(page + offset + 1, key, key_len);
}

uint32_t page_search(const byte *page, uint32_t page_size, const byte *key, uint32_t key_len,
                     bool *exact)
{
    uint32_t low = 0;
    uint32_t high;
    page_head_t h;

    *exact = false;
    if (head_read(page, page_size, &h) != NULL) {
        return 0;
    }
    key_len = key_len < h.key_len ? key_len : h.key_len;
    high = h.n_recs;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (rec_compare(page, page_size, &h, mid, key, key_len) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    *exact = low < h.n_recs && rec_compare(page, page_size, &h, low, key, key_len) == 0;
    return low;
}

rec_delta_t page_rec_delta(const byte *page, uint32_t page_size, uint32_t slot, const byte *rec,
                           uint32_t len)
{
    uint32_t before = 0;
    uint32_t shared = 0;
    page_head_t h;

    CHECK(len >= 2);
    if (slot > 0 && head_read(page, page_size, &h) == NULL && slot <= h.n_recs
        && len == h.rec_size) {
        before = slot_read(page, page_size, &h, slot - 1);
    }
    while (before != 0 && shared < len - 2 && page[before + 1 + shared] == rec[1 + shared]) {
        shared++;
    }
    return (rec_delta_t){rec[0], shared, rec + 1 + shared, len - 1 - shared};
}

dberr_t page_rec_insert(byte *page, uint32_t page_size, uint32_t slot, const rec_delta_t *rec)
{
    uint32_t offset;
    uint32_t before = 0;
    uint32_t next = 0;
    page_head_t h;
    byte *last;

    if (head_read(page, page_size, &h) != NULL || slot > h.n_recs || rec->rest_len >= h.rec_size
        || rec->shared != h.rec_size - 1 - rec->rest_len || (rec->info & ~REC_INFO_VALID) != 0) {
        return DB_CORRUPTION;
    }
    if (rec->shared > 0) {
        before = slot > 0 ? slot_read(page, page_size, &h, slot - 1) : 0;
        if (before == 0) {
            return DB_CORRUPTION;
        }
    }
    if (h.n_free > 0) {
        offset = h.free;
        if (!free_read(page, &h, offset, &next) || (next == 0) != (h.n_free == 1)) {
            return DB_CORRUPTION;
        }
        mach_write_2(page + PAGE_FREE, next);
        mach_write_2(page + PAGE_N_FREE, h.n_free - 1);
    } else {
        if (h.n_heap == page_capacity(page_size, h.rec_size)) {
            return DB_CORRUPTION;
        }
        offset = h.heap_top;
        mach_write_2(page + PAGE_HEAP_TOP, h.heap_top + h.rec_size);
        mach_write_2(page + PAGE_N_HEAP, h.n_heap + 1);
    }
    page[offset] = (byte)rec->info;
    memmove(page + offset + 1, page + before + 1, rec->shared);
    memcpy(page + offset + 1 + rec->shared, rec->rest, rec->rest_len);
    last = page + slot_pos(page_size, h.n_recs);
    memmove(last, last + SLOT_SIZE, (size_t)SLOT_SIZE * (h.n_recs - slot));
    mach_write_2(page + slot_pos(page_size, slot), offset);
    mach_write_2(page + PAGE_N_RECS, h.n_recs + 1);
    return DB_SUCCESS;
}

dberr_t page_rec_delete(byte *page, uint32_t page_size, uint32_t slot)
{
    uint32_t offset;
    page_head_t h;
    byte *last;

    if (head_read(page, page_size, &h) != NULL || slot >= h.n_recs
        || (h.n_free > 0 && !offset_is_valid(&h, h.free))) {
        return DB_CORRUPTION;
    }
    offset = slot_read(page, page_size, &h, slot);
    if (offset == 0) {
        return DB_CORRUPTION;
    }
    memset(page + offset, 0, h.rec_size);
    page[offset] = REC_INFO_FREED;
    mach_write_2(page + offset + 1, h.free);
    mach_write_2(page + PAGE_FREE, offset);
    mach_write_2(page + PAGE_N_FREE, h.n_free + 1);
    last = page + slot_pos(page_size, h.n_recs - 1);
    memmove(last + SLOT_SIZE, last, (size_t)SLOT_SIZE * (h.n_recs - 1 - slot));
    mach_write_2(last, 0);
    mach_write_2(page + PAGE_N_RECS, h.n_recs - 1);
    return DB_SUCCESS;
}

dberr_t page_rec_place(const byte *page, uint32_t page_size, uint32_t slot, uint32_t rec_offset,
                       const byte *bytes, uint32_t len, uint32_t *out)
{
    uint32_t offset;
    page_head_t h;

    if (head_read(page, page_size, &h) != NULL || slot >= h.n_recs || rec_offset > h.rec_size
        || len > h.rec_size - rec_offset) {
        return DB_CORRUPTION;
    }
    offset = slot_read(page, page_size, &h, slot);
    if (offset == 0 || (rec_offset == 0 && len > 0 && (bytes[0] & ~REC_INFO_VALID) != 0)) {
        return DB_CORRUPTION;
    }
    *out = offset + rec_offset;
    return DB_SUCCESS;
}

dberr_t page_rec_update(byte *page, uint32_t page_size, uint32_t slot, uint32_t rec_offset,
                        const byte *bytes, uint32_t len)
{
    uint32_t place = 0;
    dberr_t err = page_rec_place(page, page_size, slot, rec_offset, bytes, len, &place);

    if (err == DB_SUCCESS && len > 0) {
        memmove(page + place, bytes, len);
    }
    return err;
}

/** Keeps the records of slots [first, end), rewrites the heap in their order, zeroes the rest. */
static dberr_t list_keep(byte *page, uint32_t page_size, const page_head_t *h, uint32_t first,
                         uint32_t end)
{
    byte heap[PAGE_SIZE_MAX];
    uint32_t n = end - first;
    uint32_t heap_top = PAGE_DATA + n * h->rec_size;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t offset = slot_read(page, page_size, h, first + i);

        if (offset == 0) {
            return DB_CORRUPTION;
        }
        memcpy(heap + (size_t)i * h->rec_size, page + offset, h->rec_size);
    }
    memcpy(page + PAGE_DATA, heap, (size_t)n * h->rec_size);
    memset(page + heap_top, 0, page_size - FIL_PAGE_TRAILER - heap_top);
    for (uint32_t i = 0; i < n; i++) {
        mach_write_2(page + slot_pos(page_size, i), PAGE_DATA + i * h->rec_size);
    }
    mach_write_2(page + PAGE_N_RECS, n);
    mach_write_2(page + PAGE_HEAP_TOP, heap_top);
    mach_write_2(page + PAGE_N_HEAP, n);
    mach_write_2(page + PAGE_FREE, 0);
    mach_write_2(page + PAGE_N_FREE, 0);
    return DB_SUCCESS;
}

dberr_t page_list_end_delete(byte *page, uint32_t page_size, uint32_t slot)
{
    page_head_t h;

    if (head_read(page, page_size, &h) != NULL || slot > h.n_recs) {
        return DB_CORRUPTION;
    }
    return list_keep(page, page_size, &h, 0, slot);
}

dberr_t page_list_start_delete(byte *page, uint32_t page_size, uint32_t slot)
{
    page_head_t h;

    if (head_read(page, page_size, &h) != NULL || slot > h.n_recs) {
        return DB_CORRUPTION;
    }
    return list_keep(page, page_size, &h, slot, h.n_recs);
}
