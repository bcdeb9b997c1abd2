/** Private to trx/: the transaction system, a transaction, undo logs and the shared row operations.
*/
#ifndef TRX_TRX_INT_H
#define TRX_TRX_INT_H

#include "trx/trx.h"
#include "trx/undo_format.h"

/** Scratch memory of statements, rollback and purge (one at a time): each buffer has ROW_SIZE_MAX
bytes at least, which no row, record or undo record exceeds. */
typedef struct row_bufs {
    byte *rec; /**< clustered record */
    uint32_t rec_len;
    dict_ext_t ext;  /**< of row */
    dict_ext_t ext2; /**< of row2 */
    byte *row;       /**< row bytes of the version in the tree */
    byte *row2;      /**< row bytes of the other version */
    byte *sec;       /**< secondary record of row */
    byte *sec2;      /**< secondary record of row2 */
    byte *undo;      /**< undo record */
    byte *other_rec; /**< of another row, whose key is looked at: clustered record, row bytes, */
    byte *other_row;
    byte *other_sec;  /**< secondary record, */
    byte *other_undo; /**< undo record of an older version */
} row_bufs_t;

#define ROW_N_BUFS 10U

/** A rollback segment, as its RSEG page has it. */
typedef struct trx_rseg {
    trx_sys_t *sys;
    uint32_t id;    /**< its number in roll pointers; 0: that of the system space */
    page_id_t page; /**< the RSEG page; all undo pages lie in its space */
    page_no_t slots[RSEG_N_SLOTS];
    page_no_t history_head;
    page_no_t history_tail;
    uint64_t history_len;
} trx_rseg_t;

/** Where purge is in the oldest committed log; lost at a restart, which begins the log again. */
typedef struct purge_pos {
    trx_rseg_t *rseg; /**< whose log it is */
    page_no_t first;  /**< the log, or FIL_NULL: none begun */
    page_no_t page;
    uint32_t offset;
} purge_pos_t;

struct trx_sys {
    buf_pool_t *pool;
    dict_t *dict;
    uint32_t flush_mode; /**< flush_log_at_trx_commit */
    uint32_t purge_interval;
    bool purge_is_stopped;
    trx_id_t next_id;
    trx_id_t max_id; /**< as on the TRX_SYS page: ids below it may be given out */
    uint64_t next_no;
    trx_rseg_t rsegs[TRX_RSEGS_MAX]; /**< the first is of the system space */
    uint32_t n_rsegs;
    uint32_t next_rseg;         /**< the next transaction's, if there are undo tablespaces */
    trx_rseg_t *truncating;     /**< gets no new log, since its space shall shrink; NULL: none */
    uint64_t max_undo_log_size; /**< bytes; 0: none shrinks */
    purge_pos_t purge;
    trx_t *first; /**< open transactions, in order of begin */
    row_bufs_t bufs;
    byte *buf_mem
        [ROW_N_BUFS]; /**< of bufs: each by itself, so that a sanitizer sees where one ends */
};

/** A table that a transaction has changed. */
typedef struct trx_table {
    table_id_t id;
    uint64_t at; /**< undo records before its first change */
} trx_table_t;

struct trx {
    trx_sys_t *sys;
    trx_id_t id;          /**< 0 before the first change */
    trx_rseg_t *rseg;     /**< valid while undo_first != FIL_NULL, as slot */
    uint32_t slot;        /**< valid while undo_first != FIL_NULL */
    page_no_t undo_first; /**< FIL_NULL: no undo log */
    page_no_t undo_last;
    uint64_t n_recs;     /**< undo records, all pages together */
    trx_table_t *tables; /**< those whose n_trx counts this transaction, in order of first change */
    uint32_t n_tables;
    bool resurrected;
    const dict_index_t *error_index; /**< trx_error_index() */
    trx_t *next;
};

static inline env_t *trx_sys_env(const trx_sys_t *sys)
{
    return buf_env(sys->pool);
}

/* ---- trx_list.c ---- */

/** A page of the given type, pinned by mtr. */
WARN_UNUSED dberr_t trx_page_get(mtr_t *mtr, page_id_t id, page_type_t type, buf_block_t **out);
/** Gives trx its id, writing the limit ahead when it is reached. */
WARN_UNUSED dberr_t trx_assign_id(trx_t *trx);
bool trx_sys_is_active(const trx_sys_t *sys, trx_id_t id);
/** Does an open transaction have an undo log? */
bool trx_sys_has_writers(const trx_sys_t *sys);
/** A new transaction at the end of the list. */
WARN_UNUSED dberr_t trx_sys_add(trx_sys_t *sys, trx_t **out);

/* ---- trx.c ---- */

/** Takes trx off the list, releases its tables and frees it. */
void trx_end(trx_t *trx);

/* ---- undo_rec.c ---- */

/** A decoded undo record; pointers lead into the bytes that it was decoded from. */
typedef struct undo_rec {
    uint32_t type;
    table_id_t table_id;
    trx_id_t old_trx_id;
    roll_ptr_t old_roll_ptr;
    const byte *pk;
    uint32_t pk_len;
    uint32_t old_info; /**< UPDATE only */
    uint32_t n_cols;   /**< UPDATE only */
    const byte *cols;  /**< METADATA: the record before */
    uint32_t cols_len;
} undo_rec_t;

/** Encodes everything but the columns; undo_rec_add_col() follows for an UPDATE, then
undo_rec_finish(). Each returns the length so far; buf has room for a page. */
uint32_t undo_rec_start(byte *buf, const undo_rec_t *rec);
/** The column at this position as it is in row. ref: to the pages that it has, NULL: it has
none. */
uint32_t undo_rec_add_col(byte *buf, uint32_t len, const dict_table_t *table, uint32_t pos,
                          const byte *row, const blob_ref_t *ref);
uint32_t undo_rec_finish(byte *buf, uint32_t len);

/** Decodes the record of exactly len bytes at buf; DB_CORRUPTION without a message. */
WARN_UNUSED dberr_t undo_rec_decode(const byte *buf, uint32_t len, undo_rec_t *rec);
/** Do primary key and columns fit the table? DB_CORRUPTION without a message. */
WARN_UNUSED dberr_t undo_rec_check(const undo_rec_t *rec, const dict_table_t *table);
/** Puts the old column values into row, of texts that have pages of their own as much as indexes
look at, and the references to these into ext. The record has passed undo_rec_check(). */
void undo_rec_restore(const undo_rec_t *rec, const dict_table_t *table, byte *row, dict_ext_t *ext);
/** The next chain that the record owns, from *at on (first 0): where its reference is, counted from
the start of the record. False: there is none. */
bool undo_rec_next_chain(const undo_rec_t *rec, const byte *buf, uint32_t *at, uint32_t *offset);

/* ---- undo.c ---- */

static inline page_id_t undo_page_id(const trx_rseg_t *rseg, page_no_t page_no)
{
    return (page_id_t){.space = rseg->page.space, .page_no = page_no};
}

/** The segment of the rollback segment's undo pages, by its pinned page. */
static inline fseg_header_t undo_segment(buf_block_t *rseg)
{
    return (fseg_header_t){.block = rseg, .offset = RSEG_UNDO_SEG};
}

/** Sets the message for a damaged undo page; DB_CORRUPTION. */
WARN_UNUSED dberr_t undo_corrupt(const trx_rseg_t *rseg, page_no_t page_no, const char *what);

/** Header of an undo page, checked. Fields from state on: first page of a log. */
typedef struct undo_page {
    page_no_t prev;
    page_no_t next;
    uint32_t free;
    uint32_t n_recs;
    uint32_t state;
    trx_id_t trx_id;
    uint64_t trx_no;
    page_no_t history_next;
    page_no_t last_page;
} undo_page_t;

/** Pins an undo page and checks and decodes its header. */
WARN_UNUSED dberr_t undo_page_get(const trx_rseg_t *rseg, mtr_t *mtr, page_no_t page_no,
                                  buf_block_t **block, undo_page_t *page);
/** Length of the last record of a page: 0 if there is none or it cannot be one. */
uint32_t undo_last_rec_len(const byte *frame, uint32_t free);
/** The header alone, in an mtr of its own. */
WARN_UNUSED dberr_t undo_page_read(const trx_rseg_t *rseg, page_no_t page_no, undo_page_t *out);
/** Walks the whole log: links, free offsets, record lengths. n_recs: records of all its pages. */
WARN_UNUSED dberr_t undo_log_validate(const trx_rseg_t *rseg, page_no_t first, uint64_t *n_recs);

/** Appends a record, starting the log or adding a page as needed. DB_OUT_OF_SPACE: no undo slot or
page. */
WARN_UNUSED dberr_t undo_append(trx_t *trx, const byte *rec, uint32_t len, roll_ptr_t *out);
/** Copies the record that roll_ptr names to buf and decodes it there. */
WARN_UNUSED dberr_t undo_read_at(trx_sys_t *sys, roll_ptr_t roll_ptr, byte *buf, undo_rec_t *rec);
/** Copies the last record to buf and decodes it there. trx->n_recs > 0. */
WARN_UNUSED dberr_t undo_read_last(trx_t *trx, byte *buf, undo_rec_t *rec, roll_ptr_t *roll_ptr);

/** Copies the record at *page, *offset to buf, decodes it, and advances. DB_NOT_FOUND: end of the
log. */
WARN_UNUSED dberr_t undo_read_next(const trx_rseg_t *rseg, page_no_t *page_no, uint32_t *offset,
                                   byte *buf, undo_rec_t *rec, roll_ptr_t *roll_ptr);

static const page_id_t TRX_SYS_ID = {SPACE_SYSTEM, TRX_SYS_PAGE};

/* ---- undo_end.c ---- */

/** Removes the last record, and its page when that is empty and not the first. */
WARN_UNUSED dberr_t undo_truncate_last(trx_t *trx);

/** Turns the log into a committed one at the end of the history; *end_lsn is the commit's LSN. */
WARN_UNUSED dberr_t undo_commit(trx_t *trx, lsn_t *end_lsn);
/** Frees an active log: pages from the tail, one mtr each; the last one clears the slot too. */
WARN_UNUSED dberr_t undo_free_active(trx_t *trx);
/** Frees the oldest log of the history in the same way. */
WARN_UNUSED dberr_t undo_free_oldest(trx_rseg_t *rseg);

/* ---- undo_space.c ---- */

/** In memory: a rollback segment without logs, number id. */
void rseg_init(trx_sys_t *sys, uint32_t id);
/** On disk: the RSEG page, and its segment for undo pages. */
WARN_UNUSED dberr_t rseg_create(mtr_t *mtr, page_id_t id);
/** Creates the undo tablespace of a rollback segment of a new database. */
WARN_UNUSED dberr_t undo_space_create(buf_pool_t *pool, uint32_t id);
/** The rollback segment for a new log, and its slot, RSEG_N_SLOTS if none is free: undo tablespaces
take turns, but for one without a free slot. */
trx_rseg_t *undo_space_choose(trx_sys_t *sys, uint32_t *slot);
/** Chooses an undo tablespace that has grown too large, unless one was chosen before, and truncates
it if it holds no log any more. */
WARN_UNUSED dberr_t undo_space_truncate(trx_sys_t *sys);

/* ---- row.c: shared with rollback and purge ---- */

/** Does a change of the table apply to this index? */
static inline bool row_index_is_kept(const dict_index_t *index)
{
    return !index->clustered && index->status == DICT_READY;
}

static inline bool row_col_is_pk(const dict_table_t *table, uint32_t pos)
{
    return table->cols[pos].primary;
}

/** The clustered record has become another version: tells the build of the table, if one goes on
beside changes (LOCK=NONE). Row bytes; NULL: no row, or a delete-marked one. */
static inline void row_tell(const dict_table_t *table, const byte *before, const byte *after)
{
    if (table->watch != NULL) {
        table->watch->changed(table->watch->ctx, before, after);
    }
}

/** Makes the entry exist and not be delete-marked. */
WARN_UNUSED dberr_t row_sec_put(buf_pool_t *pool, const dict_index_t *index, byte *entry);
/** Delete-marks the entry; DB_NOT_FOUND. */
WARN_UNUSED dberr_t row_sec_mark(buf_pool_t *pool, const dict_index_t *index, const byte *entry);
/** Removes the entry for good, if it is there; with only_marked, only when it is delete-marked. */
WARN_UNUSED dberr_t row_sec_remove(buf_pool_t *pool, const dict_index_t *index, const byte *entry,
                                   bool only_marked);
/** A record of the table that is one of its rows; len bytes. */
WARN_UNUSED dberr_t row_clust_get(buf_pool_t *pool, const dict_table_t *table, const byte *pk,
                                  byte *rec, uint32_t *len);
/** rec: the record that is there; its info byte gets this delete mark, or 0. */
WARN_UNUSED dberr_t row_clust_set_mark(buf_pool_t *pool, const dict_table_t *table, const byte *rec,
                                       uint32_t mark);
/** Replaces what follows the primary key: DB_TRX_ID, DB_ROLL_PTR and the other columns. */
WARN_UNUSED dberr_t row_clust_set_data(buf_pool_t *pool, const dict_table_t *table, const byte *rec,
                                       uint32_t len);
/** Overwrites DB_TRX_ID and DB_ROLL_PTR only. */
WARN_UNUSED dberr_t row_clust_set_ids(buf_pool_t *pool, const dict_table_t *table, const byte *pk,
                                      trx_id_t id, roll_ptr_t roll_ptr);

/* ---- row_meta.c ---- */

/** The metadata record becomes what it was, if it has what this undo record is about. Needs no
catalogue. Repeating it is harmless. */
WARN_UNUSED dberr_t row_meta_undo(trx_t *trx, const undo_rec_t *rec, roll_ptr_t roll_ptr);
/** No rollback needs it any more: its ids become 0. */
WARN_UNUSED dberr_t row_meta_purge(trx_sys_t *sys, const dict_table_t *table, trx_id_t id,
                                   roll_ptr_t roll_ptr);

/* ---- row_unique.c ---- */

/** Before the entry of a new version goes into a unique index: does another row have its key
columns? DB_DUPLICATE_KEY: yes, whatever open transactions come to; DB_LOCK_CONFLICT: that depends
on another open one, which InnoDB would wait for. Reads only. */
WARN_UNUSED dberr_t row_unique_check(trx_t *trx, const dict_index_t *index, const byte *entry);
/** Rollback takes the version with this entry back, to the one in bufs.row2 that rec tells of: has
a version before that its key, which further rollback may bring back? */
WARN_UNUSED dberr_t row_unique_older(trx_t *trx, const dict_index_t *index, const byte *entry,
                                     const undo_rec_t *rec, bool *older);

/* ---- rollback.c ---- */

/** Undoes the change that one undo record tells of; repeating it is harmless. */
WARN_UNUSED dberr_t row_undo(trx_t *trx, const undo_rec_t *rec, roll_ptr_t roll_ptr);

#endif
