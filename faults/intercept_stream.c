/** Interposed stdio: what is written through a stream comes to write(), as any other.

Top of the preload. The C library's own streams write where nobody can stand in front. A stream on a
file below the root is therefore one whose reads and writes are functions of ours (fopencookie),
with the file's descriptor for fileno().
1. What the buffer holds is written when the C library says so, in pieces as large as it would
   write.
2. Wide characters ("ccs=") and the standard streams stay the C library's, and are marked where they
   write. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/layer.h"
#include "faults/real.h"
#include "faults/stream.h"
#include "faults/unseen.h"

/* Of FILE._flags: the C library keeps the names to itself. */
#define FILE_NO_READS 0x0004
#define FILE_NO_WRITES 0x0008
#define FILE_APPENDS 0x1000

#define STREAM_BYTES_MAX ((size_t)1 << 20)

/* Called by programs compiled with _FORTIFY_SOURCE; no header declares them. */
LAYER_EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...);
LAYER_EXPORT int __vdprintf_chk(int fd, int flag, const char *format, va_list args);

typedef struct stream {
    int fd;
    char buffer[];
} stream_t;

typedef struct stream_mode {
    int flags;        /* of open() */
    const char *name; /* what fopencookie() is told */
} stream_mode_t;

/* False: not one of the C library's, or one whose streams are its own. */
static bool stream_read_mode(const char *text, stream_mode_t *mode)
{
    static const char *const NAMES[] = {"r", "r+", "w", "w+", "a", "a+"};
    static const int FLAGS[] = {0, O_CREAT | O_TRUNC, O_CREAT | O_APPEND};
    const char *kinds = "rwa";
    const char *kind = text == NULL || *text == '\0' ? NULL : strchr(kinds, *text);
    if (kind == NULL || strchr(text, ',') != NULL) {
        return false;
    }
    bool plus = strchr(text, '+') != NULL;
    mode->name = NAMES[(kind - kinds) * 2 + plus];
    mode->flags = FLAGS[kind - kinds] | (plus ? O_RDWR : *kind == 'r' ? O_RDONLY : O_WRONLY);
    mode->flags |= strchr(text, 'x') != NULL ? O_EXCL : 0;
    mode->flags |= strchr(text, 'e') != NULL ? O_CLOEXEC : 0;
    return true;
}

static bool stream_mode_writes(const char *text)
{
    return text != NULL && strpbrk(text, "wa+") != NULL;
}

static ssize_t stream_read(void *cookie, char *data, size_t bytes)
{
    return read(((stream_t *)cookie)->fd, data, bytes);
}

/* All of it, or as much as there is room for: the C library counts the rest as failed. */
static size_t write_all(int fd, const char *data, size_t bytes)
{
    size_t done = 0;
    ssize_t put = 1;

    while (done < bytes && put > 0) {
        put = write(fd, data + done, bytes - done);
        done += put > 0 ? (size_t)put : 0;
    }
    return done;
}

static ssize_t stream_write(void *cookie, const char *data, size_t bytes)
{
    return (ssize_t)write_all(((stream_t *)cookie)->fd, data, bytes);
}

static int stream_seek(void *cookie, off64_t *offset, int whence)
{
    off64_t at = lseek(((stream_t *)cookie)->fd, *offset, whence);

    if (at < 0) {
        return -1;
    }
    *offset = at;
    return 0;
}

/* The stream has no use for its buffer any more. */
static int stream_close(void *cookie)
{
    int fd = ((stream_t *)cookie)->fd;

    free(cookie);
    return close(fd);
}

/* What the C library puts behind a FILE: its functions, and, of one that fopencookie() has made,
ours, scrambled. */
typedef struct file_tail {
    uintptr_t table;
    uintptr_t cookie;
    uintptr_t functions[4];
} file_tail_t;

/* Of our streams, the same of all; 0: there was none. */
static struct {
    _Atomic uintptr_t table;
    _Atomic uintptr_t last_function;
} own_tail;

static const file_tail_t *stream_tail(const FILE *stream)
{
    return (const void *)(stream + 1);
}

static bool stream_is_ours(const FILE *stream)
{
    const file_tail_t *tail = stream_tail(stream);

    return tail->table == atomic_load(&own_tail.table)
           && tail->functions[3] == atomic_load(&own_tail.last_function);
}

static FILE *stream_make(int fd, const stream_mode_t *mode)
{
    const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek, stream_close};
    size_t bytes = BUFSIZ;
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_blksize > 0 && (size_t)st.st_blksize <= STREAM_BYTES_MAX) {
        bytes = (size_t)st.st_blksize;
    }
    stream_t *stream;
    stream = malloc(sizeof(*stream) + bytes);
    if (stream == NULL) {
        return NULL;
    }
    stream->fd = fd;
    FILE *made = fopencookie(stream, mode->name, functions);
    if (made == NULL) {
        free(stream);
        return NULL;
    }
    made->_fileno = fd;
    atomic_store(&own_tail.table, stream_tail(made)->table);
    atomic_store(&own_tail.last_function, stream_tail(made)->functions[3]);
    (void)setvbuf(made, stream->buffer, _IOFBF, bytes);
    if (strcmp(mode->name, "a") == 0) {
        (void)lseek(fd, 0, SEEK_END);
    }
    return made;
}

static FILE *stream_open(const char *path, const char *text)
{
    place_t place;
    if (!layer_is_on() || !files_find_place(AT_FDCWD, path, true, &place)) {
        return real_get()->fopen(path, text);
    }
    stream_mode_t mode;
    FILE *stream;
    if (!stream_read_mode(text, &mode)) {
        stream = real_get()->fopen(path, text);
        if (stream != NULL && stream_mode_writes(text)) {
            unseen_at_path("fopen", AT_FDCWD, path);
        }
        return stream;
    }
    int fd = open(path, mode.flags, 0666);
    if (fd < 0) {
        return NULL;
    }
    stream = files_is_free(fd) ? real_get()->fdopen(fd, text) : stream_make(fd, &mode);
    if (stream == NULL) {
        (void)close(fd);
    }
    return stream;
}

LAYER_EXPORT FILE *fopen(const char *path, const char *mode)
{
    return stream_open(path, mode);
}

LAYER_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    return stream_open(path, mode);
}

LAYER_EXPORT FILE *fdopen(int fd, const char *text)
{
    int flags = files_is_free(fd) ? -1 : fcntl(fd, F_GETFL);
    stream_mode_t mode;
    int wanted;

    if (flags < 0 || !stream_read_mode(text, &mode)) {
        if (stream_mode_writes(text)) {
            unseen_at_descriptor("fdopen", fd);
        }
        return real_get()->fdopen(fd, text);
    }
    wanted = mode.flags & O_ACCMODE;
    if ((flags & O_ACCMODE) != O_RDWR && (flags & O_ACCMODE) != wanted) {
        errno = EINVAL;
        return NULL;
    }
    if ((mode.flags & O_APPEND) != 0 && (flags & O_APPEND) == 0
        && fcntl(fd, F_SETFL, flags | O_APPEND) != 0) {
        return NULL;
    }
    return stream_make(fd, &mode);
}

/* Ours on another file. The C library's own function knows only its own streams. */
static FILE *stream_move(const char *path, const char *text, FILE *stream)
{
    stream_mode_t mode;
    int number = fileno(stream);
    bool known = stream_read_mode(text, &mode);
    (void)fflush(stream);
    char same[64];
    int fd;
    (void)snprintf(same, sizeof(same), "/proc/self/fd/%d", number);
    errno = EINVAL;
    fd = known ? open(path == NULL ? same : path, mode.flags, 0666) : -1;
    if (fd < 0 || dup3(fd, number, mode.flags & O_CLOEXEC) < 0) {
        int saved = errno;
        (void)fclose(stream);
        errno = saved;
        return NULL;
    }
    (void)close(fd);
    __fpurge(stream);
    clearerr(stream);
    stream->_flags &= ~(FILE_NO_READS | FILE_NO_WRITES | FILE_APPENDS);
    stream->_flags |= (mode.flags & O_ACCMODE) == O_RDONLY   ? FILE_NO_WRITES
                      : (mode.flags & O_ACCMODE) == O_WRONLY ? FILE_NO_READS
                                                             : 0;
    stream->_flags |= (mode.flags & O_APPEND) != 0 ? FILE_APPENDS : 0;
    return stream;
}

static FILE *stream_reopen(const char *path, const char *mode, FILE *stream)
{
    if (stream_is_ours(stream)) {
        return stream_move(path, mode, stream);
    }
    if (stream_mode_writes(mode) && path != NULL) {
        unseen_at_path("freopen", AT_FDCWD, path);
    } else if (stream_mode_writes(mode)) {
        unseen_at_descriptor("freopen", fileno(stream));
    }
    return real_get()->freopen(path, mode, stream);
}

LAYER_EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    return stream_reopen(path, mode, stream);
}

LAYER_EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
    return stream_reopen(path, mode, stream);
}

bool stream_flush(FILE *stream)
{
    if (fflush(stream) == 0) {
        return true;
    }
    int saved = errno;
    __fpurge(stream);
    errno = saved;
    return false;
}

LAYER_EXPORT int vdprintf(int fd, const char *format, va_list args)
{
    char *text = NULL;
    size_t put;
    int len;

    if (files_is_free(fd)) {
        return real_get()->vdprintf(fd, format, args);
    }
    len = vasprintf(&text, format, args);
    if (len < 0) {
        return -1;
    }
    put = write_all(fd, text, (size_t)len);
    free(text);
    return put < (size_t)len ? -1 : len;
}

LAYER_EXPORT int dprintf(int fd, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = vdprintf(fd, format, args);
    va_end(args);
    return len;
}

LAYER_EXPORT int __vdprintf_chk(int fd, int flag, const char *format, va_list args)
{
    (void)flag;
    return vdprintf(fd, format, args);
}

LAYER_EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = __vdprintf_chk(fd, flag, format, args);
    va_end(args);
    return len;
}
