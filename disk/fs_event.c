/* The list of events. Leaf of disk/. */
#include "disk/fs_event.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define BLOCK_BYTES ((size_t)256 << 10)
#define SWAPS 256U /* beyond all kinds */

struct fs_block {
    fs_block_t *next;
    size_t capacity;
    uint8_t bytes[];
};

fs_event_t *fs_list_add(fs_list_t *list, fs_kind_t kind)
{
    if (list->n == list->capacity) {
        list->capacity = list->capacity == 0 ? 256 : list->capacity * 2;
        list->events = mem_grow(list->events, list->capacity * sizeof(*list->events));
    }
    fs_event_t *event = &list->events[list->n++];
    *event = (fs_event_t){.kind = kind, .seq = list->n};
    return event;
}

const uint8_t *fs_list_copy(fs_list_t *list, const void *bytes, size_t len)
{
    if (list->blocks == NULL || list->blocks->capacity - list->used_bytes < len) {
        fs_block_t *block = list->spare;
        if (block != NULL && block->capacity >= len) {
            list->spare = block->next;
        } else {
            size_t capacity = len > BLOCK_BYTES ? len : BLOCK_BYTES;
            block = mem_alloc(sizeof(*block) + capacity);
            block->capacity = capacity;
        }
        block->next = list->blocks;
        list->blocks = block;
        list->used_bytes = 0;
    }
    uint8_t *copy = list->blocks->bytes + list->used_bytes;
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    list->used_bytes += len;
    return copy;
}

uint64_t fs_list_hash(const fs_list_t *list, uint64_t from)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const fs_event_t *event = &list->events[i];
        const uint64_t what[] = {(uint64_t)event->kind + (event->swaps ? SWAPS : 0),
                                 event->inode,
                                 event->name,
                                 event->name2,
                                 event->offset,
                                 event->length};
        from = XXH3_64bits_withSeed(what, sizeof(what), from);
        if (event->data != NULL) {
            from = XXH3_64bits_withSeed(event->data, event->length, from);
        }
    }
    return from;
}

void fs_list_clear(fs_list_t *list)
{
    while (list->blocks != NULL) {
        fs_block_t *block = list->blocks;
        list->blocks = block->next;
        block->next = list->spare;
        list->spare = block;
    }
    list->n = 0;
    list->used_bytes = 0;
}

void fs_list_free(fs_list_t *list)
{
    fs_list_clear(list);
    while (list->spare != NULL) {
        fs_block_t *block = list->spare;
        list->spare = block->next;
        free(block);
    }
    free(list->events);
    free(list->chunks);
    *list = (fs_list_t){.events = NULL};
}
