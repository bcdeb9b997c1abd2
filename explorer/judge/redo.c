/* The index over a decoded log: what was said about a page, a space, a file, a checkpoint.

Place: below rules.c; redo_read.c fills it.

Invariants
1. a page's entries, and the lists, are in the order of the log: one entry per record group and page;
2. entries of a shared log count up to shared_lsn only, and every own entry is newer. */
#include "explorer/judge/redo_int.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_SIZE_MIN 64U

static uint32_t slot_of(const redo_pages_t *pages, uint64_t key)
{
    uint64_t hash = key * 0x9E3779B97F4A7C15ULL;
    return (uint32_t)(hash >> 32) & (pages->table_size - 1);
}

static void table_put(redo_pages_t *pages, uint32_t position)
{
    uint32_t slot = slot_of(pages, pages->pages[position].key);
    while (pages->table[slot] != 0) {
        slot = (slot + 1) & (pages->table_size - 1);
    }
    pages->table[slot] = position + 1;
}

/** NULL: there is none. */
static redo_page_t *page_find(const redo_pages_t *pages, uint64_t key)
{
    if (pages->n == 0) {
        return NULL;
    }
    for (uint32_t slot = slot_of(pages, key); pages->table[slot] != 0;
         slot = (slot + 1) & (pages->table_size - 1)) {
        redo_page_t *page = &pages->pages[pages->table[slot] - 1];
        if (page->key == key) {
            return page;
        }
    }
    return NULL;
}

static redo_page_t *page_add(redo_pages_t *pages, uint64_t key)
{
    if (pages->n == pages->capacity) {
        uint32_t capacity = pages->capacity == 0 ? TABLE_SIZE_MIN / 2 : pages->capacity * 2;
        pages->pages = mem_grow(pages->pages, capacity * sizeof(*pages->pages));
        memset(pages->pages + pages->capacity, 0,
               (capacity - pages->capacity) * sizeof(*pages->pages));
        pages->capacity = capacity;
    }
    if (2 * (pages->n + 1) > pages->table_size) {
        pages->table_size = pages->table_size == 0 ? TABLE_SIZE_MIN : pages->table_size * 2;
        free(pages->table);
        pages->table = mem_alloc(pages->table_size * sizeof(*pages->table));
        for (uint32_t i = 0; i < pages->n; i++) {
            table_put(pages, i);
        }
    }
    redo_page_t *page = &pages->pages[pages->n];
    page->key = key;
    page->n = 0;
    table_put(pages, pages->n++);
    return page;
}

void redo_add(redo_t *redo, uint64_t key, redo_kind_t kind, lsn_t start_lsn, lsn_t end_lsn)
{
    redo_page_t *page = page_find(&redo->pages, key);
    if (page == NULL) {
        page = page_add(&redo->pages, key);
    }
    redo_entry_t *last = page->n > 0 ? &page->entries[page->n - 1] : NULL;
    if (last == NULL || last->end_lsn != end_lsn) {
        uint32_t defined = last == NULL ? 0 : last->defined;
        if (page->n == page->capacity) {
            page->capacity = page->capacity == 0 ? 8 : page->capacity * 2;
            page->entries = mem_grow(page->entries, page->capacity * sizeof(*page->entries));
        }
        last = &page->entries[page->n++];
        *last = (redo_entry_t){.start_lsn = start_lsn, .end_lsn = end_lsn, .defined = defined};
    }
    if (kind != REDO_CHANGE) {
        last->kind = kind;
        last->defined = page->n;
    }
}

void redo_clear(redo_t *redo)
{
    if (redo->pages.n > 0) {
        memset(redo->pages.table, 0, redo->pages.table_size * sizeof(*redo->pages.table));
    }
    redo->pages.n = 0;
    redo->loads.n = 0;
    redo->files.n = 0;
    redo->markers.n = 0;
    redo->ends.n = 0;
    redo->shared = NULL;
    redo->shared_lsn = 0;
    redo->epoch = 0;
    redo->from_lsn = redo->end_lsn = 0;
    redo->info = (log_file_info_t){.page_size = 0};
    redo->history_bytes = 0;
}

void redo_init(redo_t *redo, bool keep_history)
{
    *redo = (redo_t){.keep_history = keep_history};
}

void redo_free(redo_t *redo)
{
    for (uint32_t i = 0; i < redo->pages.capacity; i++) {
        free(redo->pages.pages[i].entries);
    }
    free(redo->pages.pages);
    free(redo->pages.table);
    free(redo->loads.items);
    free(redo->files.items);
    free(redo->markers.items);
    free(redo->ends.items);
    free(redo->history);
    free(redo->payload);
}

/* ---- questions about a page ---- */

/** Entries of the page that end at or before limit. */
static uint32_t entries_until(const redo_page_t *page, lsn_t limit)
{
    uint32_t low = 0;
    uint32_t high = page->n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (page->entries[middle].end_lsn <= limit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static lsn_t shared_limit(const redo_t *redo, lsn_t limit)
{
    return limit < redo->shared_lsn ? limit : redo->shared_lsn;
}

static const redo_entry_t *last_in(const redo_pages_t *pages, uint64_t key, lsn_t limit,
                                   bool defined)
{
    const redo_page_t *page = page_find(pages, key);
    uint32_t n = page == NULL ? 0 : entries_until(page, limit);
    if (n > 0 && defined) {
        n = page->entries[n - 1].defined;
    }
    return n == 0 ? NULL : &page->entries[n - 1];
}

static const redo_entry_t *find_last(const redo_t *redo, uint64_t key, lsn_t limit, bool defined)
{
    const redo_entry_t *entry = last_in(&redo->pages, key, limit, defined);
    if (entry == NULL && redo->shared != NULL) {
        entry = last_in(&redo->shared->pages, key, shared_limit(redo, limit), defined);
    }
    return entry;
}

const redo_entry_t *redo_last(const redo_t *redo, uint64_t key, lsn_t limit)
{
    return find_last(redo, key, limit, false);
}

const redo_entry_t *redo_defined(const redo_t *redo, uint64_t key, lsn_t limit)
{
    return find_last(redo, key, limit, true);
}

bool redo_has_record(const redo_t *redo, uint64_t key, lsn_t lsn)
{
    const redo_entry_t *entry = redo_last(redo, key, lsn);
    return entry != NULL && entry->end_lsn == lsn;
}

void redo_each_page(const redo_t *redo, lsn_t after, lsn_t limit,
                    void (*fn)(void *ctx, uint64_t key, const redo_entry_t *last), void *ctx)
{
    const redo_pages_t *shared = redo->shared != NULL ? &redo->shared->pages : NULL;
    for (uint32_t i = 0; shared != NULL && i < shared->n; i++) {
        const redo_entry_t *last = redo_last(redo, shared->pages[i].key, limit);
        if (last != NULL && last->end_lsn > after) {
            fn(ctx, shared->pages[i].key, last);
        }
    }
    for (uint32_t i = 0; i < redo->pages.n; i++) {
        uint64_t key = redo->pages.pages[i].key;
        const redo_entry_t *last = last_in(&redo->pages, key, limit, false);
        bool seen = shared != NULL && page_find(shared, key) != NULL;
        if (!seen && last != NULL && last->end_lsn > after) {
            fn(ctx, key, last);
        }
    }
}

/* ---- the lists ---- */

lsn_t redo_space_load(const redo_t *redo, space_id_t space, lsn_t from, lsn_t limit)
{
    for (uint32_t i = redo->loads.n; i-- > 0;) {
        const redo_load_t *load = &redo->loads.items[i];
        if (load->space == space && load->start_lsn >= from && load->end_lsn <= limit) {
            return load->end_lsn;
        }
    }
    return redo->shared == NULL
               ? 0
               : redo_space_load(redo->shared, space, from, shared_limit(redo, limit));
}

const redo_file_t *redo_file(const redo_t *redo, mlog_type_t type, const char *path,
                             const char *path2, lsn_t limit)
{
    for (uint32_t i = redo->files.n; i-- > 0;) {
        const redo_file_t *file = &redo->files.items[i];
        if (file->type == type && file->end_lsn <= limit && strcmp(file->path, path) == 0
            && (path2 == NULL || strcmp(file->path2, path2) == 0)) {
            return file;
        }
    }
    return redo->shared == NULL
               ? NULL
               : redo_file(redo->shared, type, path, path2, shared_limit(redo, limit));
}

/** Up to limit, as the next two. */
static const redo_file_t *file_about(const redo_t *redo, const char *path, lsn_t limit)
{
    for (uint32_t i = redo->files.n; i-- > 0;) {
        const redo_file_t *file = &redo->files.items[i];
        if (file->type != MLOG_FILE_NAME && file->end_lsn <= limit
            && (strcmp(file->path, path) == 0 || strcmp(file->path2, path) == 0)) {
            return file;
        }
    }
    return redo->shared == NULL ? NULL : file_about(redo->shared, path, shared_limit(redo, limit));
}

const redo_file_t *redo_file_about(const redo_t *redo, const char *path)
{
    return file_about(redo, path, LSN_MAX);
}

static const redo_file_t *space_file(const redo_t *redo, space_id_t space, bool deleted,
                                     lsn_t limit)
{
    for (uint32_t i = redo->files.n; i-- > 0;) {
        const redo_file_t *file = &redo->files.items[i];
        if (file->space == space && file->end_lsn <= limit
            && (file->type == MLOG_FILE_DELETE) == deleted) {
            return file;
        }
    }
    return redo->shared == NULL
               ? NULL
               : space_file(redo->shared, space, deleted, shared_limit(redo, limit));
}

const char *redo_space_path(const redo_t *redo, space_id_t space)
{
    const redo_file_t *file = space_file(redo, space, false, LSN_MAX);
    if (file == NULL) {
        return NULL;
    }
    return file->type == MLOG_FILE_RENAME2 ? file->path2 : file->path;
}

bool redo_space_deleted(const redo_t *redo, space_id_t space, lsn_t limit)
{
    return space_file(redo, space, true, limit) != NULL;
}

lsn_t redo_marker_end(const redo_t *redo, lsn_t start_lsn, lsn_t checkpoint)
{
    for (uint32_t i = redo->markers.n; i-- > 0;) {
        const redo_marker_t *marker = &redo->markers.items[i];
        if (marker->start_lsn == start_lsn && marker->checkpoint == checkpoint) {
            return marker->end_lsn;
        }
    }
    if (redo->shared == NULL || start_lsn >= redo->shared_lsn) {
        return 0;
    }
    return redo_marker_end(redo->shared, start_lsn, checkpoint);
}

uint32_t redo_ends_until(const redo_t *redo, lsn_t limit)
{
    uint32_t low = 0;
    uint32_t high = redo->ends.n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (redo->ends.items[middle] <= limit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool redo_is_boundary(const redo_t *redo, lsn_t lsn)
{
    uint32_t n = redo_ends_until(redo, lsn);
    if (lsn == redo->from_lsn || (n > 0 && redo->ends.items[n - 1] == lsn)) {
        return true;
    }
    return redo->shared != NULL && lsn <= redo->shared_lsn && redo_is_boundary(redo->shared, lsn);
}
