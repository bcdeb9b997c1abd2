/** The transaction system: its pages, what a restart finds in them, resurrected transactions.

Place: top of trx/, above undo.c and trx.c.

Invariants
1. nothing that a page says is used before it was checked: DB_CORRUPTION;
2. resurrected transactions are rolled back before anything else changes or purges rows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "trx/trx_int.h"

dberr_t trx_sys_bootstrap(buf_pool_t *pool, uint32_t n_undo_spaces)
{
    CHECK(n_undo_spaces <= UNDO_SPACES_MAX);
    for (uint32_t id = 1; id <= n_undo_spaces; id++) {
        TRY(undo_space_create(pool, id));
    }
    TRY(buf_log_free_check(pool));
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    buf_block_t *trx_sys = NULL;
    dberr_t err = mtr_page_create(&mtr, TRX_SYS_ID, FIL_PAGE_TYPE_TRX_SYS, &trx_sys);
    AND_THEN(err, rseg_create(&mtr, (page_id_t){SPACE_SYSTEM, RSEG_PAGE}));
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_write_8(&mtr, trx_sys, TRX_SYS_MAX_ID, 1);
    mtr_write_8(&mtr, trx_sys, TRX_SYS_NEXT_NO, 1);
    if (n_undo_spaces > 0) {
        mtr_write_4(&mtr, trx_sys, TRX_SYS_N_UNDO_SPACES, n_undo_spaces);
    }
    mtr_commit(&mtr);
    return DB_SUCCESS;
}

static dberr_t trx_sys_corrupt(const trx_sys_t *sys, const char *what)
{
    return err_set(&trx_sys_env(sys)->err, DB_CORRUPTION, "transaction system: %s", what);
}

static dberr_t trx_sys_read_rseg(trx_rseg_t *rseg)
{
    mtr_t mtr;
    mtr_start(&mtr, rseg->sys->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    dberr_t err = trx_page_get(&mtr, rseg->page, FIL_PAGE_TYPE_SYS, &block);
    if (err == DB_SUCCESS) {
        rseg->history_head = mach_read_4(block->frame + RSEG_HISTORY_HEAD);
        rseg->history_tail = mach_read_4(block->frame + RSEG_HISTORY_TAIL);
        rseg->history_len = mach_read_8(block->frame + RSEG_HISTORY_LEN);
        for (uint32_t i = 0; i < RSEG_N_SLOTS; i++) {
            rseg->slots[i] = mach_read_4(block->frame + RSEG_SLOTS + 4 * i);
        }
    }
    mtr_commit(&mtr);
    return err;
}

static dberr_t trx_sys_read_pages(trx_sys_t *sys)
{
    mtr_t mtr;
    mtr_start(&mtr, sys->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    uint32_t n_undo_spaces = 0;
    dberr_t err = trx_page_get(&mtr, TRX_SYS_ID, FIL_PAGE_TYPE_TRX_SYS, &block);
    if (err == DB_SUCCESS) {
        sys->max_id = mach_read_8(block->frame + TRX_SYS_MAX_ID);
        sys->next_id = sys->max_id;
        sys->next_no = mach_read_8(block->frame + TRX_SYS_NEXT_NO);
        n_undo_spaces = mach_read_4(block->frame + TRX_SYS_N_UNDO_SPACES);
    }
    mtr_commit(&mtr);
    TRY(err);
    if (n_undo_spaces != 0 && n_undo_spaces != UNDO_SPACES_MAX) {
        return trx_sys_corrupt(sys, "impossible number of undo tablespaces");
    }
    for (uint32_t id = 0; id <= n_undo_spaces; id++) {
        rseg_init(sys, id);
        err = trx_sys_read_rseg(&sys->rsegs[id]);
        sys->n_rsegs++;
        TRY(err);
    }
    if (sys->max_id == 0 || sys->max_id > TRX_ID_MAX - TRX_ID_STEP) {
        return trx_sys_corrupt(sys, "impossible transaction id");
    }
    if (sys->next_no == 0) {
        return trx_sys_corrupt(sys, "impossible commit number");
    }
    return DB_SUCCESS;
}

/** The list of committed logs: as long as it says, ascending commit numbers, ending at its tail. */
static dberr_t trx_sys_check_history(const trx_rseg_t *rseg)
{
    uint64_t n = 0;
    uint64_t last_no = 0;
    page_no_t last = FIL_NULL;
    for (page_no_t page_no = rseg->history_head; page_no != FIL_NULL; n++) {
        undo_page_t page;
        TRY(undo_page_read(rseg, page_no, &page));
        if (page.state != UNDO_STATE_COMMITTED || page.trx_no <= last_no
            || page.trx_no >= rseg->sys->next_no) {
            return undo_corrupt(rseg, page_no, "does not belong into the history list");
        }
        last_no = page.trx_no;
        last = page_no;
        page_no = page.history_next;
    }
    if (last != rseg->history_tail || n != rseg->history_len) {
        return trx_sys_corrupt(rseg->sys, "history list does not end where it should");
    }
    return DB_SUCCESS;
}

static dberr_t trx_sys_resurrect(trx_rseg_t *rseg, uint32_t slot)
{
    trx_sys_t *sys = rseg->sys;
    page_no_t first = rseg->slots[slot];
    undo_page_t page;
    TRY(undo_page_read(rseg, first, &page));
    if (page.state != UNDO_STATE_ACTIVE || page.history_next != FIL_NULL) {
        return undo_corrupt(rseg, first, "not the log of an active transaction");
    }
    if (trx_sys_is_active(sys, page.trx_id)) {
        return undo_corrupt(rseg, first, "two logs of one transaction");
    }
    uint64_t n_recs = 0;
    TRY(undo_log_validate(rseg, first, &n_recs));
    trx_t *trx = NULL;
    TRY(trx_sys_add(sys, &trx));
    trx->id = page.trx_id;
    trx->rseg = rseg;
    trx->slot = slot;
    trx->undo_first = first;
    trx->undo_last = page.last_page;
    trx->n_recs = n_recs;
    trx->resurrected = true;
    return DB_SUCCESS;
}

static dberr_t no_memory(buf_pool_t *pool)
{
    return err_set(&buf_env(pool)->err, DB_OUT_OF_MEMORY, "no memory for the transaction system");
}

static dberr_t trx_sys_alloc(buf_pool_t *pool, trx_sys_t **out)
{
    size_t size = buf_page_size(pool) > ROW_SIZE_MAX ? buf_page_size(pool) : ROW_SIZE_MAX;
    size += DICT_UNDO_OVERHEAD; /* a hostile undo record makes a row all of whose texts are local */
    trx_sys_t *sys = calloc(1, sizeof(*sys));
    if (sys == NULL) {
        return no_memory(pool);
    }
    sys->pool = pool;
    byte **bufs[ROW_N_BUFS] = {&sys->bufs.rec,       &sys->bufs.row,       &sys->bufs.row2,
                               &sys->bufs.sec,       &sys->bufs.sec2,      &sys->bufs.undo,
                               &sys->bufs.other_rec, &sys->bufs.other_row, &sys->bufs.other_sec,
                               &sys->bufs.other_undo};
    for (uint32_t i = 0; i < ROW_N_BUFS; i++) {
        *bufs[i] = sys->buf_mem[i] = malloc(size); /* large: each use fills what it reads */
        if (*bufs[i] == NULL) {
            trx_sys_close(sys);
            return no_memory(pool);
        }
    }
    *out = sys;
    return DB_SUCCESS;
}

void trx_sys_set_purge(trx_sys_t *sys, uint32_t interval, uint64_t max_undo_log_size)
{
    sys->purge_interval = interval;
    sys->max_undo_log_size = max_undo_log_size;
}

dberr_t trx_sys_open(buf_pool_t *pool, dict_t *dict, uint32_t flush_log_at_trx_commit,
                     trx_sys_t **out)
{
    CHECK(flush_log_at_trx_commit <= 2);
    trx_sys_t *sys = NULL;
    TRY(trx_sys_alloc(pool, &sys));
    sys->dict = dict;
    sys->flush_mode = flush_log_at_trx_commit;
    sys->purge.first = FIL_NULL;
    dberr_t err = trx_sys_read_pages(sys);
    for (uint32_t i = 0; err == DB_SUCCESS && i < sys->n_rsegs; i++) {
        err = trx_sys_check_history(&sys->rsegs[i]);
    }
    for (uint32_t i = 0; err == DB_SUCCESS && i < sys->n_rsegs * RSEG_N_SLOTS; i++) {
        trx_rseg_t *rseg = &sys->rsegs[i / RSEG_N_SLOTS];
        if (rseg->slots[i % RSEG_N_SLOTS] != FIL_NULL) {
            err = trx_sys_resurrect(rseg, i % RSEG_N_SLOTS);
        }
    }
    if (err != DB_SUCCESS) {
        trx_sys_close(sys);
        return err;
    }
    *out = sys;
    return DB_SUCCESS;
}

void trx_sys_close(trx_sys_t *sys)
{
    if (sys == NULL) {
        return;
    }
    while (sys->first != NULL) {
        trx_end(sys->first);
    }
    for (uint32_t i = 0; i < ROW_N_BUFS; i++) {
        free(sys->buf_mem[i]);
    }
    free(sys);
}

/** Did the transaction change the catalogue? A DDL transaction changes nothing else. */
static dberr_t trx_is_catalogue(trx_t *trx, bool *catalogue)
{
    trx_sys_t *sys = trx->sys;
    *catalogue = false;
    if (trx->n_recs == 0) {
        return DB_SUCCESS;
    }
    undo_rec_t rec;
    roll_ptr_t roll_ptr = 0;
    TRY(undo_read_last(trx, sys->bufs.undo, &rec, &roll_ptr));
    *catalogue = rec.type == UNDO_METADATA;
    for (int i = 0; i < SYS_N; i++) {
        *catalogue = *catalogue || dict_sys_table(sys->dict, (sys_table_t)i)->id == rec.table_id;
    }
    return DB_SUCCESS;
}

static dberr_t trx_sys_rollback_some(trx_sys_t *sys, bool catalogue_only,
                                     void (*fn)(void *ctx, trx_id_t id), void *ctx)
{
    for (trx_t *trx = sys->first, *next; trx != NULL; trx = next) {
        next = trx->next;
        if (!trx->resurrected) {
            continue;
        }
        bool catalogue = true;
        if (catalogue_only) {
            TRY(trx_is_catalogue(trx, &catalogue));
        }
        if (catalogue) {
            if (fn != NULL) {
                fn(ctx, trx->id);
            }
            TRY(trx_rollback(trx));
        }
    }
    return DB_SUCCESS;
}

dberr_t trx_sys_rollback_resurrected(trx_sys_t *sys, void (*fn)(void *ctx, trx_id_t id), void *ctx)
{
    TRY(trx_sys_rollback_some(sys, true, fn, ctx));
    TRY(dict_load(sys->dict));
    return trx_sys_rollback_some(sys, false, fn, ctx);
}
