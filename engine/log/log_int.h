/** Private to log/: the handle, positions, and the block and slot primitives. */
#ifndef LOG_LOG_INT_H
#define LOG_LOG_INT_H

#include "log/log.h"
#include "log/log_block.h"

struct log {
    env_t *env;
    os_file_t *file;
    log_file_info_t info;
    const log_format_t *format;
    uint64_t area_size;
    log_checkpoint_t slots[2]; /* valid slots, newest first */
    uint32_t n_slots;
    log_checkpoint_t ckpt; /* in force */

    /* Valid once writable. buf holds the log from base on, in blocks; payload is in place, headers
    are stamped when a block is written. */
    bool writable;
    bool write_through; /* each group is written as it is appended */
    uint32_t epoch;
    byte *buf;
    size_t buf_size;
    lsn_t base; /* block start of the written LSN */
    lsn_t lsn;
    lsn_t written_lsn;
    lsn_t reserved_lsn; /* up to here log_reserve() has told of room */
    lsn_t flushed_lsn;
};

/** As log_open_path(). to_convert: a format that can only be read will do. */
WARN_UNUSED dberr_t log_open_any(env_t *env, const char *path, bool to_convert, log_t **out);

/** File offset of the block that starts at lsn. */
uint64_t log_file_offset(const log_t *log, lsn_t block_lsn);

/** First byte after the last block that holds log up to lsn. */
lsn_t log_blocks_end(lsn_t lsn);

/** Sets number, epoch, used bytes and CRC of a block; the first group offset is in place. */
void log_block_stamp(byte *block, lsn_t block_lsn, uint32_t epoch, uint32_t used);

/** Number and CRC as they must be for the block that starts at lsn? */
bool log_block_is_valid(const byte *block, lsn_t block_lsn);

/** Writes the checkpoint into its slot and fsyncs; start is set by log_start_writing. */
WARN_UNUSED dberr_t log_slot_write(log_t *log, const log_checkpoint_t *ckpt, bool start);

/** The header block, and the block of a checkpoint slot. */
void log_header_encode(byte block[LOG_BLOCK_SIZE], const log_file_info_t *info);
void log_slot_encode(byte block[LOG_BLOCK_SIZE], const log_checkpoint_t *ckpt);

/** fsync; what was written is durable then. */
WARN_UNUSED dberr_t log_sync(log_t *log);

#endif
