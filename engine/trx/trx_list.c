/** The open transactions, their ids, and what the other files ask of the transaction system.

Place: below undo.c and all other files of trx/.

Invariant: no transaction id is given out twice. Ids stay below the limit on the TRX_SYS page, which
is raised (logged before the first use of an id) in steps and continues there after a restart
(I25). */
#include <inttypes.h>
#include <stdlib.h>

#include "trx/trx_int.h"

dberr_t trx_page_get(mtr_t *mtr, page_id_t id, page_type_t type, buf_block_t **out)
{
    buf_block_t *block = NULL;
    TRY(mtr_page_get(mtr, id, &block));
    if (fil_page_get_type(block->frame) != (uint32_t)type) {
        return err_set(&buf_env(mtr->pool)->err, DB_CORRUPTION,
                       "page %" PRIu32 " of space %" PRIu32 " is not of type %s", id.page_no,
                       id.space, page_type_name((uint32_t)type));
    }
    *out = block;
    return DB_SUCCESS;
}

dict_t *trx_sys_dict(const trx_sys_t *sys)
{
    return sys->dict;
}

buf_pool_t *trx_sys_pool(const trx_sys_t *sys)
{
    return sys->pool;
}

uint64_t trx_sys_history_len(const trx_sys_t *sys)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < sys->n_rsegs; i++) {
        n += sys->rsegs[i].history_len;
    }
    return n;
}

uint32_t trx_sys_n_undo_spaces(const trx_sys_t *sys)
{
    return sys->n_rsegs - 1;
}

uint32_t trx_sys_n_active(const trx_sys_t *sys)
{
    uint32_t n = 0;
    for (const trx_t *trx = sys->first; trx != NULL; trx = trx->next) {
        n++;
    }
    return n;
}

bool trx_sys_is_active(const trx_sys_t *sys, trx_id_t id)
{
    for (const trx_t *trx = sys->first; trx != NULL; trx = trx->next) {
        if (trx->id == id) {
            return true;
        }
    }
    return false;
}

bool trx_sys_has_writers(const trx_sys_t *sys)
{
    for (const trx_t *trx = sys->first; trx != NULL; trx = trx->next) {
        if (trx->undo_first != FIL_NULL) {
            return true;
        }
    }
    return false;
}

dberr_t trx_sys_add(trx_sys_t *sys, trx_t **out)
{
    trx_t *trx = calloc(1, sizeof(*trx));
    if (trx == NULL) {
        return err_set(&trx_sys_env(sys)->err, DB_OUT_OF_MEMORY, "no memory for a transaction");
    }
    trx->sys = sys;
    trx->undo_first = FIL_NULL;
    trx->undo_last = FIL_NULL;
    trx_t **link = &sys->first;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = trx;
    *out = trx;
    return DB_SUCCESS;
}

dberr_t trx_assign_id(trx_t *trx)
{
    trx_sys_t *sys = trx->sys;
    if (trx->id != 0) {
        return DB_SUCCESS;
    }
    if (sys->next_id == sys->max_id) {
        if (sys->max_id > TRX_ID_MAX - TRX_ID_STEP) {
            return err_set(&trx_sys_env(sys)->err, DB_OUT_OF_SPACE, "no transaction id is left");
        }
        TRY(buf_log_free_check(sys->pool));
        mtr_t mtr;
        mtr_start(&mtr, sys->pool, MTR_LOG_ALL);
        buf_block_t *block = NULL;
        dberr_t err = trx_page_get(&mtr, TRX_SYS_ID, FIL_PAGE_TYPE_TRX_SYS, &block);
        if (err != DB_SUCCESS) {
            mtr_abort(&mtr);
            return err;
        }
        mtr_write_8(&mtr, block, TRX_SYS_MAX_ID, sys->max_id + TRX_ID_STEP);
        mtr_commit(&mtr);
        sys->max_id += TRX_ID_STEP;
    }
    trx->id = sys->next_id++;
    return DB_SUCCESS;
}

trx_id_t trx_id(const trx_t *trx)
{
    return trx->id;
}
