/** Interposed calls on descriptors: life, sync, size.

Top of the preload. Keeps the descriptor table true (files.c).
1. A number that a call may give to something else is held before the call, and leads to nothing or
   to its new file when the lock is free again: no thread's pipe is taken for the file that had its
   number. One that the kernel chooses (dup, F_DUPFD, open) is known to nobody before the call
   returns.
2. exec begins with an empty table, and posix_spawn's child does what it does in the C library,
   unseen. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/data.h"
#include "faults/inject.h"
#include "faults/layer.h"
#include "faults/real.h"
#include "faults/stream.h"

/* Under the lock: a descriptor that was held is gone. */
static void fd_record_close(int fd, file_t *file, int64_t result)
{
    record_op_t op = layer_op(TP_OP_CLOSE, file);

    (void)files_bind(fd, NULL, false);
    op.length = file->descriptors;
    op.result = result;
    layer_record(&op);
}

/* NULL: not ours, or a guest's, whose numbers are not those of the table. The number is held:
   before the call has returned another thread may have it for something else. */
static file_t *fd_begin_close(int fd)
{
    file_t *file = files_is_free(fd) || layer_is_guest() ? NULL : layer_enter(fd);

    if (file != NULL) {
        (void)files_hold(fd);
    }
    return file;
}

LAYER_EXPORT int close(int fd)
{
    file_t *file = fd_begin_close(fd);
    int64_t result;

    if (file == NULL) {
        return real_get()->close(fd);
    }
    result = layer_result(real_get()->close(fd));
    fd_record_close(fd, file, result);
    return (int)layer_leave(result);
}

/* What the stream holds is written before the number is held: that is a write as any other. */
LAYER_EXPORT int fclose(FILE *stream)
{
    int fd = fileno(stream);
    bool flushed = files_is_free(fd) || stream_flush(stream);
    int failure = errno;
    file_t *file = fd_begin_close(fd);
    int64_t result;

    if (file == NULL) {
        return real_get()->fclose(stream);
    }
    result = layer_result(real_get()->fclose(stream));
    fd_record_close(fd, file, result);
    return layer_leave(flushed ? result : -(int64_t)failure) < 0 ? EOF : 0;
}

/* Descriptors from first to last that may be ours; false: there are none, or they are a guest's. */
static bool fd_enter_range(unsigned first, unsigned last)
{
    unsigned fd = first;
    unsigned end = (unsigned)files_highest();

    end = last < end ? last : end;
    while (fd <= end && files_is_free((int)fd)) {
        fd++;
    }
    return fd <= end && !layer_is_guest() && layer_enter_path();
}

static void fd_hold_range(unsigned first, unsigned last)
{
    for (int fd = files_highest(); fd >= 0; fd--) {
        if ((unsigned)fd >= first && (unsigned)fd <= last && files_of_descriptor(fd) != NULL) {
            (void)files_hold(fd);
        }
    }
}

static void fd_range_closed(int64_t result)
{
    for (int fd = files_highest(); fd >= 0; fd--) {
        file_t *file = files_held(fd);
        if (file != NULL && result == 0) {
            fd_record_close(fd, file, 0);
        } else if (file != NULL) {
            files_let_go(fd);
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
    if ((flags & (int)CLOSE_RANGE_CLOEXEC) != 0 || !fd_enter_range(first, last)) {
        return real_get()->close_range(first, last, flags);
    }
    fd_hold_range(first, last);
    result = layer_result(real_get()->close_range(first, last, flags));
    fd_range_closed(result);
    return (int)layer_leave(result);
}

LAYER_EXPORT void closefrom(int first)
{
    unsigned from = (unsigned)(first < 0 ? 0 : first);

    if (!fd_enter_range(from, INT_MAX)) {
        real_get()->closefrom(first);
        return;
    }
    fd_hold_range(from, INT_MAX);
    real_get()->closefrom(first);
    fd_range_closed(0);
    (void)layer_leave(0);
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

    if (files_is_free(fd) || layer_is_guest() || layer_enter(fd) == NULL) {
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
    if ((files_is_free(fd) && files_is_free(copy)) || fd == copy || layer_is_guest()
        || !layer_enter_path()) {
        return fd_call_dup3(fd, copy, flags, plain);
    }
    if (copy >= 0 && !files_hold(copy)) {
        layer_refuse("no memory to follow descriptor %d", copy);
    }
    file_t *replaced = files_held(copy);
    int64_t result = layer_result(fd_call_dup3(fd, copy, flags, plain));
    if (result < 0) {
        files_let_go(copy);
    } else {
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
    bool ours = (copies && !files_is_free(fd) && !layer_is_guest()) || command == F_SETFL;
    file_t *file = ours ? layer_enter(fd) : NULL;
    if (file == NULL) {
        return real_get()->fcntl(fd, command, argument);
    }
    int64_t result = layer_result(real_get()->fcntl(fd, command, argument));
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
static int fd_finish(int fd, const file_t *file, record_op_t *op, const plan_rule_t *rule)
{
    data_record_call(file, op, rule);
    layer_check_moved(fd, file);
    inject_after(op, rule);
    return (int)layer_leave(op->result);
}

static int fd_sync(int fd, uint16_t kind, int (*call)(int))
{
    record_op_t op;
    const file_t *file = layer_begin(fd, kind, &op);
    if (file == NULL) {
        return call(fd);
    }
    op.kind = file->directory ? TP_OP_SYNC_DIR : kind;
    const plan_rule_t *rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(call(fd));
        layer_sync_lasts();
    }
    return fd_finish(fd, file, &op, rule);
}

LAYER_EXPORT int fsync(int fd)
{
    return fd_sync(fd, TP_OP_FSYNC, real_get()->fsync);
}

LAYER_EXPORT int fdatasync(int fd)
{
    return fd_sync(fd, TP_OP_FDATASYNC, real_get()->fdatasync);
}

/* Of all files of the root's file system, where anything is recorded. */
static bool fd_begin_sync_all(record_op_t *op)
{
    if (!layer_is_on() || record_ticket(layer_log()) == 0) {
        return false;
    }
    layer_begin_path(op, TP_OP_SYNC_ALL);
    op->matches = plan_match_path(layer_plan(), ".");
    return true;
}

static int fd_finish_sync_all(record_op_t *op, const plan_rule_t *rule)
{
    inject_end(op, rule);
    layer_record(op);
    inject_after(op, rule);
    return (int)layer_leave(op->result);
}

LAYER_EXPORT int syncfs(int fd)
{
    const plan_rule_t *rule;
    record_op_t op;
    struct stat st;

    if (!layer_is_on() || fstat(fd, &st) != 0 || st.st_dev != files_device()
        || !fd_begin_sync_all(&op)) {
        return real_get()->syncfs(fd);
    }
    rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(real_get()->syncfs(fd));
        layer_sync_lasts();
    }
    return fd_finish_sync_all(&op, rule);
}

LAYER_EXPORT void sync(void)
{
    const plan_rule_t *rule;
    record_op_t op;

    if (!fd_begin_sync_all(&op)) {
        real_get()->sync();
        return;
    }
    rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        real_get()->sync();
        layer_sync_lasts();
    }
    (void)fd_finish_sync_all(&op, rule);
}

LAYER_EXPORT int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags)
{
    record_op_t op;
    const file_t *file = layer_begin(fd, TP_OP_SYNC_RANGE, &op);
    const plan_rule_t *rule;

    if (file == NULL) {
        return real_get()->sync_file_range(fd, offset, bytes, flags);
    }
    op.flags = (uint16_t)flags;
    op.offset = (uint64_t)offset;
    op.length = (uint64_t)bytes;
    rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(real_get()->sync_file_range(fd, offset, bytes, flags));
    }
    return fd_finish(fd, file, &op, rule);
}

static int fd_truncate(int fd, off_t size)
{
    record_op_t op;
    const file_t *file = layer_begin(fd, TP_OP_TRUNCATE, &op);
    if (file == NULL) {
        return real_get()->ftruncate(fd, size);
    }
    op.offset = (uint64_t)size;
    const plan_rule_t *rule = inject_begin(&op);
    layer_resize_begins(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(real_get()->ftruncate(fd, size));
    }
    return fd_finish(fd, file, &op, rule);
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
    const file_t *file = layer_begin(fd, TP_OP_FALLOCATE, &op);
    int saved = errno;
    if (file == NULL) {
        return posix ? real_get()->posix_fallocate(fd, offset, bytes)
                     : real_get()->fallocate(fd, mode, offset, bytes);
    }
    op.flags = (uint16_t)mode;
    op.offset = (uint64_t)offset;
    op.length = (uint64_t)bytes;
    const plan_rule_t *rule = inject_begin(&op);
    layer_resize_begins(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = fd_call_allocate(fd, mode, offset, bytes, posix);
    }
    int returned = fd_finish(fd, file, &op, rule);
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
