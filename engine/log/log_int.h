/** Private to log/: the handle, positions, and the block and slot primitives. */
#ifndef LOG_LOG_INT_H
#define LOG_LOG_INT_H

#include "log/log.h"

#define LOG_HDR_OFFSET 0U
#define LOG_SLOT_OFFSET(slot) ((slot) == 0 ? 512U : 1536U)
#define LOG_CRC_OFFSET 508U
#define LOG_PAYLOAD_END (LOG_BLOCK_SIZE - LOG_BLOCK_TRL_SIZE)

#define LOG_BLOCK_NO 0
#define LOG_BLOCK_EPOCH 4
#define LOG_BLOCK_USED 8
#define LOG_BLOCK_FIRST_GROUP 10

/** LSNs and numbers on disk are below this, so that no later sum or step can overflow. */
#define LOG_LSN_LIMIT ((lsn_t)1 << 62)

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

static inline lsn_t lsn_block(lsn_t lsn)
{
    return lsn - lsn % LOG_BLOCK_SIZE;
}

static inline uint32_t lsn_offset(lsn_t lsn)
{
    return (uint32_t)(lsn % LOG_BLOCK_SIZE);
}

/** Can a group start or end here? */
static inline bool lsn_is_boundary(lsn_t lsn)
{
    return lsn_offset(lsn) >= LOG_BLOCK_HDR_SIZE && lsn_offset(lsn) < LOG_PAYLOAD_END;
}

/** The same for an LSN that came from disk. */
static inline bool lsn_is_credible(lsn_t lsn)
{
    return lsn < LOG_LSN_LIMIT && lsn_is_boundary(lsn);
}

/** The boundary that lies len payload bytes after a boundary. */
lsn_t log_lsn_add(lsn_t lsn, uint64_t len);

/** File offset of the block that starts at lsn. */
uint64_t log_file_offset(const log_t *log, lsn_t block_lsn);

/** Sets number, epoch, used bytes and CRC of a block; the first group offset is in place. */
void log_block_stamp(byte *block, lsn_t block_lsn, uint32_t epoch, uint32_t used);

/** Number and CRC as they must be for the block that starts at lsn? */
bool log_block_is_valid(const byte *block, lsn_t block_lsn);

/** Are used bytes and first group offset of a valid block possible? */
bool log_block_is_sane(const byte *block);

/** Writes the checkpoint into its slot and fsyncs; start is set by log_start_writing. */
WARN_UNUSED dberr_t log_slot_write(log_t *log, const log_checkpoint_t *ckpt, bool start);

/** fsync; what was written is durable then. */
WARN_UNUSED dberr_t log_sync(log_t *log);

#endif
