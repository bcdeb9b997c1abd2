/** The real reads and writes behind the interposed ones. Above real.c only. */
#include "faults/io.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "faults/real.h"

static size_t page_offset(const struct iovec *part)
{
    return (uintptr_t)part->iov_base % IO_PAGE_BYTES;
}

bool io_copy_take(io_copy_t *copy, const io_call_t *call)
{
    size_t head = io_whole_pages((size_t)call->count * sizeof(struct iovec));
    copy->bytes = head;
    struct iovec *parts;
    for (int i = 0; i < call->count; i++) {
        copy->bytes += io_whole_pages(page_offset(&call->parts[i]) + call->parts[i].iov_len);
    }
    copy->map = io_map_memory(copy->bytes);
    if (copy->map == NULL) {
        return false;
    }
    parts = copy->map;
    uint8_t *at = (uint8_t *)copy->map + head;
    for (int i = 0; i < call->count; i++) {
        size_t before = page_offset(&call->parts[i]);
        size_t bytes = call->parts[i].iov_len;
        parts[i] = (struct iovec){at + before, bytes};
        if (bytes > 0) {
            memcpy(at + before, call->parts[i].iov_base, bytes);
        }
        at += io_whole_pages(before + bytes);
    }
    copy->call = *call;
    copy->call.parts = parts;
    return true;
}

void io_copy_release(io_copy_t *copy)
{
    (void)munmap(copy->map, copy->bytes);
}

ssize_t io_read_real(const io_call_t *call)
{
    const real_calls_t *real = real_get();
    const struct iovec *part = call->parts;

    switch (call->via) {
    case IO_PLAIN:
        return real->read(call->fd, part->iov_base, part->iov_len);
    case IO_VECTOR:
        return real->readv(call->fd, part, call->count);
    case IO_AT:
        return real->pread(call->fd, part->iov_base, part->iov_len, call->offset);
    case IO_VECTOR_AT:
        return real->preadv(call->fd, part, call->count, call->offset);
    default:
        return real->preadv2(call->fd, part, call->count, call->offset, call->flags);
    }
}

ssize_t io_write_real(const io_call_t *call)
{
    const real_calls_t *real = real_get();
    const struct iovec *part = call->parts;

    switch (call->via) {
    case IO_PLAIN:
        return real->write(call->fd, part->iov_base, part->iov_len);
    case IO_VECTOR:
        return real->writev(call->fd, part, call->count);
    case IO_AT:
        return real->pwrite(call->fd, part->iov_base, part->iov_len, call->offset);
    case IO_VECTOR_AT:
        return real->pwritev(call->fd, part, call->count, call->offset);
    default:
        return real->pwritev2(call->fd, part, call->count, call->offset, call->flags);
    }
}

uint64_t io_length(const io_call_t *call)
{
    uint64_t bytes = 0;

    for (int i = 0; i < call->count; i++) {
        bytes += call->parts[i].iov_len;
    }
    return bytes;
}

bool io_is_sequential(const io_call_t *call)
{
    return call->via == IO_PLAIN || call->via == IO_VECTOR
           || (call->via == IO_VECTOR_AT_FLAGS && call->offset == -1);
}

bool io_read_at(int fd, uint8_t *data, uint64_t bytes, uint64_t offset, uint64_t *done)
{
    *done = 0;
    while (*done < bytes) {
        ssize_t got = real_get()->pread(fd, data + *done, bytes - *done, (off_t)(offset + *done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        *done += (uint64_t)got;
    }
    return true;
}

bool io_write_at(int fd, const uint8_t *data, uint64_t bytes, uint64_t offset)
{
    while (bytes > 0) {
        ssize_t put = real_get()->pwrite(fd, data, bytes, (off_t)offset);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        data += put;
        bytes -= (uint64_t)put;
        offset += (uint64_t)put;
    }
    return true;
}

void *io_map_memory(size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    // cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping is given
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);

    if (map == MAP_FAILED) {
        return NULL;
    }
    return map;
}
