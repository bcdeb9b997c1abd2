/** Purge: removes what no rollback can need any more, oldest committed log first.

Place: beside rollback.c, above undo.c and row.c.

Invariants
1. purge rests while a table is exported, and while any open transaction has an undo log: that
   transaction may roll back onto any version that history describes, and must find its entries and
   ids again (rollback.c, no. 3);
2. an undo record that the clustered record's (DB_TRX_ID, DB_ROLL_PTR) still names is about the
   newest version: its ids become 0, or, if it is delete-marked, the row goes with all its entries.
   If it is named no more, a later change covers the row, whose undo record comes later in the
   history;
3. a delete-marked secondary entry is removed when the newest version does not have that key;
4. the position inside a log is kept in memory only: after a restart the log begins again, and every
   step says what must be (I17);
5. when a log leaves the history nothing in any tree refers to it, hence with an empty history and
   no open transaction every DB_TRX_ID is 0 and there is no delete mark (I25);
6. the long values that an update replaced are its undo record's and go with it, a page at a time,
   while the reference there says what is left; those of a row go before its record, behind its
   entries. So the log can begin again at any time and frees nothing twice (I11). */
#include <inttypes.h>
#include <string.h>

#include "btr/btr_blob.h"
#include "trx/trx_int.h"

/** A log of a table that was dropped meanwhile has nothing to purge there, nor of one whose file is
gone before its rows. One that rows are being copied to has, though nobody sees it yet. */
static bool purge_table_is_there(const trx_sys_t *sys, const dict_table_t *table)
{
    return table != NULL && table->status != DICT_DROPPING
           && table->indexes[0].tree.root != FIL_NULL
           && fil_space_get(buf_fil(sys->pool), table->space) != NULL;
}

/** An older version (row2, from the undo record) of the row in bufs.row: drops its own entries. */
static dberr_t purge_old_entries(trx_sys_t *sys, const dict_table_t *table, const undo_rec_t *rec)
{
    row_bufs_t *bufs = &sys->bufs;
    memcpy(bufs->row2, bufs->row, table->row_size);
    undo_rec_restore(rec, table, bufs->row2, &bufs->ext2);
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; err == DB_SUCCESS && i < table->n_indexes; i++) {
        const dict_index_t *index = &table->indexes[i];
        if (!row_index_is_kept(index)) {
            continue;
        }
        dict_row_to_sec(index, bufs->row, bufs->sec);
        dict_row_to_sec(index, bufs->row2, bufs->sec2);
        if (memcmp(bufs->sec, bufs->sec2, index->tree.leaf_rec_size) != 0) {
            err = row_sec_remove(sys->pool, index, bufs->sec2, true);
        }
    }
    return err;
}

/** The row in bufs.row is deleted for good. */
static dberr_t purge_row(trx_sys_t *sys, const dict_table_t *table, const undo_rec_t *rec)
{
    row_bufs_t *bufs = &sys->bufs;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        const dict_index_t *index = &table->indexes[i];
        if (row_index_is_kept(index)) {
            dict_row_to_sec(index, bufs->row, bufs->sec);
            TRY(row_sec_remove(sys->pool, index, bufs->sec, true));
        }
    }
    TRY(row_free_chains(sys->pool, table, rec->pk, &bufs->ext, NULL,
                        &trx_sys_env(sys)->stats.blobs_purged));
    return btr_delete(sys->pool, &table->indexes[0].tree, rec->pk);
}

/** Frees the chains that an undo record owns: its references in the undo page say what is left
(6). */
static dberr_t purge_chains(trx_sys_t *sys, const dict_table_t *table, const undo_rec_t *rec,
                            roll_ptr_t roll_ptr)
{
    page_id_t page = undo_page_id(sys->purge.rseg, roll_ptr_page(roll_ptr));
    uint32_t start = roll_ptr_offset(roll_ptr);
    uint32_t at = 0;
    uint32_t offset = 0;
    dberr_t err = DB_SUCCESS;
    while (undo_rec_next_chain(rec, sys->bufs.undo, &at, &offset)) {
        err = btr_blob_free_of_page(sys->pool, &table->indexes[0].tree, page, start + offset);
        trx_sys_env(sys)->stats.blobs_purged++;
        TRY(err);
    }
    return err;
}

/** What an undo record says of the row that is there. */
static dberr_t purge_version(trx_sys_t *sys, const dict_table_t *table, trx_id_t id,
                             const undo_rec_t *rec, roll_ptr_t roll_ptr)
{
    row_bufs_t *bufs = &sys->bufs;
    bool newest =
        dict_rec_trx_id(table, bufs->rec) == id && dict_rec_roll_ptr(table, bufs->rec) == roll_ptr;
    if (newest && rec_is_deleted(bufs->rec) != (rec->type == UNDO_DELETE_MARK)) {
        return err_set(&trx_sys_env(sys)->err, DB_CORRUPTION,
                       "table %s: delete mark of a row contradicts its undo record", table->name);
    }
    dict_rec_ext(table, bufs->rec, &bufs->ext);
    dberr_t err = dict_rec_read(sys->pool, table, bufs->rec, bufs->rec_len, bufs->row);
    if (err == DB_SUCCESS && rec->type == UNDO_UPDATE) {
        err = purge_old_entries(sys, table, rec);
    }
    if (err != DB_SUCCESS || !newest) {
        return err;
    }
    if (rec_is_deleted(bufs->rec)) {
        return purge_row(sys, table, rec);
    }
    return row_clust_set_ids(sys->pool, table, rec->pk, 0, 0);
}

static dberr_t purge_rec(trx_sys_t *sys, trx_id_t id, const undo_rec_t *rec, roll_ptr_t roll_ptr)
{
    row_bufs_t *bufs = &sys->bufs;
    const dict_table_t *table = dict_table_by_id(sys->dict, rec->table_id);
    if (!purge_table_is_there(sys, table)) {
        return DB_SUCCESS;
    }
    if (rec->type == UNDO_METADATA) {
        return row_meta_purge(sys, table, id, roll_ptr);
    }
    if (undo_rec_check(rec, table) != DB_SUCCESS) {
        return err_set(&trx_sys_env(sys)->err, DB_CORRUPTION,
                       "undo record of transaction %" PRIu64 " does not fit table %" PRIu64, id,
                       rec->table_id);
    }
    dberr_t err = row_clust_get(sys->pool, table, rec->pk, bufs->rec, &bufs->rec_len);
    TRY(err == DB_NOT_FOUND ? DB_SUCCESS
        : err == DB_SUCCESS ? purge_version(sys, table, id, rec, roll_ptr)
                            : err);
    return purge_chains(sys, table, rec, roll_ptr);
}

/** Begins the log that was committed first, of the oldest ones of all rollback segments. */
static dberr_t purge_begin(trx_sys_t *sys)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < sys->n_rsegs; i++) {
        trx_rseg_t *rseg = &sys->rsegs[i];
        if (rseg->history_len == 0) {
            continue;
        }
        undo_page_t first;
        TRY(undo_page_read(rseg, rseg->history_head, &first));
        if (first.trx_no < least) {
            least = first.trx_no;
            sys->purge = (purge_pos_t){rseg, rseg->history_head, rseg->history_head, UNDO_RECS};
        }
    }
    return DB_SUCCESS;
}

/** One undo record of the oldest log, or the end of that log. *n counts records. */
static dberr_t purge_advance(trx_sys_t *sys, uint32_t *n)
{
    purge_pos_t *pos = &sys->purge;
    TRY(pos->first == FIL_NULL ? purge_begin(sys) : DB_SUCCESS);
    undo_page_t first;
    undo_rec_t rec;
    roll_ptr_t roll_ptr = 0;
    dberr_t err = undo_page_read(pos->rseg, pos->first, &first);
    AND_THEN(err,
             undo_read_next(pos->rseg, &pos->page, &pos->offset, sys->bufs.undo, &rec, &roll_ptr));
    if (err == DB_NOT_FOUND) {
        pos->first = FIL_NULL;
        return undo_free_oldest(pos->rseg);
    }
    TRY(err);
    TRY(purge_rec(sys, first.trx_id, &rec, roll_ptr));
    trx_sys_env(sys)->stats.purged_records++;
    (*n)++;
    PROBE_POINT(trx_sys_env(sys)->probe, "purge.step");
    return DB_SUCCESS;
}

void trx_purge_stop(trx_sys_t *sys)
{
    sys->purge_is_stopped = true;
}

void trx_purge_resume(trx_sys_t *sys)
{
    sys->purge_is_stopped = false;
}

bool trx_purge_is_stopped(const trx_sys_t *sys)
{
    return sys->purge_is_stopped;
}

dberr_t trx_purge_step(trx_sys_t *sys, uint32_t max_records, bool *done)
{
    bool rests = trx_sys_has_writers(sys) || sys->purge_is_stopped;
    uint32_t n = 0;
    dberr_t err = DB_SUCCESS;
    while (err == DB_SUCCESS && !rests && trx_sys_history_len(sys) > 0 && n < max_records) {
        err = purge_advance(sys, &n);
    }
    *done = rests || trx_sys_history_len(sys) == 0;
    TRY(err);
    return !rests ? undo_space_truncate(sys) : DB_SUCCESS;
}
