/* Pages and data files as one process has touched them.

Place: below the other rules_*.c.

Invariants
1. whose file it is comes from its name, for the system's and the undo tablespaces', else from the
   log's records that name it, else from the page 0 that the process found in it; never from what
   the process writes into it;
2. a page 0 that was found, and that the log gives this name as well, is nearer to the file than the
   log's newest record: the crash may have undone a rename, and names are used again. */
#include <stdlib.h>
#include <string.h>

#include "explorer/judge/rules_int.h"
#include "page/page_compress.h"

void rules_pages_clear(rules_t *rules)
{
    key_table_clear(&rules->page_table);
    rules->pages.n = 0;
}

void rules_pages_again(rules_t *rules)
{
    for (uint32_t i = 0; i < rules->pages.n; i++) {
        rules_page_t *page = &rules->pages.items[i];
        page->read = page->touched = false;
    }
}

const rules_page_t *rules_page_find(const rules_t *rules, uint64_t key)
{
    uint32_t position = key_table_find(&rules->page_table, key);
    return position == KEY_NONE ? NULL : &rules->pages.items[position];
}

rules_page_t *rules_page(rules_t *rules, uint64_t key)
{
    uint32_t position = key_table_find(&rules->page_table, key);
    if (position != KEY_NONE) {
        return &rules->pages.items[position];
    }
    (void)key_table_add(&rules->page_table, key);
    rules_page_t *page = REDO_PUSH(&rules->pages);
    page->key = key;
    return page;
}

/* ---- files ---- */

/** The space id that a file of this name has; false: the name is a table's. */
static bool name_tells(const char *path, space_id_t *space)
{
    bool undo = rules_is_undo_file(path);
    *space =
        undo ? space_of_undo((uint32_t)strtoul(path + UNDO_PREFIX_LEN, NULL, 10)) : SPACE_SYSTEM;
    return undo || strcmp(path, SYSTEM_PATH) == 0;
}

/** The space of the page 0 that the process found in the file; false: none, or no whole one. */
static bool found_page0_tells(const rules_t *rules, const rules_datafile_t *file, space_id_t *space)
{
    uint32_t page_size = rules->page_size;
    if (file->written || page_size == 0 || image_size(rules->image, file->inode) < page_size) {
        return false;
    }
    memcpy(rules->plain, rules_stored(rules, file->inode, 0, rules->other), page_size);
    page_decompress(rules->plain, page_size);
    page_id_t id = {fil_page_get_id(rules->plain).space, 0};
    *space = id.space;
    return fil_page_verify(rules->plain, page_size, id) == PAGE_OK && id.space != SPACE_SYSTEM
           && !space_is_undo(id.space) && fil_page_get_type(rules->plain) == FIL_PAGE_TYPE_FSP_HDR;
}

/** Whose file it is: invariants 1 and 2. */
static void datafile_identify(const rules_t *rules, rules_datafile_t *file, const char *path)
{
    file->known = name_tells(path, &file->space);
    if (file->known) {
        return;
    }
    const redo_file_t *newest = redo_file_named(&rules->redo, REDO_ANY_SPACE, path);
    space_id_t told = SPACE_SYSTEM;
    bool by_page = found_page0_tells(rules, file, &told)
                   && (newest == NULL || redo_file_named(&rules->redo, told, path) != NULL);
    file->known = by_page || newest != NULL;
    file->space = by_page ? told : newest != NULL ? newest->space : SPACE_SYSTEM;
}

rules_datafile_t *rules_datafile(rules_t *rules, uint32_t inode, const char *path)
{
    rules_datafile_t *file = NULL;
    for (uint32_t i = 0; i < rules->files.n && file == NULL; i++) {
        file = rules->files.items[i].inode == inode ? &rules->files.items[i] : NULL;
    }
    if (file == NULL) {
        file = REDO_PUSH(&rules->files);
        file->inode = inode;
    }
    if (!file->known) {
        datafile_identify(rules, file, path);
    }
    return file;
}

static void datafile_see(void *ctx, uint32_t name, uint32_t inode)
{
    rules_t *rules = ctx;
    const char *path = image_name_text(rules->image, name);
    if (rules_is_data_file(path)) {
        (void)rules_datafile(rules, inode, path);
    }
}

static const rules_datafile_t *datafile_of(const rules_t *rules, space_id_t space)
{
    for (uint32_t i = 0; i < rules->files.n; i++) {
        const rules_datafile_t *file = &rules->files.items[i];
        if (file->known && file->space == space
            && image_inode_is_linked(rules->image, file->inode)) {
            return file;
        }
    }
    return NULL;
}

bool rules_page_place(const rules_t *rules, uint64_t page, uint32_t *inode, uint64_t *offset)
{
    const rules_datafile_t *file =
        page != RULES_NO_PAGE ? datafile_of(rules, key_space(page)) : NULL;
    if (file != NULL) {
        *inode = file->inode;
        *offset = (uint64_t)key_page(page) * rules->page_size;
    }
    return file != NULL;
}

lsn_t rules_home_in_image(rules_t *rules, uint64_t key)
{
    const rules_datafile_t *file = datafile_of(rules, key_space(key));
    if (file == NULL) {
        image_each(rules->image, datafile_see, rules);
        file = datafile_of(rules, key_space(key));
    }
    if (file == NULL || (rules->cold && !file->synced)) {
        return 0;
    }
    uint32_t page_size = rules->page_size;
    uint64_t at = (uint64_t)key_page(key) * page_size;
    if (image_size(rules->image, file->inode) < at + page_size) {
        return 0;
    }
    const byte *bytes = rules_stored(rules, file->inode, key_page(key), rules->other);
    page_id_t id = {key_space(key), key_page(key)};
    return page_verify_stored(bytes, page_size, id) == PAGE_OK ? fil_page_get_lsn(bytes) : 0;
}
