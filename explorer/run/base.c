/* Files from a folder into an image. Above image.c. */
#include "explorer/run/base.h"

#include <fts.h>
#include <stdio.h>
#include <string.h>

static bool load_file(image_t *image, const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    byte bytes[65536];
    bool ok = true;
    uint64_t at = 0;
    uint32_t inode = image_inode_create(image);
    image_link(image, image_name(image, name, strlen(name)), inode);
    for (size_t n = 1; ok && n > 0; at += n) {
        n = fread(bytes, 1, sizeof(bytes), file);
        ok = ferror(file) == 0 && image_write(image, inode, at, bytes, n);
    }
    (void)fclose(file);
    return ok;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

bool base_load(image_t *image, const char *dir)
{
    char *roots[] = {(char *)(uintptr_t)dir, NULL};
    size_t skip = strlen(dir) + 1;
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    bool ok = tree != NULL;
    FTSENT *entry;
    while (ok && (entry = fts_read(tree)) != NULL) {
        ok = entry->fts_info != FTS_ERR && entry->fts_info != FTS_DNR && entry->fts_info != FTS_NS;
        if (entry->fts_info == FTS_F) {
            ok = load_file(image, entry->fts_path, entry->fts_path + skip);
        }
    }
    if (tree != NULL) {
        (void)fts_close(tree);
    }
    return ok;
}
