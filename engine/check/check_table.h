/** Private to check/: tables of the catalogue, their records and long values. */
#ifndef CHECK_CHECK_TABLE_H
#define CHECK_CHECK_TABLE_H

#include "check/check_tree.h"

typedef struct chk_col {
    char name[NAME_LEN_MAX + 1];
    uint32_t type;
    uint32_t len; /**< VARCHAR: at most */
    bool nullable;
    bool primary;
    bool instant; /**< a record may be without it, and then has what the metadata record says */
    uint32_t null_bit;   /**< nullable: its bit in the record */
    uint32_t rec_offset; /**< where no record differs */
} chk_col_t;

/** A value of a row, as it stands in its record. */
typedef struct chk_value {
    const byte *at; /**< NULL: it is NULL */
    uint32_t len;
    bool external; /**< a reference stands there */
} chk_value_t;

/** Where a long value is. */
typedef struct chk_ref {
    page_no_t page_no; /**< FIL_NULL: nowhere */
    uint32_t len;
} chk_ref_t;

/** A long value that belongs to an undo record. */
struct chk_undo_ref {
    table_id_t table;
    chk_ref_t ref;
};

typedef struct chk_index {
    index_id_t id;
    char name[NAME_LEN_MAX + 1];
    bool clustered;
    bool unique;
    uint32_t status;
    uint32_t n_fields;
    struct {
        uint32_t col;
        uint32_t prefix_len;
    } fields[COLUMNS_MAX];
    page_no_t root;
    uint32_t key_len;
    uint32_t rec_size;  /**< or PAGE_REC_VARIES */
    chk_sum_t live;     /**< entries found that are not delete-marked */
    chk_sum_t expected; /**< secondary: entries that the live rows call for */
} chk_index_t;

struct chk_table {
    table_id_t id;
    char name[NAME_LEN_MAX + 1];
    space_id_t space;
    uint32_t status;
    bool sound; /**< columns and indexes make sense: trees can be walked */
    uint32_t n_cols;
    chk_col_t cols[COLUMNS_MAX];
    uint32_t n_indexes; /**< the clustered one first */
    chk_index_t indexes[INDEXES_MAX];
    uint32_t n_core; /**< columns of all records: those before the first instant one */
    uint32_t pk_len;
    /** owner number of its rows' segment; CHK_OWNER_UNKNOWN: not all of it was walked */
    uint32_t leaves;
};

/* ---- check_dict.c ---- */

chk_table_t *chk_table_by_id(const chk_t *chk, table_id_t id); /**< NULL: there is none */

/* ---- check_record.c ---- */

#define CHK_ROW_BYTES_MAX                                                                          \
    (ROW_SIZE_MAX + 3 * COLUMNS_MAX) /**< that chk_row_bytes() makes of a row */

/** Computes offsets and sizes of a table whose cols and fields are set. False: they cannot be. */
bool chk_table_layout(chk_table_t *table, uint32_t page_size);
/** The values of a clustered record, by column; meta: of those that it is without, NULL: it must
have all. False: it is none of the table. */
bool chk_row_read(const chk_table_t *table, const byte *rec, uint32_t len, const chk_value_t *meta,
                  chk_value_t *values);
/** What the digest is over: @return its length. */
uint32_t chk_row_bytes(const chk_table_t *table, const chk_value_t *values, byte *to);
/** The entry of a row in a secondary index: key_len bytes. */
void chk_entry_bytes(const chk_table_t *table, const chk_index_t *index, const chk_value_t *values,
                     byte *to);
/** Is one of the key columns NULL? */
bool chk_key_has_null(const chk_table_t *table, const chk_index_t *index, const byte *key);

/* ---- check_blob.c ---- */

/** Reads a reference as a record or an undo record has it; *owner = its chain goes with that.
False: it is none. */
bool chk_ref_read(const byte *from, space_id_t space, chk_ref_t *out, bool *owner);
/** Walks the chain of a long value of the table; its bytes go to `to` (NULL: nowhere). *whole =
nothing wrong was met. */
WARN_UNUSED dberr_t chk_blob_walk(chk_t *chk, const chk_table_t *table, const chk_ref_t *ref,
                                  byte *to, bool *whole);
/** Notes the chains that an undo record owns. False: its columns cannot be. */
WARN_UNUSED dberr_t chk_undo_refs_note(chk_t *chk, const byte *rec, uint32_t len, bool *valid);
/** Walks the noted chains, when the rows have been walked. */
WARN_UNUSED dberr_t chk_undo_refs_walk(chk_t *chk);

/* ---- check_marks.c ---- */

/** What a transaction left in one clustered record. */
typedef struct chk_row_marks {
    trx_id_t trx_id;
    bool history; /**< it names a transaction or an undo record */
    bool deleted;
} chk_row_marks_t;
/** pk_len: bytes of the primary key, which lies before. */
chk_row_marks_t chk_row_marks(const byte *rec, uint32_t pk_len);

/** Leftovers of transactions in clustered rows and index entries, of one tree. */
typedef struct chk_marks {
    uint64_t n_deleted;
    uint64_t n_trx_id; /**< rows that still carry history */
    uint64_t n_beyond; /**< DB_TRX_ID at or above the limit */
    page_no_t page_no; /**< of the first of any of them */
} chk_marks_t;
/** What was found in one page. */
void chk_marks_add(chk_marks_t *marks, const chk_marks_t *more, page_no_t page_no);
/** A record of a system table. */
void chk_marks_row(const chk_t *chk, const chk_table_t *table, page_no_t page_no, const byte *rec,
                   chk_marks_t *marks);
void chk_marks_report(chk_t *chk, const chk_tree_t *tree, const chk_marks_t *marks);

/* ---- check_rows.c ---- */

/** What the definition of the columns adds to the digest. */
uint64_t chk_names_hash(const chk_table_t *table);

#endif
