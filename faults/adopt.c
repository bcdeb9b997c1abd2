/** Takes descriptors into the table that no interposed call has opened.

Above layer.c; below the interposed functions. */
#include "faults/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/layer.h"
#include "faults/real.h"

#define STANDARD_LAST 2 /* descriptors up to it have streams from the start */

/* As the kernel writes it. */
typedef struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
} entry_t;

/* Under the lock. */
static void adopt_file(const char *how, int fd, int flags, const place_t *place)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY;
    bool known = share_file_find(layer_share(), &place->st) != 0;
    file_t *file = files_intern(place, &place->st, false);
    if (file == NULL || !files_bind(fd, file, (flags & O_DSYNC) != 0)) {
        layer_refuse("no memory to follow descriptor %d", fd);
    }
    file->may_append = file->may_append || (flags & O_APPEND) != 0;
    file->may_direct = file->may_direct || (flags & O_DIRECT) != 0;
    record_op_t op = layer_op(TP_OP_OPEN, file);
    op.offset = (uint64_t)(unsigned)flags & ~(uint64_t)(O_CREAT | O_TRUNC | O_EXCL);
    op.flags = file->directory ? TP_OPEN_DIRECTORY : 0;
    layer_record_path(&op, place->path);
    if (writes && fd <= STANDARD_LAST) {
        layer_mark_unseen("standard-stream", place->path);
    } else if (writes && !known) {
        layer_mark_unseen(how, place->path);
    }
}

void adopt_descriptor(const char *how, int fd)
{
    char link[64];
    int saved = errno;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    char path[PATH_MAX];
    ssize_t len = layer_is_on() && files_is_free(fd) ? readlink(link, path, sizeof(path) - 1) : -1;
    struct stat st;
    if (len <= 0 || path[0] != '/' || fstat(fd, &st) != 0
        || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        errno = saved;
        return;
    }
    path[len] = '\0';
    int flags = real_get()->fcntl(fd, F_GETFL);
    place_t place;
    if (flags >= 0 && (flags & O_PATH) == 0 && files_find_place(AT_FDCWD, path, false, &place)
        && layer_enter_path()) {
        place.st = st;
        adopt_file(how, fd, flags, &place);
        (void)layer_leave(0);
    }
    errno = saved;
}

void adopt_inherited(void)
{
    _Alignas(entry_t) char entries[4096];
    int folder = real_get()->open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got = folder < 0 ? 0 : 1;

    while (got > 0) {
        got = syscall(SYS_getdents64, folder, entries, sizeof(entries));
        for (long at = 0; at < got;) {
            const entry_t *entry = (const void *)(entries + at);
            int fd = (int)strtol(entry->name, NULL, 10);
            if (entry->name[0] != '.' && fd != folder) {
                adopt_descriptor("inherited", fd);
            }
            at += entry->length;
        }
    }
    if (folder >= 0) {
        (void)real_get()->close(folder);
    }
}
