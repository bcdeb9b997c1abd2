/** Rows: insert, update, delete, get; and the changes of single records that rollback and purge
share.

Place: above undo.c, beside rollback.c. No page is pinned between two operations.

    undo record ──> clustered record (DB_TRX_ID, DB_ROLL_PTR) ──> secondary entries, one by one

Invariants
1. the undo record is logged before any change of the row, so that whatever recovery finds in a tree
   it can undo;
2. the clustered record carries this transaction's id and the roll pointer of the newest change of
   it: that pair tells rollback whether the change began (row_undo). A change of the info byte comes
   after it, secondary entries come last;
3. a row whose newest version belongs to another open transaction is not touched: DB_LOCK_CONFLICT;
4. a statement that fails in the middle is rolled back to its start;
5. a table whose index is being built, or that is being rebuilt, is not changed (LOCK=SHARED):
   DB_TABLE_LOCKED; or the build is told of each change, as soon as the clustered record has it
   (LOCK=NONE): that record is all that a build reads;
6. secondary keys end with the primary key, so an entry belongs to exactly one row (I10);
7. an entry goes into a unique index only when no other row has its key columns (I7, row_unique.c);
8. a long value follows its record, and the entries follow it: until then the reference says how
   much is there, and rollback finds all of it by the record (btr_blob.c). What an update replaces
   belongs to its undo record, until rollback gives it back to the row or purge frees it. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "btr/btr_blob.h"
#include "trx/trx_int.h"

/* ---- single records ---- */

dberr_t row_sec_put(buf_pool_t *pool, const dict_index_t *index, byte *entry)
{
    static const byte live = 0;
    entry[0] = 0;
    dberr_t err = btr_insert(pool, &index->tree, entry, index->tree.leaf_rec_size);
    if (err == DB_DUPLICATE_KEY) {
        err = btr_update(pool, &index->tree, rec_payload(entry), 0, &live, 1);
    }
    return err;
}

dberr_t row_sec_mark(buf_pool_t *pool, const dict_index_t *index, const byte *entry)
{
    static const byte marked = REC_INFO_DELETE_MARK;
    return btr_update(pool, &index->tree, rec_payload(entry), 0, &marked, 1);
}

dberr_t row_sec_remove(buf_pool_t *pool, const dict_index_t *index, const byte *entry,
                       bool only_marked)
{
    dberr_t err = DB_SUCCESS;
    if (only_marked) {
        byte rec[PAGE_SIZE_MAX / 2];
        uint32_t len = 0;
        err = btr_get(pool, &index->tree, rec_payload(entry), rec, &len);
        if (err == DB_SUCCESS && !rec_is_deleted(rec)) {
            return DB_SUCCESS;
        }
    }
    AND_THEN(err, btr_delete(pool, &index->tree, rec_payload(entry)));
    return err == DB_NOT_FOUND ? DB_SUCCESS : err;
}

dberr_t row_clust_get(buf_pool_t *pool, const dict_table_t *table, const byte *pk, byte *rec,
                      uint32_t *len)
{
    TRY(btr_get(pool, &table->indexes[0].tree, pk, rec, len));
    return dict_rec_check(table, rec, *len, &buf_env(pool)->err);
}

dberr_t row_clust_set_mark(buf_pool_t *pool, const dict_table_t *table, const byte *rec,
                           uint32_t mark)
{
    byte info = (byte)((rec_info(rec) & ~REC_INFO_DELETE_MARK) | mark);
    return btr_update(pool, &table->indexes[0].tree, rec_payload(rec), 0, &info, 1);
}

dberr_t row_clust_set_data(buf_pool_t *pool, const dict_table_t *table, const byte *rec,
                           uint32_t len)
{
    return btr_replace(pool, &table->indexes[0].tree, rec, len);
}

dberr_t row_clust_set_ids(buf_pool_t *pool, const dict_table_t *table, const byte *pk, trx_id_t id,
                          roll_ptr_t roll_ptr)
{
    byte ids[DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN];
    mach_write_6(ids, id);
    mach_write_7(ids + DATA_TRX_ID_LEN, roll_ptr);
    return btr_update(pool, &table->indexes[0].tree, pk, dict_rec_trx_id_offset(table), ids,
                      sizeof(ids));
}

/* ---- long values ---- */

dberr_t row_store_chains(buf_pool_t *pool, const dict_table_t *table, const byte *rec,
                         const byte *row)
{
    const btr_t *tree = &table->indexes[0].tree;
    dict_ext_t ext;
    dict_rec_ext(table, rec, &ext);
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (ext.is[i] && ext.refs[i].len == 0) {
            uint32_t len = 0;
            const byte *value = dict_col_value(&table->cols[i], row, &len);
            TRY(btr_blob_store(pool, tree, rec_payload(rec), ext.offsets[i], value, len));
        }
    }
    return DB_SUCCESS;
}

dberr_t row_free_chains(buf_pool_t *pool, const dict_table_t *table, const byte *pk,
                        const dict_ext_t *ext, const dict_ext_t *keep, uint64_t *counter)
{
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        bool stays = keep != NULL && dict_ext_is_same(ext, keep, i);
        if (ext->is[i] && ext->refs[i].len > 0 && !stays) {
            err = btr_blob_free(pool, &table->indexes[0].tree, pk, ext->offsets[i]);
            (*counter)++;
        }
        TRY(err);
    }
    return err;
}

/* ---- statements ---- */

/** The row of the version in bufs.rec, into bufs.row and bufs.ext. */
static dberr_t row_read_version(trx_sys_t *sys, const dict_table_t *table)
{
    row_bufs_t *bufs = &sys->bufs;
    dict_rec_ext(table, bufs->rec, &bufs->ext);
    return dict_rec_read(sys->pool, table, bufs->rec, bufs->rec_len, bufs->row);
}

/** Reads the clustered record into bufs.rec and applies the conflict rules; DB_NOT_FOUND if there
is none. */
static dberr_t row_lock(trx_t *trx, const dict_table_t *table, const byte *pk)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    if (table->building && table->watch == NULL) {
        return err_set(&trx_sys_env(trx->sys)->err, DB_TABLE_LOCKED,
                       "table '%s': a build is running", table->name);
    }
    TRY(row_clust_get(trx->sys->pool, table, pk, bufs->rec, &bufs->rec_len));
    trx_id_t owner = dict_rec_trx_id(table, bufs->rec);
    if (owner != 0 && owner != trx->id && trx_sys_is_active(trx->sys, owner)) {
        return err_set(&trx_sys_env(trx->sys)->err, DB_LOCK_CONFLICT,
                       "table %s: the row was changed by another open transaction", table->name);
    }
    return DB_SUCCESS;
}

/** Counts trx as a changer of the table, once. */
static dberr_t row_note_table(trx_t *trx, dict_table_t *table)
{
    for (uint32_t i = 0; i < trx->n_tables; i++) {
        if (trx->tables[i].id == table->id) {
            return DB_SUCCESS;
        }
    }
    trx_table_t *tables = realloc(trx->tables, (trx->n_tables + 1) * sizeof(*tables));
    if (tables == NULL) {
        return err_set(&trx_sys_env(trx->sys)->err, DB_OUT_OF_MEMORY, "no memory for a table list");
    }
    tables[trx->n_tables++] = (trx_table_t){.id = table->id, .at = trx->n_recs};
    trx->tables = tables;
    table->n_trx++;
    return DB_SUCCESS;
}

/** Takes an id, counts the table, and writes the undo record in bufs.undo. */
static dberr_t row_write_undo(trx_t *trx, dict_table_t *table, uint32_t len, roll_ptr_t *roll_ptr)
{
    TRY(row_note_table(trx, table));
    TRY(trx_assign_id(trx));
    return undo_append(trx, trx->sys->bufs.undo, undo_rec_finish(trx->sys->bufs.undo, len),
                       roll_ptr);
}

/** Starts an undo record for the version in bufs.rec (for an INSERT there is none). */
static uint32_t row_start_undo(trx_t *trx, const dict_table_t *table, uint32_t type, const byte *pk,
                               uint32_t n_cols)
{
    const byte *rec = trx->sys->bufs.rec;
    bool insert = type == UNDO_INSERT;
    undo_rec_t undo = {.type = type,
                       .table_id = table->id,
                       .old_trx_id = insert ? 0 : dict_rec_trx_id(table, rec),
                       .old_roll_ptr = insert ? 0 : dict_rec_roll_ptr(table, rec),
                       .pk = pk,
                       .pk_len = table->pk_len,
                       .old_info = insert ? 0 : rec_info(rec) & REC_INFO_DELETE_MARK,
                       .n_cols = n_cols};
    return undo_rec_start(trx->sys->bufs.undo, &undo);
}

/** An UPDATE undo record with these columns as they are in bufs.row. It owns the chains that
bufs.ext2 does not have any more. */
static uint32_t row_undo_cols(trx_t *trx, const dict_table_t *table, const byte *pk,
                              const bool *cols)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    uint32_t n = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        n += cols[i] ? 1 : 0;
    }
    uint32_t len = row_start_undo(trx, table, UNDO_UPDATE, pk, n);
    for (uint32_t i = 0; i < table->n_cols; i++) {
        blob_ref_t ref = bufs->ext.refs[i];
        ref.owner = !dict_ext_is_same(&bufs->ext, &bufs->ext2, i);
        if (cols[i]) {
            len = undo_rec_add_col(bufs->undo, len, table, i, bufs->row,
                                   bufs->ext.is[i] ? &ref : NULL);
        }
    }
    return len;
}

/** The same with every column that is not in the primary key. */
static uint32_t row_undo_whole(trx_t *trx, const dict_table_t *table, const byte *pk)
{
    bool cols[COLUMNS_MAX];
    for (uint32_t i = 0; i < table->n_cols; i++) {
        cols[i] = !row_col_is_pk(table, i);
    }
    return row_undo_cols(trx, table, pk, cols);
}

/** Ends a statement: after an error (a damaged or failing database excepted) it leaves no change
behind. */
static dberr_t row_statement_end(trx_t *trx, uint64_t savepoint, dberr_t err)
{
    if (err == DB_SUCCESS || err == DB_IO_ERROR || err == DB_CORRUPTION) {
        return err;
    }
    bool held = env_hold(trx_sys_env(trx->sys));
    dberr_t undo_err = trx_rollback_to(trx, savepoint);
    env_release(trx_sys_env(trx->sys), held);
    TRY(undo_err);
    return err;
}

/** Puts the entry of a new version into an index, if a unique one has room for its key. */
static dberr_t row_enter(trx_t *trx, const dict_index_t *index, byte *entry)
{
    bool asks = index->unique && !dict_key_has_null(index, rec_payload(entry));
    TRY(asks ? row_unique_check(trx, index, entry) : DB_SUCCESS);
    return row_sec_put(trx->sys->pool, index, entry);
}

/** Adds the entries of row to every secondary index. */
static dberr_t row_put_entries(trx_t *trx, const dict_table_t *table, const byte *row)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        const dict_index_t *index = &table->indexes[i];
        if (row_index_is_kept(index)) {
            dict_row_to_sec(index, row, bufs->sec);
            TRY(row_enter(trx, index, bufs->sec));
        }
    }
    return DB_SUCCESS;
}

static dberr_t row_insert_new(trx_t *trx, dict_table_t *table, const byte *pk, const byte *row)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    roll_ptr_t roll_ptr = 0;
    uint32_t len = row_start_undo(trx, table, UNDO_INSERT, pk, 0);
    TRY(row_write_undo(trx, table, len, &roll_ptr));
    dict_ext_plan(table, row, NULL, &bufs->ext2);
    bufs->rec_len = dict_row_to_rec(table, row, &bufs->ext2, trx->id, roll_ptr, bufs->rec);
    TRY(btr_insert(trx->sys->pool, &table->indexes[0].tree, bufs->rec, bufs->rec_len));
    TRY(row_store_chains(trx->sys->pool, table, bufs->rec, row));
    row_tell(table, NULL, row);
    return row_put_entries(trx, table, row);
}

/** Inserts over the delete-marked record in bufs.rec: the deleted version goes into the undo log.
*/
static dberr_t row_revive(trx_t *trx, dict_table_t *table, const byte *pk, const byte *row)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    buf_pool_t *pool = trx->sys->pool;
    dberr_t err = row_read_version(trx->sys, table);
    dict_ext_plan(table, row, NULL, &bufs->ext2);
    TRY(err);
    roll_ptr_t roll_ptr = 0;
    TRY(row_write_undo(trx, table, row_undo_whole(trx, table, pk), &roll_ptr));
    bufs->rec_len = dict_row_to_rec(table, row, &bufs->ext2, trx->id, roll_ptr, bufs->rec);
    TRY(row_clust_set_data(pool, table, bufs->rec, bufs->rec_len));
    TRY(row_store_chains(pool, table, bufs->rec, row));
    TRY(row_clust_set_mark(pool, table, bufs->rec, 0));
    row_tell(table, NULL, row);
    return row_put_entries(trx, table, row);
}

dberr_t row_insert(trx_t *trx, dict_table_t *table, const byte *row)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    uint64_t savepoint = trx_savepoint(trx);
    byte pk[PAGE_SIZE_MAX / 2];
    dict_row_to_pk(table, row, pk);
    dberr_t err = row_lock(trx, table, pk);
    if (err == DB_NOT_FOUND) {
        err = row_insert_new(trx, table, pk, row);
    } else if (err == DB_SUCCESS && !rec_is_deleted(bufs->rec)) {
        return err_set(&trx_sys_env(trx->sys)->err, DB_DUPLICATE_KEY,
                       "table %s: a row with this primary key exists", table->name);
    } else if (err == DB_SUCCESS) {
        err = row_revive(trx, table, pk, row);
    }
    return row_statement_end(trx, savepoint, err);
}

/** For update and delete: the live version in bufs.rec and bufs.row. */
static dberr_t row_find_live(trx_t *trx, const dict_table_t *table, const byte *pk)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    dberr_t err = row_lock(trx, table, pk);
    if (err == DB_NOT_FOUND || (err == DB_SUCCESS && rec_is_deleted(bufs->rec))) {
        return err_set(&trx_sys_env(trx->sys)->err, DB_RECORD_NOT_FOUND,
                       "table %s: no row with this primary key", table->name);
    }
    TRY(err);
    return row_read_version(trx->sys, table);
}

/** Builds the secondary records of bufs.row (old) and bufs.row2 (new): do they differ? */
static bool row_entry_changes(const row_bufs_t *bufs, const dict_index_t *index)
{
    dict_row_to_sec(index, bufs->row, bufs->sec);
    dict_row_to_sec(index, bufs->row2, bufs->sec2);
    return memcmp(bufs->sec, bufs->sec2, index->tree.leaf_rec_size) != 0;
}

/** The undo record of bufs.row becoming bufs.row2. A column that it does not set may get pages of
its own. */
static uint32_t row_update_undo(trx_t *trx, const dict_table_t *table, const byte *pk,
                                const row_upd_t *upd, uint32_t n_upd)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    bool cols[COLUMNS_MAX] = {false};
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        if (row_index_is_kept(&table->indexes[i]) && row_entry_changes(bufs, &table->indexes[i])) {
            return row_undo_whole(trx, table, pk);
        }
    }
    for (uint32_t i = 0; i < n_upd; i++) {
        cols[upd[i].col] = true;
    }
    for (uint32_t i = 0; i < table->n_cols; i++) {
        cols[i] = cols[i] || (bufs->ext2.is[i] && !bufs->ext.is[i]);
    }
    return row_undo_cols(trx, table, pk, cols);
}

/** Delete-marks the entry of a live row: it must be there (I10). */
static dberr_t row_mark_entry(trx_t *trx, const dict_index_t *index, const byte *entry)
{
    dberr_t err = row_sec_mark(trx->sys->pool, index, entry);
    if (err == DB_NOT_FOUND) {
        err = err_set(&trx_sys_env(trx->sys)->err, DB_CORRUPTION,
                      "index %s of table %s lacks the entry of a row", index->name,
                      index->table->name);
    }
    return err;
}

/** Replaces bufs.row by bufs.row2. */
static dberr_t row_update_low(trx_t *trx, dict_table_t *table, const byte *pk, const row_upd_t *upd,
                              uint32_t n_upd)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    buf_pool_t *pool = trx->sys->pool;
    roll_ptr_t roll_ptr = 0;
    dberr_t err =
        row_write_undo(trx, table, row_update_undo(trx, table, pk, upd, n_upd), &roll_ptr);
    if (err == DB_SUCCESS) {
        bufs->rec_len =
            dict_row_to_rec(table, bufs->row2, &bufs->ext2, trx->id, roll_ptr, bufs->rec);
        err = row_clust_set_data(pool, table, bufs->rec, bufs->rec_len);
    }
    AND_THEN(err, row_store_chains(pool, table, bufs->rec, bufs->row2));
    if (err == DB_SUCCESS) {
        row_tell(table, bufs->row, bufs->row2);
    }
    for (uint32_t i = 0; err == DB_SUCCESS && i < table->n_indexes; i++) {
        const dict_index_t *index = &table->indexes[i];
        if (!row_index_is_kept(index) || !row_entry_changes(bufs, index)) {
            continue;
        }
        err = row_mark_entry(trx, index, bufs->sec);
        AND_THEN(err, row_enter(trx, index, bufs->sec2));
    }
    return err;
}

dberr_t row_update(trx_t *trx, dict_table_t *table, const byte *pk, const row_upd_t *upd,
                   uint32_t n_upd)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    uint64_t savepoint = trx_savepoint(trx);
    CHECK(n_upd <= COLUMNS_MAX);
    for (uint32_t i = 0; i < n_upd; i++) {
        CHECK(upd[i].col < table->n_cols);
        if (row_col_is_pk(table, upd[i].col)) {
            return err_set(&trx_sys_env(trx->sys)->err, DB_ERROR,
                           "column %s of table %s belongs to the primary key, which never changes",
                           table->cols[upd[i].col].name, table->name);
        }
    }
    TRY(row_find_live(trx, table, pk));
    dict_ext_t kept = bufs->ext;
    memcpy(bufs->row2, bufs->row, table->row_size);
    for (uint32_t i = 0; i < n_upd; i++) {
        dict_col_set(&table->cols[upd[i].col], bufs->row2, upd[i].value);
        kept.is[upd[i].col] = false;
    }
    dict_ext_plan(table, bufs->row2, &kept, &bufs->ext2);
    dberr_t err = row_update_low(trx, table, pk, upd, n_upd);
    return row_statement_end(trx, savepoint, err);
}

static dberr_t row_delete_low(trx_t *trx, dict_table_t *table, const byte *pk)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    buf_pool_t *pool = trx->sys->pool;
    roll_ptr_t roll_ptr = 0;
    uint32_t len = row_start_undo(trx, table, UNDO_DELETE_MARK, pk, 0);
    TRY(row_write_undo(trx, table, len, &roll_ptr));
    TRY(row_clust_set_ids(pool, table, pk, trx->id, roll_ptr));
    TRY(row_clust_set_mark(pool, table, bufs->rec, REC_INFO_DELETE_MARK));
    row_tell(table, bufs->row, NULL);
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        const dict_index_t *index = &table->indexes[i];
        if (row_index_is_kept(index)) {
            dict_row_to_sec(index, bufs->row, bufs->sec);
            TRY(row_mark_entry(trx, index, bufs->sec));
        }
    }
    return DB_SUCCESS;
}

dberr_t row_delete(trx_t *trx, dict_table_t *table, const byte *pk)
{
    uint64_t savepoint = trx_savepoint(trx);
    TRY(row_find_live(trx, table, pk));
    return row_statement_end(trx, savepoint, row_delete_low(trx, table, pk));
}

dberr_t row_get(dict_table_t *table, buf_pool_t *pool, const byte *pk, byte *row)
{
    byte rec[PAGE_SIZE_MAX / 2];
    uint32_t len = 0;
    dberr_t err = row_clust_get(pool, table, pk, rec, &len);
    if (err == DB_NOT_FOUND || (err == DB_SUCCESS && rec_is_deleted(rec))) {
        return err_set(&buf_env(pool)->err, DB_RECORD_NOT_FOUND,
                       "table %s: no row with this primary key", table->name);
    }
    TRY(err);
    return dict_rec_read(pool, table, rec, len, row);
}
