/** Interposed calls that copy into a file inside of the kernel: copy_file_range, sendfile, splice.

Top of the preload. Into a file below the root they are made as reads and writes, which are
followed; a reflink (FICLONE), and what makes or takes space by ioctl, is marked. What they return,
and which positions they move, is what the kernel's would. */
#include <errno.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/io.h"
#include "faults/layer.h"
#include "faults/real.h"
#include "faults/space.h"
#include "faults/unseen.h"

#define COPY_BYTES ((size_t)1 << 20)

typedef struct copy {
    int in;
    off64_t *in_at; /* NULL: the position of the descriptor */
    int out;
    off64_t *out_at;
} copy_t;

static ssize_t copy_read(const copy_t *copy, void *room, size_t bytes)
{
    return copy->in_at == NULL ? read(copy->in, room, bytes)
                               : pread(copy->in, room, bytes, *copy->in_at);
}

static ssize_t copy_write(const copy_t *copy, const void *room, size_t bytes)
{
    return copy->out_at == NULL ? write(copy->out, room, bytes)
                                : pwrite(copy->out, room, bytes, *copy->out_at);
}

/* One piece: what was read and not written stays to be read. -1: nothing was copied, errno says
why. */
static ssize_t copy_piece(const copy_t *copy, void *room, size_t bytes)
{
    ssize_t got = copy_read(copy, room, bytes);
    ssize_t put = got <= 0 ? got : copy_write(copy, room, (size_t)got);
    int saved = errno;

    if (got > 0 && put < got && copy->in_at == NULL) {
        (void)lseek(copy->in, (put < 0 ? 0 : put) - got, SEEK_CUR);
    }
    if (put > 0 && copy->in_at != NULL) {
        *copy->in_at += put;
    }
    if (put > 0 && copy->out_at != NULL) {
        *copy->out_at += put;
    }
    errno = saved;
    return put;
}

static ssize_t copy_all(const copy_t *copy, size_t bytes)
{
    size_t size = bytes < COPY_BYTES ? bytes : COPY_BYTES;
    if (bytes == 0) {
        return 0;
    }
    void *room = io_map_memory(size);
    if (room == NULL) {
        errno = ENOMEM;
        return -1;
    }
    size_t done = 0;
    ssize_t put = 1;
    while (done < bytes && put > 0) {
        put = copy_piece(copy, room, bytes - done < size ? bytes - done : size);
        done += put > 0 ? (size_t)put : 0;
    }
    (void)munmap(room, size);
    return done > 0 ? (ssize_t)done : put;
}

LAYER_EXPORT ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes,
                                     unsigned flags)
{
    if (files_is_free(out)) {
        return real_get()->copy_file_range(in, in_at, out, out_at, bytes, flags);
    }
    if (flags != 0) {
        errno = EINVAL;
        return -1;
    }
    return copy_all(&(copy_t){in, in_at, out, out_at}, bytes);
}

LAYER_EXPORT ssize_t sendfile(int out, int in, off_t *in_at, size_t bytes)
{
    if (files_is_free(out)) {
        return real_get()->sendfile(out, in, in_at, bytes);
    }
    return copy_all(&(copy_t){in, in_at, out, NULL}, bytes);
}

LAYER_EXPORT ssize_t sendfile64(int out, int in, off64_t *in_at, size_t bytes)
{
    return sendfile(out, in, in_at, bytes);
}

/* One read of a pipe: what it has, as the kernel's call. */
LAYER_EXPORT ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t bytes,
                            unsigned flags)
{
    struct pollfd ready = {.fd = in, .events = POLLIN};
    uint8_t room[1 << 16];
    struct stat st;

    if (files_is_free(out) || bytes == 0) {
        return real_get()->splice(in, in_at, out, out_at, bytes, flags);
    }
    if (fstat(in, &st) != 0) {
        return -1;
    }
    if (!S_ISFIFO(st.st_mode) || in_at != NULL) {
        errno = in_at != NULL ? ESPIPE : EINVAL;
        return -1;
    }
    if ((flags & SPLICE_F_NONBLOCK) != 0 && poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return copy_piece(&(copy_t){in, NULL, out, out_at}, room,
                      bytes < sizeof(room) ? bytes : sizeof(room));
}

/* NULL: it changes no file. */
static const char *ioctl_change(unsigned long request)
{
    switch (request) {
    case FICLONE:
    case FICLONERANGE:
        return "ioctl(FICLONE)";
    case RESVSP:
    case RESVSP64:
    case UNRESVSP:
    case UNRESVSP64:
    case ZERO_RANGE:
        return "ioctl(space)";
    default:
        return NULL;
    }
}

LAYER_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    void *argument;
    int result;

    va_start(args, request);
    argument = va_arg(args, void *);
    va_end(args);
    const char *change = ioctl_change(request);
    result = real_get()->ioctl(fd, request, argument);
    if (result >= 0 && change != NULL) {
        unseen_at_descriptor(change, fd);
    }
    return result;
}
