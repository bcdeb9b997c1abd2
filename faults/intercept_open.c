/** Interposed calls that open files.

Top of the preload.
1. A descriptor is bound to its file before any other thread can use it below the root: the lock is
   held from the open to the record.
2. Only regular files and directories are followed: opening a pipe may block, and must not do so
   under the lock. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "faults/inject.h"
#include "faults/layer.h"
#include "faults/real.h"

typedef struct open_call {
    int dirfd;
    const char *path;
    int flags;
    mode_t mode;
    bool at;    /**< the program called openat */
    bool guest; /**< the descriptor will not be one of the table */
} open_call_t;

/* Called by programs compiled with _FORTIFY_SOURCE; no header declares them. */
LAYER_EXPORT int __open_2(const char *path, int flags);
LAYER_EXPORT int __open64_2(const char *path, int flags);
LAYER_EXPORT int __openat_2(int dirfd, const char *path, int flags);
LAYER_EXPORT int __openat64_2(int dirfd, const char *path, int flags);

static bool open_is_temporary(const open_call_t *call)
{
    return (call->flags & O_TMPFILE) == O_TMPFILE;
}

static int open_real(const open_call_t *call)
{
    return call->at ? real_get()->openat(call->dirfd, call->path, call->flags, call->mode)
                    : real_get()->open(call->path, call->flags, call->mode);
}

static bool open_is_ours(const open_call_t *call, place_t *place)
{
    if ((call->flags & O_PATH) != 0 || !layer_is_on()
        || !files_find_place(call->dirfd, call->path, (call->flags & O_NOFOLLOW) == 0, place)) {
        return false;
    }
    return (!place->exists || S_ISREG(place->st.st_mode) || S_ISDIR(place->st.st_mode))
           && layer_enter_path();
}

/* The number was in use for a file that was closed where it could not be seen. */
static void open_drop_stale(int fd)
{
    if (layer_enter(fd) != NULL) {
        (void)files_bind(fd, NULL, false);
        (void)layer_leave(0);
    }
}

/* A file of the root under a name outside of it, a further link or a mount: nobody follows what is
written through it. */
static void open_check_name(const open_call_t *call, int fd)
{
    struct stat st;

    if ((call->flags & O_ACCMODE) == O_RDONLY || (call->flags & O_PATH) != 0 || fstat(fd, &st) != 0
        || st.st_dev != files_device() || !layer_knows(&st) || !layer_enter_path()) {
        return;
    }
    const file_t *file = files_lookup(&st);
    layer_mark_unseen("open-by-another-name", file == NULL ? "." : file->path);
    (void)layer_leave(0);
}

static void open_bind(const open_call_t *call, place_t *place, int fd, record_op_t *op)
{
    bool created = ((call->flags & O_CREAT) != 0 && !place->exists) || open_is_temporary(call);
    struct stat st;
    if (fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        return;
    }
    if (open_is_temporary(call)) {
        size_t len = strlen(place->path);
        const char name[] = "/#tmpfile";
        if (len + sizeof(name) <= sizeof(place->path)) {
            memcpy(place->path + len, name, sizeof(name));
        }
    }
    file_t *file = files_intern(place, &st, created);
    if (file == NULL || (!call->guest && !files_bind(fd, file, (call->flags & O_DSYNC) != 0))) {
        layer_refuse("no memory to follow another file");
    }
    if ((call->flags & O_APPEND) != 0) {
        file->may_append = true;
    }
    if ((call->flags & O_DIRECT) != 0) {
        file->may_direct = true;
    }
    op->file = file->id;
    op->flags =
        (uint16_t)((created ? TP_OPEN_CREATED : 0) | (file->directory ? TP_OPEN_DIRECTORY : 0));
}

static int open_call(const open_call_t *asked)
{
    open_call_t guest = *asked;
    const open_call_t *call = &guest;
    guest.guest = layer_is_guest();
    place_t place;
    int fd;
    if (!open_is_ours(call, &place)) {
        fd = open_real(call);
        if (fd >= 0 && !call->guest && files_of_descriptor(fd) != NULL) {
            open_drop_stale(fd);
        }
        if (fd >= 0) {
            open_check_name(call, fd);
        }
        return fd;
    }
    if ((call->flags & O_CREAT) != 0) {
        files_look_again(&place); /* whether it is a new file is decided under the lock */
    }
    record_op_t op = layer_op_at(TP_OP_OPEN, &place);
    op.offset = (uint64_t)(unsigned)call->flags;
    fd = -1;
    const plan_rule_t *rule;
    if (!inject_before(&op, &rule)) {
        fd = open_real(call);
        op.result = fd < 0 ? -errno : 0; /* not the number: it depends on what was inherited */
        if (fd >= 0) {
            open_bind(call, &place, fd, &op);
        }
    }
    layer_record_path(&op, place.path);
    return layer_leave(op.result) < 0 ? -1 : fd;
}

static mode_t open_mode(int flags, va_list args)
{
    bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;

    return has_mode ? va_arg(args, mode_t) : 0;
}

LAYER_EXPORT int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = open_mode(flags, args);
    va_end(args);
    return open_call(&(open_call_t){AT_FDCWD, path, flags, mode, false, false});
}

LAYER_EXPORT int open64(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = open_mode(flags, args);
    va_end(args);
    return open_call(&(open_call_t){AT_FDCWD, path, flags | O_LARGEFILE, mode, false, false});
}

LAYER_EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = open_mode(flags, args);
    va_end(args);
    return open_call(&(open_call_t){dirfd, path, flags, mode, true, false});
}

LAYER_EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = open_mode(flags, args);
    va_end(args);
    return open_call(&(open_call_t){dirfd, path, flags | O_LARGEFILE, mode, true, false});
}

LAYER_EXPORT int creat(const char *path, mode_t mode)
{
    return open_call(
        &(open_call_t){AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode, false, false});
}

LAYER_EXPORT int creat64(const char *path, mode_t mode)
{
    return open_call(&(open_call_t){AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_LARGEFILE,
                                    mode, false, false});
}

LAYER_EXPORT int __open_2(const char *path, int flags)
{
    return open_call(&(open_call_t){AT_FDCWD, path, flags, 0, false, false});
}

LAYER_EXPORT int __open64_2(const char *path, int flags)
{
    return open_call(&(open_call_t){AT_FDCWD, path, flags | O_LARGEFILE, 0, false, false});
}

LAYER_EXPORT int __openat_2(int dirfd, const char *path, int flags)
{
    return open_call(&(open_call_t){dirfd, path, flags, 0, true, false});
}

LAYER_EXPORT int __openat64_2(int dirfd, const char *path, int flags)
{
    return open_call(&(open_call_t){dirfd, path, flags | O_LARGEFILE, 0, true, false});
}
