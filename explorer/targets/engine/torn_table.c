/* Place: above image.c, below engine_target.c. */
#include "explorer/targets/engine/torn_table.h"

#include <string.h>

#include "base/mach.h"
#include "log/log.h"
#include "log/log_block.h"
#include "page/fil_page.h"

#define SUFFIX ".ibd"
#define SUFFIX_LEN (sizeof(SUFFIX) - 1)
#define LSN_END_LEN 4U /**< at the end of a page: of its LSN as much */

typedef struct search {
    const image_t *image;
    uint32_t page_size;
    char *table;
} search_t;

static bool page_is_torn(const search_t *search, uint32_t inode, uint64_t at)
{
    byte head[FIL_PAGE_RESERVED];
    byte end[LSN_END_LEN];
    image_read(search->image, inode, at, head, sizeof(head));
    image_read(search->image, inode, at + search->page_size - sizeof(end), end, sizeof(end));
    return fil_page_get_type(head) != FIL_PAGE_PAGE_COMPRESSED
           && (uint32_t)fil_page_get_lsn(head) != mach_read_4(end);
}

static bool file_is_torn(const search_t *search, uint32_t inode)
{
    uint64_t size = image_size(search->image, inode);
    for (uint64_t at = 0; at + search->page_size <= size; at += search->page_size) {
        if (page_is_torn(search, inode, at)) {
            return true;
        }
    }
    return false;
}

static void see_file(void *ctx, uint32_t name, uint32_t inode)
{
    const search_t *search = ctx;
    const char *path = image_name_text(search->image, name);
    size_t len = strlen(path);
    if (len <= SUFFIX_LEN || len - SUFFIX_LEN > NAME_LEN_MAX || strchr(path, '/') != NULL
        || strcmp(path + len - SUFFIX_LEN, SUFFIX) != 0) {
        return;
    }
    char table[NAME_LEN_MAX + 1] = "";
    memcpy(table, path, len - SUFFIX_LEN);
    bool earlier = search->table[0] == '\0' || strcmp(table, search->table) < 0;
    if (earlier && file_is_torn(search, inode)) {
        memcpy(search->table, table, sizeof(table));
    }
}

/** As the log has it; 0: there is none that says so. */
static uint32_t page_size_of(const image_t *image)
{
    uint32_t name = image_name_find(image, LOG_FILE_NAME);
    uint32_t inode = name == IMAGE_NONE ? IMAGE_NONE : image_lookup(image, name);
    byte block[LOG_BLOCK_SIZE];
    log_file_info_t info;
    if (inode == IMAGE_NONE) {
        return 0;
    }
    image_read(image, inode, LOG_HDR_OFFSET, block, sizeof(block));
    return log_info_decode(block, &info) == DB_SUCCESS ? info.page_size : 0;
}

bool torn_table_find(const image_t *image, char *table)
{
    search_t search = {.image = image, .page_size = page_size_of(image), .table = table};
    table[0] = '\0';
    if (search.page_size != 0) {
        image_each(image, see_file, &search);
    }
    return table[0] != '\0';
}
