/* The index over a decoded log: what was said about a page, a space, a file, a checkpoint.

Place: below rules.c; redo_read.c fills it.

Invariants
1. a page's entries, and the lists, are in the order of the log: one entry per record group and
   page;
2. entries of a shared log count up to shared_lsn only, and every own entry is newer. */
#include "explorer/judge/redo_int.h"

#include <stdlib.h>
#include <string.h>

/** NULL: there is none. */
static redo_page_t *page_find(const redo_pages_t *pages, uint64_t key)
{
    uint32_t position = key_table_find(&pages->table, key);
    return position == KEY_NONE ? NULL : &pages->pages[position];
}

static redo_page_t *page_add(redo_pages_t *pages, uint64_t key)
{
    uint32_t position = key_table_add(&pages->table, key);
    if (position == pages->capacity) {
        uint32_t capacity = pages->capacity == 0 ? 32 : pages->capacity * 2;
        pages->pages = mem_grow(pages->pages, capacity * sizeof(*pages->pages));
        memset(pages->pages + pages->capacity, 0,
               (capacity - pages->capacity) * sizeof(*pages->pages));
        pages->capacity = capacity;
    }
    redo_page_t *page = &pages->pages[position];
    page->key = key;
    page->n = 0;
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
        page->first_lsn = page->n == 1 ? end_lsn : page->first_lsn;
        page->last_lsn = end_lsn;
    }
    if (kind != REDO_CHANGE) {
        last->kind = kind;
        last->defined = page->n;
    }
}

void redo_clear(redo_t *redo)
{
    key_table_clear(&redo->pages.table);
    redo->loads.n = 0;
    redo->extents.n = 0;
    redo->trims.n = 0;
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
    key_table_free(&redo->pages.table);
    free(redo->loads.items);
    free(redo->extents.items);
    free(redo->trims.items);
    free(redo->files.items);
    free(redo->markers.items);
    free(redo->ends.items);
    free(redo->history);
    free(redo->payload);
}

/* ---- questions about a page ---- */

/** How many of n ascending LSNs are at most limit. first: the first one; each lies item_bytes
behind the one before. */
static uint32_t count_until(const void *first, uint32_t n, size_t item_bytes, lsn_t limit)
{
    uint32_t low = 0;
    uint32_t high = n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        lsn_t lsn;
        memcpy(&lsn, (const byte *)first + middle * item_bytes, sizeof(lsn));
        if (lsn <= limit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/** Entries of the page that end at or before limit. */
static uint32_t entries_until(const redo_page_t *page, lsn_t limit)
{
    return count_until(&page->entries->end_lsn, page->n, sizeof(*page->entries), limit);
}

static lsn_t shared_limit(const redo_t *redo, lsn_t limit)
{
    return limit < redo->shared_lsn ? limit : redo->shared_lsn;
}

/** page: NULL: nothing was said about it. */
static const redo_entry_t *last_of(const redo_page_t *page, lsn_t limit, bool defined)
{
    uint32_t n = page == NULL ? 0 : entries_until(page, limit);
    if (n > 0 && defined) {
        n = page->entries[n - 1].defined;
    }
    return n == 0 ? NULL : &page->entries[n - 1];
}

static const redo_entry_t *find_last(const redo_t *redo, uint64_t key, lsn_t limit, bool defined)
{
    const redo_entry_t *entry = last_of(page_find(&redo->pages, key), limit, defined);
    if (entry == NULL && redo->shared != NULL) {
        entry = last_of(page_find(&redo->shared->pages, key), shared_limit(redo, limit), defined);
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

/** May an entry of the page lie behind `after`, up to limit? */
static bool is_between(const redo_page_t *page, lsn_t after, lsn_t limit)
{
    return page->n > 0 && page->last_lsn > after && page->first_lsn <= limit;
}

void redo_each_page(const redo_t *redo, lsn_t after, lsn_t limit,
                    void (*fn)(void *ctx, uint64_t key, const redo_entry_t *last), void *ctx)
{
    const redo_pages_t *own = &redo->pages;
    uint32_t n_shared = redo->shared != NULL ? redo->shared->pages.table.n : 0;
    for (uint32_t i = 0; i < n_shared; i++) {
        const redo_page_t *page = &redo->shared->pages.pages[i];
        const redo_entry_t *last = NULL;
        if (own->table.n > 0) {
            last = last_of(page_find(own, page->key), limit, false);
        }
        if (last == NULL && is_between(page, after, limit)) {
            last = last_of(page, shared_limit(redo, limit), false);
        }
        if (last != NULL && last->end_lsn > after) {
            fn(ctx, page->key, last);
        }
    }
    for (uint32_t i = 0; i < own->table.n; i++) {
        const redo_page_t *page = &own->pages[i];
        const redo_entry_t *last =
            is_between(page, after, limit) ? last_of(page, limit, false) : NULL;
        bool seen = n_shared > 0 && page_find(&redo->shared->pages, page->key) != NULL;
        if (!seen && last != NULL && last->end_lsn > after) {
            fn(ctx, page->key, last);
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

bool redo_extent_freed(const redo_t *redo, uint64_t key, lsn_t after, lsn_t limit)
{
    for (uint32_t i = redo->extents.n; i-- > 0 && redo->extents.items[i].end_lsn > after;) {
        const redo_extent_t *extent = &redo->extents.items[i];
        if (extent->end_lsn <= limit && key >= extent->first
            && key - extent->first < redo->info.extent_pages) {
            return true;
        }
    }
    return redo->shared != NULL
           && redo_extent_freed(redo->shared, key, after, shared_limit(redo, limit));
}

lsn_t redo_trim_lsn(const redo_t *redo, space_id_t space, lsn_t limit)
{
    for (uint32_t i = redo->trims.n; i-- > 0;) {
        const redo_trim_t *trim = &redo->trims.items[i];
        if (trim->space == space && trim->end_lsn <= limit) {
            return trim->end_lsn;
        }
    }
    return redo->shared == NULL ? 0 : redo_trim_lsn(redo->shared, space, shared_limit(redo, limit));
}

static bool is_of_space(const redo_file_t *file, space_id_t space)
{
    return space == REDO_ANY_SPACE || file->space == space;
}

const redo_file_t *redo_file(const redo_t *redo, redo_op_t op, space_id_t space, const char *path,
                             const char *path2, lsn_t limit)
{
    for (uint32_t i = redo->files.n; i-- > 0;) {
        const redo_file_t *file = &redo->files.items[i];
        if (file->op == op && is_of_space(file, space) && file->end_lsn <= limit
            && strcmp(file->path, path) == 0
            && (path2 == NULL || strcmp(file->path2, path2) == 0)) {
            return file;
        }
    }
    return redo->shared == NULL
               ? NULL
               : redo_file(redo->shared, op, space, path, path2, shared_limit(redo, limit));
}

/** names: OP_FILE_NAME counts. */
static const redo_file_t *file_about(const redo_t *redo, space_id_t space, const char *path,
                                     bool names, lsn_t limit)
{
    for (uint32_t i = redo->files.n; i-- > 0;) {
        const redo_file_t *file = &redo->files.items[i];
        if ((names || file->op != OP_FILE_NAME) && is_of_space(file, space)
            && file->end_lsn <= limit
            && (strcmp(file->path, path) == 0 || strcmp(file->path2, path) == 0)) {
            return file;
        }
    }
    return redo->shared == NULL
               ? NULL
               : file_about(redo->shared, space, path, names, shared_limit(redo, limit));
}

const redo_file_t *redo_file_about(const redo_t *redo, const char *path)
{
    return file_about(redo, REDO_ANY_SPACE, path, false, LSN_MAX);
}

const redo_file_t *redo_file_named(const redo_t *redo, space_id_t space, const char *path)
{
    return file_about(redo, space, path, true, LSN_MAX);
}

bool redo_space_deleted(const redo_t *redo, space_id_t space, lsn_t after, lsn_t limit)
{
    for (uint32_t i = redo->files.n; i-- > 0 && redo->files.items[i].end_lsn > after;) {
        const redo_file_t *file = &redo->files.items[i];
        if (file->space == space && file->end_lsn <= limit && file->op == OP_FILE_DELETE) {
            return true;
        }
    }
    return redo->shared != NULL
           && redo_space_deleted(redo->shared, space, after, shared_limit(redo, limit));
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
    return count_until(redo->ends.items, redo->ends.n, sizeof(*redo->ends.items), limit);
}

bool redo_is_boundary(const redo_t *redo, lsn_t lsn)
{
    uint32_t n = redo_ends_until(redo, lsn);
    if (lsn == redo->from_lsn || (n > 0 && redo->ends.items[n - 1] == lsn)) {
        return true;
    }
    return redo->shared != NULL && lsn <= redo->shared_lsn && redo_is_boundary(redo->shared, lsn);
}
