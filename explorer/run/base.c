/* Files from a folder into an image. Above image.c. */
#include "explorer/run/base.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Up to the next hole, or the end. */
static bool load_data(image_t *image, uint32_t inode, int fd, off_t *at)
{
    byte bytes[65536];
    off_t end = lseek(fd, *at, SEEK_HOLE);
    bool ok = end >= 0;
    while (ok && *at < end) {
        size_t room = end - *at < (off_t)sizeof(bytes) ? (size_t)(end - *at) : sizeof(bytes);
        ssize_t n = pread(fd, bytes, room, *at);
        ok = n > 0 && image_write(image, inode, (uint64_t)*at, bytes, (uint64_t)n);
        *at += n > 0 ? n : 0;
    }
    return ok;
}

static bool load_file(image_t *image, const char *path, const char *name)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    uint32_t inode = image_inode_create(image);
    image_link(image, image_name(image, name, strlen(name)), inode);
    struct stat st;
    bool ok = fstat(fd, &st) == 0 && image_truncate(image, inode, (uint64_t)st.st_size);
    off_t at = 0;
    while (ok && (at = lseek(fd, at, SEEK_DATA)) >= 0) {
        ok = load_data(image, inode, fd, &at);
    }
    ok = ok && errno == ENXIO; /* behind the last data */
    (void)close(fd);
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
        } else if (entry->fts_info == FTS_D && entry->fts_level > FTS_ROOTLEVEL) {
            const char *name = entry->fts_path + skip;
            image_set_dir(image, image_name(image, name, strlen(name)), DIR_THERE);
        }
    }
    if (tree != NULL) {
        (void)fts_close(tree);
    }
    return ok;
}
