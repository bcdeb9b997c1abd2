/** Interposed reads and writes.

Top of the preload. Every exported function here stands before the C library's of the same name.
1. A call on a descriptor that is not below the root costs one table lookup.
2. The record of a write covers the bytes that the program was told are written.
3. Calls run side by side; those of one file whose place only the kernel knows, one after the
   other. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "faults/data.h"
#include "faults/inject.h"
#include "faults/io.h"
#include "faults/layer.h"
#include "faults/real.h"
#include "faults/stacks.h"

/* Built-in checks of programs compiled with _FORTIFY_SOURCE call these; no header declares them. */
LAYER_EXPORT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room);
LAYER_EXPORT ssize_t __pread_chk(int fd, void *data, size_t bytes, off_t offset, size_t room);
LAYER_EXPORT ssize_t __pread64_chk(int fd, void *data, size_t bytes, off_t offset, size_t room);

/* A call that the kernel will refuse anyway, and whose buffers must not be looked at. */
static bool data_is_odd(const io_call_t *call)
{
    return call->count < 1 || call->count > IOV_MAX;
}

static bool data_appends(const io_call_t *call, const file_t *file)
{
    if (call->via == IO_VECTOR_AT_FLAGS && (call->flags & RWF_APPEND) != 0) {
        return true;
    }
    return file->may_append && (real_get()->fcntl(call->fd, F_GETFL) & O_APPEND) != 0;
}

/* It belongs to the descriptor, not to the file. */
static bool data_is_durable(const io_call_t *call)
{
    if (call->via == IO_VECTOR_AT_FLAGS && (call->flags & (RWF_DSYNC | RWF_SYNC)) != 0) {
        return true;
    }
    return files_is_durable(call->fd);
}

static uint64_t data_offset(const io_call_t *call, bool appends)
{
    struct stat st;
    off_t offset = call->offset;

    if (appends) {
        offset = fstat(call->fd, &st) == 0 ? st.st_size : 0;
    } else if (io_is_sequential(call)) {
        offset = lseek(call->fd, 0, SEEK_CUR);
    }
    return offset < 0 ? 0 : (uint64_t)offset;
}

/* Its place is the position of the open file, or the end of the file: one such call at a time, so
that it is known. */
static bool data_has_no_place(const io_call_t *call, bool appends)
{
    return appends || io_is_sequential(call);
}

static ssize_t data_read(const io_call_t *call)
{
    record_op_t op;
    const file_t *file = data_is_odd(call) ? NULL : layer_begin(call->fd, TP_OP_READ, &op);
    if (file == NULL) {
        return io_read_real(call);
    }
    bool placeless = data_has_no_place(call, false);
    if (placeless) {
        layer_hold_position(file);
    }
    op.offset = data_offset(call, false);
    op.length = io_length(call);
    const plan_rule_t *rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(io_read_real(call));
    }
    if (placeless) {
        layer_release_position(file);
    }
    inject_end(&op, rule);
    layer_record(&op);
    inject_after(&op, rule);
    return layer_leave(op.result);
}

static int64_t data_write_tracked(const io_call_t *call, const file_t *file, record_op_t *op)
{
    bool appends = data_appends(call, file);
    bool placeless = data_has_no_place(call, appends);
    if (placeless) {
        layer_hold_position(file);
    }
    op->flags = (uint16_t)((appends ? TP_WRITE_APPEND : 0)
                           | (data_is_durable(call) ? TP_WRITE_DURABLE : 0));
    op->offset = data_offset(call, appends);
    op->length = io_length(call);
    const plan_rule_t *rule = data_write_placed(call, op);
    if (placeless) {
        layer_release_position(file);
    }
    data_record_write(op, rule, call);
    layer_check_moved(call->fd, file);
    layer_call_ended();
    return op->result;
}

/* The device reads the program's memory while the call lasts, and some programs change bytes
meanwhile that do not matter: behind the end of a log, MariaDB does. What is recorded is what was
written only where it is written from a copy. */
static bool data_needs_copy(const io_call_t *call, const file_t *file)
{
    return layer_log()->keep_data && file->may_direct
           && (real_get()->fcntl(call->fd, F_GETFL) & O_DIRECT) != 0;
}

static ssize_t data_write(const io_call_t *call)
{
    record_op_t op;
    const file_t *file = data_is_odd(call) ? NULL : layer_begin(call->fd, TP_OP_WRITE, &op);
    if (file == NULL) {
        return io_write_real(call);
    }
    if (!data_needs_copy(call, file)) {
        return layer_leave(data_write_tracked(call, file, &op));
    }
    io_copy_t copy;
    if (!io_copy_take(&copy, call)) {
        layer_refuse("no memory for a copy of a write of %" PRIu64 " bytes", io_length(call));
    }
    int64_t result = data_write_tracked(&copy.call, file, &op);
    io_copy_release(&copy);
    return layer_leave(result);
}

static ssize_t buffer_read(int fd, void *data, size_t bytes, io_via_t via, off_t offset)
{
    const struct iovec part = {data, bytes};

    return data_read(&(io_call_t){via, fd, &part, 1, offset, 0});
}

static ssize_t buffer_write(int fd, const void *data, size_t bytes, io_via_t via, off_t offset)
{
    const struct iovec part = {(void *)(uintptr_t)data, bytes};

    return data_write(&(io_call_t){via, fd, &part, 1, offset, 0});
}

static ssize_t vector_read(int fd, const struct iovec *parts, int count, io_via_t via, off_t offset,
                           int flags)
{
    return data_read(&(io_call_t){via, fd, parts, count, offset, flags});
}

static ssize_t vector_write(int fd, const struct iovec *parts, int count, io_via_t via,
                            off_t offset, int flags)
{
    return data_write(&(io_call_t){via, fd, parts, count, offset, flags});
}

LAYER_EXPORT ssize_t read(int fd, void *data, size_t bytes)
{
    return buffer_read(fd, data, bytes, IO_PLAIN, 0);
}

LAYER_EXPORT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room)
{
    if (bytes > room) {
        abort();
    }
    return buffer_read(fd, data, bytes, IO_PLAIN, 0);
}

LAYER_EXPORT ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    return buffer_read(fd, data, bytes, IO_AT, offset);
}

LAYER_EXPORT ssize_t pread64(int fd, void *data, size_t bytes, off64_t offset)
{
    return buffer_read(fd, data, bytes, IO_AT, offset);
}

LAYER_EXPORT ssize_t __pread_chk(int fd, void *data, size_t bytes, off_t offset, size_t room)
{
    if (bytes > room) {
        abort();
    }
    return buffer_read(fd, data, bytes, IO_AT, offset);
}

LAYER_EXPORT ssize_t __pread64_chk(int fd, void *data, size_t bytes, off_t offset, size_t room)
{
    return __pread_chk(fd, data, bytes, offset, room);
}

LAYER_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    return vector_read(fd, parts, count, IO_VECTOR, 0, 0);
}

LAYER_EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    return vector_read(fd, parts, count, IO_VECTOR_AT, offset, 0);
}

LAYER_EXPORT ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    return vector_read(fd, parts, count, IO_VECTOR_AT, offset, 0);
}

LAYER_EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    return vector_read(fd, parts, count, IO_VECTOR_AT_FLAGS, offset, flags);
}

LAYER_EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset,
                                int flags)
{
    return vector_read(fd, parts, count, IO_VECTOR_AT_FLAGS, offset, flags);
}

LAYER_EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    if (fd == STACKS_DESCRIPTOR && stacks_hear(data, bytes)) {
        return (ssize_t)bytes;
    }
    return buffer_write(fd, data, bytes, IO_PLAIN, 0);
}

LAYER_EXPORT ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    return buffer_write(fd, data, bytes, IO_AT, offset);
}

LAYER_EXPORT ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset)
{
    return buffer_write(fd, data, bytes, IO_AT, offset);
}

LAYER_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return vector_write(fd, parts, count, IO_VECTOR, 0, 0);
}

LAYER_EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return vector_write(fd, parts, count, IO_VECTOR_AT, offset, 0);
}

LAYER_EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    return vector_write(fd, parts, count, IO_VECTOR_AT, offset, 0);
}

LAYER_EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    return vector_write(fd, parts, count, IO_VECTOR_AT_FLAGS, offset, flags);
}

LAYER_EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset,
                                 int flags)
{
    return vector_write(fd, parts, count, IO_VECTOR_AT_FLAGS, offset, flags);
}

LAYER_EXPORT void tp_trace_mark(const char *text, size_t len)
{
    data_mark(text, len);
}

LAYER_EXPORT bool tp_stack_note(const char *text, size_t len)
{
    if (!stacks_are_taken() || len == 0) {
        return stacks_are_taken();
    }
    if (layer_enter_note()) {
        stacks_note(record_ticket(layer_log()), text, len);
        stacks_drop();
        (void)layer_leave(0);
    }
    return true;
}
