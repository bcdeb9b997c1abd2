/** Transactions: several open at once, undo log in pages, rollback, delete marks, purge.

Order of a change (each step its own mtr): undo record, clustered record (with DB_TRX_ID and
DB_ROLL_PTR), then each secondary index. Rollback undoes in reverse and truncates the undo log step
by step, so that a crash during rollback continues where it stopped. A row whose newest version
belongs to another open transaction gives DB_LOCK_CONFLICT and changes nothing, and so does a key of
a unique index that such a transaction has taken or given up (row_unique.c). There is no MVCC: reads
see the newest version of rows that are not delete-marked.

Commit: one mtr turns the undo log's state to committed and links it into the history list; the
transaction is durable when that mtr's log is. Purge takes committed undo logs in commit order:
removes delete-marked records for good, resets DB_TRX_ID and DB_ROLL_PTR of the rest to 0
(MDEV-12288), frees the undo pages (I25). */
#ifndef TRX_TRX_H
#define TRX_TRX_H

#include "dict/dict.h"

typedef struct trx_sys trx_sys_t;
typedef struct trx trx_t;

/** Formats TRX_SYS and RSEG pages of a new database, and creates its undo tablespaces: 0 or
UNDO_SPACES_MAX. */
WARN_UNUSED dberr_t trx_sys_bootstrap(buf_pool_t *pool, uint32_t n_undo_spaces);

/** Reads TRX_SYS and RSEG, and resurrects the transactions and history found there; nothing is
rolled back or purged yet. flush_log_at_trx_commit: 0, 1, 2. Caller: trx_sys_close(). */
WARN_UNUSED dberr_t trx_sys_open(buf_pool_t *pool, dict_t *dict, uint32_t flush_log_at_trx_commit,
                                 trx_sys_t **out);
void trx_sys_close(trx_sys_t *sys); /**< open transactions stay in the undo log; NULL is fine */

/** One commit of rows in `interval`, as the schedule draws, lets purge work while it waits; 0, as
at first: none. max_undo_log_size: bytes beyond which purge truncates an undo tablespace; 0, as at
first: it truncates none. */
void trx_sys_set_purge(trx_sys_t *sys, uint32_t interval, uint64_t max_undo_log_size);

dict_t *trx_sys_dict(const trx_sys_t *sys);
buf_pool_t *trx_sys_pool(const trx_sys_t *sys);
uint64_t trx_sys_history_len(const trx_sys_t *sys); /**< committed undo logs not purged yet */
uint32_t trx_sys_n_active(const trx_sys_t *sys);
uint32_t trx_sys_n_undo_spaces(const trx_sys_t *sys);

/** Rolls back every resurrected (active) transaction. First those that changed the catalogue; then
dict_load(), because the rest needs table objects; then the others. So recovery calls it right after
trx_sys_open(), and ddl_recover() after it. fn (may be NULL) sees each id before its rollback. */
WARN_UNUSED dberr_t trx_sys_rollback_resurrected(trx_sys_t *sys, void (*fn)(void *ctx, trx_id_t id),
                                                 void *ctx);

/** Starts a transaction; its id is taken at the first change. *out belongs to sys until it ends. */
WARN_UNUSED dberr_t trx_begin(trx_sys_t *sys, trx_t **out);
/** Ends and frees trx in every case. After success and flush_log_at_trx_commit = 1 it is durable. A
failure of commit or rollback poisons the handle (DB_IO_ERROR or DB_CORRUPTION): recovery ends the
transaction. */
WARN_UNUSED dberr_t trx_commit(trx_t *trx);
WARN_UNUSED dberr_t trx_rollback(trx_t *trx);
/** As trx_commit, but always durable on return (DDL). */
WARN_UNUSED dberr_t trx_commit_durable(trx_t *trx);
trx_id_t trx_id(const trx_t *trx); /**< 0 before the first change */
/** The unique index that refused a row of this transaction last; NULL: none has. */
const dict_index_t *trx_error_index(const trx_t *trx);

/** A point inside an open transaction, for statements that change several rows. */
uint64_t trx_savepoint(const trx_t *trx);
/** Undoes everything the transaction did after the savepoint; it stays open. */
WARN_UNUSED dberr_t trx_rollback_to(trx_t *trx, uint64_t savepoint);

/** From the one to the other purge rests. */
void trx_purge_stop(trx_sys_t *sys);
void trx_purge_resume(trx_sys_t *sys);
bool trx_purge_is_stopped(const trx_sys_t *sys);

/** One purge step: at most max_records undo records of the oldest committed undo logs. *done =
nothing is left that can be purged now: the history is empty, or a transaction that has changed
something is open (it may roll back onto any old version, so nothing is purged meanwhile). */
WARN_UNUSED dberr_t trx_purge_step(trx_sys_t *sys, uint32_t max_records, bool *done);

/* ---- rows (trx/row.c) ---- */

/** New value of one column, at the column's width. */
typedef struct row_upd {
    uint32_t col;
    const byte *value; /**< dict_col_row_len() bytes as in a row; NULL: the value NULL */
} row_upd_t;

/** Statements; an error changes nothing (a partly done statement is rolled back to its start).
@return DB_DUPLICATE_KEY, DB_RECORD_NOT_FOUND, DB_LOCK_CONFLICT, DB_TABLE_LOCKED (a build of the
table goes on that knows nothing of changes, LOCK=SHARED), DB_OUT_OF_SPACE, or a fatal error */
WARN_UNUSED dberr_t row_insert(trx_t *trx, dict_table_t *table, const byte *row);
WARN_UNUSED dberr_t row_update(trx_t *trx, dict_table_t *table, const byte *pk,
                               const row_upd_t *upd, uint32_t n_upd);
WARN_UNUSED dberr_t row_delete(trx_t *trx, dict_table_t *table, const byte *pk);
/** The newest version if it is not delete-marked; DB_RECORD_NOT_FOUND. row: table->row_size bytes.
*/
WARN_UNUSED dberr_t row_get(dict_table_t *table, buf_pool_t *pool, const byte *pk, byte *row);

/** Gives the table's tree the metadata record of this row, whose columns after n_core are the
values of records that are without them, and the instant mark. table: as it is behind the change of
the catalogue, which the same transaction makes. */
WARN_UNUSED dberr_t row_set_metadata(trx_t *trx, const dict_table_t *table, const byte *row);

/* ---- long values, also of rows that a build puts into its table ---- */

/** Stores the long values of the row whose record, with references but without pages, is in the
tree. */
WARN_UNUSED dberr_t row_store_chains(buf_pool_t *pool, const dict_table_t *table, const byte *rec,
                                     const byte *row);
/** Frees the chains of the record in the tree that `keep` (NULL: none) does not have; ext: of the
record. *counter gets their number added. */
WARN_UNUSED dberr_t row_free_chains(buf_pool_t *pool, const dict_table_t *table, const byte *pk,
                                    const dict_ext_t *ext, const dict_ext_t *keep,
                                    uint64_t *counter);

#endif
