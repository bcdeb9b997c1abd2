/** Appends records to a shared mapping of the trace file.

Sits above nothing but libc; the layer's lock serialises all calls.
1. The committed length in the header is stored with release order after a record is complete: a
   process that dies at any instruction leaves a readable trace.
2. Pages are populated ahead of use, so that the hot path takes no page fault and a full file system
   shows as an error here, not as SIGBUS.
3. A full trace stops recording and says so in its header; it never stops the program. */
#include "faults/record.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/real.h"

#define POPULATE_FIRST ((size_t)256 << 10)
#define POPULATE_MAX ((size_t)4 << 20)

static int record_map(record_log_t *log, int fd, size_t size_bytes)
{
    struct stat st;
    void *map;

    if (fstat(fd, &st) != 0) {
        return errno;
    }
    if (st.st_size == 0) {
        if (real_get()->ftruncate(fd, (off_t)size_bytes) != 0) {
            return errno;
        }
    } else {
        size_bytes = (size_t)st.st_size;
    }
    if (size_bytes < TP_TRACE_HEADER_SIZE) {
        return EINVAL;
    }
    map = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        return errno;
    }
    log->header = map;
    log->size_bytes = size_bytes;
    return 0;
}

static bool record_populate(record_log_t *log, size_t need)
{
    while (log->populated < need) {
        size_t step = log->size_bytes - log->populated;
        uint8_t *from = (uint8_t *)log->header + log->populated;

        if (step > log->populate_step) {
            step = log->populate_step;
        }
        /* EINVAL: a kernel before 5.14; the pages then come one by one as they are touched. */
        if (madvise(from, step, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
            return false;
        }
        log->populated += step;
        if (log->populate_step < POPULATE_MAX) {
            log->populate_step *= 2;
        }
    }
    return true;
}

int record_open(record_log_t *log, const char *path, size_t size_bytes, bool attach)
{
    int flags = O_RDWR | O_CLOEXEC | (attach ? 0 : O_CREAT | O_TRUNC);
    int fd = real_get()->open(path, flags, 0644);
    int failure;

    if (fd < 0) {
        return errno;
    }
    failure = record_map(log, fd, size_bytes);
    (void)real_get()->close(fd);
    if (failure != 0) {
        return failure;
    }
    log->populate_step = POPULATE_FIRST;
    if (!record_populate(log, TP_TRACE_HEADER_SIZE)) {
        log->header = NULL;
        return ENOSPC;
    }
    if (attach) {
        return memcmp(log->header->magic, TP_TRACE_MAGIC, sizeof(log->header->magic)) == 0 ? 0
                                                                                           : EINVAL;
    }
    memcpy(log->header->magic, TP_TRACE_MAGIC, sizeof(log->header->magic));
    atomic_store_explicit(&log->header->committed, TP_TRACE_HEADER_SIZE, memory_order_release);
    return 0;
}

bool record_claim(record_log_t *log)
{
    uint32_t nobody = 0;

    if (log->header == NULL) {
        return true;
    }
    log->used = TP_TRACE_HEADER_SIZE;
    return atomic_compare_exchange_strong(&log->header->pid, &nobody, (uint32_t)getpid());
}

void record_set_flag(record_log_t *log, uint32_t flag)
{
    if (log->header != NULL) {
        atomic_fetch_or_explicit(&log->header->flags, flag, memory_order_relaxed);
    }
}

static bool record_is_starved(int64_t result)
{
    return result == -ENOSPC || result == -EDQUOT || result == -ENOMEM || result == -EMFILE
           || result == -ENFILE;
}

uint8_t *record_reserve(record_log_t *log, const record_op_t *op, size_t payload_bytes)
{
    size_t total = (TP_TRACE_RECORD_SIZE + payload_bytes + TP_TRACE_ALIGN - 1) / TP_TRACE_ALIGN
                   * TP_TRACE_ALIGN;
    uint8_t *at;

    if (log->header == NULL || log->full) {
        return NULL;
    }
    if (total > UINT32_MAX || total > log->size_bytes - log->used
        || !record_populate(log, log->used + total)) {
        log->full = true;
        record_set_flag(log, TP_TRACE_OVERFLOW);
        return NULL;
    }
    if (record_is_starved(op->result)) {
        record_set_flag(log, TP_TRACE_STARVED);
    }
    at = (uint8_t *)log->header + log->used;
    *(tp_trace_record_t *)(void *)at = (tp_trace_record_t){
        .total = (uint32_t)total,
        .kind = op->kind,
        .flags = op->flags,
        .seq = log->events + 1,
        .file = op->file,
        .thread = op->thread,
        .offset = op->offset,
        .length = op->length,
        .result = op->result,
        .hash = op->hash,
    };
    return at + TP_TRACE_RECORD_SIZE;
}

void record_commit(record_log_t *log)
{
    const uint8_t *at = (const uint8_t *)log->header + log->used;

    log->used += ((const tp_trace_record_t *)(const void *)at)->total;
    log->events++;
    atomic_store_explicit(&log->header->events, log->events, memory_order_relaxed);
    atomic_store_explicit(&log->header->committed, log->used, memory_order_release);
}

void record_append(record_log_t *log, const record_op_t *op, const struct iovec *parts,
                   uint64_t bytes)
{
    uint8_t *at = record_reserve(log, op, bytes);

    if (at == NULL) {
        return;
    }
    for (; bytes > 0; parts++) {
        size_t part = parts->iov_len < bytes ? parts->iov_len : bytes;
        if (part > 0) {
            memcpy(at, parts->iov_base, part);
            at += part;
            bytes -= part;
        }
    }
    record_commit(log);
}
