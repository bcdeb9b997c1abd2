/** The metadata record of a clustered index: how it comes, and how it goes back.

Place: beside row.c, called by rollback and purge; the record itself is dict/'s and btr/'s.

    undo record ──> metadata record and instant mark (one mini-transaction) ──> catalogue, commit

Invariants
1. as of any row, the undo record is logged first, and (DB_TRX_ID, DB_ROLL_PTR) of the metadata
   record tells rollback if it names this undo record;
2. record and mark come and go together, and rollback takes both back before the rows of the
   catalogue are believed: so its undo record says where the tree is. */
#include <string.h>

#include "base/mach.h"
#include "trx/trx_int.h"

static void meta_tree_write(const btr_t *tree, uint32_t mark, byte to[UNDO_TREE_SIZE])
{
    mach_write_4(to, tree->space);
    mach_write_4(to + 4, tree->root);
    mach_write_8(to + 8, tree->id);
    mach_write_2(to + 16, tree->key_len);
    mach_write_1(to + 18, mark);
}

/** DB_CORRUPTION: an undo record cannot be about such a tree. */
static dberr_t meta_tree_read(trx_sys_t *sys, const byte *from, btr_t *tree)
{
    *tree = (btr_t){.space = mach_read_4(from),
                    .root = mach_read_4(from + 4),
                    .id = mach_read_8(from + 8),
                    .key_len = mach_read_2(from + 16),
                    .leaf_rec_size = page_rec_max(buf_page_size(sys->pool)),
                    .leaf_varies = true,
                    .instant = BTR_INSTANT_ANY};
    return tree->id >= INDEX_ID_FIRST && tree->id <= UINT32_MAX && tree->key_len > 0
                   && tree->key_len <= BTR_KEY_LEN_MAX && tree->key_len < tree->leaf_rec_size
               ? DB_SUCCESS
               : err_set(&trx_sys_env(sys)->err, DB_CORRUPTION,
                         "an undo record of metadata names no tree");
}

/** Where the ids are in the metadata record of the tree. */
static const byte *meta_ids(const btr_t *tree, const byte *rec)
{
    return rec + 1 + tree->key_len;
}

static bool meta_is_of(const btr_t *tree, const byte *rec, trx_id_t id, roll_ptr_t roll_ptr)
{
    const byte *ids = meta_ids(tree, rec);
    return mach_read_6(ids) == id && mach_read_7(ids + DATA_TRX_ID_LEN) == roll_ptr;
}

/** Bytes that any metadata record of the tree has. */
static uint32_t meta_least(const btr_t *tree)
{
    return 1 + tree->key_len + DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN;
}

/** The metadata record into bufs.rec. *len = 0: there is none. */
static dberr_t meta_get(trx_sys_t *sys, const btr_t *tree, uint32_t *len)
{
    *len = 0;
    dberr_t err = btr_meta_get(sys->pool, tree, sys->bufs.rec, len);
    if (err == DB_SUCCESS && *len < meta_least(tree)) {
        return err_set(&trx_sys_env(sys)->err, DB_CORRUPTION, "a metadata record is too short");
    }
    return err == DB_NOT_FOUND ? DB_SUCCESS : err;
}

dberr_t row_set_metadata(trx_t *trx, const dict_table_t *table, const byte *row)
{
    trx_sys_t *sys = trx->sys;
    row_bufs_t *bufs = &sys->bufs;
    btr_t tree = table->indexes[0].tree;
    byte bytes[UNDO_TREE_SIZE];
    tree.instant = BTR_INSTANT_ANY;
    uint32_t old_len = 0;
    TRY(meta_get(sys, &tree, &old_len));
    meta_tree_write(&tree, old_len > 0 ? table->n_core : 0, bytes);
    const undo_rec_t undo = {
        .type = UNDO_METADATA, .table_id = table->id, .pk = bytes, .pk_len = UNDO_TREE_SIZE};
    uint32_t len = undo_rec_start(bufs->undo, &undo);
    memcpy(bufs->undo + len, bufs->rec, old_len);
    TRY(trx_assign_id(trx));
    roll_ptr_t roll_ptr = 0;
    TRY(undo_append(trx, bufs->undo, undo_rec_finish(bufs->undo, len + old_len), &roll_ptr));
    bufs->rec_len = dict_row_to_meta(table, row, trx->id, roll_ptr, bufs->rec);
    TRY(btr_meta_put(sys->pool, &tree, table->n_core, bufs->rec, bufs->rec_len));
    PROBE_POINT(trx_sys_env(sys)->probe, "trx.metadata_set");
    return DB_SUCCESS;
}

dberr_t row_meta_undo(trx_t *trx, const undo_rec_t *rec, roll_ptr_t roll_ptr)
{
    trx_sys_t *sys = trx->sys;
    btr_t tree;
    uint32_t len = 0;
    TRY(meta_tree_read(sys, rec->pk, &tree));
    if (rec->cols_len > tree.leaf_rec_size
        || (rec->cols_len > 0 && (rec->cols_len < meta_least(&tree) || !rec_is_min(rec->cols)))) {
        return err_set(&trx_sys_env(sys)->err, DB_CORRUPTION,
                       "an undo record of metadata has no metadata record");
    }
    TRY(meta_get(sys, &tree, &len));
    if (len == 0 || !meta_is_of(&tree, sys->bufs.rec, trx->id, roll_ptr)) {
        return DB_SUCCESS;
    }
    return rec->cols_len > 0 ? btr_meta_put(sys->pool, &tree, rec->pk[18], rec->cols, rec->cols_len)
                             : btr_meta_remove(sys->pool, &tree);
}

dberr_t row_meta_purge(trx_sys_t *sys, const dict_table_t *table, trx_id_t id, roll_ptr_t roll_ptr)
{
    const btr_t *tree = &table->indexes[0].tree;
    byte *ids = sys->bufs.rec + 1 + tree->key_len;
    uint32_t len = 0;
    TRY(meta_get(sys, tree, &len));
    if (len == 0 || !meta_is_of(tree, sys->bufs.rec, id, roll_ptr)) {
        return DB_SUCCESS;
    }
    memset(ids, 0, DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN);
    return btr_meta_put(sys->pool, tree, table->n_core, sys->bufs.rec, len);
}
