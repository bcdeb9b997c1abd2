/** The log, as far as the scanner needs it: where it ends, and whether the files are up to date.

Place: check/, on the log reader, which recovery uses too.

Invariants
1. a log that recovery would refuse is refused here with the same cause: the newest valid slot
   counts, and its marker must be found;
2. nothing but file names and checkpoint markers behind C means that the data files are complete. */
#include <inttypes.h>

#include "check/check_int.h"

static dberr_t chk_log_read(chk_t *chk, log_t *log)
{
    log_checkpoint_t slots[2];
    uint32_t n = 0;
    log_checkpoints(log, slots, &n);
    const log_checkpoint_t *ckpt = &slots[0];
    log_reader_t *reader = NULL;
    dberr_t err = log_reader_create(log, ckpt->lsn, &reader);
    bool marker_found = false;
    bool changes = false;
    while (err == DB_SUCCESS) {
        log_group_t group;
        err = log_reader_next(reader, &group);
        if (err == DB_SUCCESS) {
            marker_found |= log_group_is_marker(&group, ckpt);
            changes |= log_group_is_change(&group);
        }
    }
    if (err == DB_NOT_FOUND) {
        chk->end_lsn = log_reader_end_lsn(reader);
        err = marker_found ? DB_SUCCESS
                           : err_refuse(&chk->env->err, DB_UNRECOVERABLE, REFUSAL_MARKER_MISSING,
                                        "the log is damaged: it ends at %" PRIu64
                                        " without the marker of checkpoint %" PRIu64 " at %" PRIu64,
                                        chk->end_lsn, ckpt->no, ckpt->marker_lsn);
    }
    log_reader_free(reader);
    chk->report->needs_recovery = changes;
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
