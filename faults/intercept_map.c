/** Interposed mappings: what is written through a shared one is seen by nobody.

Top of the preload. Each that may write leaves a mark: when it is made, or when mprotect lets it.
Never refused: a program may map a scratch file whose content does not matter. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "faults/layer.h"
#include "faults/raw.h"
#include "faults/real.h"
#include "faults/unseen.h"

#define LINE_BYTES (PATH_MAX + 256u)

/* A file below the root is mapped to be shared: what mprotect is about may be it. */
static atomic_bool map_is_shared;

/* As a bare system call: allocators map memory before anything is resolved. Nothing changes through
   a mapping that failed, nor before the call returns. */
static void *map_call(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
#ifdef RAW_CALLS
    const long words[6] = {(long)(uintptr_t)at, (long)bytes, protection, flags, fd, offset};
    long got = raw_call(SYS_mmap, words);
    bool failed = got < 0 && got >= -4095;
    void *map = failed ? MAP_FAILED : (void *)(uintptr_t)got;

    if (failed) {
        errno = (int)-got;
    }
#else
    void *map = (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
#endif

    if (map != MAP_FAILED && fd >= 0 && (flags & MAP_TYPE) != MAP_PRIVATE && !files_is_free(fd)) {
        atomic_store(&map_is_shared, true);
        if ((protection & PROT_WRITE) != 0) {
            unseen_at_descriptor("mmap", fd);
        }
    }
    return map;
}

LAYER_EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return map_call(at, bytes, protection, flags, fd, offset);
}

LAYER_EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    return map_call(at, bytes, protection, flags, fd, offset);
}

/* One line of the process's maps: is it a shared mapping of a known file that overlaps the
range? */
static void map_see(const char *line, uintptr_t from, uintptr_t to)
{
    uintptr_t begin;
    uintptr_t end;
    char rights[5];
    unsigned major_no;
    unsigned minor_no;
    uint64_t inode;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%x %" SCNu64, &begin, &end, rights,
               &major_no, &minor_no, &inode)
            != 6
        || begin >= to || end <= from || rights[3] != 's' || !layer_enter_path()) {
        return;
    }
    struct stat st = {0};
    st.st_dev = makedev(major_no, minor_no);
    st.st_ino = inode;
    const file_t *file = files_lookup(&st);
    if (file != NULL) {
        layer_mark_unseen("mprotect", file->path);
    }
    (void)layer_leave(0);
}

static void map_see_all(uintptr_t from, uintptr_t to)
{
    char text[LINE_BYTES];
    size_t used = 0;
    ssize_t got = 1;
    int fd = real_get()->open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && got > 0) {
        got = real_get()->read(fd, text + used, sizeof(text) - 1 - used);
        used += got > 0 ? (size_t)got : 0;
        text[used] = '\0';
        char *end;
        while ((end = memchr(text, '\n', used)) != NULL) {
            *end++ = '\0';
            map_see(text, from, to);
            used -= (size_t)(end - text);
            memmove(text, end, used + 1);
        }
    }
    if (fd >= 0) {
        (void)real_get()->close(fd);
    }
}

static int map_protected(int result, void *at, size_t bytes, int protection)
{
    if (result == 0 && (protection & PROT_WRITE) != 0
        && atomic_load_explicit(&map_is_shared, memory_order_relaxed)) {
        map_see_all((uintptr_t)at, (uintptr_t)at + bytes);
    }
    return result;
}

LAYER_EXPORT int mprotect(void *at, size_t bytes, int protection)
{
    return map_protected(real_get()->mprotect(at, bytes, protection), at, bytes, protection);
}

LAYER_EXPORT int pkey_mprotect(void *at, size_t bytes, int protection, int key)
{
    int result = real_get()->pkey_mprotect(at, bytes, protection, key);

    return map_protected(result, at, bytes, protection);
}
