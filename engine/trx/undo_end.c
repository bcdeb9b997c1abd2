/** The end of undo logs: truncation by rollback, freeing by rollback and purge, commit.

Place: beside undo.c, same layout and rules.

Invariants
1. a chain is freed from its tail, one mini-transaction per page, and its last page together with
   the slot or the history link: whenever a crash strikes, what is left is a whole, shorter log,
   whose rollback or purge can go on;
2. commit is one mini-transaction: state, commit number, slot and history list change together (I2).
   */
#include "trx/trx_int.h"

/** Unlinks and frees the last page of the log, which is not its only one. */
static dberr_t undo_drop_last_page(const trx_rseg_t *rseg, mtr_t *mtr, page_no_t first,
                                   page_no_t last, page_no_t *new_last)
{
    buf_block_t *first_block = NULL;
    undo_page_t page;
    TRY(undo_page_get(rseg, mtr, first, &first_block, &page));
    buf_block_t *last_block = NULL;
    TRY(undo_page_get(rseg, mtr, last, &last_block, &page));
    buf_block_t *prev_block = NULL;
    undo_page_t prev_page;
    TRY(undo_page_get(rseg, mtr, page.prev, &prev_block, &prev_page));
    if (prev_page.next != last || page.next != FIL_NULL) {
        return undo_corrupt(rseg, last, "broken chain");
    }
    buf_block_t *header = NULL;
    TRY(trx_page_get(mtr, rseg->page, FIL_PAGE_TYPE_SYS, &header));
    TRY(fseg_page_free(mtr, undo_segment(header), last, FSP_FREE_LOGGED));
    mtr_write_4(mtr, prev_block, UNDO_NEXT, FIL_NULL);
    mtr_write_4(mtr, first_block, UNDO_LAST_PAGE, page.prev);
    *new_last = page.prev;
    return DB_SUCCESS;
}

dberr_t undo_truncate_last(trx_t *trx)
{
    trx_sys_t *sys = trx->sys;
    trx_rseg_t *rseg = trx->rseg;
    TRY(buf_log_free_check(sys->pool));
    mtr_t mtr;
    mtr_start(&mtr, sys->pool, MTR_LOG_ALL);
    page_no_t last = trx->undo_last;
    buf_block_t *block = NULL;
    undo_page_t page;
    dberr_t err = undo_page_get(rseg, &mtr, last, &block, &page);
    uint32_t len = err == DB_SUCCESS ? undo_last_rec_len(block->frame, page.free) : 0;
    if (err == DB_SUCCESS && (len == 0 || trx->n_recs == 0)) {
        err = undo_corrupt(rseg, last, "no last record");
    }
    if (err == DB_SUCCESS && page.n_recs == 1 && last != trx->undo_first) {
        err = undo_drop_last_page(rseg, &mtr, trx->undo_first, last, &last);
    } else if (err == DB_SUCCESS) {
        mtr_write_2(&mtr, block, UNDO_FREE, page.free - len);
        mtr_write_2(&mtr, block, UNDO_N_RECS, page.n_recs - 1);
    }
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_commit(&mtr);
    trx->undo_last = last;
    trx->n_recs--;
    return DB_SUCCESS;
}

/** Frees all pages of a log but the first. A crash in between leaves a shorter log. */
static dberr_t undo_free_tail(const trx_rseg_t *rseg, page_no_t first)
{
    buf_pool_t *pool = rseg->sys->pool;
    undo_page_t page;
    TRY(undo_page_read(rseg, first, &page));
    page_no_t last = page.last_page;
    while (last != first) {
        TRY(buf_log_free_check(pool));
        mtr_t mtr;
        mtr_start(&mtr, pool, MTR_LOG_ALL);
        TRY(mtr_end(&mtr, undo_drop_last_page(rseg, &mtr, first, last, &last)));
    }
    return buf_log_free_check(pool);
}

/** Starts an mtr that has freed the first page of a log; *header is pinned and not changed yet. */
static dberr_t undo_free_first(const trx_rseg_t *rseg, mtr_t *mtr, page_no_t first,
                               buf_block_t **header)
{
    mtr_start(mtr, rseg->sys->pool, MTR_LOG_ALL);
    dberr_t err = trx_page_get(mtr, rseg->page, FIL_PAGE_TYPE_SYS, header);
    AND_THEN(err, fseg_page_free(mtr, undo_segment(*header), first, FSP_FREE_LOGGED));
    if (err != DB_SUCCESS) {
        mtr_abort(mtr);
    }
    return err;
}

dberr_t undo_free_active(trx_t *trx)
{
    trx_rseg_t *rseg = trx->rseg;
    TRY(undo_free_tail(rseg, trx->undo_first));
    buf_block_t *header = NULL;
    mtr_t mtr;
    TRY(undo_free_first(rseg, &mtr, trx->undo_first, &header));
    mtr_write_4(&mtr, header, RSEG_SLOTS + 4 * trx->slot, FIL_NULL);
    mtr_commit(&mtr);
    rseg->slots[trx->slot] = FIL_NULL;
    trx->undo_first = FIL_NULL;
    trx->undo_last = FIL_NULL;
    trx->n_recs = 0;
    return DB_SUCCESS;
}

dberr_t undo_free_oldest(trx_rseg_t *rseg)
{
    page_no_t first = rseg->history_head;
    undo_page_t page;
    TRY(undo_page_read(rseg, first, &page));
    if ((page.history_next == FIL_NULL) != (first == rseg->history_tail)) {
        return undo_corrupt(rseg, first, "history list does not end at its tail");
    }
    TRY(undo_free_tail(rseg, first));
    buf_block_t *header = NULL;
    mtr_t mtr;
    TRY(undo_free_first(rseg, &mtr, first, &header));
    page_no_t tail = page.history_next == FIL_NULL ? FIL_NULL : rseg->history_tail;
    mtr_write_4(&mtr, header, RSEG_HISTORY_HEAD, page.history_next);
    mtr_write_4(&mtr, header, RSEG_HISTORY_TAIL, tail);
    mtr_write_8(&mtr, header, RSEG_HISTORY_LEN, rseg->history_len - 1);
    mtr_commit(&mtr);
    rseg->history_head = page.history_next;
    rseg->history_tail = tail;
    rseg->history_len--;
    return DB_SUCCESS;
}

/* ---- commit ---- */

dberr_t undo_commit(trx_t *trx, lsn_t *end_lsn)
{
    trx_sys_t *sys = trx->sys;
    trx_rseg_t *rseg = trx->rseg;
    TRY(buf_log_free_check(sys->pool));
    mtr_t mtr;
    mtr_start(&mtr, sys->pool, MTR_LOG_ALL);
    buf_block_t *first = NULL;
    buf_block_t *header = NULL;
    undo_page_t page;
    dberr_t err = undo_page_get(rseg, &mtr, trx->undo_first, &first, &page);
    AND_THEN(err, trx_page_get(&mtr, rseg->page, FIL_PAGE_TYPE_SYS, &header));
    buf_block_t *trx_sys_block = NULL;
    AND_THEN(err, trx_page_get(&mtr, TRX_SYS_ID, FIL_PAGE_TYPE_TRX_SYS, &trx_sys_block));
    buf_block_t *tail = NULL;
    if (err == DB_SUCCESS && rseg->history_tail != FIL_NULL) {
        err = undo_page_get(rseg, &mtr, rseg->history_tail, &tail, &page);
    }
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    page_no_t page_no = trx->undo_first;
    mtr_write_2(&mtr, first, UNDO_STATE, UNDO_STATE_COMMITTED);
    mtr_write_8(&mtr, first, UNDO_TRX_NO, sys->next_no);
    mtr_write_8(&mtr, trx_sys_block, TRX_SYS_NEXT_NO, sys->next_no + 1);
    mtr_write_4(&mtr, header, RSEG_SLOTS + 4 * trx->slot, FIL_NULL);
    if (tail != NULL) {
        mtr_write_4(&mtr, tail, UNDO_HISTORY_NEXT, page_no);
    } else {
        mtr_write_4(&mtr, header, RSEG_HISTORY_HEAD, page_no);
        rseg->history_head = page_no;
    }
    mtr_write_4(&mtr, header, RSEG_HISTORY_TAIL, page_no);
    mtr_write_8(&mtr, header, RSEG_HISTORY_LEN, rseg->history_len + 1);
    mtr_commit(&mtr);
    rseg->slots[trx->slot] = FIL_NULL;
    rseg->history_tail = page_no;
    rseg->history_len++;
    sys->next_no++;
    trx->undo_first = FIL_NULL;
    *end_lsn = mtr.end_lsn;
    return DB_SUCCESS;
}
