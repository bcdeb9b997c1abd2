/** The record group of a mini-transaction.

Place: beside mtr.c; how a group looks is the format's affair.

    [FILE_NAME of each space first touched since the checkpoint] record ... record

Invariants
1. the group is atomic: log_append gets it whole, and recovery applies all of it or nothing;
2. a group fits MTR_LOG_MAX_PAGES pages, which is what buf_log_free_check keeps free. */
#include <string.h>

#include "base/check.h"
#include "mtr/mtr_int.h"

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
    redo_group_add(&mtr->log, rec);
    CHECK(mtr->log.len <= (size_t)MTR_LOG_MAX_PAGES * buf_page_size(mtr->pool));
}

void mtr_log_checksums(mtr_t *mtr)
{
    if (!buf_log_page_checksums(mtr->pool)) {
        return;
    }
    for (uint32_t i = 0; i < mtr->n_memo; i++) {
        if (mtr->memo[i].dirty) {
            const byte *frame = mtr->memo[i].block->frame;
            redo_rec_t rec = {.op = OP_PAGE_CHECKSUM,
                              .space = mtr->memo[i].id.space,
                              .page_no = mtr->memo[i].id.page_no,
                              .value = fil_page_contents_checksum(frame, buf_page_size(mtr->pool))};
            mtr_log_add(mtr, &rec);
        }
    }
}

/** Puts the FILE_NAME records in front. */
static void mtr_log_prepend_names(mtr_t *mtr)
{
    redo_group_t names;
    redo_group_init(&names, mtr->log.format);
    for (uint32_t i = 0; i < mtr->n_spaces; i++) {
        fil_space_t *space = fil_space_get(buf_fil(mtr->pool), mtr->spaces[i]);
        CHECK(space != NULL);
        if (space->named) {
            continue;
        }
        redo_rec_t rec = {.op = OP_FILE_NAME,
                          .space = space->id,
                          .path = space->path,
                          .path_len = (uint32_t)strlen(space->path)};
        redo_group_add(&names, &rec);
        space->named = true;
    }
    redo_group_prepend(&mtr->log, &names);
    redo_group_free(&names);
}

void mtr_log_append(mtr_t *mtr, lsn_t *start_lsn, lsn_t *end_lsn)
{
    log_t *log = buf_log(mtr->pool);
    mtr_log_prepend_names(mtr);
    redo_group_finish(&mtr->log);
    log_append(log, mtr->log.bytes, mtr->log.len, start_lsn, end_lsn);
    /* Spaces without a dirty page of this mtr too: those of INDEX_LOAD and of pages not in the
    pool. */
    for (uint32_t i = 0; i < mtr->n_spaces; i++) {
        fil_space_t *space = fil_space_get(buf_fil(mtr->pool), mtr->spaces[i]);
        if (space->max_lsn < *end_lsn) {
            space->max_lsn = *end_lsn;
        }
    }
}
