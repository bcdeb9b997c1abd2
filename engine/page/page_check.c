/* A whole B+-tree page, looked at once. Beside page_index.c.

1. (I6) Every byte of the heap belongs to one record at most; those that belong to none are as many
   as the header says and zero, like freed records but for info byte and link.
2. Key order is not looked at: that takes two records, and is the tree walk's business. */
#include <string.h>

#include "base/mach.h"
#include "page/page_int.h"

static bool is_zero(const byte *bytes, uint32_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

#define WORD_BITS 64U

/** Bytes of the page that belong to a record, a bit each. */
typedef struct heap_map {
    uint64_t words[PAGE_SIZE_MAX / WORD_BITS];
    uint32_t n; /**< of them */
} heap_map_t;

static void heap_map_init(heap_map_t *map, uint32_t page_size)
{
    memset(map->words, 0, page_size / 8);
    map->n = 0;
}

/** Bits [from, end) of a word, both counted from its start; end <= 64, from < end. */
static uint64_t word_mask(uint32_t from, uint32_t end)
{
    return (UINT64_MAX >> (WORD_BITS - (end - from))) << from;
}

/** Adds the record at a valid offset; false when another has bytes of it. */
static bool heap_map_add(heap_map_t *map, const byte *page, const page_head_t *h, uint32_t offset)
{
    uint32_t at = offset - (h->rec_size == PAGE_REC_VARIES ? LEN_SIZE : 0);
    uint32_t end = offset + page_len_at(page, h, offset);
    map->n += end - at;
    while (at < end) {
        uint32_t first = at / WORD_BITS * WORD_BITS;
        uint64_t mask = word_mask(at - first, end - first < WORD_BITS ? end - first : WORD_BITS);
        if ((map->words[at / WORD_BITS] & mask) != 0) {
            return false;
        }
        map->words[at / WORD_BITS] |= mask;
        at = first + WORD_BITS;
    }
    return true;
}

static const char *validate_slots(const byte *page, uint32_t page_size, const page_head_t *h,
                                  heap_map_t *seen)
{
    /* The first record of the leftmost page of a level above the leaves stands for minus infinity;
       that of a leaf may be a metadata record: the tree tells. */
    bool leftmost = fil_page_get_prev(page) == FIL_NULL;
    for (uint32_t slot = 0; slot < h->n_recs; slot++) {
        uint32_t offset = page_slot_read(page, page_size, h, slot);
        if (offset == 0) {
            return "directory slot";
        }
        if (page_len_at(page, h, offset) > page_rec_max(page_size)
            && h->rec_size == PAGE_REC_VARIES) {
            return "record size";
        }
        if (!heap_map_add(seen, page, h, offset)) {
            return "two slots of one record";
        }
        bool due = h->level > 0 && leftmost && slot == 0;
        if (rec_is_min(page + offset) != due && (h->level > 0 || slot > 0)) {
            return "minimum record flag";
        }
    }
    return NULL;
}

static const char *validate_free_list(const byte *page, const page_head_t *h, heap_map_t *seen)
{
    uint32_t offset = h->free;
    uint32_t next = 0;
    for (uint32_t i = 0; i < h->n_free; i++) {
        if (!page_free_read(page, h, offset, &next) || !heap_map_add(seen, page, h, offset)) {
            return "free list";
        }
        if (!is_zero(page + offset + REC_SIZE_MIN, h->rec_size - REC_SIZE_MIN)) {
            return "bytes of a freed record";
        }
        offset = next;
    }
    return offset == 0 ? NULL : "free list end";
}

static const char *validate_garbage(const byte *page, const page_head_t *h, const heap_map_t *seen)
{
    if (seen->n + h->garbage != h->heap_top - PAGE_DATA) {
        return "bytes of garbage";
    }
    for (uint32_t i = PAGE_DATA; h->garbage > 0 && i < h->heap_top; i++) {
        if ((seen->words[i / WORD_BITS] >> (i % WORD_BITS) & 1U) == 0 && page[i] != 0) {
            return "bytes of a deleted record";
        }
    }
    return NULL;
}

dberr_t page_index_validate(const byte *page, uint32_t page_size, const char **why)
{
    heap_map_t seen;
    page_head_t h;
    const char *broken = page_head_read(page, page_size, &h);
    heap_map_init(&seen, page_size);
    if (broken == NULL) {
        broken = validate_slots(page, page_size, &h, &seen);
    }
    if (broken == NULL) {
        broken = validate_free_list(page, &h, &seen);
    }
    if (broken == NULL) {
        broken = validate_garbage(page, &h, &seen);
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
