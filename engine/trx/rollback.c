/** Undoing one change of a row.

Place: beside row.c, called by trx.c for rollback, savepoints and recovery.

Invariants
1. the pair (DB_TRX_ID, DB_ROLL_PTR) of the clustered record decides: if it does not name this undo
   record, the change never reached the row or has been undone already, and nothing is done (I2). So
   secondary entries are set right first and the pair is restored last;
2. every operation says what must be, not what to flip, so that repeating a step after a crash is
   harmless (I17);
3. the version that comes back has the ids that it had. Nothing was purged since the change, because
   purge rests while a transaction has an undo log: its history, if it had any, is still there
   (I25);
4. the chains of the new version go while its record still leads to them, a page at a time, and
   those of the old one come back with the pair: a crash in between leaves a record whose references
   say what is left. */
#include <inttypes.h>
#include <string.h>

#include "trx/trx_int.h"

/** The change was the row's insertion: removes the row. */
static dberr_t row_undo_insert(trx_sys_t *sys, const dict_table_t *table, const undo_rec_t *rec)
{
    row_bufs_t *bufs = &sys->bufs;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        const dict_index_t *index = &table->indexes[i];
        if (row_index_is_kept(index)) {
            dict_row_to_sec(index, bufs->row, bufs->sec);
            TRY(row_sec_remove(sys->pool, index, bufs->sec, false));
        }
    }
    TRY(row_free_chains(sys->pool, table, rec->pk, &bufs->ext, NULL,
                        &trx_sys_env(sys)->stats.blobs_rolled_back));
    return btr_delete(sys->pool, &table->indexes[0].tree, rec->pk);
}

/** One index: the entry of row (the version that goes) and that of row2 (the one that comes back).
In a unique one a key that an even older version has stays marked, so that nobody else takes it. */
static dberr_t row_undo_entry(trx_t *trx, const dict_index_t *index, const undo_rec_t *rec)
{
    trx_sys_t *sys = trx->sys;
    row_bufs_t *bufs = &sys->bufs;
    bool older = false;
    dict_row_to_sec(index, bufs->row, bufs->sec);
    dict_row_to_sec(index, bufs->row2, bufs->sec2);
    bool changed = memcmp(bufs->sec, bufs->sec2, index->tree.leaf_rec_size) != 0;
    dberr_t err = DB_SUCCESS;
    if (changed && index->unique) {
        err = row_unique_older(trx, index, bufs->sec, rec, &older);
    }
    if (err == DB_SUCCESS && changed) {
        err = older ? row_sec_mark(sys->pool, index, bufs->sec)
                    : row_sec_remove(sys->pool, index, bufs->sec, false);
        err = err == DB_NOT_FOUND ? DB_SUCCESS : err;
    }
    if (err == DB_SUCCESS && rec->old_info != 0) {
        err = row_sec_mark(sys->pool, index, bufs->sec2);
        err = err == DB_NOT_FOUND ? DB_SUCCESS : err;
    } else if (err == DB_SUCCESS && changed) {
        err = row_sec_put(sys->pool, index, bufs->sec2);
    }
    return err;
}

static bool same_value(const dict_col_t *col, const byte *row, const byte *other)
{
    bool null = dict_col_is_null(col, row);
    const byte *value = row + col->row_offset;
    return null == dict_col_is_null(col, other)
           && (null || memcmp(value, other + col->row_offset, dict_col_row_len(col)) == 0);
}

/** The record of row2 gets no more columns than it had: a row as long as a page allows has no room
for those that came by INSTANT since. The last ones are as the metadata record has them. */
static dberr_t row_undo_trim(trx_sys_t *sys, const dict_table_t *table)
{
    row_bufs_t *bufs = &sys->bufs;
    dict_ext_t *ext = &bufs->ext2;
    if (ext->n_cols > table->n_core) {
        TRY(dict_meta_read(sys->pool, table, bufs->other_row));
    }
    for (uint32_t i = ext->n_cols; i-- > table->n_core;) {
        if (ext->is[i] || !same_value(&table->cols[i], bufs->row2, bufs->other_row)) {
            break;
        }
        ext->n_cols = i;
    }
    return DB_SUCCESS;
}

/** The change was an update or a revival: brings row2 back. */
static dberr_t row_undo_update(trx_t *trx, const dict_table_t *table, const undo_rec_t *rec)
{
    trx_sys_t *sys = trx->sys;
    row_bufs_t *bufs = &sys->bufs;
    memcpy(bufs->row2, bufs->row, table->row_size);
    bufs->ext2 = bufs->ext;
    bufs->ext2.n_cols = table->n_cols; /* a version between two may have fewer than both */
    undo_rec_restore(rec, table, bufs->row2, &bufs->ext2);
    TRY(row_undo_trim(sys, table));
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        if (row_index_is_kept(&table->indexes[i])) {
            TRY(row_undo_entry(trx, &table->indexes[i], rec));
        }
    }
    TRY(row_free_chains(sys->pool, table, rec->pk, &bufs->ext, &bufs->ext2,
                        &trx_sys_env(sys)->stats.blobs_rolled_back));
    if ((rec_info(bufs->rec) & REC_INFO_DELETE_MARK) != rec->old_info) {
        TRY(row_clust_set_mark(sys->pool, table, bufs->rec, rec->old_info));
    }
    bufs->rec_len = dict_row_to_rec(table, bufs->row2, &bufs->ext2, rec->old_trx_id,
                                    rec->old_roll_ptr, bufs->rec);
    return bufs->rec_len <= table->indexes[0].tree.leaf_rec_size
               ? row_clust_set_data(sys->pool, table, bufs->rec, bufs->rec_len)
               : err_set(&trx_sys_env(sys)->err, DB_CORRUPTION,
                         "an undo record of table %s is of no record", table->name);
}

/** The change was the row's deletion: removes the mark. */
static dberr_t row_undo_delete(trx_sys_t *sys, const dict_table_t *table, const undo_rec_t *rec)
{
    row_bufs_t *bufs = &sys->bufs;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        const dict_index_t *index = &table->indexes[i];
        if (row_index_is_kept(index)) {
            dict_row_to_sec(index, bufs->row, bufs->sec);
            TRY(row_sec_put(sys->pool, index, bufs->sec));
        }
    }
    TRY(row_clust_set_mark(sys->pool, table, bufs->rec, 0));
    return row_clust_set_ids(sys->pool, table, rec->pk, rec->old_trx_id, rec->old_roll_ptr);
}

/** Undoes the change of the row in bufs; the newest version is an older one then. */
static dberr_t row_undo_change(trx_t *trx, const dict_table_t *table, const undo_rec_t *rec)
{
    trx_sys_t *sys = trx->sys;
    row_bufs_t *bufs = &sys->bufs;
    dberr_t err = DB_SUCCESS;
    const byte *before = bufs->row;
    const byte *after = NULL;
    switch (rec->type) {
    case UNDO_INSERT:
        err = row_undo_insert(sys, table, rec);
        break;
    case UNDO_UPDATE:
        err = row_undo_update(trx, table, rec);
        if (err == DB_SUCCESS
            && table->watch != NULL) { /* the undo record has starts of texts only */
            err = dict_rec_read(sys->pool, table, bufs->rec, bufs->rec_len, bufs->row2);
        }
        after = rec->old_info == 0 ? bufs->row2 : NULL;
        break;
    default:
        err = row_undo_delete(sys, table, rec);
        before = NULL;
        after = bufs->row;
        break;
    }
    TRY(err);
    row_tell(table, before, after);
    return DB_SUCCESS;
}

dberr_t row_undo(trx_t *trx, const undo_rec_t *rec, roll_ptr_t roll_ptr)
{
    trx_sys_t *sys = trx->sys;
    row_bufs_t *bufs = &sys->bufs;
    if (rec->type == UNDO_METADATA) {
        return row_meta_undo(trx, rec, roll_ptr);
    }
    const dict_table_t *table = dict_table_by_id(sys->dict, rec->table_id);
    if (table == NULL || undo_rec_check(rec, table) != DB_SUCCESS) {
        return err_set(&trx_sys_env(sys)->err, DB_CORRUPTION,
                       "undo record of transaction %" PRIu64 " does not fit table %" PRIu64,
                       trx->id, rec->table_id);
    }
    dberr_t err = row_clust_get(sys->pool, table, rec->pk, bufs->rec, &bufs->rec_len);
    if (err == DB_NOT_FOUND
        || (err == DB_SUCCESS
            && (dict_rec_trx_id(table, bufs->rec) != trx->id
                || dict_rec_roll_ptr(table, bufs->rec) != roll_ptr))) {
        return DB_SUCCESS;
    }
    TRY(err);
    dict_rec_ext(table, bufs->rec, &bufs->ext);
    TRY(dict_rec_read(sys->pool, table, bufs->rec, bufs->rec_len, bufs->row));
    return row_undo_change(trx, table, rec);
}
