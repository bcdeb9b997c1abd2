/** Tears, corrupts and describes one write.

Above io.c and record.c, below inject.c.

          write at offset, length                    sector i of the write is the i-th aligned chunk
      ....|=====|==========|==========|===|....      of the file that the write touches; the first
           0     1          2          3             and the last may be covered in part only

1. Bytes outside the write, and sectors of it that are not kept, keep their old content, or stay
   beyond the end of the file.
2. Nothing here allocates from the program's heap. */
#include "faults/damage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "faults/hash.h"
#include "faults/layer.h"
#include "faults/real.h"

#define ROUND8(n) (((n) + 7) / 8 * 8)

typedef struct range {
    uint64_t from; /* within the write */
    uint64_t to;
} range_t;

static range_t sector_range(const damage_t *damage, uint64_t i)
{
    uint64_t start = (damage->first + i) * damage->sector;
    uint64_t end = start + damage->sector;
    range_t range = {0, damage->length};

    if (start > damage->offset) {
        range.from = start - damage->offset;
    }
    if (end < damage->offset + damage->length) {
        range.to = end - damage->offset;
    }
    return range;
}

static uint8_t sector_state(const damage_t *damage, const damage_keep_t *keep, uint64_t i)
{
    range_t range = sector_range(damage, i);

    switch (keep->keep) {
    case PLAN_KEEP_ALL:
        return TP_SECTOR_KEPT;
    case PLAN_KEEP_PREFIX:
        return i < keep->count;
    case PLAN_KEEP_SUFFIX:
        return damage->sectors - i <= keep->count;
    case PLAN_KEEP_MASK:
        return i < keep->mask_len && keep->mask[i] == '1';
    case PLAN_KEEP_BYTES:
        if (range.to <= keep->count) {
            return TP_SECTOR_KEPT;
        }
        return range.from < keep->count ? TP_SECTOR_PARTLY : TP_SECTOR_LOST;
    default:
        return TP_SECTOR_LOST;
    }
}

bool damage_prepare(damage_t *damage, const io_call_t *call, const record_op_t *op, uint32_t sector,
                    const damage_keep_t *keep)
{
    *damage = (damage_t){.fd = call->fd,
                         .sector = sector,
                         .offset = op->offset,
                         .length = op->length,
                         .bytes = keep->count};
    damage->first = op->offset / sector;
    if (op->length > 0) {
        damage->sectors = (op->offset + op->length - 1) / sector - damage->first + 1;
    }
    damage->mapped_bytes = damage->length + damage->sectors + 1;
    uint8_t *at = io_map_memory(damage->mapped_bytes);
    if (at == NULL) {
        return false;
    }
    damage->data = at;
    damage->map = at + damage->length;
    for (int i = 0; i < call->count; i++) {
        if (call->parts[i].iov_len > 0) {
            memcpy(at, call->parts[i].iov_base, call->parts[i].iov_len);
            at += call->parts[i].iov_len;
        }
    }
    for (uint64_t i = 0; i < damage->sectors; i++) {
        damage->map[i] = sector_state(damage, keep, i);
    }
    return true;
}

void damage_flip(damage_t *damage)
{
    for (uint64_t i = 0; i < damage->sectors; i++) {
        range_t range = sector_range(damage, i);
        if (damage->map[i] != TP_SECTOR_LOST) {
            damage->data[range.from + (range.to - range.from) / 2] ^= 1;
        }
    }
    damage->flipped = true;
}

/* Through /proc: the program's descriptor may be write-only, its name may be gone. */
static bool old_read(const damage_t *damage, uint8_t *out)
{
    char link[64];
    int fd;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", damage->fd);
    fd = real_get()->open(link, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    errno = 0;
    uint64_t done = 0;
    bool known = io_read_at(fd, out, damage->length, damage->offset, &done) || errno == 0;
    (void)real_get()->close(fd);
    return known;
}

void damage_describe(damage_t *damage, record_op_t *op, uint32_t action, int error)
{
    struct iovec whole = {damage->data, damage->length};
    size_t prefix = op->kind == TP_OP_FAULT ? 8 : 0;
    uint32_t words[4] = {action, (uint32_t)error, damage->sector, (uint32_t)damage->sectors};
    op->hash = hash_buffers(&whole, 1, damage->length);
    uint8_t *at =
        record_reserve(layer_log(), op, prefix + 8 + ROUND8(damage->sectors) + 2 * damage->length);
    if (at == NULL) {
        return;
    }
    tp_trace_record_t *record = (tp_trace_record_t *)(void *)(at - TP_TRACE_RECORD_SIZE);
    damage->result = &record->result;
    memcpy(at, (const uint8_t *)words + 8 - prefix, prefix + 8);
    at += prefix + 8;
    memcpy(at, damage->map, damage->sectors);
    at += ROUND8(damage->sectors);
    if (!old_read(damage, at)) {
        record->flags |= TP_FAULT_OLD_UNKNOWN;
    }
    memcpy(at + damage->length, damage->data, damage->length);
}

/* The bytes of sector i that are to be written. */
static range_t kept_range(const damage_t *damage, uint64_t i)
{
    range_t range = sector_range(damage, i);

    if (damage->flipped || damage->map[i] == TP_SECTOR_KEPT) {
        return range;
    }
    range.to = damage->map[i] == TP_SECTOR_PARTLY ? damage->bytes : range.from;
    return range;
}

static bool range_write(const damage_t *damage, range_t range)
{
    return io_write_at(damage->fd, damage->data + range.from, range.to - range.from,
                       damage->offset + range.from);
}

int damage_apply(const damage_t *damage)
{
    const real_calls_t *real = real_get();
    /* O_APPEND would ignore the offsets, O_DIRECT would ask for aligned memory. */
    int flags = real->fcntl(damage->fd, F_GETFL);
    int in_the_way = flags < 0 ? 0 : flags & (O_APPEND | O_DIRECT);
    range_t run = {0, 0};
    if (in_the_way != 0 && real->fcntl(damage->fd, F_SETFL, flags & ~in_the_way) != 0) {
        return errno;
    }
    int failure = 0;
    for (uint64_t i = 0; i < damage->sectors && failure == 0; i++) {
        range_t range = kept_range(damage, i);
        if (range.from == range.to) {
            continue;
        }
        if (range.from == run.to) {
            run.to = range.to;
            continue;
        }
        failure = range_write(damage, run) ? 0 : errno;
        run = range;
    }
    if (failure == 0 && !range_write(damage, run)) {
        failure = errno;
    }
    if (in_the_way != 0) {
        (void)real->fcntl(damage->fd, F_SETFL, flags);
    }
    return failure;
}

void damage_commit(const damage_t *damage, int failure)
{
    if (damage->result == NULL) {
        return;
    }
    int64_t bytes = 0;
    for (uint64_t i = 0; i < damage->sectors; i++) {
        range_t range = kept_range(damage, i);
        bytes += (int64_t)(range.to - range.from);
    }
    *damage->result = failure == 0 ? bytes : -(int64_t)failure;
    record_commit(layer_log());
}

void damage_release(damage_t *damage)
{
    (void)munmap(damage->data, damage->mapped_bytes);
}
