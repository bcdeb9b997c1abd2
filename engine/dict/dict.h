/** The catalogue: what tables, columns and indexes there are, in pages and in memory.

Four system tables live in the system space, each one clustered B+-tree: SYS_TABLES, SYS_COLUMNS,
SYS_INDEXES, SYS_FIELDS (FORMAT.md, "Catalogue"). dict/ knows their rows and keeps a cache of table
objects; rows are changed by trx/ and ddl/ through ordinary transactions, so that a crash rolls a
DDL step back.

Fixed pages of the system space: 0 FSP_HDR, 1 DICT_HDR (id counters, roots of the four trees), 2
TRX_SYS, 3 RSEG (both trx/).

Row bytes ("row") have one size for a table, as in MySQL's record buffer: a bit per column that may
be NULL, then the columns in the order of definition, each at its fixed width: BIGINT 8 bytes
big-endian with the sign bit inverted, CHAR(n) n bytes padded with spaces, VARCHAR(n) 2 bytes of
length and room for n, what is not used of it zero. A column that is NULL is zero.

Records have the size that their values take (dict_rec.c). A clustered record is: info byte, primary
key columns in key order, DB_TRX_ID (6), DB_ROLL_PTR (7), the NULL bits, the other columns in order
of definition, of VARCHAR the length and so many bytes, of NULL nothing. With REC_INFO_INSTANT the
number of the columns that it has is in front of the NULL bits; without it has n_core columns. The
metadata record is such a record of all columns, with the values that those have which records are
without; its primary key is zero. If that would be more than
half a page, the longest texts have pages of their own, and the record has references to them
(page/page_blob.h). A secondary record has one size: info byte, the key columns, then the primary
key columns. A key column is cut to its prefix length, padded with spaces if it is shorter, and has
a byte in front if it may be NULL: 1, or 0 and zeros for NULL, which so comes first. FORMAT.md,
"Rows". */
#ifndef DICT_DICT_H
#define DICT_DICT_H

#include "btr/btr.h"
#include "page/page_blob.h"

#define DICT_HDR_PAGE 1U
#define TRX_SYS_PAGE 2U
#define RSEG_PAGE 3U

#define DICT_BIGINT_LEN 8U
#define DICT_LEN_SIZE 2U   /**< length of a VARCHAR, in front of its bytes */
#define DICT_COUNT_SIZE 1U /**< of a record with REC_INFO_INSTANT, in front of the NULL bits */
#define DICT_LEN_EXTERNAL                                                                          \
    (0x8000U | BLOB_REF_SIZE)              /**< in place of the length: a reference follows */
#define DICT_LOCAL_MAX (2 * BLOB_REF_SIZE) /**< texts up to this length stay in their record */
#define DICT_UNDO_OVERHEAD                                                                         \
    256U /**< of an undo page and record beside a clustered record and the starts of texts */
#define DATA_TRX_ID_LEN 6U
#define DATA_ROLL_PTR_LEN 7U

typedef enum dict_type {
    DICT_BIGINT = 1, /**< 8 bytes */
    DICT_CHAR = 2,   /**< 1 ... 255 bytes, padded with spaces */
    DICT_VARCHAR = 3 /**< up to 1 ... VARCHAR_LEN_MAX bytes */
} dict_type_t;

/** Status of a table or index row in the catalogue: what recovery must do with it. */
typedef enum dict_status {
    DICT_READY = 1,
    DICT_INCOMPLETE = 2, /**< being created: recovery drops it */
    DICT_DROPPING = 3    /**< drop has committed: recovery finishes it */
} dict_status_t;

typedef struct dict_col {
    char name[NAME_LEN_MAX + 1];
    dict_type_t type;
    bool nullable;       /**< may be NULL; never of the primary key */
    uint32_t len;        /**< bytes; VARCHAR: at most */
    uint32_t row_offset; /**< in row bytes */
    uint32_t null_bit;   /**< nullable: which bit at the start of the row */
    bool primary;        /**< of the primary key */
    bool instant;        /**< records may be without it, and then have what metadata says */
    /** in the clustered record, info byte included; 0: it depends on the record */
    uint32_t rec_offset;
} dict_col_t;

typedef struct dict_field {
    uint32_t col; /**< position in the table */
    /** bytes used; the column's length if it is not a prefix key. The byte for NULL comes on top */
    uint32_t prefix_len;
} dict_field_t;

typedef struct dict_table dict_table_t;

typedef struct dict_index {
    index_id_t id;
    char name[NAME_LEN_MAX + 1];
    dict_table_t *table;
    dict_status_t status;
    bool clustered;
    bool unique;         /**< secondary: no two live rows have the same key columns */
    uint32_t unique_len; /**< bytes of the key columns, without the primary key suffix */
    uint32_t n_fields;   /**< key columns as the user named them, primary key suffix not included */
    dict_field_t fields[COLUMNS_MAX];
    btr_t tree; /**< key_len includes the primary key suffix of a secondary index */
} dict_index_t;

/** Is told of each change of a row: its newest version before and after, as row bytes; NULL: there
is no row, or a delete-marked one. Cannot fail. */
typedef struct dict_row_watch {
    void (*changed)(void *ctx, const byte *before, const byte *after);
    void *ctx;
} dict_row_watch_t;

struct dict_table {
    table_id_t id;
    char name[NAME_LEN_MAX + 1];
    space_id_t space;
    bool in_system; /**< its trees lie in the system space: it has no file of its own */
    dict_status_t status;
    uint32_t n_cols;
    dict_col_t cols[COLUMNS_MAX];
    uint32_t n_indexes; /**< indexes[0] is the clustered one; secondary ones in order of id */
    dict_index_t indexes[INDEXES_MAX];
    uint32_t n_core;   /**< columns of all records: those before the first instant one */
    uint32_t row_size; /**< bytes of a row */
    uint32_t null_len; /**< bytes of the NULL bits, in rows and in records */
    uint32_t pk_len;   /**< bytes of the primary key */
    uint32_t n_trx;    /**< open transactions that have changed it (kept by trx/) */
    bool building;     /**< a build reads it (kept by ddl/) */
    bool exclusive;    /**< and nobody else may */
    /** whom the build has look at changes; NULL: while it runs, rows may be read, not changed */
    const dict_row_watch_t *watch;
    dict_table_t *next; /**< in order of id */
};

typedef enum sys_table {
    SYS_TABLES,  /**< ID pk, NAME CHAR(64), SPACE, N_COLS, STATUS */
    SYS_COLUMNS, /**< TABLE_ID pk, POS pk, NAME CHAR(64), TYPE, LEN */
    SYS_INDEXES, /**< TABLE_ID pk, ID pk, NAME CHAR(64), N_FIELDS, TYPE, ROOT, STATUS */
    SYS_FIELDS,  /**< INDEX_ID pk, POS pk, COL, PREFIX_LEN */
    SYS_N
} sys_table_t;

typedef struct dict dict_t;

/** Formats DICT_HDR and the four empty trees of a new database. Page 0 exists. */
WARN_UNUSED dberr_t dict_bootstrap(buf_pool_t *pool);

/** Opens the catalogue: header and system tables; no user table is loaded. Caller: dict_close(). */
WARN_UNUSED dberr_t dict_open(buf_pool_t *pool, dict_t **out);
void dict_close(dict_t *dict); /**< NULL is fine */

/** (Re)builds the cache from the catalogue pages: after recovery's rollback. Every row is
validated: DB_CORRUPTION on names, types, lengths or references that cannot be. */
WARN_UNUSED dberr_t dict_load(dict_t *dict);

/* What DDL does to the cache, as part of a durable commit: the cache then equals what dict_load()
would make of the pages. A new object is made before the commit, so that nothing can fail after it.
*/

/** A table object like this one, which belongs to no cache. Caller: free(), or dict_table_put(). */
WARN_UNUSED dberr_t dict_table_copy(dict_t *dict, const dict_table_t *table, dict_table_t **out);
/** Takes the object into the cache in place of the one of its id, if there is one, which is freed
and whose n_trx, building, exclusive and watch the new one gets. */
void dict_table_put(dict_t *dict, dict_table_t *table);
/** Frees the object of this id; there need be none. */
void dict_table_remove(dict_t *dict, table_id_t id);

/** Look-ups; NULL if there is none. By name only what is READY, by id any status. */
dict_table_t *dict_table_get(dict_t *dict, const char *name);
dict_table_t *dict_table_by_id(dict_t *dict, table_id_t id); /**< the system tables too */
dict_table_t *dict_first(dict_t *dict); /**< user tables of any status, by id */
dict_table_t *dict_sys_table(dict_t *dict, sys_table_t which);
dict_index_t *dict_index_get(dict_table_t *table, const char *name);
void dict_table_set_building(dict_t *dict, table_id_t id, bool building);
void dict_table_set_exclusive(dict_t *dict, table_id_t id); /**< until its build ends */
void dict_table_set_watch(dict_t *dict, table_id_t id, const dict_row_watch_t *watch);
bool dict_has_build(const dict_t *dict); /**< is any table being read by a build? */

/** Fresh ids, made durable with the next log flush (a logged change of DICT_HDR). */
WARN_UNUSED dberr_t dict_new_table_id(dict_t *dict, table_id_t *out);
WARN_UNUSED dberr_t dict_new_index_id(dict_t *dict, index_id_t *out);
WARN_UNUSED dberr_t dict_new_space_id(dict_t *dict, space_id_t *out);

/** Gives an index, whose row is in SYS_INDEXES with no root, a tree; sets index->tree.root. */
WARN_UNUSED dberr_t dict_index_tree_create(dict_t *dict, dict_index_t *index);
/** Frees the tree in many mtrs; the last one forgets the root in the row. Nothing to do if there is
no root. Starting over after a crash, with the root that the row says, goes on. */
WARN_UNUSED dberr_t dict_index_tree_free(dict_t *dict, dict_index_t *index);

/** Computes offsets, row_size, pk_len, key_len and record sizes of a table object whose cols and
indexes' fields are set. DB_ERROR with the reason: too many columns, name, row or key too long, a
record of which fewer than 2 fit a page, prefix longer than its column, duplicate column names, a
primary key that is VARCHAR or may be NULL, instant columns that are not the last ones of records of
any size. */
WARN_UNUSED dberr_t dict_table_layout(dict_table_t *table, uint32_t page_size, err_sink_t *err);

/* ---- values of a row ---- */

/** Bytes of the column in a row. */
uint32_t dict_col_row_len(const dict_col_t *col);
bool dict_col_is_null(const dict_col_t *col, const byte *row);
/** Gives a column of the row a value, dict_col_row_len() bytes as rows have it; NULL: the value
NULL. */
void dict_col_set(const dict_col_t *col, byte *row, const byte *value);
/** The same with the value as dict_col_value() has it. CHAR may be shorter: it is padded. */
void dict_col_put(const dict_col_t *col, byte *row, const byte *bytes, uint32_t len);
/** The value without padding, if it is not NULL: BIGINT 8 bytes, CHAR n, VARCHAR as many as it
has. */
const byte *dict_col_value(const dict_col_t *col, const byte *row, uint32_t *len);
/** The row of nothing: NULL where that may be, else 0 or the empty text. */
void dict_row_init(const dict_table_t *table, byte *row);

/** Where the values of a table's columns come from: from the rows of another table, whose texts may
have other lengths, or they are all the same. */
typedef struct dict_row_map {
    const dict_table_t *from;
    uint32_t cols[COLUMNS_MAX]; /**< of each column: the one of `from`, n_cols of that: `added` */
    dict_col_t added;           /**< the only column of a row, */
    const byte *value;          /**< and that row */
} dict_row_map_t;

/** The row of a table that is made of one of map->from. DB_ERROR: a text is longer than its
column. */
WARN_UNUSED dberr_t dict_row_convert(const dict_row_map_t *map, const byte *row,
                                     const dict_table_t *to, byte *out, err_sink_t *err);

/* ---- conversions; sizes as computed by dict_table_layout ---- */

/** What the record of a version of a row has: how many columns, and which have pages of their own.
*/
typedef struct dict_ext {
    uint32_t n_cols;
    bool is[COLUMNS_MAX];
    blob_ref_t refs[COLUMNS_MAX];
    /** of the references in the record that dict_rec_ext() has read */
    uint32_t offsets[COLUMNS_MAX];
} dict_ext_t;

/** Which columns of the row go to pages of their own: those that `kept` (NULL: none) has there,
which stay as they are, and the longest others until the record is short enough. Those have no chain
yet. */
void dict_ext_plan(const dict_table_t *table, const byte *row, const dict_ext_t *kept,
                   dict_ext_t *out);
/** What a record has. */
void dict_rec_ext(const dict_table_t *table, const byte *rec, dict_ext_t *out);
/** Do two versions have the column in the same pages? */
bool dict_ext_is_same(const dict_ext_t *a, const dict_ext_t *b, uint32_t col);
/** Bytes of the column that secondary indexes look at. */
uint32_t dict_col_prefix(const dict_table_t *table, uint32_t col);

/** ext: what it has, NULL: all columns, none in pages of their own. @return bytes of the record, at
most leaf_rec_size of its tree if dict_ext_plan() has made ext */
uint32_t dict_row_to_rec(const dict_table_t *table, const byte *row, const dict_ext_t *ext,
                         trx_id_t trx_id, roll_ptr_t roll_ptr, byte *rec);
/** Makes the metadata record of a table whose instant columns have the values of this row. @return
its length */
uint32_t dict_row_to_meta(const dict_table_t *table, const byte *row, trx_id_t trx_id,
                          roll_ptr_t roll_ptr, byte *rec);
/** Is this a clustered record of the table? Everything below needs one that is. DB_CORRUPTION. */
WARN_UNUSED dberr_t dict_rec_check(const dict_table_t *table, const byte *rec, uint32_t len,
                                   err_sink_t *err);
/** The row of a record of len bytes, which may be none of the table. Reads the pages of its long
values, and the metadata record for the columns that it is without. */
WARN_UNUSED dberr_t dict_rec_read(buf_pool_t *pool, const dict_table_t *table, const byte *rec,
                                  uint32_t len, byte *row);
/** The instant columns of a row as the metadata record has them, the others outside the primary key
without a value. */
WARN_UNUSED dberr_t dict_meta_read(buf_pool_t *pool, const dict_table_t *table, byte *row);
void dict_row_to_pk(const dict_table_t *table, const byte *row, byte *pk);
/** Builds the secondary record (info byte 0) of a row. */
void dict_row_to_sec(const dict_index_t *index, const byte *row, byte *rec);
/** Is one of the user's key columns of a secondary key NULL? Such a key is nobody's duplicate. */
bool dict_key_has_null(const dict_index_t *index, const byte *key);
trx_id_t dict_rec_trx_id(const dict_table_t *table, const byte *rec);
roll_ptr_t dict_rec_roll_ptr(const dict_table_t *table, const byte *rec);
uint32_t dict_rec_trx_id_offset(const dict_table_t *table); /**< in the clustered record */

static inline uint64_t dict_bigint_encode(int64_t value)
{
    return (uint64_t)value ^ (1ULL << 63);
}

static inline int64_t dict_bigint_decode(uint64_t stored)
{
    return (int64_t)(stored ^ (1ULL << 63));
}

#endif
