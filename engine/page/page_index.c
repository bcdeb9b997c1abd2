/* B+-tree pages. Above fil_page.c; used by log/ (redo apply) and btr/. page_check.c looks at whole
pages.

1. (I6) records of one size: heap top = PAGE_DATA + heap records * record size; every heap record is
   in exactly one slot or once on the free list; heap and directory never meet, even with every heap
   record in a slot. Records of any size: no two overlap, and what they leave of the heap is
   garbage.
2. (I27) Changes are deterministic: freed records are zero but for info byte and link, garbage and
   the gap between heap and directory are zero, a list delete rewrites the heap in slot order.
3. A change that returns DB_CORRUPTION has changed no byte.
4. A page with the right checksum may still be hostile: no function reads or writes outside of it,
   each validates the fields, slots and links that it follows. */
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "page/page_int.h"

uint32_t page_n_recs(const byte *page)
{
    return mach_read_2(page + PAGE_N_RECS);
}

uint32_t page_level(const byte *page)
{
    return mach_read_1(page + PAGE_LEVEL);
}

uint32_t page_instant(const byte *page)
{
    return mach_read_1(page + PAGE_INSTANT);
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

uint32_t page_data_max(uint32_t page_size)
{
    return page_size - FIL_PAGE_TRAILER - PAGE_DATA;
}

uint32_t page_rec_cost(uint32_t rec_size, uint32_t len)
{
    return len + SLOT_SIZE + (rec_size == PAGE_REC_VARIES ? LEN_SIZE : 0);
}

uint32_t page_rec_max(uint32_t page_size)
{
    return page_data_max(page_size) / 2 - page_rec_cost(PAGE_REC_VARIES, 0);
}

uint32_t page_data_size(const byte *page)
{
    uint32_t n = page_n_recs(page);
    if (page_rec_size(page) != PAGE_REC_VARIES) {
        return n * page_rec_cost(page_rec_size(page), page_rec_size(page));
    }
    return mach_read_2(page + PAGE_HEAP_TOP) - PAGE_DATA - mach_read_2(page + PAGE_GARBAGE)
           + n * SLOT_SIZE;
}

static inline bool shape_is_valid(uint32_t page_size, uint32_t level, uint32_t rec_size,
                                  uint32_t key_len)
{
    if (rec_size == PAGE_REC_VARIES) {
        return level == 0 && key_len > 0 && key_len < page_rec_max(page_size);
    }
    if (level > BTR_LEVEL_MAX || rec_size < REC_SIZE_MIN || key_len == 0 || key_len > rec_size - 1
        || (level > 0 && key_len + CHILD_SIZE != rec_size - 1)) {
        return false;
    }
    return 2 * (rec_size + SLOT_SIZE) <= page_data_max(page_size);
}

dberr_t page_index_create(byte *page, uint32_t page_size, const page_shape_t *shape)
{
    CHECK(page_size_is_valid(page_size));
    if (!shape_is_valid(page_size, shape->level, shape->rec_size, shape->key_len)) {
        return DB_CORRUPTION;
    }
    memset(page + FIL_PAGE_DATA, 0, PAGE_INSTANT - FIL_PAGE_DATA);
    memset(page + PAGE_LEVEL, 0, PAGE_SEG_LEAF - PAGE_LEVEL);
    memset(page + PAGE_DATA, 0, page_size - FIL_PAGE_TRAILER - PAGE_DATA);
    mach_write_2(page + FIL_PAGE_TYPE, FIL_PAGE_INDEX);
    mach_write_2(page + PAGE_HEAP_TOP, PAGE_DATA);
    mach_write_1(page + PAGE_LEVEL, shape->level);
    mach_write_8(page + PAGE_INDEX_ID, shape->index_id);
    mach_write_2(page + PAGE_REC_SIZE, shape->rec_size);
    mach_write_2(page + PAGE_KEY_LEN, shape->key_len);
    return DB_SUCCESS;
}

/** What is wrong with the numbers of the heap. */
static inline const char *heap_fault(const page_head_t *h, uint32_t page_size)
{
    uint32_t room = page_data_max(page_size);
    if (h->rec_size == PAGE_REC_VARIES) {
        if (h->heap_top < PAGE_DATA || h->n_recs > room / SLOT_SIZE
            || h->heap_top - PAGE_DATA > room - SLOT_SIZE * h->n_recs
            || h->garbage > h->heap_top - PAGE_DATA) {
            return "heap top";
        }
        return h->n_free == 0 ? NULL : "free list head";
    }
    /* More than page_capacity(), without its division: this is asked for each record that is
       read. */
    if (h->n_heap * (h->rec_size + SLOT_SIZE) > room
        || h->heap_top != PAGE_DATA + h->n_heap * h->rec_size) {
        return "heap top";
    }
    return h->garbage == 0 ? NULL : "reserved bytes";
}

const char *page_head_read(const byte *page, uint32_t page_size, page_head_t *h)
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
    h->garbage = mach_read_2(page + PAGE_GARBAGE);
    if (fil_page_get_type(page) != FIL_PAGE_INDEX) {
        return "page type";
    }
    if (!shape_is_valid(page_size, h->level, h->rec_size, h->key_len)) {
        return "level, record size or key length";
    }
    const char *fault = heap_fault(h, page_size);
    if (fault != NULL) {
        return fault;
    }
    if (h->n_recs + h->n_free != h->n_heap) {
        return "record count";
    }
    return (h->n_free == 0) != (h->free == 0) ? "free list head" : NULL;
}

uint32_t page_len_at(const byte *page, const page_head_t *h, uint32_t offset)
{
    return h->rec_size != PAGE_REC_VARIES ? h->rec_size : mach_read_2(page + offset - LEN_SIZE);
}

/** Is this the offset of a record that lies in the heap? */
static bool page_offset_is_valid(const byte *page, const page_head_t *h, uint32_t offset)
{
    if (h->rec_size != PAGE_REC_VARIES) {
        return offset >= PAGE_DATA && offset < h->heap_top
               && (offset - PAGE_DATA) % h->rec_size == 0;
    }
    if (offset < PAGE_DATA + LEN_SIZE || offset >= h->heap_top) {
        return false;
    }
    uint32_t len = page_len_at(page, h, offset);
    return len > h->key_len && len <= h->heap_top - offset;
}

static uint32_t slot_pos(uint32_t page_size, uint32_t slot)
{
    return page_size - FIL_PAGE_TRAILER - SLOT_SIZE * (slot + 1);
}

uint32_t page_slot_read(const byte *page, uint32_t page_size, const page_head_t *h, uint32_t slot)
{
    uint32_t offset = mach_read_2(page + slot_pos(page_size, slot));
    return page_offset_is_valid(page, h, offset) && (page[offset] & ~REC_INFO_VALID) == 0 ? offset
                                                                                          : 0;
}

bool page_free_read(const byte *page, const page_head_t *h, uint32_t offset, uint32_t *next)
{
    if (!page_offset_is_valid(page, h, offset) || page[offset] != REC_INFO_FREED) {
        return false;
    }
    *next = mach_read_2(page + offset + 1);
    return *next == 0 || page_offset_is_valid(page, h, *next);
}

/** Room at the heap top for a record of len bytes and its slot? */
static bool heap_has_room(const page_head_t *h, uint32_t page_size, uint32_t len)
{
    uint32_t end = page_size - FIL_PAGE_TRAILER - SLOT_SIZE * h->n_recs;
    return page_rec_cost(h->rec_size, len) <= end - h->heap_top;
}

bool page_has_room(const byte *page, uint32_t page_size, uint32_t len)
{
    page_head_t h;
    if (page_head_read(page, page_size, &h) != NULL) {
        return false;
    }
    if (h.rec_size == PAGE_REC_VARIES) {
        return heap_has_room(&h, page_size, len);
    }
    return h.n_free > 0 || h.n_heap < page_capacity(page_size, h.rec_size);
}

uint32_t page_rec_offset(const byte *page, uint32_t page_size, uint32_t slot)
{
    page_head_t h;
    CHECK(page_head_read(page, page_size, &h) == NULL && slot < h.n_recs);
    uint32_t offset = page_slot_read(page, page_size, &h, slot);
    CHECK(offset != 0);
    return offset;
}

uint32_t page_rec_len(const byte *page, uint32_t page_size, uint32_t slot)
{
    uint32_t offset = page_rec_offset(page, page_size, slot);
    return page_rec_size(page) != PAGE_REC_VARIES ? page_rec_size(page)
                                                  : mach_read_2(page + offset - LEN_SIZE);
}

const byte *page_rec(const byte *page, uint32_t page_size, uint32_t slot)
{
    return page + page_rec_offset(page, page_size, slot);
}

/** Compares the record in a slot with a key prefix. A broken slot counts as greater. */
static int rec_compare(const byte *page, uint32_t page_size, const page_head_t *h, uint32_t slot,
                       const byte *key, uint32_t key_len)
{
    uint32_t offset = page_slot_read(page, page_size, h, slot);
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
    *exact = false;
    page_head_t h;
    if (page_head_read(page, page_size, &h) != NULL) {
        return 0;
    }
    key_len = key_len < h.key_len ? key_len : h.key_len;
    uint32_t high = h.n_recs;
    uint32_t low = 0;
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
    uint32_t most = 0; /* bytes that can be shared: one at least stands for itself */
    CHECK(len >= 2);
    uint32_t before = 0;
    page_head_t h;
    if (slot > 0 && page_head_read(page, page_size, &h) == NULL && slot <= h.n_recs
        && (h.rec_size == PAGE_REC_VARIES || len == h.rec_size)) {
        before = page_slot_read(page, page_size, &h, slot - 1);
    }
    if (before != 0) {
        uint32_t before_len = page_len_at(page, &h, before);
        most = before_len < len ? before_len - 1 : len - 2;
    }
    uint32_t shared = 0;
    while (shared < most && page[before + 1 + shared] == rec[1 + shared]) {
        shared++;
    }
    return (rec_delta_t){rec[0], shared, rec + 1 + shared, len - 1 - shared};
}

/** The place of the record before, whose bytes it shares; 0: there is none such. */
static uint32_t shared_with(const byte *page, uint32_t page_size, const page_head_t *h,
                            uint32_t slot, const rec_delta_t *rec)
{
    uint32_t before = slot > 0 ? page_slot_read(page, page_size, h, slot - 1) : 0;
    return before != 0 && rec->shared < page_len_at(page, h, before) ? before : 0;
}

/** Takes the place of a record of len bytes: the first freed one, or at the heap top. 0: there is
none. */
static uint32_t heap_alloc(byte *page, uint32_t page_size, const page_head_t *h, uint32_t len)
{
    uint32_t offset = h->heap_top;
    uint32_t next = 0;
    if (h->n_free > 0) {
        if (!page_free_read(page, h, h->free, &next) || (next == 0) != (h->n_free == 1)) {
            return 0;
        }
        mach_write_2(page + PAGE_FREE, next);
        mach_write_2(page + PAGE_N_FREE, h->n_free - 1);
        return h->free;
    }
    if (!heap_has_room(h, page_size, len)) {
        return 0;
    }
    if (h->rec_size == PAGE_REC_VARIES) {
        mach_write_2(page + offset, len);
        offset += LEN_SIZE;
    }
    mach_write_2(page + PAGE_HEAP_TOP, offset + len);
    mach_write_2(page + PAGE_N_HEAP, h->n_heap + 1);
    return offset;
}

/** May a page of this head have a record of len bytes? */
static bool len_is_valid(const page_head_t *h, uint32_t page_size, uint32_t len)
{
    return h->rec_size != PAGE_REC_VARIES ? len == h->rec_size
                                          : len > h->key_len && len <= page_rec_max(page_size);
}

dberr_t page_rec_insert(byte *page, uint32_t page_size, uint32_t slot, const rec_delta_t *rec)
{
    uint32_t len = 1 + rec->shared + rec->rest_len;
    page_head_t h;
    if (page_head_read(page, page_size, &h) != NULL || slot > h.n_recs || rec->shared >= page_size
        || rec->rest_len >= page_size || !len_is_valid(&h, page_size, len)
        || (rec->info & ~REC_INFO_VALID) != 0) {
        return DB_CORRUPTION;
    }
    uint32_t before = 0;
    if (rec->shared > 0) {
        before = shared_with(page, page_size, &h, slot, rec);
        if (before == 0) {
            return DB_CORRUPTION;
        }
    }
    uint32_t offset = heap_alloc(page, page_size, &h, len);
    if (offset == 0) {
        return DB_CORRUPTION;
    }
    page[offset] = (byte)rec->info;
    memmove(page + offset + 1, page + before + 1, rec->shared);
    memcpy(page + offset + 1 + rec->shared, rec->rest, rec->rest_len);
    byte *last = page + slot_pos(page_size, h.n_recs);
    memmove(last, last + SLOT_SIZE, (size_t)SLOT_SIZE * (h.n_recs - slot));
    mach_write_2(page + slot_pos(page_size, slot), offset);
    mach_write_2(page + PAGE_N_RECS, h.n_recs + 1);
    return DB_SUCCESS;
}

/** Gives the place of a record back. */
static void heap_free(byte *page, const page_head_t *h, uint32_t offset)
{
    uint32_t len = page_len_at(page, h, offset);
    if (h->rec_size == PAGE_REC_VARIES) {
        memset(page + offset - LEN_SIZE, 0, LEN_SIZE + len);
        mach_write_2(page + PAGE_GARBAGE, h->garbage + LEN_SIZE + len);
        mach_write_2(page + PAGE_N_HEAP, h->n_heap - 1);
        return;
    }
    memset(page + offset, 0, len);
    page[offset] = REC_INFO_FREED;
    mach_write_2(page + offset + 1, h->free);
    mach_write_2(page + PAGE_FREE, offset);
    mach_write_2(page + PAGE_N_FREE, h->n_free + 1);
}

dberr_t page_rec_delete(byte *page, uint32_t page_size, uint32_t slot)
{
    page_head_t h;
    if (page_head_read(page, page_size, &h) != NULL || slot >= h.n_recs
        || (h.n_free > 0 && !page_offset_is_valid(page, &h, h.free))) {
        return DB_CORRUPTION;
    }
    uint32_t offset = page_slot_read(page, page_size, &h, slot);
    if (offset == 0
        || (h.rec_size == PAGE_REC_VARIES
            && page_len_at(page, &h, offset) + LEN_SIZE > h.heap_top - PAGE_DATA - h.garbage)) {
        return DB_CORRUPTION;
    }
    heap_free(page, &h, offset);
    byte *last = page + slot_pos(page_size, h.n_recs - 1);
    memmove(last + SLOT_SIZE, last, (size_t)SLOT_SIZE * (h.n_recs - 1 - slot));
    mach_write_2(last, 0);
    mach_write_2(page + PAGE_N_RECS, h.n_recs - 1);
    return DB_SUCCESS;
}

dberr_t page_rec_place(const byte *page, uint32_t page_size, uint32_t slot, uint32_t rec_offset,
                       const byte *bytes, uint32_t len, uint32_t *out)
{
    page_head_t h;
    if (page_head_read(page, page_size, &h) != NULL || slot >= h.n_recs) {
        return DB_CORRUPTION;
    }
    uint32_t offset = page_slot_read(page, page_size, &h, slot);
    if (offset == 0 || rec_offset > page_len_at(page, &h, offset)
        || len > page_len_at(page, &h, offset) - rec_offset
        || (rec_offset == 0 && len > 0 && (bytes[0] & ~REC_INFO_VALID) != 0)) {
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
    uint32_t offsets[PAGE_SIZE_MAX / SLOT_SIZE];
    uint32_t in_front = h->rec_size == PAGE_REC_VARIES ? LEN_SIZE : 0;
    uint32_t n = end - first;
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t offset = page_slot_read(page, page_size, h, first + i);
        uint32_t len = offset != 0 ? in_front + page_len_at(page, h, offset) : 0;
        if (offset == 0 || len > page_data_max(page_size) - used) {
            return DB_CORRUPTION;
        }
        memcpy(heap + used, page + offset - in_front, len);
        offsets[i] = PAGE_DATA + used + in_front;
        used += len;
    }
    if (used + SLOT_SIZE * n > page_data_max(page_size)) {
        return DB_CORRUPTION;
    }
    memcpy(page + PAGE_DATA, heap, used);
    memset(page + PAGE_DATA + used, 0, page_data_max(page_size) - used);
    for (uint32_t i = 0; i < n; i++) {
        mach_write_2(page + slot_pos(page_size, i), offsets[i]);
    }
    mach_write_2(page + PAGE_N_RECS, n);
    mach_write_2(page + PAGE_HEAP_TOP, PAGE_DATA + used);
    mach_write_2(page + PAGE_N_HEAP, n);
    mach_write_2(page + PAGE_FREE, 0);
    mach_write_2(page + PAGE_N_FREE, 0);
    mach_write_2(page + PAGE_GARBAGE, 0);
    return DB_SUCCESS;
}

dberr_t page_list_end_delete(byte *page, uint32_t page_size, uint32_t slot)
{
    page_head_t h;
    if (page_head_read(page, page_size, &h) != NULL || slot > h.n_recs) {
        return DB_CORRUPTION;
    }
    return list_keep(page, page_size, &h, 0, slot);
}

dberr_t page_list_start_delete(byte *page, uint32_t page_size, uint32_t slot)
{
    page_head_t h;
    if (page_head_read(page, page_size, &h) != NULL || slot > h.n_recs) {
        return DB_CORRUPTION;
    }
    return list_keep(page, page_size, &h, slot, h.n_recs);
}

dberr_t page_reorganize(byte *page, uint32_t page_size)
{
    page_head_t h;
    if (page_head_read(page, page_size, &h) != NULL) {
        return DB_CORRUPTION;
    }
    return list_keep(page, page_size, &h, 0, h.n_recs);
}
