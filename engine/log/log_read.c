/* The log reader: from a checkpoint forward, one record group at a time. Beside log_write.c, above
log_file.c; used by recovery, the scanner and the tools, on bytes that may be anything.

1. (I21) A block with a wrong number, a wrong CRC or a smaller epoch than its predecessor is where
   the log ends; it is a leftover of an earlier lap or of an earlier life, or was never written. A
   block that is not full is the last one.
2. A block that passed these tests was written by this engine: an impossible header or record in it,
   or an epoch that no checkpoint slot knows, is corruption, never the end.
3. A group is returned complete or not at all. Memory: one chunk of blocks, the bytes of one group
   (LOG_GROUP_LEN_MAX) and its records (LOG_GROUP_RECS_MAX). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "log/log_int.h"

#define CHUNK_BYTES (64U * 1024)

struct log_reader {
    log_t *log;
    lsn_t lsn;          /* start of the group that comes next: end of the last one returned */
    lsn_t block_lsn;    /* next block to read */
    uint32_t skip;      /* offset of the first payload byte wanted in it */
    uint32_t epoch;     /* of the last block read */
    uint32_t epoch_max; /* that any checkpoint slot knows */
    bool at_end;

    byte *bytes; /* payload from the group's start on */
    size_t n_bytes;
    size_t bytes_size;
    size_t consumed; /* length of the group returned last, dropped at the next call */

    redo_rec_t *recs;
    size_t recs_size;

    lsn_t chunk_lsn; /* what chunk holds: blocks [chunk_lsn, chunk_lsn + chunk_len) */
    uint32_t chunk_len;
    byte *chunk; /* CHUNK_BYTES */
};

lsn_t log_reader_end_lsn(const log_reader_t *reader)
{
    return reader->lsn;
}

bool log_group_is_marker(const log_group_t *group, const log_checkpoint_t *ckpt)
{
    bool found = false;
    for (uint32_t i = 0; i < group->n_recs; i++) {
        found |= group->recs[i].op == OP_CHECKPOINT && group->recs[i].value == ckpt->lsn;
    }
    return found && group->start_lsn == ckpt->marker_lsn;
}

bool log_group_is_change(const log_group_t *group)
{
    bool found = false;
    for (uint32_t i = 0; i < group->n_recs; i++) {
        found |= group->recs[i].op != OP_FILE_NAME && group->recs[i].op != OP_CHECKPOINT;
    }
    return found;
}

static dberr_t reader_corrupt(log_reader_t *r, lsn_t lsn, const char *what)
{
    return err_refuse(&r->log->env->err, DB_CORRUPTION, REFUSAL_LOG_DAMAGED,
                      "%s: %s at LSN %" PRIu64, r->log->file->path, what, lsn);
}

/** The next block, through the chunk. DB_NOT_FOUND when the file has none there. */
static dberr_t block_fetch(log_reader_t *r, const byte **block)
{
    log_t *log = r->log;
    if (r->block_lsn < r->chunk_lsn || r->block_lsn >= r->chunk_lsn + r->chunk_len) {
        uint64_t offset = log_file_offset(log, r->block_lsn);
        uint64_t to_wrap = log->info.file_size - offset;
        size_t n_read = 0;
        TRY(env_read(log->env, log->file, offset, r->chunk,
                     to_wrap < CHUNK_BYTES ? (size_t)to_wrap : CHUNK_BYTES, &n_read));
        r->chunk_lsn = r->block_lsn;
        r->chunk_len = (uint32_t)(n_read - n_read % LOG_BLOCK_SIZE);
        if (r->chunk_len == 0) {
            return DB_NOT_FOUND;
        }
    }
    *block = r->chunk + (r->block_lsn - r->chunk_lsn);
    return DB_SUCCESS;
}

static dberr_t bytes_add(log_reader_t *r, const byte *payload, size_t n)
{
    if (r->n_bytes + n > r->bytes_size) {
        size_t size = r->bytes_size * 2;
        byte *bytes = realloc(r->bytes, size);
        if (bytes == NULL) {
            return err_set(&r->log->env->err, DB_OUT_OF_MEMORY, "out of memory for a log group");
        }
        r->bytes = bytes;
        r->bytes_size = size;
    }
    memcpy(r->bytes + r->n_bytes, payload, n);
    r->n_bytes += n;
    return DB_SUCCESS;
}

/** Adds the payload of the next block. DB_NOT_FOUND at the soft end. */
static dberr_t block_add(log_reader_t *r)
{
    if (r->at_end || r->block_lsn >= LOG_LSN_LIMIT) {
        return DB_NOT_FOUND;
    }
    const byte *block = NULL;
    TRY(block_fetch(r, &block));
    uint32_t epoch = mach_read_4(block + LOG_BLOCK_EPOCH);
    if (!log_block_is_valid(block, r->block_lsn) || epoch < r->epoch) {
        return DB_NOT_FOUND;
    }
    if (!log_block_is_sane(block)) {
        return reader_corrupt(r, r->block_lsn, "impossible header of a log block");
    }
    if (epoch > r->epoch_max) {
        return reader_corrupt(r, r->block_lsn, "log block of an epoch that no checkpoint knows");
    }
    uint32_t end = mach_read_2(block + LOG_BLOCK_USED);
    r->at_end = end != LOG_BLOCK_SIZE;
    end = r->at_end ? end : LOG_PAYLOAD_END;
    if (r->skip > end) {
        return DB_NOT_FOUND;
    }
    r->epoch = epoch;
    TRY(bytes_add(r, block + r->skip, end - r->skip));
    r->block_lsn += LOG_BLOCK_SIZE;
    r->skip = LOG_BLOCK_HDR_SIZE;
    return DB_SUCCESS;
}

/** Is the position named by a checkpoint inside the first block's groups? A position that is no
group start would be parsed as garbage with the right checksum. */
static dberr_t start_check(log_reader_t *r)
{
    const byte *block = NULL;
    uint32_t offset = lsn_offset(r->lsn);
    dberr_t err = block_fetch(r, &block);
    if (err != DB_SUCCESS) {
        return err == DB_NOT_FOUND ? DB_SUCCESS : err;
    }
    if (!log_block_is_valid(block, r->block_lsn) || !log_block_is_sane(block)) {
        return DB_SUCCESS; /* block_add() tells */
    }
    uint32_t first_group = mach_read_2(block + LOG_BLOCK_FIRST_GROUP);
    uint32_t used = mach_read_2(block + LOG_BLOCK_USED);
    if (offset < used && (first_group == 0 || first_group > offset)) {
        return reader_corrupt(r, r->lsn, "no record group starts");
    }
    return DB_SUCCESS;
}

dberr_t log_reader_create(log_t *log, lsn_t from, log_reader_t **out)
{
    dberr_t err;
    if (!lsn_is_credible(from) || from < log->info.start_lsn) {
        return err_refuse(&log->env->err, DB_CORRUPTION, REFUSAL_LOG_DAMAGED,
                          "%s: LSN %" PRIu64 " is not a position in the log", log->file->path,
                          from);
    }
    log_reader_t *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return err_set(&log->env->err, DB_OUT_OF_MEMORY, "out of memory for a log reader");
    }
    r->log = log;
    r->lsn = from;
    r->block_lsn = lsn_block(from);
    r->skip = lsn_offset(from);
    for (uint32_t i = 0; i < log->n_slots; i++) {
        uint32_t epoch = log->slots[i].epoch;
        r->epoch_max = epoch > r->epoch_max ? epoch : r->epoch_max;
    }
    r->bytes_size = CHUNK_BYTES;
    r->bytes = malloc(r->bytes_size);
    r->recs_size = 256;
    r->recs = malloc(r->recs_size * sizeof(*r->recs));
    r->chunk = malloc(CHUNK_BYTES);
    if (r->bytes == NULL || r->recs == NULL || r->chunk == NULL) {
        err = err_set(&log->env->err, DB_OUT_OF_MEMORY, "out of memory for a log reader");
    } else {
        err = start_check(r);
    }
    if (err != DB_SUCCESS) {
        log_reader_free(r);
        return err;
    }
    *out = r;
    return DB_SUCCESS;
}

void log_reader_free(log_reader_t *reader)
{
    if (reader != NULL) {
        free(reader->bytes);
        free(reader->recs);
        free(reader->chunk);
        free(reader);
    }
}

/** Room for one more record behind n_recs of them. */
static dberr_t rec_reserve(log_reader_t *r, uint32_t n_recs)
{
    if (n_recs < r->recs_size) {
        return DB_SUCCESS;
    }
    redo_rec_t *recs = realloc(r->recs, r->recs_size * 2 * sizeof(*recs));
    if (recs == NULL) {
        return err_set(&r->log->env->err, DB_OUT_OF_MEMORY, "out of memory for a log group");
    }
    r->recs = recs;
    r->recs_size *= 2;
    return DB_SUCCESS;
}

/** Decodes the group at the start of r->bytes, reading blocks as needed: *len bytes that hold
*n_recs records to return. Records point into the bytes, so that the group starts over if these
move. */
static dberr_t group_read(log_reader_t *r, size_t *len, uint32_t *n_recs)
{
    uint64_t area_payload = r->log->area_size / LOG_BLOCK_SIZE * LOG_BLOCK_PAYLOAD;
    uint64_t limit = area_payload < LOG_GROUP_LEN_MAX ? area_payload : LOG_GROUP_LEN_MAX;
    *len = 0;
    *n_recs = 0;
    redo_context_t at = {.n_recs = 0};
    bool last = false;
    while (!last) {
        TRY(rec_reserve(r, *n_recs));
        redo_rec_t *rec = &r->recs[*n_recs];
        size_t used = 0;
        dberr_t err =
            r->log->format->decode(&at, r->bytes + *len, r->n_bytes - *len, rec, &used, &last);
        if (err == DB_NOT_FOUND) {
            size_t bytes_size = r->bytes_size;
            last = false;
            if (r->n_bytes > limit) {
                return reader_corrupt(r, r->lsn, "record group larger than a group can be");
            }
            TRY(block_add(r));
            if (r->bytes_size != bytes_size) {
                at = (redo_context_t){.n_recs = 0};
                *len = 0;
                *n_recs = 0;
            }
            continue;
        }
        if (err != DB_SUCCESS) {
            return reader_corrupt(r, log_lsn_add(r->lsn, *len), "impossible log record");
        }
        *len += used;
        if (*len > limit) {
            return reader_corrupt(r, r->lsn, "record group larger than a group can be");
        }
        if (rec->op == OP_GROUP_END || rec->op == OP_FILLER) {
            continue;
        }
        if (*n_recs == LOG_GROUP_RECS_MAX) {
            return reader_corrupt(r, r->lsn, "record group larger than a group can be");
        }
        ++*n_recs;
    }
    return DB_SUCCESS;
}

dberr_t log_reader_next(log_reader_t *reader, log_group_t *group)
{
    if (reader->consumed > 0) {
        reader->n_bytes -= reader->consumed;
        memmove(reader->bytes, reader->bytes + reader->consumed, reader->n_bytes);
        reader->consumed = 0;
    }
    size_t len = 0;
    uint32_t n_recs = 0;
    TRY(group_read(reader, &len, &n_recs));
    group->start_lsn = reader->lsn;
    reader->lsn = log_lsn_add(reader->lsn, len);
    reader->consumed = len;
    group->end_lsn = reader->lsn;
    group->recs = reader->recs;
    group->n_recs = n_recs;
    return DB_SUCCESS;
}
