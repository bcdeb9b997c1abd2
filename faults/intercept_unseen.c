/** Interposed calls that change files where the layer cannot follow.

Top of the preload. Each leaves a mark "unseen CALL path=PATH" in the trace, unless it fails, so that
whoever computes states from the trace knows that it is not the whole truth. Never refused: a program
may map a scratch file whose content does not matter. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/layer.h"
#include "faults/raw.h"
#include "faults/real.h"
#include "faults/unseen.h"

void unseen_at_descriptor(const char *call, int fd)
{
    file_t *file = layer_enter(fd);

    if (file != NULL) {
        layer_mark_unseen(call, file->path);
        (void)layer_leave(0);
    }
}

void unseen_anywhere(const char *call)
{
    if (layer_enter_path()) {
        layer_mark_unseen(call, ".");
        (void)layer_leave(0);
    }
}

static void unseen_at_path(const char *call, int dirfd, const char *path)
{
    place_t place;

    if (layer_is_on() && files_find_place(dirfd, path, true, &place) && layer_enter_path()) {
        layer_mark_unseen(call, place.path);
        (void)layer_leave(0);
    }
}

/* As a bare system call: allocators map memory before anything is resolved. Nothing changes through a mapping
   that failed, nor before the call returns. */
static void *unseen_map(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
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

    if (map != MAP_FAILED && fd >= 0 && (protection & PROT_WRITE) != 0
        && (flags & MAP_TYPE) != MAP_PRIVATE) {
        unseen_at_descriptor("mmap", fd);
    }
    return map;
}

LAYER_EXPORT void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return unseen_map(at, bytes, protection, flags, fd, offset);
}

LAYER_EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    return unseen_map(at, bytes, protection, flags, fd, offset);
}

LAYER_EXPORT ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes,
                                     unsigned flags)
{
    unseen_at_descriptor("copy_file_range", out);
    return real_get()->copy_file_range(in, in_at, out, out_at, bytes, flags);
}

LAYER_EXPORT ssize_t sendfile(int out, int in, off_t *in_at, size_t bytes)
{
    unseen_at_descriptor("sendfile", out);
    return real_get()->sendfile(out, in, in_at, bytes);
}

LAYER_EXPORT ssize_t sendfile64(int out, int in, off64_t *in_at, size_t bytes)
{
    unseen_at_descriptor("sendfile", out);
    return real_get()->sendfile(out, in, in_at, bytes);
}

LAYER_EXPORT int link(const char *from, const char *to)
{
    unseen_at_path("link", AT_FDCWD, to);
    return real_get()->link(from, to);
}

LAYER_EXPORT int linkat(int from_dirfd, const char *from, int to_dirfd, const char *to, int flags)
{
    unseen_at_path("link", to_dirfd, to);
    return real_get()->linkat(from_dirfd, from, to_dirfd, to, flags);
}

LAYER_EXPORT int syncfs(int fd)
{
    unseen_at_descriptor("syncfs", fd);
    return real_get()->syncfs(fd);
}

LAYER_EXPORT void sync(void)
{
    if (layer_is_on() && record_ticket(layer_log()) > 0 && layer_enter_path()) {
        layer_mark_unseen("sync", ".");
        (void)layer_leave(0);
    }
    real_get()->sync();
}

static bool mode_writes(const char *mode)
{
    return mode != NULL && strpbrk(mode, "wa+") != NULL;
}

static FILE *unseen_open(const char *path, const char *mode)
{
    FILE *stream = real_get()->fopen(path, mode);
    if (stream != NULL && mode_writes(mode)) {
        unseen_at_path("fopen", AT_FDCWD, path);
    }
    return stream;
}

LAYER_EXPORT FILE *fopen(const char *path, const char *mode)
{
    return unseen_open(path, mode);
}

LAYER_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    return unseen_open(path, mode);
}

LAYER_EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    if (mode_writes(mode) && path != NULL) {
        unseen_at_path("freopen", AT_FDCWD, path);
    }
    return real_get()->freopen(path, mode, stream);
}

LAYER_EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
    if (mode_writes(mode) && path != NULL) {
        unseen_at_path("freopen", AT_FDCWD, path);
    }
    return real_get()->freopen(path, mode, stream);
}

LAYER_EXPORT FILE *fdopen(int fd, const char *mode)
{
    if (mode_writes(mode)) {
        unseen_at_descriptor("fdopen", fd);
    }
    return real_get()->fdopen(fd, mode);
}
