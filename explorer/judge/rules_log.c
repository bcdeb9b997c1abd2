/* The redo log during a recovery.

Place: below rules.c, which passes on what concerns the log.

What each rule sees
  I19  a slot that is not the other one, or with a number that is not newer; a marker that is not durable
  I20  a block that is written where its LSN does not belong, without announcement, or over [C, end) of
       the checkpoint in force
  I21  an append before the last block of the log that was found is cut, durably
How far the log is durable follows from its writes and fsyncs; what a marker claims of it counts only
before the first write. */
#include "explorer/judge/rules_log.h"

#include <inttypes.h>

#include "explorer/model/page_set.h"
#include "log/log.h"

static lsn_t block_of(lsn_t lsn)
{
    return lsn - lsn % LOG_BLOCK_SIZE;
}

static void mark_recv_start(rules_log_t *log, const char *text)
{
    lsn_t end = marker_fact(text, " end=");
    log->base_known = true;
    log->checkpoint = marker_fact(text, " c=");
    log->written = end > log->written ? end : log->written;
    log->durable = end > log->durable ? end : log->durable;
    log->tail_lsn = end;
    log->tail_written = false;
}

static void mark_log_write(rules_log_t *log, const char *text)
{
    lsn_t start = marker_fact(text, " start=");
    log->base_known = true;
    log->end_lsn = marker_fact(text, " end=");
    log->next_lsn = block_of(start);
    if (log->tail_lsn == 0) {
        return;
    }
    log->tail_written = start == log->tail_lsn && log->end_lsn == log->tail_lsn;
    if (!log->tail_written) {
        verdict_add(log->verdict, 21,
                    "recovery: the log goes on before its end at %" PRIu64 " was cut: %.120s",
                    log->tail_lsn, text);
        log->tail_lsn = 0;
    }
}

static void mark_checkpoint(rules_log_t *log, const char *text)
{
    uint64_t no = marker_fact(text, " no=");
    bool start = strstr(text, " start=1") != NULL;
    if (no % 2 != marker_fact(text, " slot=") || (log->slot_no != 0 && no <= log->slot_no)) {
        verdict_add(log->verdict, 19, "recovery: the wrong slot: %.160s", text);
    }
    if (!start && marker_fact(text, " marker=") >= log->durable) {
        verdict_add(log->verdict, 19, "recovery: the marker is not durable: %.160s", text);
    }
    log->slot_no = no;
    log->slot_lsn = marker_fact(text, " c=");
}

void rules_log_mark(rules_log_t *log, const char *text)
{
    if (marker_is(text, "recv_start")) {
        mark_recv_start(log, text);
    } else if (marker_is(text, "log_write")) {
        mark_log_write(log, text);
    } else if (marker_is(text, "checkpoint")) {
        mark_checkpoint(log, text);
    } else if (marker_is(text, "log_durable") && !log->base_known) {
        log->base_known = true;
        log->written = log->durable = marker_fact(text, " lsn=");
    }
}

static void check_place(const rules_log_t *log, uint64_t offset, lsn_t after)
{
    uint64_t area = log->file_size - LOG_FILE_HDR_SIZE;
    uint64_t wanted = LOG_FILE_HDR_SIZE + (log->next_lsn - LOG_START_LSN) % area;
    if (log->end_lsn == 0) {
        verdict_add(log->verdict, 20, "recovery: a log write at %" PRIu64 " was not announced",
                    offset);
    } else if (offset != wanted) {
        verdict_add(log->verdict, 20,
                    "recovery: LSN %" PRIu64 " is written at %" PRIu64 ", belongs at %" PRIu64,
                    log->next_lsn, offset, wanted);
    } else if (after > area && after - area > block_of(log->checkpoint)) {
        verdict_add(log->verdict, 20,
                    "recovery: the log write to %" PRIu64
                    " overwrites the checkpoint's LSN %" PRIu64,
                    after, log->checkpoint);
    }
}

void rules_log_write(rules_log_t *log, uint64_t offset, uint64_t length)
{
    if (offset < LOG_FILE_HDR_SIZE) {
        log->slot_written = true;
        return;
    }
    lsn_t after = log->next_lsn + length;
    if (log->checkpoint != 0) {
        check_place(log, offset, after);
    }
    log->next_lsn = after;
    /* An end right behind a block's header needs nothing of that block. */
    lsn_t block = block_of(log->end_lsn);
    lsn_t needed = log->end_lsn - block == LOG_BLOCK_HDR_SIZE ? block : log->end_lsn;
    if (after >= needed && log->end_lsn > log->written) {
        log->written = log->end_lsn;
    }
}

void rules_log_sync(rules_log_t *log)
{
    log->durable = log->written;
    if (log->slot_written) {
        log->checkpoint = log->slot_lsn;
        log->slot_written = false;
    }
    if (log->tail_written) {
        log->tail_lsn = 0;
        log->tail_written = false;
    }
}

void rules_log_start(rules_log_t *log, verdict_t *verdict, uint64_t file_size)
{
    *log = (rules_log_t){.verdict = verdict, .file_size = file_size};
}
