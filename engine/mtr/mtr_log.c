/** The record group of a mini-transaction.

Place: beside mtr.c; knows records only through log_format_t.

    [FILE_NAME of each space first touched since the checkpoint] record ... record MULTI_REC_END
    or one record with the single flag

Invariants
1. the group is atomic: log_append gets it whole, and recovery applies all of it or nothing;
2. a group fits MTR_LOG_MAX_PAGES pages, which is what buf_log_free_check keeps free. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "mtr/mtr_int.h"

#define MTR_LOG_INITIAL_SIZE 1024U
#define MTR_LOG_SINGLE_FLAG 0x80U

/** Room for `more` bytes behind the log. Out of memory ends the process: half a change is in
memory. */
static void mtr_log_reserve(mtr_t *mtr, size_t more)
{
    size_t size = mtr->log_size != 0 ? mtr->log_size : MTR_LOG_INITIAL_SIZE;
    while (size < mtr->log_len + more) {
        size *= 2;
    }
    if (size != mtr->log_size) {
        mtr->log = realloc(mtr->log, size);
        CHECK(mtr->log != NULL);
        mtr->log_size = size;
    }
}

static void mtr_log_note_space(mtr_t *mtr, space_id_t space)
{
    if (space == SPACE_SYSTEM) {
        return;
    }
    for (uint32_t i = 0; i < mtr->n_spaces; i++) {
        if (mtr->spaces[i] == space) {
            return;
        }
    }
    CHECK(mtr->n_spaces < MTR_SPACES_MAX);
    mtr->spaces[mtr->n_spaces++] = space;
}

void mtr_log_add(mtr_t *mtr, const redo_rec_t *rec)
{
    if (mtr->mode != MTR_LOG_ALL) {
        return;
    }
    mtr_log_note_space(mtr, rec->space);
    mtr_log_reserve(mtr, LOG_REC_OVERHEAD_MAX + rec->len);
    log_format(buf_log(mtr->pool))->encode(rec, false, mtr->log, mtr->log_size, &mtr->log_len);
    mtr->n_recs++;
    CHECK(mtr->log_len <= (size_t)MTR_LOG_MAX_PAGES * buf_page_size(mtr->pool));
}

/** Puts the FILE_NAME records in front. @return their number */
static uint32_t mtr_log_prepend_names(mtr_t *mtr)
{
    const log_format_t *format = log_format(buf_log(mtr->pool));
    byte names[MTR_SPACES_MAX * (LOG_REC_OVERHEAD_MAX + PATH_LEN_MAX)];
    size_t len = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < mtr->n_spaces; i++) {
        fil_space_t *space = fil_space_get(buf_fil(mtr->pool), mtr->spaces[i]);
        CHECK(space != NULL);
        if (space->named) {
            continue;
        }
        redo_rec_t rec = {.type = MLOG_FILE_NAME,
                          .space = space->id,
                          .path = space->path,
                          .path_len = (uint32_t)strlen(space->path)};
        format->encode(&rec, false, names, sizeof(names), &len);
        space->named = true;
        n++;
    }
    if (n > 0) {
        mtr_log_reserve(mtr, len);
        memmove(mtr->log + len, mtr->log, mtr->log_len);
        memcpy(mtr->log, names, len);
        mtr->log_len += len;
    }
    return n;
}

void mtr_log_append(mtr_t *mtr, lsn_t *start_lsn, lsn_t *end_lsn)
{
    log_t *log = buf_log(mtr->pool);
    if (mtr_log_prepend_names(mtr) == 0 && mtr->n_recs == 1) {
        mtr->log[0] |= (byte)MTR_LOG_SINGLE_FLAG;
    } else {
        redo_rec_t end = {.type = MLOG_MULTI_REC_END};
        mtr_log_reserve(mtr, LOG_REC_OVERHEAD_MAX);
        log_format(log)->encode(&end, false, mtr->log, mtr->log_size, &mtr->log_len);
    }
    log_append(log, mtr->log, mtr->log_len, start_lsn, end_lsn);
    /* Spaces without a dirty page of this mtr too: those of INDEX_LOAD and of pages not in the
    pool. */
    for (uint32_t i = 0; i < mtr->n_spaces; i++) {
        fil_space_t *space = fil_space_get(buf_fil(mtr->pool), mtr->spaces[i]);
        if (space->max_lsn < *end_lsn) {
            space->max_lsn = *end_lsn;
        }
    }
}
