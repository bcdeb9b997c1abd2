/** Where things lie in the redo file, in its blocks and in an LSN (FORMAT.md, "Redo log file").
Shared by the writer, the readers, and whoever judges the bytes from outside. */
#ifndef LOG_LOG_BLOCK_H
#define LOG_LOG_BLOCK_H

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

/** Are used bytes and first group offset of a valid block possible? */
bool log_block_is_sane(const byte *block);

#endif
