/* A copy that follows the log while it is written. Beside log_write.c; a hot backup has one.

    source   ... circular: C ........ durable | not yet
    copy     header, slots | block of C ...... durable      straight on, from the start of its area

1. The copy's area starts with the block of C and is longer than what it holds: it never wraps
   around, however often the source has.
2. (I20) What is copied has not been overwritten: who gives up log (a checkpoint) lets the copy
   follow first.
3. The block in which the durable log ended is copied again: more has come into it.
4. Header and slot are written by log_copy_seal() only. Until then it is no log.
5. The slot says log_optimize_ddl, whatever the source's says: both modes may lie behind C, and only
   that one lets no page skip doublewrite in a recovery that may have to read it after a crash
   (I13). */
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "log/log_int.h"

#define COPY_BLOCKS 128U /* of one read and one write */

struct log_copy {
    log_t *log;
    env_t *to;
    os_file_t *file;
    log_checkpoint_t ckpt;
    lsn_t start;  /* of the block of C */
    lsn_t copied; /* everything before is in the file */
    byte blocks[COPY_BLOCKS * LOG_BLOCK_SIZE];
};

dberr_t log_copy_create(log_t *log, env_t *to, const char *path, log_copy_t **out)
{
    log_copy_t *copy = calloc(1, sizeof(*copy));
    CHECK(log->writable);
    dberr_t err;
    if (copy == NULL) {
        return err_set(&to->err, DB_OUT_OF_MEMORY, "%s: no memory for a copy of the log", path);
    }
    copy->log = log;
    copy->to = to;
    copy->ckpt = log->ckpt;
    copy->ckpt.loads = log->format->unlogged_loads ? LOG_LOADS_UNLOGGED : LOG_LOADS_LOGGED;
    copy->start = lsn_block(log->ckpt.lsn);
    copy->copied = log->ckpt.lsn;
    err = env_open(to, path, OS_CREATE_NEW, &copy->file);
    if (err != DB_SUCCESS) {
        free(copy);
        return err;
    }
    *out = copy;
    return DB_SUCCESS;
}

void log_copy_free(log_copy_t *copy)
{
    if (copy != NULL) {
        env_close(copy->to, copy->file);
        free(copy);
    }
}

lsn_t log_copy_start_lsn(const log_copy_t *copy)
{
    return copy->ckpt.lsn;
}

lsn_t log_copy_end_lsn(const log_copy_t *copy)
{
    return copy->copied;
}

/** Copies n blocks that do not wrap around in the source. */
static dberr_t blocks_copy(log_copy_t *copy, lsn_t from, uint32_t n)
{
    log_t *log = copy->log;
    size_t len = (size_t)n * LOG_BLOCK_SIZE;
    size_t n_read = 0;
    dberr_t err =
        env_read(log->env, log->file, log_file_offset(log, from), copy->blocks, len, &n_read);

    if (err != DB_SUCCESS) {
        return err_set(&copy->to->err, err, "%s", log->env->err.msg);
    }
    for (uint32_t i = 0; i < n; i++) {
        lsn_t block_lsn = from + (lsn_t)i * LOG_BLOCK_SIZE;
        if (n_read != len
            || !log_block_is_valid(copy->blocks + (size_t)i * LOG_BLOCK_SIZE, block_lsn)) {
            return err_set(&copy->to->err, DB_CORRUPTION,
                           "%s: the block at LSN %" PRIu64 " is damaged", log->file->path,
                           block_lsn);
        }
    }
    return env_write(copy->to, copy->file, LOG_FILE_HDR_SIZE + (from - copy->start), copy->blocks,
                     len);
}

dberr_t log_copy_follow(log_copy_t *copy)
{
    const log_t *log = copy->log;
    lsn_t end = log_blocks_end(log->flushed_lsn);
    lsn_t from = lsn_block(copy->copied);

    if (copy->copied >= log->flushed_lsn) {
        return DB_SUCCESS;
    }
    CHECK(log_blocks_end(log->written_lsn) - from <= log->area_size);
    while (from < end) {
        uint64_t to_wrap = log->info.file_size - log_file_offset(log, from);
        uint64_t len = end - from < to_wrap ? end - from : to_wrap;
        uint32_t n = len < sizeof(copy->blocks) ? (uint32_t)(len / LOG_BLOCK_SIZE) : COPY_BLOCKS;
        TRY(blocks_copy(copy, from, n));
        from += (lsn_t)n * LOG_BLOCK_SIZE;
    }
    copy->copied = log->flushed_lsn;
    return DB_SUCCESS;
}

dberr_t log_copy_seal(log_copy_t *copy)
{
    const log_t *log = copy->log;
    uint64_t needed = 2 * (log_blocks_end(copy->copied) - copy->start);
    log_file_info_t info = log->info;
    CHECK(log->written_lsn == copy->copied && log->flushed_lsn == copy->copied);
    info.start_lsn = copy->start;
    if (info.file_size - LOG_FILE_HDR_SIZE < needed) {
        info.file_size = LOG_FILE_HDR_SIZE + needed;
    }
    byte header[LOG_FILE_HDR_SIZE] = {0};
    log_header_encode(header + LOG_HDR_OFFSET, &info);
    log_slot_encode(header + LOG_SLOT_OFFSET(copy->ckpt.no % 2), &copy->ckpt);
    TRY(env_truncate(copy->to, copy->file, info.file_size));
    TRY(env_write(copy->to, copy->file, 0, header, sizeof(header)));
    return env_sync(copy->to, copy->file);
}
