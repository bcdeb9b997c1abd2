/* The event list and the classification of writes. Leaf of the explorer. */
#include "explorer/image/fs_event.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.h"
#include "log/log.h"

#define BLOCK_BYTES ((size_t)256 << 10)

struct fs_block {
    fs_block_t *next;
    size_t capacity;
    uint8_t bytes[];
};

void *mem_alloc(size_t bytes)
{
    void *p = calloc(1, bytes > 0 ? bytes : 1);
    CHECK(p != NULL);
    return p;
}

void *mem_grow(void *old, size_t bytes)
{
    void *p = realloc(old, bytes);
    CHECK(p != NULL);
    return p;
}

#define SQLITE_PAGE_MIN 512U
#define SQLITE_WAL_HEADER 32U

const char *fs_site_name(fs_site_t site)
{
    static const char *const NAMES[SITE_KINDS] = {
        "other",     "index_load_page",   "data_page",        "internal_page", "page0",
        "undo_page", "dict_page",         "system_page",      "freed_page",    "doublewrite",
        "redo",      "checkpoint_header", "rollback_journal", "metadata"};
    CHECK(site < SITE_KINDS);
    return NAMES[site];
}

bool fs_site_named(const char *name, size_t length, fs_site_t *site)
{
    for (uint32_t i = 0; i < SITE_KINDS; i++) {
        const char *known = fs_site_name((fs_site_t)i);
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            *site = (fs_site_t)i;
            return true;
        }
    }
    return false;
}

bool fs_site_is_of(fs_site_t site, bool engine)
{
    if (engine) {
        return site != SITE_ROLLBACK_JOURNAL;
    }
    return site == SITE_PAGE0 || site == SITE_DATA_PAGE || site == SITE_REDO
           || site == SITE_CHECKPOINT_HEADER || site == SITE_ROLLBACK_JOURNAL;
}

/** Of SQLite's files. */
static bool site_of_sqlite(const char *path, uint64_t offset, fs_site_t *site)
{
    if (strcmp(path, "main.db") == 0) {
        *site = offset < SQLITE_PAGE_MIN ? SITE_PAGE0 : SITE_DATA_PAGE;
    } else if (strcmp(path, "main.db-wal") == 0) {
        *site = offset < SQLITE_WAL_HEADER ? SITE_CHECKPOINT_HEADER : SITE_REDO;
    } else if (strcmp(path, "main.db-journal") == 0) {
        *site = SITE_ROLLBACK_JOURNAL;
    } else {
        return false;
    }
    return true;
}

static bool is_metadata(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t len = strlen(name);
    return strcmp(name, "backup_info") == 0 || (len > 4 && strcmp(name + len - 4, ".cfg") == 0);
}

fs_site_t fs_site_of(const char *path, uint64_t offset)
{
    fs_site_t site;
    if (site_of_sqlite(path, offset, &site)) {
        return site;
    }
    if (strncmp(path, "ib_logfile", 10) == 0) {
        return offset < LOG_FILE_HDR_SIZE ? SITE_CHECKPOINT_HEADER : SITE_REDO;
    }
    if (strcmp(path, "ib_dblwr") == 0) {
        return SITE_DOUBLEWRITE;
    }
    return is_metadata(path) ? SITE_METADATA : SITE_OTHER;
}

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
        const uint64_t what[] = {(uint64_t)event->kind, event->inode,  event->name,
                                 event->name2,          event->offset, event->length};
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
