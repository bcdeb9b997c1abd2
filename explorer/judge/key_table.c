/* Keys of pages and their positions: open addressing.

Place: below redo.c and rules_pages.c.

Invariant: at least half of the slots are free, so that every search ends. */
#include "explorer/judge/key_table.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 64U

/** The slot of the key, or the free one where it belongs. */
static key_slot_t *slot_of(const key_table_t *table, uint64_t key)
{
    uint64_t hash = key * 0x9E3779B97F4A7C15ULL;
    uint32_t at = (uint32_t)(hash >> 32) & (table->size - 1);
    while (table->slots[at].number != 0 && table->slots[at].key != key) {
        at = (at + 1) & (table->size - 1);
    }
    return &table->slots[at];
}

uint32_t key_table_find(const key_table_t *table, uint64_t key)
{
    return table->n == 0 ? KEY_NONE : slot_of(table, key)->number - 1;
}

static void grow(key_table_t *table)
{
    key_table_t old = *table;
    table->size = old.size == 0 ? SIZE_MIN : old.size * 2;
    table->slots = mem_alloc(table->size * sizeof(*table->slots));
    for (uint32_t i = 0; i < old.size; i++) {
        if (old.slots[i].number != 0) {
            *slot_of(table, old.slots[i].key) = old.slots[i];
        }
    }
    free(old.slots);
}

uint32_t key_table_add(key_table_t *table, uint64_t key)
{
    if (2 * (table->n + 1) > table->size) {
        grow(table);
    }
    *slot_of(table, key) = (key_slot_t){.key = key, .number = table->n + 1};
    return table->n++;
}

void key_table_clear(key_table_t *table)
{
    if (table->n > 0) {
        memset(table->slots, 0, table->size * sizeof(*table->slots));
    }
    table->n = 0;
}

void key_table_free(key_table_t *table)
{
    free(table->slots);
}
