/* Pages and data files as one process has touched them.

Place: below the other rules_*.c. */
#include <string.h>

#include "base/mach.h"
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
        page->read = page->touched = page->late = false;
        page->unlogged = 0;
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

/** Whose file it is: its page 0 tells, or else the log, under the file's name. */
static void datafile_identify(const rules_t *rules, rules_datafile_t *file, const char *path)
{
    if (strcmp(path, SYSTEM_PATH) == 0) {
        file->known = true;
        file->space = SPACE_SYSTEM;
        return;
    }
    if (rules->page_size != 0 && image_size(rules->image, file->inode) >= rules->page_size) {
        const byte *bytes = rules_stored(rules, file->inode, 0, rules->other);
        page_id_t id = fil_page_get_id(bytes);
        file->known = id.page_no == 0 && id.space != SPACE_SYSTEM
                      && fil_page_get_type(bytes) == FIL_PAGE_TYPE_FSP_HDR;
        file->space = id.space;
    }
    if (!file->known) {
        const redo_file_t *op = redo_file_about(&rules->redo, path);
        file->known = op != NULL;
        file->space = op != NULL ? op->space : SPACE_SYSTEM;
    }
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

lsn_t rules_home_in_image(rules_t *rules, uint64_t key, bool *gone)
{
    const rules_datafile_t *file = datafile_of(rules, key_space(key));
    if (file == NULL) {
        image_each(rules->image, datafile_see, rules);
        file = datafile_of(rules, key_space(key));
    }
    *gone = file == NULL;
    if (file == NULL || (rules->cold && !file->synced)) {
        return 0;
    }
    uint32_t page_size = rules->page_size;
    uint64_t at = (uint64_t)key_page(key) * page_size;
    if (image_size(rules->image, file->inode) < at + page_size) {
        return 0;
    }
    const byte *bytes = rules_stored(rules, file->inode, key_page(key), rules->other);
    page_id_t id = fil_page_get_id(bytes);
    lsn_t lsn = fil_page_get_lsn(bytes);
    bool whole = redo_key(id.space, id.page_no) == key
                 && (mach_read_4(bytes + page_size - 4) == (uint32_t)lsn
                     || page_stored_bytes(bytes, page_size) < page_size);
    return whole ? lsn : 0;
}
