/** Appends records to a shared mapping of the trace file.

Above share.c, whose lock serialises the appends of all threads and processes.
1. The committed length in the header is stored with release order after a record is complete: a
   process that dies at any instruction leaves a readable trace.
2. Pages are populated ahead of use, so that the hot path takes no page fault and a full file system
   shows as an error here, not as SIGBUS.
   A page of a tmpfs costs more than the copy that fills it. A recording that has outgrown half of a
   huge page, and so will be long, asks for the next whole one, which costs less than its pages one
   by one; where there is none they come in small steps.
3. A full trace stops recording and says so in its header; it never stops the program.
4. The number of events in the header is stored after the length: it is the ticket that a call takes
   at its begin, and what it counts is in the stream. */
#include "faults/record.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/io.h"
#include "faults/real.h"

/* A short recording takes few, and who needs them under the lock does not hold it long. */
#define POPULATE_BYTES ((size_t)128 << 10)

#define HUGE_BYTES ((uint64_t)2 << 20)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* At an address that huge pages can have: those of the file begin at multiples of their size. */
static uint8_t *record_map_file(int fd, uint64_t bytes)
{
    // cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping is given
    uint8_t *room = mmap(NULL, bytes + HUGE_BYTES, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return MAP_FAILED;
    }
    uint64_t before = -(uintptr_t)room % HUGE_BYTES;
    uint8_t *map =
        mmap(room + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (map == MAP_FAILED) {
        int failure = errno;
        (void)munmap(room, bytes + HUGE_BYTES);
        errno = failure;
        return MAP_FAILED;
    }
    if (before > 0) {
        (void)munmap(room, before);
    }
    if (before < HUGE_BYTES) {
        (void)munmap(map + bytes, HUGE_BYTES - before);
    }
    return map;
}

/* The records, and behind them what their processes share. */
static int record_map(record_log_t *log, int fd, size_t size_bytes, share_t **share)
{
    uint64_t share_bytes = share == NULL ? 0 : io_whole_pages(sizeof(share_t));
    uint64_t file_bytes = io_whole_pages(size_bytes) + share_bytes;
    bool create = size_bytes > 0;
    if (create && real_get()->ftruncate(fd, (off_t)file_bytes) != 0) {
        return errno;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return errno;
    }
    file_bytes = (uint64_t)st.st_size;
    if (file_bytes < TP_TRACE_HEADER_SIZE + share_bytes || file_bytes % IO_PAGE_BYTES != 0) {
        return EINVAL;
    }
    uint8_t *map = record_map_file(fd, file_bytes);
    if (map == MAP_FAILED) {
        return errno;
    }
    log->header = (tp_trace_header_t *)(void *)map;
    log->size_bytes = file_bytes;
    if (share == NULL) {
        return 0;
    }
    *share = (share_t *)(void *)(map + file_bytes - share_bytes);
    if (create && !share_init(*share)) {
        return ENOSPC;
    }
    if (create) {
        (*share)->stream_bytes = size_bytes;
        log->header->calls = file_bytes - share_bytes + offsetof(share_t, calls);
    }
    log->size_bytes = (*share)->stream_bytes;
    return 0;
}

static uint64_t record_used(const record_log_t *log)
{
    return atomic_load_explicit(&log->header->committed, memory_order_relaxed);
}

/* Up to where pages are there; what other processes have written is there already. */
static uint64_t record_populated(const record_log_t *log)
{
    uint64_t populated = atomic_load_explicit(&log->populated, memory_order_relaxed);
    uint64_t used = populated == 0 ? 0 : record_used(log) / IO_PAGE_BYTES * IO_PAGE_BYTES;

    return used > populated ? used : populated;
}

/* Threads that do the same at once do no harm. */
static bool record_populate(record_log_t *log, uint64_t need)
{
    for (uint64_t at = record_populated(log); at < need; at = record_populated(log)) {
        uint64_t step = log->size_bytes - at;
        uint8_t *from = (uint8_t *)log->header + at;

        if (step > POPULATE_BYTES) {
            step = POPULATE_BYTES;
        }
        /* EINVAL: a kernel before 5.14; the pages then come one by one as they are touched. */
        if (madvise(from, step, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
            return false;
        }
        atomic_store_explicit(&log->populated, at + step, memory_order_relaxed);
    }
    return true;
}

/* Early enough that nobody is there yet. Only an extent of which something is there can be made one
page. */
static void record_make_huge(record_log_t *log, uint64_t used)
{
    uint64_t at = (used / HUGE_BYTES + 1) * HUGE_BYTES;
    uint8_t *from = (uint8_t *)log->header + at;
    uint64_t done = atomic_load_explicit(&log->huge, memory_order_relaxed);

    if (used % HUGE_BYTES < HUGE_BYTES / 2 || at < done || log->size_bytes < HUGE_BYTES
        || at > log->size_bytes - HUGE_BYTES
        || !atomic_compare_exchange_strong(&log->huge, &done, at + HUGE_BYTES)) {
        return;
    }
    if (madvise(from, IO_PAGE_BYTES, MADV_POPULATE_WRITE) != 0
        || madvise(from, HUGE_BYTES, MADV_COLLAPSE) != 0) {
        atomic_store(&log->huge, UINT64_MAX);
    }
}

void record_populate_ahead(record_log_t *log)
{
    if (log->header == NULL) {
        return;
    }
    uint64_t used = record_used(log);
    record_make_huge(log, used);
    uint64_t need = used + POPULATE_BYTES / 2;
    /* Where there is no room for them, the record that needs them will say so. */
    (void)record_populate(log, need < log->size_bytes ? need : log->size_bytes);
}

int record_open(record_log_t *log, const char *magic, const char *path, size_t size_bytes,
                bool attach, share_t **share)
{
    int flags = O_RDWR | O_CLOEXEC | (attach ? 0 : O_CREAT | O_TRUNC);
    int fd = real_get()->open(path, flags, 0644);
    if (fd < 0) {
        return errno;
    }
    int failure = record_map(log, fd, attach ? 0 : size_bytes, share);
    (void)real_get()->close(fd);
    if (failure != 0) {
        return failure;
    }
    if (!record_populate(log, TP_TRACE_HEADER_SIZE)) {
        log->header = NULL;
        return ENOSPC;
    }
    if (attach) {
        return memcmp(log->header->magic, magic, sizeof(log->header->magic)) == 0 ? 0 : EINVAL;
    }
    memcpy(log->header->magic, magic, sizeof(log->header->magic));
    atomic_store_explicit(&log->header->committed, TP_TRACE_HEADER_SIZE, memory_order_release);
    return 0;
}

void record_claim(record_log_t *log)
{
    uint32_t nobody = 0;

    if (log->header != NULL) {
        (void)atomic_compare_exchange_strong(&log->header->pid, &nobody, (uint32_t)getpid());
    }
}

uint64_t record_ticket(const record_log_t *log)
{
    return log->header == NULL ? 0
                               : atomic_load_explicit(&log->header->events, memory_order_acquire);
}

/* It may have stored the length and not the number. */
void record_recover(record_log_t *log)
{
    if (log->header == NULL) {
        return;
    }
    uint64_t events = 0;
    for (uint64_t at = TP_TRACE_HEADER_SIZE; at < record_used(log); events++) {
        at += ((const tp_trace_record_t *)(const void *)((uint8_t *)log->header + at))->total;
    }
    atomic_store_explicit(&log->header->events, events, memory_order_release);
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

static bool record_is_full(const record_log_t *log)
{
    return (atomic_load_explicit(&log->header->flags, memory_order_relaxed) & TP_TRACE_OVERFLOW)
           != 0;
}

uint8_t *record_reserve(record_log_t *log, const record_op_t *op, size_t payload_bytes)
{
    size_t total = (TP_TRACE_RECORD_SIZE + payload_bytes + TP_TRACE_ALIGN - 1) / TP_TRACE_ALIGN
                   * TP_TRACE_ALIGN;
    if (log->header == NULL || record_is_full(log)) {
        return NULL;
    }
    uint64_t used = record_used(log);
    if (total > UINT32_MAX || total > log->size_bytes - used
        || !record_populate(log, used + total)) {
        record_set_flag(log, TP_TRACE_OVERFLOW);
        return NULL;
    }
    if (record_is_starved(op->result)) {
        record_set_flag(log, TP_TRACE_STARVED);
    }
    uint8_t *at = (uint8_t *)log->header + used;
    /* A process that was killed here has left what it had begun; no byte of it is padding. */
    memset(at + total - TP_TRACE_ALIGN, 0, TP_TRACE_ALIGN);
    *(tp_trace_record_t *)(void *)at = (tp_trace_record_t){
        .total = (uint32_t)total,
        .kind = op->kind,
        .flags = op->flags,
        .seq = record_ticket(log) + 1,
        .file = op->file,
        .thread = op->thread,
        .offset = op->offset,
        .length = op->length,
        .result = op->result,
        .hash = op->hash,
        .began = op->began,
    };
    return at + TP_TRACE_RECORD_SIZE;
}

void record_commit(record_log_t *log)
{
    uint64_t used = record_used(log);
    const tp_trace_record_t *record = (const void *)((const uint8_t *)log->header + used);

    used += record->total;
    atomic_store_explicit(&log->header->committed, used, memory_order_release);
    atomic_store_explicit(&log->header->events, record_ticket(log) + 1, memory_order_release);
    /* Where the next record goes nobody has been yet: the line comes while the program works. */
    __builtin_prefetch((const uint8_t *)log->header + used, 1);
    if (log->told != NULL) {
        log->told(record);
    }
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
