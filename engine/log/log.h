/** The redo log: one circular file in 512-byte blocks (FORMAT.md, "Redo log file").

File: block 0 header (0 magic "TPLG" (4)  4 format id (4)  8 page size (4)  12 file size (8)  20
start LSN (8)  28 extent pages (4)  32 zero  508 CRC-32C of [0, 508) (4)); block 1 checkpoint
slot 0; block 2 zero; block 3 checkpoint slot 1; from byte 2048 the circular area of blocks. LSNs
count every byte of the area, block headers and trailers included; the block of LSN L lies at 2048 +
(L - start_lsn) mod area size, rounded down to 512.

Block: 0 number (lsn / 512, low 32 bits)  4 epoch (4)  8 bytes used incl. header: 512 = full, 12 ...
507 = last block of the log (2)  10 offset of the first record group that starts in it, or 0 (2)
12 payload  508 CRC-32C of [0, 508) (4).

Convention: start and end of a group are payload positions, lsn % 512 in [12, 508). A group that
ends with the last payload byte of a block ends at byte 12 of the next one. The first group of a
database therefore starts at LOG_FIRST_LSN, not at LOG_START_LSN, which is the first byte of its
block.

Invariants
- (I20) the writer never overwrites [last checkpoint, end).
- (I21) epoch: every open of the log takes an epoch greater than all earlier ones, made durable in a
  checkpoint slot before the first block is written with it. Along the log epochs never decrease; a
  block with a smaller one than its predecessor is a leftover and the soft end. The first block of
  an epoch, cut at the end of the log that was found, is durable before anything is appended:
  otherwise a later block of the new epoch could complete an unfinished group of the old one.
- (I19) checkpoint: the caller orders it (buf/buf_checkpoint.c); this module writes marker and slot.
*/
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include "log/log_rec.h"
#include "os/os.h"

#define LOG_FILE_NAME "ib_logfile0"
#define LOG_FILE_TMP_NAME "ib_logfile101" /**< a log that is not yet the database's */
#define LOG_BLOCK_SIZE 512U
#define LOG_BLOCK_HDR_SIZE 12U
#define LOG_BLOCK_TRL_SIZE 4U
#define LOG_BLOCK_PAYLOAD 496U
#define LOG_FILE_HDR_SIZE 2048U
#define LOG_START_LSN 8192U /**< of a new database: the first byte of its first log block */
#define LOG_FIRST_LSN                                                                              \
    (LOG_START_LSN + LOG_BLOCK_HDR_SIZE) /**< its first group, checkpoint and marker */
#define LOG_GROUP_LEN_MAX (16U << 20)    /**< bytes of one record group */
#define LOG_GROUP_RECS_MAX (1U << 18)    /**< records of one record group */

typedef struct log log_t;

/** How loads of indexes are written in all of the log from a checkpoint on: mode of its slot. */
typedef enum log_loads {
    LOG_LOADS_LOGGED,   /**< log_optimize_ddl=OFF */
    LOG_LOADS_UNLOGGED, /**< log_optimize_ddl=ON */
    LOG_LOADS_MIXED     /**< both may be there (optimize_ddl_drain=OFF) */
} log_loads_t;

/** A checkpoint slot: 0 magic(4) 4 number(8) 12 C(8) 20 marker LSN(8) 28 epoch(4) 32 mode(4) 36
zero 508 CRC. */
typedef struct log_checkpoint {
    uint64_t no;      /**< grows by 1; slot = no % 2 */
    lsn_t lsn;        /**< C: recovery starts here; always the start of a record group */
    lsn_t marker_lsn; /**< start of the record group that holds OP_CHECKPOINT(C) */
    uint32_t epoch;
    log_loads_t loads;
} log_checkpoint_t;

/** Header facts that survive any torn data page. */
typedef struct log_file_info {
    uint32_t format_id;
    uint32_t page_size;
    uint32_t extent_pages;
    uint64_t file_size;
    lsn_t start_lsn;
} log_file_info_t;

/** Writes a complete new log file (info: file_size a multiple of 512, at least
LOG_FILE_SIZE_MIN_PAGES pages; start_lsn a multiple of 512) under `path`, synced, replacing what is
there. Checkpoint 0 is behind the header of the first block, with epoch 1, and so is its marker,
alone in the log; slot 1 is zero. */
WARN_UNUSED dberr_t log_file_create(env_t *env, const char *path, const log_file_info_t *info,
                                    log_loads_t loads);

/** Brings the log to another format, 0: to the one that took the place of an earlier engine's.
Nothing is done if it has that. DB_UNSUPPORTED with the cause unless the log tells of no change
behind its checkpoint, as after a clean close. The LSN goes on. A new file takes the old one's name
when it is whole, so that a crash leaves either. The directory is locked. */
WARN_UNUSED dberr_t log_convert(env_t *env, uint32_t format_id);

/** Opens LOG_FILE_NAME for reading: header, both slots. DB_UNSUPPORTED: of a format that
log_convert() may bring to one of these. Nothing is written. Caller: log_close(). DB_UNRECOVERABLE
with the cause when the header or both slots are damaged. */
WARN_UNUSED dberr_t log_open(env_t *env, log_t **out);
/** The same under another name: bootstrap opens the file that it will rename to LOG_FILE_NAME. */
WARN_UNUSED dberr_t log_open_path(env_t *env, const char *path, log_t **out);
void log_close(log_t *log); /**< NULL is fine; writes nothing */

/** Before log_start_writing(): fsyncs the log that was found. What a killed process wrote may be in
the page cache only, and nothing may be done on its word that outlives it. */
WARN_UNUSED dberr_t log_sync_found(log_t *log);

const log_file_info_t *log_info(const log_t *log);
/** Valid slots, newest first; *n is 1 or 2. */
void log_checkpoints(const log_t *log, log_checkpoint_t out[2], uint32_t *n);

/* ---- reading: used by recv, check and cli; independent of the write position ---- */

/** A forward reader over record groups (the records of one mtr). */
typedef struct log_reader log_reader_t;

/** Starts at `from`, which must be the start of a record group. Caller: log_reader_free(). */
WARN_UNUSED dberr_t log_reader_create(log_t *log, lsn_t from, log_reader_t **out);
void log_reader_free(log_reader_t *reader);

/** One complete mtr: records recs[0..n), start LSN, end LSN. Valid until the next call. */
typedef struct log_group {
    lsn_t start_lsn;
    lsn_t end_lsn;
    const redo_rec_t *recs;
    uint32_t n_recs;
} log_group_t;

/** Is this the marker that the checkpoint says is there? */
bool log_group_is_marker(const log_group_t *group, const log_checkpoint_t *ckpt);
/** Does it tell of more than file names and checkpoints? Without such a group behind C the data
files are complete. */
bool log_group_is_change(const log_group_t *group);

/** Next complete group; Ends and fillers are not among its records (n_recs
may be 0). DB_NOT_FOUND: the soft end (log_reader_end_lsn() tells where; an incomplete last group is
not part of the log). DB_CORRUPTION: a valid block holds an impossible header, record or group. */
WARN_UNUSED dberr_t log_reader_next(log_reader_t *reader, log_group_t *group);

/** End of the last complete group returned: where the log ends once next() said DB_NOT_FOUND. */
lsn_t log_reader_end_lsn(const log_reader_t *reader);

/* ---- writing ---- */

/** Makes the log writable: it continues at `end` (from the reader) with checkpoint `ckpt` in force.
Takes a new epoch and makes it durable by rewriting `ckpt` with the next number into the alternate
slot, then fsync; then rewrites the block of `end`, cut there, with the new epoch, then fsync.
DB_CORRUPTION when the log cannot go on there: no such end, or less than a sixteenth of the area
free. On success everything before `end` is durable, so call it before the first home write of
recovery (I4). Free log_readers first: they see the file, not the buffer. */
WARN_UNUSED dberr_t log_start_writing(log_t *log, const log_checkpoint_t *ckpt, lsn_t end);

/** From now on log_append() also writes the group. Otherwise the log is written when somebody needs
it, and a crash ends it at one of these few places. */
void log_set_write_through(log_t *log, bool on);

/** Appends one record group (already encoded, with its end) to the log buffer; no I/O unless the
buffer is full, in which case older contents are written, or the log is written through. CHECK: fits
the capacity (log_free_check). After an I/O failure, or when the buffer cannot grow (which poisons
the handle), only the LSN advances: nothing of it can reach the file any more (I23). */
void log_append(log_t *log, const byte *group, size_t len, lsn_t *start_lsn, lsn_t *end_lsn);

/** Encodes and appends one record as a group of its own; end_lsn may be NULL. */
void log_append_rec(log_t *log, const redo_rec_t *rec, lsn_t *end_lsn);

lsn_t log_lsn(const log_t *log);         /**< lsn_current: end of the last appended group */
lsn_t log_flushed_lsn(const log_t *log); /**< lsn_flushed: durable */
lsn_t log_written_lsn(const log_t *log);
lsn_t log_checkpoint_lsn(const log_t *log); /**< lsn_last_checkpoint */
const log_checkpoint_t *log_last_checkpoint(const log_t *log);
/** Checkpoint age in bytes (LSN difference) that ordinary groups must never exceed. Seven eighths
of the area: the rest is for the FILE_NAME records and the marker of the checkpoint that makes room.
*/
uint64_t log_capacity(const log_t *log);
/** The age beyond which an opening for writing refuses the log: markers of checkpoints that could
not move C may have taken half of the rest by then. */
uint64_t log_age_max(const log_t *log);
/** Whoever has made room in the log says so: up to len_bytes (block overhead included) may be
appended before the age exceeds the capacity. CHECK: that is true. Each call replaces the last
one. */
void log_reserve(log_t *log, uint64_t len_bytes);
/** Is there room for a group of len bytes that log_reserve() has told of? */
bool log_is_reserved(const log_t *log, size_t len);

const log_format_t *log_format(const log_t *log);
env_t *log_env(const log_t *log);

/** Writes (and with sync, fsyncs) the log at least up to lsn. No-op when that is done already. */
WARN_UNUSED dberr_t log_write_up_to(log_t *log, lsn_t lsn, bool sync);

/** Writes the checkpoint (C, marker, loads) into the alternate slot and fsyncs: the marker must be
durable (CHECK). After success the log before C may be overwritten. */
WARN_UNUSED dberr_t log_checkpoint_write(log_t *log, lsn_t c, lsn_t marker_lsn, log_loads_t loads);

/* ---- a copy that follows a log which is written ---- */

/** A log in another file that holds what this one does from its checkpoint on. */
typedef struct log_copy log_copy_t;

/** Begins with the checkpoint in force: creates the file `path` (which must not exist) in `to`,
which may be another directory. log and to outlive it. Caller: log_copy_free(). */
WARN_UNUSED dberr_t log_copy_create(log_t *log, env_t *to, const char *path, log_copy_t **out);
void log_copy_free(log_copy_t *copy); /**< NULL is fine; the file stays */

/** Copies what is durable by now. Has to be called before log behind what it has copied is
overwritten (CHECK): before each checkpoint takes effect. */
WARN_UNUSED dberr_t log_copy_follow(log_copy_t *copy);

/** Makes of what is copied a log that can be opened, fsynced; the last block must not hold more
than is durable. It can follow on and be sealed again. Its area is at least twice what it holds, so
that recovery has room for its own. */
WARN_UNUSED dberr_t log_copy_seal(log_copy_t *copy);
lsn_t log_copy_end_lsn(const log_copy_t *copy);   /**< where it ends */
lsn_t log_copy_start_lsn(const log_copy_t *copy); /**< its checkpoint */

/** Decodes the header block. DB_CORRUPTION: damaged; DB_UNSUPPORTED: of another format;
DB_UNRECOVERABLE: sizes that cannot be. *out is filled unless it is damaged. Shared with whoever
judges the bytes from outside. */
WARN_UNUSED dberr_t log_info_decode(const byte block[LOG_BLOCK_SIZE], log_file_info_t *out);

/** Decodes a checkpoint slot block: false when it is damaged. Shared with the scanner and the
tools. */
bool log_checkpoint_decode(const byte block[LOG_BLOCK_SIZE], log_checkpoint_t *out);

#endif
