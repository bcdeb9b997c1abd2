/** Private to mtr/: what mtr.c and mtr_log.c share. */
#ifndef MTR_MTR_INT_H
#define MTR_MTR_INT_H

#include "mtr/mtr.h"

/** Does what the record says to a pinned page, and logs it. DB_CORRUPTION: the page cannot take it,
and is unchanged. */
WARN_UNUSED dberr_t mtr_step(mtr_t *mtr, buf_block_t *block, redo_rec_t *rec);

/** Does it in steps that a format of bytes has records for; as mtr_step(). */
WARN_UNUSED dberr_t mtr_physical(mtr_t *mtr, buf_block_t *block, redo_rec_t *rec);

/** Says that the page cannot take the record. @return err */
dberr_t mtr_refused(mtr_t *mtr, const buf_block_t *block, const redo_rec_t *rec, dberr_t err);

/** Logs what each changed page must be when the group is applied. */
void mtr_log_checksums(mtr_t *mtr);

/** Encodes a record into the mtr's log (nothing in MTR_LOG_NO_REDO) and notes its space. */
void mtr_log_add(mtr_t *mtr, const redo_rec_t *rec);

/** Completes the group, FILE_NAME in front, and appends it. */
void mtr_log_append(mtr_t *mtr, lsn_t *start_lsn, lsn_t *end_lsn);

#endif
