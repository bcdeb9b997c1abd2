/** The log of changes that a build with LOCK=NONE misses: operations in order, in memory and in a
temporary file. Knows neither tables nor trees (ddl_online.c).

    op (1 byte) | payload: put_len or delete_len bytes, as the op says
    0x61 put: it is there from now on      0x62 delete: it is gone

Records follow each other without a gap and straddle blocks. A full block is written to the file
when the next byte comes; the last block is in memory only. The file is named as those of sorts are
(MERGE_TMP_PREFIX), never logged and never synced. */
#ifndef DDL_ROW_LOG_H
#define DDL_ROW_LOG_H

#include "os/os.h"

typedef enum row_log_op { ROW_LOG_PUT = 0x61, ROW_LOG_DELETE = 0x62 } row_log_op_t;

typedef struct row_log row_log_t;

typedef struct row_log_def {
    const char *table;   /**< its name, for messages; outlives the log */
    uint64_t id;         /**< makes the file's name unique */
    uint32_t put_len;    /**< bytes of payload */
    uint32_t delete_len; /**< at most put_len */
    /** held from the first record on; twice that once a block is read back */
    uint64_t block_bytes;
    uint64_t max_bytes; /**< as many whole blocks as this has room for, one at least */
} row_log_def_t;

WARN_UNUSED dberr_t row_log_create(env_t *env, const row_log_def_t *def, row_log_t **out);
/** Appends a record. A log that cannot take it (too much was logged, its file failed) takes none
any more: the change of the row goes on without it, and row_log_check() tells. */
void row_log_add(row_log_t *log, row_log_op_t op, const byte *payload);
/** DB_ONLINE_LOG_TOO_BIG, DB_TEMP_FILE_FAILED, DB_OUT_OF_MEMORY: a record is missing. */
WARN_UNUSED dberr_t row_log_check(const row_log_t *log);
/** The oldest record that was not read yet; DB_NOT_FOUND. payload is valid until the next call. */
WARN_UNUSED dberr_t row_log_next(row_log_t *log, row_log_op_t *op, const byte **payload);
/** Does the next record begin in a block that is not the last one? */
bool row_log_has_full_block(const row_log_t *log);

uint64_t row_log_n_records(const row_log_t *log); /**< all that were added */
uint64_t row_log_bytes(const row_log_t *log);     /**< of all of them */
uint64_t row_log_bytes_read(const row_log_t *log);
uint64_t row_log_capacity(const row_log_t *log); /**< bytes that it can take */

/** Removes its file and frees it; NULL is fine. */
void row_log_free(row_log_t *log);
void row_log_abandon(row_log_t *log); /**< frees it; its file stays, as after a crash */

#endif
