/** Private to mtr/: what mtr.c and mtr_log.c share. */
#ifndef MTR_MTR_INT_H
#define MTR_MTR_INT_H

#include "mtr/mtr.h"

#define MTR_NOT_FOUND UINT32_MAX

/** Position of a page in the memo, or MTR_NOT_FOUND. */
uint32_t mtr_memo_find(const mtr_t *mtr, page_id_t id);

/** Encodes a record into the mtr's log (nothing in MTR_LOG_NO_REDO) and notes its space. */
void mtr_log_add(mtr_t *mtr, const redo_rec_t *rec);

/** Completes the group, FILE_NAME in front, and appends it. */
void mtr_log_append(mtr_t *mtr, lsn_t *start_lsn, lsn_t *end_lsn);

#endif
