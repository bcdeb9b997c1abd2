/* The redo file: header, checkpoint slots, creation and opening. Above os/; the reader (log_read.c)
and the writer (log_write.c) stand beside it.

1. (I30) A damaged header, or two damaged slots, refuse the log with the cause; one damaged slot is
   what a crash inside its write leaves, and the other is intact then. A whole slot whose number
   nothing can have led to is no torn one: the log is refused, each time it is opened.
2. (I19) Slot writes alternate: slot = number % 2, and a slot found under the wrong parity is
   damaged.
3. Nothing is written by log_open. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/mach.h"
#include "base/options.h"
#include "log/log_int.h"

#define LOG_MAGIC 0x54504C47U  /* "TPLG" */
#define SLOT_MAGIC 0x54504350U /* "TPCP" */

#define HDR_FORMAT 4
#define HDR_PAGE_SIZE 8
#define HDR_FILE_SIZE 12
#define HDR_START_LSN 20
#define HDR_EXTENT_PAGES 28
#define HDR_END 32

#define SLOT_NO 4
#define SLOT_LSN 12
#define SLOT_MARKER 20
#define SLOT_EPOCH 28
#define SLOT_MODE 32 /* log_loads_t */
#define SLOT_END 36

#define LOG_MARKER_LEN 9U /* OP_CHECKPOINT: type and C */

static bool is_zero(const byte *bytes, uint32_t len)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

static void crc_set(byte *block)
{
    mach_write_4(block + LOG_CRC_OFFSET, crc32c(block, LOG_CRC_OFFSET));
}

static bool crc_is_right(const byte *block)
{
    return mach_read_4(block + LOG_CRC_OFFSET) == crc32c(block, LOG_CRC_OFFSET);
}

/* ---- positions and blocks ---- */

lsn_t log_lsn_add(lsn_t lsn, uint64_t len)
{
    uint64_t in_block = lsn_offset(lsn) - LOG_BLOCK_HDR_SIZE + len;
    CHECK(lsn_is_boundary(lsn));
    return lsn_block(lsn) + in_block / LOG_BLOCK_PAYLOAD * LOG_BLOCK_SIZE + LOG_BLOCK_HDR_SIZE
           + in_block % LOG_BLOCK_PAYLOAD;
}

uint64_t log_file_offset(const log_t *log, lsn_t block_lsn)
{
    CHECK(lsn_offset(block_lsn) == 0 && block_lsn >= log->info.start_lsn);
    return LOG_FILE_HDR_SIZE + (block_lsn - log->info.start_lsn) % log->area_size;
}

void log_block_stamp(byte *block, lsn_t block_lsn, uint32_t epoch, uint32_t used)
{
    mach_write_4(block + LOG_BLOCK_NO, (uint32_t)(block_lsn / LOG_BLOCK_SIZE));
    mach_write_4(block + LOG_BLOCK_EPOCH, epoch);
    mach_write_2(block + LOG_BLOCK_USED, used);
    crc_set(block);
}

bool log_block_is_valid(const byte *block, lsn_t block_lsn)
{
    return mach_read_4(block + LOG_BLOCK_NO) == (uint32_t)(block_lsn / LOG_BLOCK_SIZE)
           && crc_is_right(block);
}

bool log_block_is_sane(const byte *block)
{
    uint32_t used = mach_read_2(block + LOG_BLOCK_USED);
    uint32_t first_group = mach_read_2(block + LOG_BLOCK_FIRST_GROUP);
    uint32_t end = used == LOG_BLOCK_SIZE ? LOG_PAYLOAD_END : used;
    return used >= LOG_BLOCK_HDR_SIZE && end <= LOG_PAYLOAD_END
           && (used == LOG_BLOCK_SIZE || used < LOG_PAYLOAD_END)
           && (first_group == 0 || (first_group >= LOG_BLOCK_HDR_SIZE && first_group < end));
}

/* ---- checkpoint slots ---- */

void log_slot_encode(byte block[LOG_BLOCK_SIZE], const log_checkpoint_t *ckpt)
{
    memset(block, 0, LOG_BLOCK_SIZE);
    mach_write_4(block, SLOT_MAGIC);
    mach_write_8(block + SLOT_NO, ckpt->no);
    mach_write_8(block + SLOT_LSN, ckpt->lsn);
    mach_write_8(block + SLOT_MARKER, ckpt->marker_lsn);
    mach_write_4(block + SLOT_EPOCH, ckpt->epoch);
    mach_write_4(block + SLOT_MODE, ckpt->loads);
    crc_set(block);
}

bool log_checkpoint_decode(const byte block[LOG_BLOCK_SIZE], log_checkpoint_t *out)
{
    log_checkpoint_t ckpt = {
        .no = mach_read_8(block + SLOT_NO),
        .lsn = mach_read_8(block + SLOT_LSN),
        .marker_lsn = mach_read_8(block + SLOT_MARKER),
        .epoch = mach_read_4(block + SLOT_EPOCH),
        .loads = (log_loads_t)mach_read_4(block + SLOT_MODE),
    };

    if (!crc_is_right(block) || mach_read_4(block) != SLOT_MAGIC
        || !is_zero(block + SLOT_END, LOG_CRC_OFFSET - SLOT_END)
        || mach_read_4(block + SLOT_MODE) > LOG_LOADS_MIXED || ckpt.epoch == 0
        || ckpt.no >= LOG_LSN_LIMIT || !lsn_is_credible(ckpt.lsn)
        || !lsn_is_credible(ckpt.marker_lsn) || ckpt.marker_lsn < ckpt.lsn) {
        return false;
    }
    *out = ckpt;
    return true;
}

/** Could the engine have come to this number? Each start takes one number and one epoch; each other
checkpoint takes one number and writes a marker, which moves the next one on by its length at least.
What holds for a slot holds for all that follow it, so that numbers cannot run out before LSNs
do. */
static bool checkpoint_is_justified(const log_checkpoint_t *ckpt)
{
    uint64_t starts = ckpt->epoch - 1;
    return starts <= ckpt->no && ckpt->no - starts <= ckpt->marker_lsn / LOG_MARKER_LEN;
}

/** Enters a checkpoint that is durable now; the slot of the other parity is as it was. */
static void slots_update(log_t *log, const log_checkpoint_t *ckpt)
{
    uint32_t n = 1;
    for (uint32_t i = 0; i < log->n_slots; i++) {
        if (log->slots[i].no % 2 != ckpt->no % 2) {
            log->slots[1] = log->slots[i];
            n = 2;
        }
    }
    log->slots[0] = *ckpt;
    log->n_slots = n;
    log->ckpt = *ckpt;
}

dberr_t log_slot_write(log_t *log, const log_checkpoint_t *ckpt, bool start)
{
    uint32_t slot = (uint32_t)(ckpt->no % 2);
    byte block[LOG_BLOCK_SIZE];
    log_slot_encode(block, ckpt);
    PROBE_MARK(log->env->probe,
               "checkpoint no=%" PRIu64 " slot=%u c=%" PRIu64 " marker=%" PRIu64 "%s", ckpt->no,
               slot, ckpt->lsn, ckpt->marker_lsn, start ? " start=1" : "");
    TRY(env_write(log->env, log->file, LOG_SLOT_OFFSET(slot), block, sizeof(block)));
    log->env->stats.os_log_written += sizeof(block);
    PROBE_POINT(log->env->probe, "ckpt.slot_written");
    TRY(log_sync(log));
    slots_update(log, ckpt);
    PROBE_MARK(log->env->probe, "checkpoint_done no=%" PRIu64, ckpt->no);
    PROBE_POINT(log->env->probe, "ckpt.done");
    return DB_SUCCESS;
}

/* ---- creation ---- */

void log_header_encode(byte block[LOG_BLOCK_SIZE], const log_file_info_t *info)
{
    mach_write_4(block, LOG_MAGIC);
    mach_write_4(block + HDR_FORMAT, info->format_id);
    mach_write_4(block + HDR_PAGE_SIZE, info->page_size);
    mach_write_8(block + HDR_FILE_SIZE, info->file_size);
    mach_write_8(block + HDR_START_LSN, info->start_lsn);
    mach_write_4(block + HDR_EXTENT_PAGES, info->extent_pages);
    crc_set(block);
}

/** Header, slot 0, and the first log block with the marker of checkpoint 0. */
static void initial_encode(byte *bytes, const log_file_info_t *info, log_loads_t loads)
{
    lsn_t first = info->start_lsn + LOG_BLOCK_HDR_SIZE;
    const log_checkpoint_t ckpt = {
        .no = 0, .lsn = first, .marker_lsn = first, .epoch = 1, .loads = loads};
    const redo_rec_t marker = {.op = OP_CHECKPOINT, .value = first};
    byte *block = bytes + LOG_FILE_HDR_SIZE;
    redo_group_t group;
    redo_group_init(&group, log_format_find(info->format_id));
    redo_group_add(&group, &marker);
    redo_group_finish(&group);
    log_header_encode(bytes + LOG_HDR_OFFSET, info);
    log_slot_encode(bytes + LOG_SLOT_OFFSET(0), &ckpt);
    memcpy(block + LOG_BLOCK_HDR_SIZE, group.bytes, group.len);
    mach_write_2(block + LOG_BLOCK_FIRST_GROUP, LOG_BLOCK_HDR_SIZE);
    log_block_stamp(block, info->start_lsn, ckpt.epoch, LOG_BLOCK_HDR_SIZE + (uint32_t)group.len);
    redo_group_free(&group);
}

static bool size_is_valid(uint32_t page_size, uint64_t file_size)
{
    return page_size_is_valid(page_size) && file_size % LOG_BLOCK_SIZE == 0
           && file_size >= (uint64_t)LOG_FILE_SIZE_MIN_PAGES * page_size
           && file_size < LOG_LSN_LIMIT;
}

dberr_t log_file_create(env_t *env, const char *path, const log_file_info_t *info,
                        log_loads_t loads)
{
    CHECK(log_format_find(info->format_id) != NULL && extent_pages_is_valid(info->extent_pages));
    CHECK(lsn_offset(info->start_lsn) == 0);
    byte bytes[LOG_FILE_HDR_SIZE + LOG_BLOCK_SIZE] = {0};
    os_file_t *file;
    dberr_t err;
    if (!size_is_valid(info->page_size, info->file_size)) {
        return err_set(&env->err, DB_ERROR,
                       "a redo file of %" PRIu64 " bytes is not possible with pages of %u bytes",
                       info->file_size, info->page_size);
    }
    TRY(env_open(env, path, OS_CREATE_TRUNC, &file));
    initial_encode(bytes, info, loads);
    err = env_truncate(env, file, info->file_size);
    AND_THEN(err, env_write(env, file, 0, bytes, sizeof(bytes)));
    if (err == DB_SUCCESS) {
        env->stats.os_log_written += sizeof(bytes);
        err = env_sync(env, file);
    }
    if (err == DB_SUCCESS) {
        env->stats.os_log_fsyncs++;
    }
    env_close(env, file);
    return err;
}

/* ---- opening ---- */

dberr_t log_info_decode(const byte block[LOG_BLOCK_SIZE], log_file_info_t *out)
{
    if (mach_read_4(block) != LOG_MAGIC || !crc_is_right(block)
        || !is_zero(block + HDR_END, LOG_CRC_OFFSET - HDR_END)) {
        return DB_CORRUPTION;
    }
    *out = (log_file_info_t){
        .format_id = mach_read_4(block + HDR_FORMAT),
        .page_size = mach_read_4(block + HDR_PAGE_SIZE),
        .file_size = mach_read_8(block + HDR_FILE_SIZE),
        .start_lsn = mach_read_8(block + HDR_START_LSN),
        .extent_pages = mach_read_4(block + HDR_EXTENT_PAGES),
    };
    const log_format_t *format = log_format_find(out->format_id);
    if (format == NULL) {
        return DB_UNSUPPORTED;
    }
    if (!size_is_valid(out->page_size, out->file_size) || !extent_pages_is_valid(out->extent_pages)
        || lsn_offset(out->start_lsn) != 0 || out->start_lsn >= LOG_LSN_LIMIT) {
        return DB_UNRECOVERABLE;
    }
    return format->encode != NULL ? DB_SUCCESS : DB_UNSUPPORTED;
}

/** to_convert: a format that can only be read will do. */
static dberr_t header_decode(log_t *log, const byte *block, bool to_convert)
{
    err_sink_t *err = &log->env->err;
    log_file_info_t *info = &log->info;
    dberr_t e = log_info_decode(block, info);
    if (e == DB_CORRUPTION) {
        return err_refuse(err, DB_UNRECOVERABLE, REFUSAL_LOG_DAMAGED,
                          "%s: the header of the redo file is damaged", log->file->path);
    }
    log->format = log_format_find(info->format_id);
    if (log->format == NULL) {
        return err_set(err, e, "%s: unknown redo format %u", log->file->path, info->format_id);
    }
    if (e == DB_UNSUPPORTED && !to_convert) {
        return err_set(err, e,
                       "%s: redo format %u of an earlier engine: open the database once with this "
                       "one to convert it",
                       log->file->path, info->format_id);
    }
    if (e == DB_UNRECOVERABLE) {
        return err_refuse(err, e, REFUSAL_LOG_DAMAGED,
                          "%s: the header of the redo file is impossible", log->file->path);
    }
    uint64_t size = 0;
    TRY(env_size(log->env, log->file, &size));
    if (size < info->file_size) {
        return err_refuse(err, DB_UNRECOVERABLE, REFUSAL_LOG_DAMAGED,
                          "%s: the redo file is cut: %" PRIu64 " bytes instead of %" PRIu64,
                          log->file->path, size, info->file_size);
    }
    log->area_size = info->file_size - LOG_FILE_HDR_SIZE;
    return DB_SUCCESS;
}

static dberr_t slots_decode(log_t *log, const byte *bytes)
{
    for (uint32_t slot = 0; slot < 2; slot++) {
        log_checkpoint_t ckpt;

        if (!log_checkpoint_decode(bytes + LOG_SLOT_OFFSET(slot), &ckpt) || ckpt.no % 2 != slot
            || ckpt.lsn < log->info.start_lsn) {
            continue; /* torn, or not written yet: invariant 1 */
        }
        if (!checkpoint_is_justified(&ckpt)) {
            return err_refuse(&log->env->err, DB_UNRECOVERABLE, REFUSAL_LOG_DAMAGED,
                              "%s: checkpoint slot %u: no start and no log up to %" PRIu64
                              " can have led to "
                              "number %" PRIu64 " with epoch %u",
                              log->file->path, slot, ckpt.marker_lsn, ckpt.no, ckpt.epoch);
        }
        log->slots[log->n_slots++] = ckpt;
    }
    if (log->n_slots == 0) {
        return err_refuse(&log->env->err, DB_UNRECOVERABLE, REFUSAL_LOG_DAMAGED,
                          "%s: both checkpoint slots are damaged", log->file->path);
    }
    if (log->n_slots == 2 && log->slots[1].no > log->slots[0].no) {
        log_checkpoint_t newer = log->slots[1];
        log->slots[1] = log->slots[0];
        log->slots[0] = newer;
    }
    log->ckpt = log->slots[0];
    return DB_SUCCESS;
}

dberr_t log_open_any(env_t *env, const char *path, bool to_convert, log_t **out)
{
    log_t *log = calloc(1, sizeof(*log));
    dberr_t err;
    if (log == NULL) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    log->env = env;
    err = env_open(env, path, OS_OPEN, &log->file);
    byte bytes[LOG_FILE_HDR_SIZE] = {0};
    size_t n_read = 0;
    AND_THEN(err, env_read(env, log->file, 0, bytes, sizeof(bytes), &n_read));
    AND_THEN(err, header_decode(log, bytes, to_convert));
    AND_THEN(err, slots_decode(log, bytes));
    if (err != DB_SUCCESS) {
        log_close(log);
        return err;
    }
    *out = log;
    return DB_SUCCESS;
}

dberr_t log_open_path(env_t *env, const char *path, log_t **out)
{
    return log_open_any(env, path, false, out);
}

dberr_t log_open(env_t *env, log_t **out)
{
    return log_open_path(env, LOG_FILE_NAME, out);
}

void log_close(log_t *log)
{
    if (log != NULL) {
        env_close(log->env, log->file);
        free(log->buf);
        free(log);
    }
}

dberr_t log_sync_found(log_t *log)
{
    CHECK(!log->writable);
    TRY(env_sync(log->env, log->file));
    log->env->stats.os_log_fsyncs++;
    return DB_SUCCESS;
}

const log_file_info_t *log_info(const log_t *log)
{
    return &log->info;
}

void log_checkpoints(const log_t *log, log_checkpoint_t out[2], uint32_t *n)
{
    memcpy(out, log->slots, log->n_slots * sizeof(*out));
    *n = log->n_slots;
}

const log_format_t *log_format_find(uint32_t id)
{
    static const log_format_t *const FORMATS[] = {&log_format_10_4, &log_format_10_5,
                                                  &log_format_10_4_whole};

    for (size_t i = 0; i < sizeof(FORMATS) / sizeof(FORMATS[0]); i++) {
        if (FORMATS[i]->id == id) {
            return FORMATS[i];
        }
    }
    return NULL;
}

dberr_t log_sync(log_t *log)
{
    TRY(env_sync(log->env, log->file));
    log->env->stats.os_log_fsyncs++;
    log->flushed_lsn = log->written_lsn;
    PROBE_MARK(log->env->probe, "log_durable lsn=%" PRIu64, log->flushed_lsn);
    return DB_SUCCESS;
}

const log_format_t *log_format(const log_t *log)
{
    return log->format;
}

env_t *log_env(const log_t *log)
{
    return log->env;
}
