/* The log writer: buffer, block writes, fsync, checkpoint slots. Beside log_read.c, above
log_file.c.

    file      ... |== full block ==|== last block, partly used ==|  stale or zero
    buf                            |base ... written_lsn ... lsn|
                                          flushed_lsn <= written_lsn <= lsn

1. (I20) A block is written only while the area still has room between the block of the last
   checkpoint and its end: nothing at or after the checkpoint is ever overwritten.
2. (I21) Each block carries the epoch of this handle, which a slot made durable before; the block at
   which an older log ended is cut and durable before the first append.
3. Every write ends at the end of a group. The block that holds it is written again, in place and
   with the same bytes before that point, when more follows: a 512-byte block is written whole or
   not at all.
4. (I19) A checkpoint is written only when its marker is durable, into the slot that is not in
   force.
5. (I23) After an I/O failure nothing more reaches the file, and no LSN becomes written or durable.
   */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "log/log_int.h"

#define LOG_BUF_SIZE_MIN ((size_t)64 * 1024)
#define LOG_MARGIN_DIVISOR 8U /* see log_capacity() */

lsn_t log_lsn(const log_t *log)
{
    return log->lsn;
}

lsn_t log_flushed_lsn(const log_t *log)
{
    return log->flushed_lsn;
}

lsn_t log_written_lsn(const log_t *log)
{
    return log->written_lsn;
}

lsn_t log_checkpoint_lsn(const log_t *log)
{
    return log->ckpt.lsn;
}

const log_checkpoint_t *log_last_checkpoint(const log_t *log)
{
    return &log->ckpt;
}

uint64_t log_capacity(const log_t *log)
{
    return log->area_size - log->area_size / LOG_MARGIN_DIVISOR;
}

uint64_t log_age_max(const log_t *log)
{
    /* A block may be begun at either end. */
    return log->area_size - log->area_size / (2 * LOG_MARGIN_DIVISOR)
           - (uint64_t)2 * LOG_BLOCK_SIZE;
}

void log_reserve(log_t *log, uint64_t len_bytes)
{
    CHECK(log->lsn - log->ckpt.lsn + len_bytes <= log_capacity(log));
    log->reserved_lsn = log->lsn + len_bytes;
}

bool log_is_reserved(const log_t *log, size_t len)
{
    return log_lsn_add(log->lsn, len) <= log->reserved_lsn;
}

lsn_t log_blocks_end(lsn_t lsn)
{
    return lsn_offset(lsn) == LOG_BLOCK_HDR_SIZE ? lsn_block(lsn) : lsn_block(lsn) + LOG_BLOCK_SIZE;
}

/** Would blocks up to `end` leave the log from the last checkpoint on alone? (I20) */
static bool area_has_room(const log_t *log, lsn_t end)
{
    return end - lsn_block(log->ckpt.lsn) <= log->area_size;
}

/** Writes stamped blocks [from, end) that do not wrap around; they hold the new LSNs [start,
lsn_end). */
static dberr_t blocks_write(log_t *log, const byte *blocks, lsn_t from, lsn_t end, lsn_t start,
                            lsn_t lsn_end)
{
    size_t len = (size_t)(end - from);
    CHECK(area_has_room(log, end));
    PROBE_MARK(log->env->probe, "log_write start=%" PRIu64 " end=%" PRIu64, start, lsn_end);
    PROBE_POINT(log->env->probe, "log.before_write");
    TRY(env_write(log->env, log->file, log_file_offset(log, from), blocks, len));
    log->env->stats.os_log_written += len;
    PROBE_POINT(log->env->probe, "log.written");
    return DB_SUCCESS;
}

/** Stamps and writes everything in the buffer, in one piece or in two at the end of the area. */
static dberr_t buffer_write(log_t *log)
{
    lsn_t end = log_blocks_end(log->lsn);
    lsn_t wrap = log->base + log->area_size - (log->base - log->info.start_lsn) % log->area_size;
    lsn_t middle = end < wrap ? end : wrap;
    lsn_t first_end = end <= wrap ? log->lsn : wrap;
    for (lsn_t block = log->base; block < end; block += LOG_BLOCK_SIZE) {
        uint32_t used = block == lsn_block(log->lsn) ? lsn_offset(log->lsn) : LOG_BLOCK_SIZE;

        log_block_stamp(log->buf + (block - log->base), block, log->epoch, used);
    }
    TRY(blocks_write(log, log->buf, log->base, middle, log->written_lsn, first_end));
    if (middle < end) {
        log->env->stats.log_wraps++;
        TRY(blocks_write(log, log->buf + (middle - log->base), middle, end, middle, log->lsn));
    }
    log->written_lsn = log->lsn;
    memmove(log->buf, log->buf + (lsn_block(log->lsn) - log->base), LOG_BLOCK_SIZE);
    log->base = lsn_block(log->lsn);
    return DB_SUCCESS;
}

dberr_t log_write_up_to(log_t *log, lsn_t lsn, bool sync)
{
    CHECK(lsn <= log->lsn);
    if (lsn > log->written_lsn) {
        if (log->env->io_failed) {
            return err_set(&log->env->err, DB_IO_ERROR,
                           "%s: write refused after an earlier I/O failure", log->file->path);
        }
        TRY(buffer_write(log));
    }
    if (sync && lsn > log->flushed_lsn) {
        TRY(log_sync(log));
        PROBE_POINT(log->env->probe, "log.synced");
    }
    return DB_SUCCESS;
}

/** Makes room in the buffer for blocks up to `end`, all included. */
static dberr_t buffer_reserve(log_t *log, lsn_t end)
{
    size_t size = log->buf_size;
    if (end - log->base > log->buf_size && log->lsn > log->written_lsn) {
        log->env->stats.log_buffer_full++;
        TRY(log_write_up_to(log, log->lsn, false));
    }
    if (end - log->base <= log->buf_size) {
        return DB_SUCCESS;
    }
    while (size < end - log->base) {
        size *= 2;
    }
    byte *buf = realloc(log->buf, size);
    dberr_t err;
    if (buf == NULL) {
        err = err_set(&log->env->err, DB_OUT_OF_MEMORY, "out of memory for the log buffer");
        env_poison(log->env);
        return err;
    }
    log->buf = buf;
    log->buf_size = size;
    return DB_SUCCESS;
}

/** Copies a group into the buffer from log->lsn on. */
static void buffer_put(log_t *log, const byte *group, size_t len)
{
    byte *block = log->buf + (lsn_block(log->lsn) - log->base);

    if (mach_read_2(block + LOG_BLOCK_FIRST_GROUP) == 0) {
        mach_write_2(block + LOG_BLOCK_FIRST_GROUP, lsn_offset(log->lsn));
    }
    while (len > 0) {
        uint32_t offset = lsn_offset(log->lsn);
        size_t room = LOG_PAYLOAD_END - offset;
        size_t n = len < room ? len : room;

        memcpy(block + offset, group, n);
        log->lsn = log_lsn_add(log->lsn, n);
        group += n;
        len -= n;
        if (n == room) {
            block += LOG_BLOCK_SIZE;
            memset(block, 0, LOG_BLOCK_SIZE);
        }
    }
}

void log_set_write_through(log_t *log, bool on)
{
    log->write_through = on;
}

void log_append(log_t *log, const byte *group, size_t len, lsn_t *start_lsn, lsn_t *end_lsn)
{
    lsn_t start = log->lsn;
    CHECK(log->writable && len > 0 && len <= LOG_GROUP_LEN_MAX);
    lsn_t end = log_lsn_add(start, len);
    CHECK(log->env->io_failed || area_has_room(log, log_blocks_end(end)));
    if (!log->env->io_failed
        && buffer_reserve(log, lsn_block(end) + LOG_BLOCK_SIZE) == DB_SUCCESS) {
        buffer_put(log, group, len);
    }
    log->lsn = end;
    PROBE_NOTE(log->env->probe, "log_group start=%" PRIu64 " end=%" PRIu64, start, end);
    if (log->write_through && !log->env->io_failed) {
        /* A failure poisons the handle, and the call at hand is told when it ends. */
        (void)!log_write_up_to(log, end, false);
    }
    if (start_lsn != NULL) {
        *start_lsn = start;
    }
    if (end_lsn != NULL) {
        *end_lsn = end;
    }
}

void log_append_rec(log_t *log, const redo_rec_t *rec, lsn_t *end_lsn)
{
    redo_group_t group;

    redo_group_init(&group, log->format);
    redo_group_add(&group, rec);
    redo_group_finish(&group);
    log_append(log, group.bytes, group.len, NULL, end_lsn);
    redo_group_free(&group);
}

/** Loads the block in which the log goes on, and cuts it there: what lies behind `end` in it
belongs to a group that was never complete. */
static dberr_t last_block_load(log_t *log, lsn_t end)
{
    lsn_t block_lsn = lsn_block(end);
    uint32_t kept = lsn_offset(end);
    memset(log->buf, 0, LOG_BLOCK_SIZE);
    if (kept == LOG_BLOCK_HDR_SIZE) {
        return DB_SUCCESS;
    }
    size_t n_read = 0;
    TRY(env_read(log->env, log->file, log_file_offset(log, block_lsn), log->buf, LOG_BLOCK_SIZE,
                 &n_read));
    if (n_read != LOG_BLOCK_SIZE || !log_block_is_valid(log->buf, block_lsn)
        || !log_block_is_sane(log->buf) || mach_read_2(log->buf + LOG_BLOCK_USED) < kept) {
        return err_refuse(&log->env->err, DB_CORRUPTION, REFUSAL_LOG_DAMAGED,
                          "%s: the log does not end at LSN %" PRIu64, log->file->path, end);
    }
    memset(log->buf + kept, 0, LOG_BLOCK_SIZE - kept);
    uint32_t first_group = mach_read_2(log->buf + LOG_BLOCK_FIRST_GROUP);
    if (first_group >= kept) {
        mach_write_2(log->buf + LOG_BLOCK_FIRST_GROUP, 0);
    }
    return DB_SUCCESS;
}

/** Takes the next epoch and makes it durable, first in a slot, then in the block of the log's end.
*/
static dberr_t epoch_start(log_t *log, const log_checkpoint_t *ckpt)
{
    log_checkpoint_t start = *ckpt;
    lsn_t block_lsn = lsn_block(log->lsn);
    for (uint32_t i = 0; i < log->n_slots; i++) {
        start.epoch = start.epoch > log->slots[i].epoch ? start.epoch : log->slots[i].epoch;
    }
    if (start.epoch == UINT32_MAX) {
        return err_refuse(&log->env->err, DB_UNRECOVERABLE, REFUSAL_LOG_DAMAGED,
                          "%s: no epoch is left", log->file->path);
    }
    start.epoch++;
    start.no++;
    log->epoch = start.epoch;
    TRY(log_slot_write(log, &start, true));
    log_block_stamp(log->buf, block_lsn, log->epoch, lsn_offset(log->lsn));
    TRY(blocks_write(log, log->buf, block_lsn, block_lsn + LOG_BLOCK_SIZE, log->lsn, log->lsn));
    return log_sync(log);
}

dberr_t log_start_writing(log_t *log, const log_checkpoint_t *ckpt, lsn_t end)
{
    CHECK(!log->writable);
    /* Half of the margin must be left for the marker of the next checkpoint, else a hostile or a
    much too full log would run into the CHECK of log_append. */
    uint64_t room = log->area_size / (2 * LOG_MARGIN_DIVISOR);
    log->ckpt = *ckpt;
    dberr_t err;
    if (!lsn_is_credible(end) || !lsn_is_credible(ckpt->lsn) || ckpt->lsn < log->info.start_lsn
        || end < ckpt->marker_lsn || end < ckpt->lsn || end >= LOG_LSN_LIMIT / 2
        || !area_has_room(log, log_blocks_end(end) + room)) {
        return err_refuse(&log->env->err, DB_CORRUPTION, REFUSAL_LOG_DAMAGED,
                          "%s: the log cannot go on at LSN %" PRIu64 " after checkpoint %" PRIu64,
                          log->file->path, end, ckpt->lsn);
    }
    log->buf = malloc(LOG_BUF_SIZE_MIN);
    if (log->buf == NULL) {
        return err_set(&log->env->err, DB_OUT_OF_MEMORY, "out of memory for the log buffer");
    }
    log->buf_size = LOG_BUF_SIZE_MIN;
    log->base = lsn_block(end);
    log->lsn = end;
    log->written_lsn = end;
    err = last_block_load(log, end);
    AND_THEN(err, epoch_start(log, ckpt));
    if (err != DB_SUCCESS) {
        free(log->buf);
        log->buf = NULL;
        return err;
    }
    log->writable = true;
    return DB_SUCCESS;
}

dberr_t log_checkpoint_write(log_t *log, lsn_t c, lsn_t marker_lsn, log_loads_t loads)
{
    log_checkpoint_t next = {.no = log->ckpt.no + 1,
                             .lsn = c,
                             .marker_lsn = marker_lsn,
                             .epoch = log->epoch,
                             .loads = loads};
    CHECK(log->writable && lsn_is_boundary(c) && lsn_is_boundary(marker_lsn));
    CHECK(c >= log->ckpt.lsn && marker_lsn >= c);
    /* Writes end at group ends: a durable first byte means a durable group. */
    CHECK(marker_lsn < log->flushed_lsn);
    TRY(log_slot_write(log, &next, false));
    log->env->stats.checkpoints++;
    return DB_SUCCESS;
}
