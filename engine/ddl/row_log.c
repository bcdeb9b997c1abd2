/* The log of row changes of a build with LOCK=NONE.

Place: ddl/, above os/ only. ddl_online.c says what is logged and applies it.

Rules
1. Written at its end and read from its beginning, at the same time: what was read is not given
   back. So whether it overflows depends on what was logged alone, not on how far the build has
   come.
2. Overflow comes at the end of a block, when the next one would pass the limit: as InnoDB. Then, as
   after any other failure, nothing is added any more, and the reader gets nothing: a log with a
   hole tells lies.
3. Nothing of it outlives the statement. A file that fails fails the ALTER, never the change that
   was logged. */
#include "ddl/row_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ddl/merge_sort.h"

#define NO_BLOCK UINT64_MAX

struct row_log {
    env_t *env;
    row_log_def_t def;
    uint64_t n_blocks_max;
    uint64_t written;   /**< bytes */
    uint64_t read;      /**< of them */
    uint64_t n_records; /**< written */
    uint64_t n_flushed; /**< blocks in the file; the next one is `tail` */
    byte *tail;
    byte *head;           /**< the block of the file that is being read */
    uint64_t head_number; /**< or NO_BLOCK */
    byte *payload;        /**< of the record that was read */
    os_file_t *file;
    dberr_t failure;
    err_sink_t reason; /**< of a failure of the file */
};

static void row_log_path(const row_log_t *log, char path[PATH_LEN_MAX + 1])
{
    (void)snprintf(path, PATH_LEN_MAX + 1, MERGE_TMP_PREFIX "%" PRIu64 "-log", log->def.id);
}

dberr_t row_log_create(env_t *env, const row_log_def_t *def, row_log_t **out)
{
    CHECK(def->block_bytes > 0 && def->delete_len <= def->put_len);
    row_log_t *log = calloc(1, sizeof(*log));
    if (log != NULL) {
        log->payload = malloc(def->put_len);
    }
    if (log == NULL || log->payload == NULL) {
        free(log);
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for a row log");
    }
    log->env = env;
    log->def = *def;
    log->n_blocks_max = def->max_bytes < def->block_bytes ? 1 : def->max_bytes / def->block_bytes;
    log->head_number = NO_BLOCK;
    *out = log;
    return DB_SUCCESS;
}

uint64_t row_log_capacity(const row_log_t *log)
{
    return log->n_blocks_max * log->def.block_bytes;
}

/* ---- writing ---- */

/** The last block is full: writes it, and begins the next one. */
static dberr_t row_log_flush(row_log_t *log)
{
    if (log->file == NULL) {
        char path[PATH_LEN_MAX + 1];
        row_log_path(log, path);
        TRY(env_tmp_create(log->env, path, &log->file));
    }
    TRY(env_write(log->env, log->file, log->n_flushed * log->def.block_bytes, log->tail,
                  log->def.block_bytes));
    log->n_flushed++;
    log->env->stats.rowlog_blocks_written++;
    return DB_SUCCESS;
}

static dberr_t row_log_append(row_log_t *log, const byte *bytes, uint64_t len)
{
    uint64_t block = log->def.block_bytes;
    while (len > 0) {
        uint64_t used = log->written - log->n_flushed * block;
        if (used == block) {
            TRY(row_log_flush(log));
            used = 0;
        }
        uint64_t part = len < block - used ? len : block - used;
        memcpy(log->tail + used, bytes, part);
        log->written += part;
        bytes += part;
        len -= part;
    }
    return DB_SUCCESS;
}

static uint32_t row_log_len(const row_log_t *log, row_log_op_t op)
{
    return op == ROW_LOG_PUT ? log->def.put_len : log->def.delete_len;
}

/** Room for a record of so many bytes. */
static dberr_t row_log_reserve(row_log_t *log, uint64_t len)
{
    if (log->written + len > row_log_capacity(log)) {
        log->env->stats.rowlog_overflows++;
        return DB_ONLINE_LOG_TOO_BIG;
    }
    if (log->tail == NULL) {
        log->tail = malloc(log->def.block_bytes);
    }
    return log->tail != NULL ? DB_SUCCESS : DB_OUT_OF_MEMORY;
}

void row_log_add(row_log_t *log, row_log_op_t op, const byte *payload)
{
    if (log->failure != DB_SUCCESS) {
        return;
    }
    const byte first = (byte)op;
    uint32_t len = row_log_len(log, op);
    dberr_t err = row_log_reserve(log, 1 + (uint64_t)len);
    AND_THEN(err, row_log_append(log, &first, 1));
    AND_THEN(err, row_log_append(log, payload, len));
    if (err != DB_SUCCESS) {
        log->failure = err;
        err_copy(&log->reason, &log->env->err);
        return;
    }
    log->n_records++;
    log->env->stats.rowlog_records++;
}

dberr_t row_log_check(const row_log_t *log)
{
    err_sink_t *sink = &log->env->err;
    if (log->failure == DB_ONLINE_LOG_TOO_BIG) {
        return err_set(
            sink, log->failure,
            "table '%s': more was changed during the build than online_alter_log_max_size "
            "has room for (%" PRIu64 " bytes). Raise it, or use LOCK=SHARED",
            log->def.table, row_log_capacity(log));
    }
    return log->failure == DB_SUCCESS
               ? DB_SUCCESS
               : err_set(sink, log->failure, "table '%s': the log of row changes failed: %.300s",
                         log->def.table, log->reason.msg);
}

/* ---- reading ---- */

bool row_log_has_full_block(const row_log_t *log)
{
    return log->failure == DB_SUCCESS && log->read < log->n_flushed * log->def.block_bytes;
}

/** The block of this number, in memory. */
static dberr_t row_log_block(row_log_t *log, uint64_t number, const byte **out)
{
    uint64_t len = log->def.block_bytes;
    if (number == log->n_flushed) {
        *out = log->tail;
        return DB_SUCCESS;
    }
    if (log->head == NULL) {
        log->head = malloc(len);
    }
    if (log->head == NULL) {
        return err_set(&log->env->err, DB_OUT_OF_MEMORY, "no memory for a row log");
    }
    dberr_t err = DB_SUCCESS;
    size_t n_read = 0;
    if (log->head_number != number) {
        log->head_number = NO_BLOCK;
        err = env_read(log->env, log->file, number * len, log->head, len, &n_read);
        if (err == DB_SUCCESS && n_read != len) {
            err = err_set(&log->env->err, DB_TEMP_FILE_FAILED,
                          "row log: %zu of %" PRIu64 " bytes read", n_read, len);
        }
    }
    TRY(err);
    log->head_number = number;
    *out = log->head;
    return DB_SUCCESS;
}

static dberr_t row_log_take(row_log_t *log, byte *bytes, uint64_t len)
{
    uint64_t block = log->def.block_bytes;
    while (len > 0) {
        const byte *from = NULL;
        TRY(row_log_block(log, log->read / block, &from));
        uint64_t offset = log->read % block;
        uint64_t part = len < block - offset ? len : block - offset;
        memcpy(bytes, from + offset, part);
        log->read += part;
        bytes += part;
        len -= part;
    }
    return DB_SUCCESS;
}

dberr_t row_log_next(row_log_t *log, row_log_op_t *op, const byte **payload)
{
    CHECK(log->failure == DB_SUCCESS);
    if (log->read == log->written) {
        return DB_NOT_FOUND;
    }
    byte first = 0;
    TRY(row_log_take(log, &first, 1));
    if (first != ROW_LOG_PUT && first != ROW_LOG_DELETE) {
        return err_set(&log->env->err, DB_TEMP_FILE_FAILED, "row log: %u is no operation", first);
    }
    TRY(row_log_take(log, log->payload, row_log_len(log, (row_log_op_t)first)));
    *op = (row_log_op_t)first;
    *payload = log->payload;
    return DB_SUCCESS;
}

uint64_t row_log_n_records(const row_log_t *log)
{
    return log->n_records;
}

uint64_t row_log_bytes(const row_log_t *log)
{
    return log->written;
}

uint64_t row_log_bytes_read(const row_log_t *log)
{
    return log->read;
}

/* ---- end ---- */

void row_log_free(row_log_t *log)
{
    if (log != NULL && log->file != NULL) {
        env_close(log->env, log->file);
        log->file = NULL;
        char path[PATH_LEN_MAX + 1];
        row_log_path(log, path);
        env_tmp_remove(log->env, path);
    }
    row_log_abandon(log);
}

void row_log_abandon(row_log_t *log)
{
    if (log == NULL) {
        return;
    }
    env_close(log->env, log->file);
    free(log->tail);
    free(log->head);
    free(log->payload);
    free(log);
}
