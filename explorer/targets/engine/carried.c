/* Exported tables, carried elsewhere. Place: above image.c, below judge.c. */
#include "explorer/targets/engine/carried.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/mach.h"

#define CFG_CHECKSUM_LEN 4U
#define CFG_MAX ((uint64_t)1 << 20) /* more than the most columns and indexes take */

static uint32_t name_of(image_t *image, const char *table, const char *suffix)
{
    char path[PATH_LEN_MAX + 1];
    int len = snprintf(path, sizeof(path), "%s%s", table, suffix);
    CHECK(len > 0 && (size_t)len < sizeof(path));
    return image_name(image, path, (size_t)len);
}

static bool copy_file(image_t *image, uint32_t name, uint32_t *copy)
{
    uint32_t inode = image_lookup(image, name);
    if (inode == IMAGE_NONE) {
        return false;
    }
    uint64_t size = image_size(image, inode);
    *copy = image_inode_create(image);
    uint64_t at = 0;
    uint64_t len = 0;
    for (const byte *bytes; (bytes = image_data(image, inode, &at, &len)) != NULL; at += len) {
        CHECK(image_write(image, *copy, at, bytes, len));
    }
    CHECK(image_truncate(image, *copy, size));
    return true;
}

/** Has it the checksum that it begins with? */
bool carried_cfg_is_whole(image_t *image, const char *table)
{
    uint32_t inode = image_lookup(image, name_of(image, table, ".cfg"));
    if (inode == IMAGE_NONE) {
        return false;
    }
    uint64_t size = image_size(image, inode);
    if (size <= CFG_CHECKSUM_LEN || size > CFG_MAX) {
        return false;
    }
    byte *bytes = mem_alloc(size);
    image_read(image, inode, 0, bytes, size);
    bool whole = mach_read_4(bytes) == crc32c(bytes + CFG_CHECKSUM_LEN, size - CFG_CHECKSUM_LEN);
    free(bytes);
    return whole;
}

bool carried_take(image_t *image, const char *table, carried_t *out)
{
    return carried_cfg_is_whole(image, table)
           && copy_file(image, name_of(image, table, ".cfg"), &out->cfg)
           && copy_file(image, name_of(image, table, ".ibd"), &out->data);
}

void carried_lay_down(image_t *image, const carried_t *carried, bool there)
{
    image_link(image, name_of(image, CARRIED_NAME, ".ibd"), there ? carried->data : IMAGE_NONE);
    image_link(image, name_of(image, CARRIED_NAME, ".cfg"), there ? carried->cfg : IMAGE_NONE);
}
