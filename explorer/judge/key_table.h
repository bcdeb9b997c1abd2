/** Finds the position that a key has in a list. */
#ifndef EXPLORER_KEY_TABLE_H
#define EXPLORER_KEY_TABLE_H

#include "disk/fs_event.h"

#define KEY_NONE UINT32_MAX

typedef struct key_slot {
    uint64_t key;
    uint32_t number; /**< position + 1; 0: the slot is free, and the position KEY_NONE */
} key_slot_t;

/** All zero: empty. */
typedef struct key_table {
    key_slot_t *slots;
    uint32_t n;
    uint32_t size; /**< a power of two, more than n */
} key_table_t;

/** The key's position, or KEY_NONE. */
uint32_t key_table_find(const key_table_t *table, uint64_t key);
/** Gives a key that is not there the next position: 0, 1, 2, ... @return it */
uint32_t key_table_add(key_table_t *table, uint64_t key);
/** Forgets all keys, and keeps the memory. */
void key_table_clear(key_table_t *table);
void key_table_free(key_table_t *table);

#endif
