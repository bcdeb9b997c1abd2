/** Unique indexes: may a key be taken?

Place: beside row.c, above undo.c. Reads only: what it refuses, row.c undoes.

The tree of a unique index keeps the primary key behind the key columns like any other, so that it
may hold several entries of one key: one that is live, and delete-marked ones of rows that had the
key before. Each is looked at together with its row:

    newest version by          entry live          entry delete-marked
    nobody open, or by us      duplicate           free: it is only waiting for purge, or ours
    another transaction        by the versions: from the newest one back to the last committed one
                               all have the key: duplicate; some: conflict; none: free

Invariants
1. the answer depends on what open transactions have done and on what is committed, never on purge:
   a marked entry of history alone is free whether it is still there or not;
2. so no rollback can bring back a key that another row has taken meanwhile (I7);
3. the walk over versions ends: it has no more steps than the other transaction has undo records. */
#include <string.h>

#include "base/check.h"
#include "trx/trx_int.h"

/** Of the versions of a row that may come to be the committed one. */
typedef struct version_keys {
    bool some; /**< at least one has the key */
    bool all;
} version_keys_t;

static const trx_t *row_other_owner(const trx_t *trx, trx_id_t id)
{
    for (const trx_t *other = trx->sys->first; other != NULL; other = other->next) {
        if (id != 0 && other->id == id && other != trx) {
            return other;
        }
    }
    return NULL;
}

static dberr_t row_unique_corrupt(const trx_t *trx, const dict_index_t *index, const char *what)
{
    return err_set(&trx_sys_env(trx->sys)->err, DB_CORRUPTION, "index %s of table %s: %s",
                   index->name, index->table->name, what);
}

/** One version back: ids, row bytes and info. *absent: before it there was no row. */
static dberr_t row_version_before(const trx_t *trx, const dict_index_t *index, trx_id_t *id,
                                  roll_ptr_t *roll_ptr, uint32_t *info, bool *absent)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    undo_rec_t undo;
    TRY(undo_read_at(trx->sys, *roll_ptr, bufs->other_undo, &undo));
    if (undo.table_id != index->table->id || undo_rec_check(&undo, index->table) != DB_SUCCESS
        || memcmp(undo.pk, rec_payload(bufs->other_rec), undo.pk_len) != 0) {
        return row_unique_corrupt(trx, index, "the undo record of a row does not fit");
    }
    *absent = undo.type == UNDO_INSERT;
    if (undo.type == UNDO_UPDATE) {
        dict_ext_t ext;
        undo_rec_restore(&undo, index->table, bufs->other_row, &ext);
    }
    *info = undo.type == UNDO_UPDATE ? undo.old_info : 0;
    *id = undo.old_trx_id;
    *roll_ptr = undo.old_roll_ptr;
    return DB_SUCCESS;
}

/** The row in bufs.other_rec: of the version in bufs.other_row, with these ids and info, and those
before it, as long as they are owner's, and the one before these: which have entry's key? */
static dberr_t row_version_keys(const trx_t *trx, const trx_t *owner, const dict_index_t *index,
                                const byte *entry, trx_id_t id, roll_ptr_t roll_ptr, uint32_t info,
                                version_keys_t *keys)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    *keys = (version_keys_t){.some = false, .all = true};
    bool absent = false;
    for (uint64_t n = 0; n <= owner->n_recs; n++) {
        dict_row_to_sec(index, bufs->other_row, bufs->other_sec);
        bool has = !absent && (info & REC_INFO_DELETE_MARK) == 0
                   && memcmp(rec_payload(bufs->other_sec), entry, index->unique_len) == 0;
        keys->some = keys->some || has;
        keys->all = keys->all && has;
        if (absent || id != owner->id) {
            return DB_SUCCESS;
        }
        TRY(row_version_before(trx, index, &id, &roll_ptr, &info, &absent));
    }
    return row_unique_corrupt(trx, index, "the versions of a row have no end");
}

dberr_t row_unique_older(trx_t *trx, const dict_index_t *index, const byte *entry,
                         const undo_rec_t *rec, bool *older)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    version_keys_t keys;
    memcpy(bufs->other_rec, bufs->rec, 1 + index->table->pk_len);
    memcpy(bufs->other_row, bufs->row2, index->table->row_size);
    TRY(row_version_keys(trx, trx, index, rec_payload(entry), rec->old_trx_id, rec->old_roll_ptr,
                         rec->old_info, &keys));
    *older = keys.some;
    return DB_SUCCESS;
}

/** An entry of another row with the same key columns, info byte first. */
static dberr_t row_unique_entry(trx_t *trx, const dict_index_t *index, const byte *found)
{
    row_bufs_t *bufs = &trx->sys->bufs;
    stats_t *stats = &trx_sys_env(trx->sys)->stats;
    bool marked = rec_is_deleted(found);
    const byte *key = rec_payload(found);
    uint32_t len = 0;
    dberr_t err =
        row_clust_get(trx->sys->pool, index->table, key + index->unique_len, bufs->other_rec, &len);
    if (err != DB_SUCCESS) {
        return err == DB_NOT_FOUND ? row_unique_corrupt(trx, index, "an entry has no row") : err;
    }
    trx_id_t id = dict_rec_trx_id(index->table, bufs->other_rec);
    const trx_t *owner = row_other_owner(trx, id);
    version_keys_t keys = {.some = !marked, .all = !marked};
    if (owner != NULL) {
        TRY(dict_rec_read(trx->sys->pool, index->table, bufs->other_rec, len, bufs->other_row));
        TRY(row_version_keys(trx, owner, index, key, id,
                             dict_rec_roll_ptr(index->table, bufs->other_rec),
                             rec_info(bufs->other_rec), &keys));
    }
    if (keys.all) {
        stats->unique_duplicates++;
        trx->error_index = index;
        return err_set(&trx_sys_env(trx->sys)->err, DB_DUPLICATE_KEY,
                       "table %s: a row with this key of the unique index %s exists",
                       index->table->name, index->name);
    }
    if (keys.some) {
        stats->unique_conflicts++;
        return err_set(&trx_sys_env(trx->sys)->err, DB_LOCK_CONFLICT,
                       "table %s: another open transaction has changed a row with this key of the "
                       "unique index %s",
                       index->table->name, index->name);
    }
    stats->unique_marked++;
    return DB_SUCCESS;
}

/** The first entry of the index from a key on, or, with a whole key, behind it. DB_NOT_FOUND. */
static dberr_t row_entry_from(const trx_t *trx, const dict_index_t *index, const byte *key,
                              uint32_t key_len, byte *found)
{
    const byte *rec = NULL;
    btr_cursor_t cursor;
    dberr_t err = btr_cursor_open(&cursor, trx->sys->pool, &index->tree, key, key_len);
    AND_THEN(err, btr_cursor_next(&cursor, &rec));
    if (err == DB_SUCCESS && key_len == index->tree.key_len
        && memcmp(rec_payload(rec), key, key_len) == 0) {
        err = btr_cursor_next(&cursor, &rec);
    }
    if (err == DB_SUCCESS) {
        memcpy(found, rec, index->tree.leaf_rec_size);
    }
    btr_cursor_close(&cursor);
    return err;
}

dberr_t row_unique_check(trx_t *trx, const dict_index_t *index, const byte *entry)
{
    const byte *key = rec_payload(entry);
    uint32_t len = index->unique_len;
    byte found[PAGE_SIZE_MAX / 2];
    byte from[BTR_KEY_LEN_MAX];
    dberr_t err = row_entry_from(trx, index, key, len, found);
    while (err == DB_SUCCESS && memcmp(rec_payload(found), key, len) == 0) {
        if (memcmp(rec_payload(found) + len, key + len, index->table->pk_len) != 0) {
            err = row_unique_entry(trx, index, found);
        }
        if (err == DB_SUCCESS) {
            memcpy(from, rec_payload(found), index->tree.key_len);
            err = row_entry_from(trx, index, from, index->tree.key_len, found);
        }
    }
    return err == DB_NOT_FOUND ? DB_SUCCESS : err;
}
