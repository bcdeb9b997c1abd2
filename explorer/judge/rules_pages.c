/* Pages and data files as one process has touched them.

Place: below the other rules_*.c. */
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "explorer/judge/rules_int.h"

#define TABLE_SIZE_MIN 512U

static uint32_t slot_of(const rules_t *rules, uint64_t key)
{
    return (uint32_t)((key * 0x9E3779B97F4A7C15ULL) >> 32) & (rules->page_table_size - 1);
}

static void table_put(rules_t *rules, uint32_t position)
{
    uint32_t slot = slot_of(rules, rules->pages.items[position].key);
    while (rules->page_table[slot] != 0) {
        slot = (slot + 1) & (rules->page_table_size - 1);
    }
    rules->page_table[slot] = position + 1;
}

void rules_pages_clear(rules_t *rules)
{
    if (rules->pages.n > 0) {
        memset(rules->page_table, 0, rules->page_table_size * sizeof(*rules->page_table));
    }
    rules->pages.n = 0;
}

/** NULL: this process has not touched it. */
static rules_page_t *page_find(const rules_t *rules, uint64_t key)
{
    if (rules->pages.n == 0) {
        return NULL;
    }
    for (uint32_t slot = slot_of(rules, key); rules->page_table[slot] != 0;
         slot = (slot + 1) & (rules->page_table_size - 1)) {
        rules_page_t *page = &rules->pages.items[rules->page_table[slot] - 1];
        if (page->key == key) {
            return page;
        }
    }
    return NULL;
}

const rules_page_t *rules_page_find(const rules_t *rules, uint64_t key)
{
    return page_find(rules, key);
}

rules_page_t *rules_page(rules_t *rules, uint64_t key)
{
    rules_page_t *page = page_find(rules, key);
    if (page != NULL) {
        return page;
    }
    if (2 * (rules->pages.n + 1) > rules->page_table_size) {
        uint32_t size = rules->page_table_size == 0 ? TABLE_SIZE_MIN : rules->page_table_size * 2;
        free(rules->page_table);
        rules->page_table = mem_alloc(size * sizeof(*rules->page_table));
        rules->page_table_size = size;
        for (uint32_t i = 0; i < rules->pages.n; i++) {
            table_put(rules, i);
        }
    }
    page = REDO_PUSH(&rules->pages);
    page->key = key;
    table_put(rules, rules->pages.n - 1);
    return page;
}

/* ---- files ---- */

/** Whose file it is: its page 0 tells, or else the log, under the file's name. */
static void datafile_identify(const rules_t *rules, rules_datafile_t *file, const char *path)
{
    const byte *bytes = image_bytes(rules->image, file->inode);
    if (strcmp(path, SYSTEM_PATH) == 0) {
        file->known = true;
        file->space = SPACE_SYSTEM;
        return;
    }
    if (rules->page_size != 0 && image_size(rules->image, file->inode) >= rules->page_size) {
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
    const byte *bytes = image_bytes(rules->image, file->inode) + at;
    page_id_t id = fil_page_get_id(bytes);
    lsn_t lsn = fil_page_get_lsn(bytes);
    bool whole = redo_key(id.space, id.page_no) == key
                 && mach_read_4(bytes + page_size - 4) == (uint32_t)lsn;
    return whole ? lsn : 0;
}
