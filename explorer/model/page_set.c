/* Sets of pages. Leaf of the explorer, beside fs_event.c. */
#include "explorer/model/page_set.h"

#include "explorer/image/fs_event.h"

#define SLOT_REMOVED UINT64_MAX
#define SLOTS_MIN 256U

static uint64_t *set_slot(const page_set_t *set, uint64_t page)
{
    uint64_t *removed = NULL;
    uint32_t mask = set->size - 1;
    uint32_t i = (uint32_t)((page * 0x9E3779B97F4A7C15U) >> 32) & mask;
    for (;; i = (i + 1) & mask) {
        if (set->slots[i] == page) {
            return &set->slots[i];
        }
        if (set->slots[i] == 0) {
            return removed != NULL ? removed : &set->slots[i];
        }
        if (set->slots[i] == SLOT_REMOVED && removed == NULL) {
            removed = &set->slots[i];
        }
    }
}

static void set_grow(page_set_t *set)
{
    page_set_t old = *set;
    set->size = old.size == 0 ? SLOTS_MIN : old.size * 2;
    set->slots = mem_alloc(set->size * sizeof(*set->slots));
    set->used = 0;
    for (uint32_t i = 0; i < old.size; i++) {
        if (old.slots[i] != 0 && old.slots[i] != SLOT_REMOVED) {
            *set_slot(set, old.slots[i]) = old.slots[i];
            set->used++;
        }
    }
    free(old.slots);
}

void page_set_add(page_set_t *set, uint64_t page)
{
    if ((set->used + 1) * 2 > set->size) {
        set_grow(set);
    }
    uint64_t *slot = set_slot(set, page);
    if (*slot != page) {
        set->used += *slot == 0;
        *slot = page;
    }
}

bool page_set_has(const page_set_t *set, uint64_t page)
{
    return set->used > 0 && *set_slot(set, page) == page;
}

void page_set_remove(page_set_t *set, uint64_t page)
{
    if (page_set_has(set, page)) {
        *set_slot(set, page) = SLOT_REMOVED;
    }
}

void page_set_clear(page_set_t *set)
{
    if (set->used > 0) {
        memset(set->slots, 0, set->size * sizeof(*set->slots));
        set->used = 0;
    }
}

void page_set_free(page_set_t *set)
{
    free(set->slots);
    *set = (page_set_t){.slots = NULL};
}
