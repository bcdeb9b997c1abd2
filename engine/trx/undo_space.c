/** Undo tablespaces: their creation, which of them a new log goes to, and their truncation.

Place: above fsp/ and beside undo.c, below purge.

    larger than max_undo_log_size --purge--> chosen: no new log --its last log is purged--> frames
    forgotten | TRIM_PAGES, space header, RSEG page: one mtr | log durable | file cut, fsynced

Invariants
1. a space that holds a log, active or committed, is never cut (I1, I2): while one is chosen, the
   other serves;
2. the old life ends and the new one begins with one group of the log, and recovery forgets all
   records of the space before it: a crash leaves either life whole. A page of the new life is
   initialised by a record behind it;
3. that group is durable before the file shrinks: what is cut off cannot be rebuilt from a log
   without it;
4. no checkpoint falls between the forgetting of frames, unwritten, and the durable group: until
   then the old life can be repeated from the log. So a failure in between poisons the handle. */
#include <string.h>

#include "base/check.h"
#include "trx/trx_int.h"

void rseg_init(trx_sys_t *sys, uint32_t id)
{
    trx_rseg_t *rseg = &sys->rsegs[id];
    *rseg = (trx_rseg_t){.sys = sys,
                         .id = id,
                         .page = {SPACE_SYSTEM, RSEG_PAGE},
                         .history_head = FIL_NULL,
                         .history_tail = FIL_NULL};
    if (id > 0) {
        rseg->page = (page_id_t){space_of_undo(id), RSEG_PAGE_UNDO_SPACE};
    }
    memset(rseg->slots, 0xFF, sizeof(rseg->slots));
}

dberr_t rseg_create(mtr_t *mtr, page_id_t id)
{
    buf_block_t *page = NULL;
    TRY(mtr_page_create(mtr, id, FIL_PAGE_TYPE_SYS, &page));
    TRY(fseg_create(mtr, id.space, FIL_PAGE_UNDO_LOG, RSEG_UNDO_SEG, &page));
    mtr_write_4(mtr, page, RSEG_HISTORY_HEAD, FIL_NULL);
    mtr_write_4(mtr, page, RSEG_HISTORY_TAIL, FIL_NULL);
    mtr_memset(mtr, page, RSEG_SLOTS, 4 * RSEG_N_SLOTS, 0xFF);
    return DB_SUCCESS;
}

/** The space begins anew, with its first pages. */
static dberr_t undo_space_format(buf_pool_t *pool, space_id_t space, lsn_t *end_lsn)
{
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    mtr_trim_pages(&mtr, space, FSP_INITIAL_PAGES);
    dberr_t err = fsp_header_init(&mtr, space, FSP_INITIAL_PAGES);
    AND_THEN(err, rseg_create(&mtr, (page_id_t){space, RSEG_PAGE_UNDO_SPACE}));
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_commit(&mtr);
    *end_lsn = mtr.end_lsn;
    return DB_SUCCESS;
}

dberr_t undo_space_create(buf_pool_t *pool, uint32_t id)
{
    char path[PATH_LEN_MAX + 1];
    fil_path_of_undo(id, path);
    TRY(buf_log_free_check(pool));
    fil_space_t *space = NULL;
    TRY(fil_space_create(buf_fil(pool), space_of_undo(id), path, FSP_INITIAL_PAGES, &space));
    lsn_t end_lsn = 0;
    return undo_space_format(pool, space->id, &end_lsn);
}

trx_rseg_t *undo_space_choose(trx_sys_t *sys, uint32_t *slot)
{
    uint32_t n = trx_sys_n_undo_spaces(sys);
    trx_rseg_t *rseg = NULL;
    uint32_t tried = 0;
    do {
        rseg = &sys->rsegs[n > 0 ? 1 + sys->next_rseg++ % n : 0];
        *slot = rseg == sys->truncating ? RSEG_N_SLOTS : 0;
        while (*slot < RSEG_N_SLOTS && rseg->slots[*slot] != FIL_NULL) {
            ++*slot;
        }
    } while (++tried < n && *slot == RSEG_N_SLOTS);
    return rseg;
}

/* ---- truncation ---- */

static fil_space_t *rseg_space(const trx_rseg_t *rseg)
{
    return fil_space_get(buf_fil(rseg->sys->pool), rseg->page.space);
}

static bool rseg_is_too_large(const trx_rseg_t *rseg)
{
    uint64_t n_pages = rseg_space(rseg)->size_pages;
    return n_pages > FSP_INITIAL_PAGES
           && n_pages * buf_page_size(rseg->sys->pool) > rseg->sys->max_undo_log_size;
}

static bool rseg_is_empty(const trx_rseg_t *rseg)
{
    bool empty = rseg->history_len == 0;
    for (uint32_t i = 0; i < RSEG_N_SLOTS; i++) {
        empty = empty && rseg->slots[i] == FIL_NULL;
    }
    return empty;
}

/** The steps whose failure poisons the handle. */
static dberr_t undo_space_renew(const trx_rseg_t *rseg)
{
    buf_pool_t *pool = rseg->sys->pool;
    fil_space_t *space = rseg_space(rseg);
    probe_t *probe = buf_env(pool)->probe;
    TRY(buf_discard_space(pool, space->id));
    lsn_t end_lsn = 0;
    TRY(undo_space_format(pool, space->id, &end_lsn));
    TRY(log_write_up_to(buf_log(pool), end_lsn, true));
    PROBE_POINT(probe, "undo.truncate.logged");
    buf_env(pool)->stats.undo_pages_truncated += space->size_pages - FSP_INITIAL_PAGES;
    TRY(fil_space_shrink(buf_fil(pool), space, FSP_INITIAL_PAGES));
    PROBE_POINT(probe, "undo.truncate.shrunk");
    return DB_SUCCESS;
}

dberr_t undo_space_truncate(trx_sys_t *sys)
{
    for (uint32_t id = 1; id < sys->n_rsegs && sys->truncating == NULL; id++) {
        if (sys->max_undo_log_size > 0 && rseg_is_too_large(&sys->rsegs[id])) {
            sys->truncating = &sys->rsegs[id];
        }
    }
    if (sys->truncating == NULL || !rseg_is_empty(sys->truncating)) {
        return DB_SUCCESS;
    }
    TRY(buf_log_free_check(sys->pool));
    dberr_t err = undo_space_renew(sys->truncating);
    if (err != DB_SUCCESS) {
        env_poison(trx_sys_env(sys));
        return err;
    }
    rseg_init(sys, sys->truncating->id);
    sys->truncating = NULL;
    trx_sys_env(sys)->stats.undo_truncations++;
    return DB_SUCCESS;
}
