/** Interposed calls on descriptors: life, sync, size.

Top of the preload. Keeps the descriptor table true (files.c). */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "faults/inject.h"
#include "faults/layer.h"
#include "faults/real.h"

/* Under the lock: one descriptor of the file is gone. */
static void fd_record_close(int fd, file_t *file, int64_t result)
{
    record_op_t op = layer_op(TP_OP_CLOSE, file);

    (void)files_bind(fd, NULL, false);
    op.length = file->descriptors;
    op.result = result;
    layer_record(&op);
}

LAYER_EXPORT int close(int fd)
{
    file_t *file = layer_enter(fd);
    int64_t result;

    if (file == NULL) {
        return real_get()->close(fd);
    }
    result = layer_result(real_get()->close(fd));
    fd_record_close(fd, file, result);
    return (int)layer_leave(result);
}

LAYER_EXPORT int fclose(FILE *stream)
{
    int fd = fileno(stream);
    file_t *file = layer_enter(fd);
    int64_t result;

    if (file == NULL) {
        return real_get()->fclose(stream);
    }
    result = layer_result(real_get()->fclose(stream));
    fd_record_close(fd, file, result);
    return layer_leave(result) < 0 ? EOF : 0;
}

static void fd_close_between(unsigned first, unsigned last)
{
    for (int fd = files_highest(); fd >= 0; fd--) {
        file_t *file = files_of_descriptor(fd);
        if (file != NULL && (unsigned)fd >= first && (unsigned)fd <= last) {
            fd_record_close(fd, file, 0);
        }
    }
}

LAYER_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    int64_t result;

    if (real_get()->close_range == NULL) {
        errno = ENOSYS;
        return -1;
    }
    if ((flags & (int)CLOSE_RANGE_CLOEXEC) != 0 || !layer_has_events() || !layer_enter_path()) {
        return real_get()->close_range(first, last, flags);
    }
    result = layer_result(real_get()->close_range(first, last, flags));
    if (result == 0) {
        fd_close_between(first, last);
    }
    return (int)layer_leave(result);
}

LAYER_EXPORT void closefrom(int first)
{
    bool inside = layer_has_events() && layer_enter_path();

    real_get()->closefrom(first);
    if (inside) {
        fd_close_between((unsigned)(first < 0 ? 0 : first), INT_MAX);
        (void)layer_leave(0);
    }
}

/* Under the lock: `copy` is a further descriptor of what `fd` is. */
static void fd_share(int fd, int64_t copy)
{
    if (copy >= 0 && !files_bind((int)copy, files_of_descriptor(fd), files_is_durable(fd))) {
        layer_refuse("no memory to follow descriptor %lld", (long long)copy);
    }
}

LAYER_EXPORT int dup(int fd)
{
    int64_t copy;

    if (layer_enter(fd) == NULL) {
        return real_get()->dup(fd);
    }
    copy = layer_result(real_get()->dup(fd));
    fd_share(fd, copy);
    return (int)layer_leave(copy);
}

static int fd_call_dup3(int fd, int copy, int flags, bool plain)
{
    return plain ? real_get()->dup2(fd, copy) : real_get()->dup3(fd, copy, flags);
}

static int fd_dup_onto(int fd, int copy, int flags, bool plain)
{
    file_t *replaced = files_of_descriptor(copy);
    int64_t result;

    if ((files_of_descriptor(fd) == NULL && replaced == NULL) || !layer_enter_path()) {
        return fd_call_dup3(fd, copy, flags, plain);
    }
    replaced = files_of_descriptor(copy);
    result = layer_result(fd_call_dup3(fd, copy, flags, plain));
    if (result >= 0 && fd != copy) {
        if (replaced != NULL) {
            fd_record_close(copy, replaced, 0);
        }
        fd_share(fd, result);
    }
    return (int)layer_leave(result);
}

LAYER_EXPORT int dup2(int fd, int copy)
{
    return fd_dup_onto(fd, copy, 0, true);
}

LAYER_EXPORT int dup3(int fd, int copy, int flags)
{
    return fd_dup_onto(fd, copy, flags, false);
}

static int fd_control(int fd, int command, void *argument)
{
    bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    file_t *file = copies || command == F_SETFL ? layer_enter(fd) : NULL;
    int64_t result;

    if (file == NULL) {
        return real_get()->fcntl(fd, command, argument);
    }
    result = layer_result(real_get()->fcntl(fd, command, argument));
    if (copies) {
        fd_share(fd, result);
    } else {
        file->may_append = file->may_append || ((uintptr_t)argument & O_APPEND) != 0;
        file->may_direct = file->may_direct || ((uintptr_t)argument & O_DIRECT) != 0;
    }
    return (int)layer_leave(result);
}

LAYER_EXPORT int fcntl(int fd, int command, ...)
{
    va_list args;
    void *argument;

    va_start(args, command);
    argument = va_arg(args, void *);
    va_end(args);
    return fd_control(fd, command, argument);
}

LAYER_EXPORT int fcntl64(int fd, int command, ...)
{
    va_list args;
    void *argument;

    va_start(args, command);
    argument = va_arg(args, void *);
    va_end(args);
    return fd_control(fd, command, argument);
}

/* Records an operation that has been made or replaced, and ends it. */
static int fd_finish(record_op_t *op, const plan_rule_t *rule)
{
    inject_end(op, rule);
    layer_record(op);
    inject_after(op, rule);
    return (int)layer_leave(op->result);
}

static int fd_sync(int fd, uint16_t kind, int (*call)(int))
{
    record_op_t op;
    const file_t *file = layer_begin(fd, kind, &op);
    const plan_rule_t *rule;

    if (file == NULL) {
        return call(fd);
    }
    op.kind = file->directory ? TP_OP_SYNC_DIR : kind;
    rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(call(fd));
    }
    if (!file->directory) {
        return fd_finish(&op, rule);
    }
    inject_end(&op, rule);
    layer_record_path(&op, file->path);
    inject_after(&op, rule);
    return (int)layer_leave(op.result);
}

LAYER_EXPORT int fsync(int fd)
{
    return fd_sync(fd, TP_OP_FSYNC, real_get()->fsync);
}

LAYER_EXPORT int fdatasync(int fd)
{
    return fd_sync(fd, TP_OP_FDATASYNC, real_get()->fdatasync);
}

LAYER_EXPORT int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags)
{
    record_op_t op;
    const plan_rule_t *rule;

    if (layer_begin(fd, TP_OP_SYNC_RANGE, &op) == NULL) {
        return real_get()->sync_file_range(fd, offset, bytes, flags);
    }
    op.flags = (uint16_t)flags;
    op.offset = (uint64_t)offset;
    op.length = (uint64_t)bytes;
    rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(real_get()->sync_file_range(fd, offset, bytes, flags));
    }
    return fd_finish(&op, rule);
}

static int fd_truncate(int fd, off_t size)
{
    record_op_t op;
    const plan_rule_t *rule;

    if (layer_begin(fd, TP_OP_TRUNCATE, &op) == NULL) {
        return real_get()->ftruncate(fd, size);
    }
    op.offset = (uint64_t)size;
    rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(real_get()->ftruncate(fd, size));
    }
    return fd_finish(&op, rule);
}

LAYER_EXPORT int ftruncate(int fd, off_t size)
{
    return fd_truncate(fd, size);
}

LAYER_EXPORT int ftruncate64(int fd, off64_t size)
{
    return fd_truncate(fd, size);
}

/* posix_fallocate returns its errno instead of setting it. */
static int64_t fd_call_allocate(int fd, int mode, off_t offset, off_t bytes, bool posix)
{
    if (posix) {
        return -(int64_t)real_get()->posix_fallocate(fd, offset, bytes);
    }
    return layer_result(real_get()->fallocate(fd, mode, offset, bytes));
}

static int fd_allocate(int fd, int mode, off_t offset, off_t bytes, bool posix)
{
    record_op_t op;
    const plan_rule_t *rule;
    int saved = errno;
    int returned;

    if (layer_begin(fd, TP_OP_FALLOCATE, &op) == NULL) {
        return posix ? real_get()->posix_fallocate(fd, offset, bytes)
                     : real_get()->fallocate(fd, mode, offset, bytes);
    }
    op.flags = (uint16_t)mode;
    op.offset = (uint64_t)offset;
    op.length = (uint64_t)bytes;
    rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = fd_call_allocate(fd, mode, offset, bytes, posix);
    }
    returned = fd_finish(&op, rule);
    if (posix) {
        errno = saved;
        returned = (int)-op.result;
    }
    return returned;
}

LAYER_EXPORT int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    return fd_allocate(fd, mode, offset, bytes, false);
}

LAYER_EXPORT int fallocate64(int fd, int mode, off64_t offset, off64_t bytes)
{
    return fd_allocate(fd, mode, offset, bytes, false);
}

LAYER_EXPORT int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    return fd_allocate(fd, 0, offset, bytes, true);
}

LAYER_EXPORT int posix_fallocate64(int fd, off64_t offset, off64_t bytes)
{
    return fd_allocate(fd, 0, offset, bytes, true);
}
