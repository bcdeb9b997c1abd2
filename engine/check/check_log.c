/** The log, as far as the scanner needs it: where it ends, and whether the files are up to date.

Place: check/, on the log reader, which recovery uses too.

Invariants
1. a log that recovery would refuse is refused here with the same cause: the newest valid slot
   counts, and its marker must be found;
2. nothing but file names and checkpoint markers behind C means that the data files are complete. */
#include <inttypes.h>

#include "check/check_int.h"

typedef struct chk_log_scan {
    log_checkpoint_t ckpt;
    bool marker_found;
    bool changes;
} chk_log_scan_t;

static void chk_log_group(chk_log_scan_t *scan, const log_group_t *group)
{
    for (uint32_t i = 0; i < group->n_recs; i++) {
        const redo_rec_t *rec = &group->recs[i];
        if (rec->op == OP_CHECKPOINT) {
            scan->marker_found |=
                group->start_lsn == scan->ckpt.marker_lsn && rec->value == scan->ckpt.lsn;
        } else if (rec->op != OP_FILE_NAME) {
            scan->changes = true;
        }
    }
}

static dberr_t chk_log_read(chk_t *chk, log_t *log)
{
    chk_log_scan_t scan = {.changes = false};
    log_checkpoint_t slots[2];
    uint32_t n = 0;
    log_checkpoints(log, slots, &n);
    scan.ckpt = slots[0];
    log_reader_t *reader = NULL;
    dberr_t err = log_reader_create(log, scan.ckpt.lsn, &reader);
    while (err == DB_SUCCESS) {
        log_group_t group;
        err = log_reader_next(reader, &group);
        if (err == DB_SUCCESS) {
            chk_log_group(&scan, &group);
        }
    }
    if (err == DB_NOT_FOUND) {
        chk->end_lsn = log_reader_end_lsn(reader);
        err = scan.marker_found
                  ? DB_SUCCESS
                  : err_refuse(&chk->env->err, DB_UNRECOVERABLE, REFUSAL_MARKER_MISSING,
                               "the log is damaged: it ends at %" PRIu64
                               " without the marker of checkpoint %" PRIu64 " at %" PRIu64,
                               chk->end_lsn, scan.ckpt.no, scan.ckpt.marker_lsn);
    }
    log_reader_free(reader);
    chk->report->needs_recovery = scan.changes;
    chk->report->log_end_lsn = chk->end_lsn;
    return err;
}

dberr_t chk_log(chk_t *chk)
{
    log_t *log = NULL;
    dberr_t err = log_open(chk->env, &log);
    if (err == DB_SUCCESS) {
        chk->page_size = log_info(log)->page_size;
        chk->extent_pages = log_info(log)->extent_pages;
        err = chk_log_read(chk, log);
        log_close(log);
    }
    return err == DB_CORRUPTION || err == DB_UNSUPPORTED ? DB_UNRECOVERABLE : err;
}
