/** Private to check/: the state of one scan, files with their page bitmaps, tree walks, the
catalogue. */
#ifndef CHECK_CHECK_INT_H
#define CHECK_CHECK_INT_H

#include "check/check.h"
#include "check/check_format.h"
#include "log/log.h"
#include "page/fil_page.h"

typedef struct chk_fact chk_fact_t; /**< check_memo.h */

#define CHK_BROKEN_MAX 16U /**< owners per file whose pages could not all be walked */

/* Who uses a page. */
#define CHK_OWNER_FREE 0U
#define CHK_OWNER_FIXED                                                                            \
    1U /**< page 0, descriptor pages, pages 1 to 3 of the system space, 1 of undo ones */
#define CHK_OWNER_INODES 2U
#define CHK_OWNER_NONE 3U            /**< used, but by no segment */
#define CHK_OWNER_SEG 16U            /**< plus the position in chk_file_t.segs */
#define CHK_OWNER_UNKNOWN UINT32_MAX /**< what would tell is damaged, and reported */

/** A list of extents or inode pages: addresses are page number and offset. */
typedef struct chk_addr {
    page_no_t page_no;
    uint32_t offset;
} chk_addr_t;

typedef struct chk_list {
    uint32_t len;
    chk_addr_t first;
    chk_addr_t last;
} chk_list_t;

typedef struct chk_seg {
    uint64_t id;
    page_no_t page_no; /**< of the inode */
    uint32_t offset;
    uint32_t not_full_n_used;
    chk_list_t lists[3]; /**< FREE, NOT_FULL, FULL */
    bool claimed;        /**< something's header leads to it */
} chk_seg_t;

/** One tablespace file. */
typedef struct chk_file {
    struct chk_file *next; /**< ibdata1 first, then by name */
    char path[PATH_LEN_MAX + 1];
    os_file_t *file; /**< NULL while another file is open */
    space_id_t space;
    bool usable;  /**< page 0 is right: space and size_pages are known */
    bool claimed; /**< a table of the catalogue has this space id, or it is an undo tablespace */
    uint32_t fsp_size;   /**< FSP_SIZE */
    uint32_t free_limit; /**< FSP_FREE_LIMIT */
    uint32_t size_pages; /**< pages that are committed and in the file */
    byte *reached;       /**< bit per page: a tree, a chain or space management led here */
    byte *bad;           /**< bit per page: damaged, and reported */
    uint32_t *owner;     /**< per page: CHK_OWNER_... */
    chk_fact_t *ways;    /**< of the memo; NULL: there is none */
    chk_fact_t **facts;  /**< per page: what the memo keeps of it, right now; NULL as above */
    chk_seg_t *segs;     /**< by id */
    uint32_t n_segs;
    bool segs_whole; /**< all inode pages could be read */
    uint32_t n_broken;
    uint32_t broken[CHK_BROKEN_MAX];
} chk_file_t;

typedef struct chk_col {
    char name[NAME_LEN_MAX + 1];
    uint32_t type;
    uint32_t len; /**< VARCHAR: at most */
    bool nullable;
    bool primary;
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
typedef struct chk_undo_ref {
    table_id_t table;
    chk_ref_t ref;
} chk_undo_ref_t;

/** What the leaf records of an index add up to. */
typedef struct chk_sum {
    uint64_t n;
    uint64_t hash;
} chk_sum_t;

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

typedef struct chk_table {
    table_id_t id;
    char name[NAME_LEN_MAX + 1];
    space_id_t space;
    uint32_t status;
    bool sound; /**< columns and indexes make sense: trees can be walked */
    uint32_t n_cols;
    chk_col_t cols[COLUMNS_MAX];
    uint32_t n_indexes; /**< the clustered one first */
    chk_index_t indexes[INDEXES_MAX];
    uint32_t null_len; /**< bytes of the NULL bits in a record */
    uint32_t pk_len;
    uint32_t
        leaves; /**< owner number of its rows' segment; CHK_OWNER_UNKNOWN: not all of it was walked */
} chk_table_t;

typedef struct chk {
    env_t *env;
    check_report_t *report;
    check_memo_t *memo; /**< NULL: everything is looked at */
    uint32_t page_size;
    uint32_t extent_pages;
    lsn_t end_lsn;
    chk_file_t *files;
    chk_file_t *open_file; /**< the one file that is open, or NULL */
    byte *page;            /**< one page, for short use */
    chk_table_t **tables;  /**< user tables in order of id */
    uint32_t n_tables;
    bool dict_whole;           /**< the catalogue could be read */
    trx_id_t trx_id_limit;     /**< every id is below; 0 = unknown */
    chk_undo_ref_t *undo_refs; /**< by undo records */
    uint32_t n_undo_refs;
    bool quiet; /**< no history and no active transaction: purge is complete */
} chk_t;

/* ---- check.c ---- */

/** Adds a finding. file may be NULL. */
__attribute__((format(printf, 5, 6))) void chk_find(chk_t *chk, uint32_t invariant,
                                                    const chk_file_t *file, page_no_t page_no,
                                                    const char *format, ...);

bool chk_is_zero(const byte *bytes, uint32_t len);

/* ---- check_log.c ---- */

/** Reads the log behind the newest checkpoint: its end, and whether recovery has anything to do. */
WARN_UNUSED dberr_t chk_log(chk_t *chk);

/* ---- check_space.c ---- */

WARN_UNUSED dberr_t chk_files_open(chk_t *chk);
void chk_files_close(chk_t *chk);
chk_file_t *chk_file_of_space(chk_t *chk, space_id_t space); /**< a usable one, or NULL */
/** Space management, then envelope and shape of every used page. */
WARN_UNUSED dberr_t chk_file_scan(chk_t *chk, chk_file_t *file);
WARN_UNUSED dberr_t chk_page_read(chk_t *chk, chk_file_t *file, page_no_t page_no, byte *page);
/** The page as it is stored. False: it can only be read. */
WARN_UNUSED bool chk_page_view(chk_t *chk, chk_file_t *file, page_no_t page_no, os_view_t *view);
/** Something of `owner` leads to this page. *ok = it may be read on; otherwise why not was
reported, here or by the scan of the file. `twice` is the invariant that a second way to the page
breaks. */
void chk_reach(chk_t *chk, chk_file_t *file, page_no_t page_no, uint32_t owner, uint32_t twice,
               bool *ok);
/** Pages that one descriptor page describes. */
uint32_t chk_xdes_covers(const chk_t *chk);
static inline bool chk_bit(const byte *bits, uint32_t i)
{
    return (bits[i / 8] >> (i % 8) & 1) != 0;
}
bool chk_is_bad(const chk_file_t *file, page_no_t page_no);
/** Not all pages of owner (UNKNOWN: of some) could be walked: do not report those that nothing led to. */
void chk_broken(chk_file_t *file, uint32_t owner);
/** Reports used pages and segments that nothing led to. */
void chk_file_unreached(chk_t *chk, chk_file_t *file);

/* ---- check_fsp.c, check_seg.c ---- */

/** An extent descriptor. */
typedef struct chk_extent {
    uint32_t state;
    uint32_t n_used;
    uint64_t seg;
    chk_addr_t prev;
    chk_addr_t next;
    bool listed;
} chk_extent_t;

/** Descriptors of one file; their number is bounded by its size. */
typedef struct chk_fsp {
    chk_t *chk;
    chk_file_t *file;
    byte *page0;
    uint32_t covers; /**< pages per descriptor page */
    uint32_t xdes_size;
    uint32_t n_extents;
    chk_extent_t *extents;
    bool whole; /**< all descriptor pages could be read, and their contents are possible */
} chk_fsp_t;

/** Reads page 0, descriptors and inodes: fills owner and segs, marks inode pages as reached. */
WARN_UNUSED dberr_t chk_fsp(chk_t *chk, chk_file_t *file);
chk_addr_t chk_addr_read(const byte *at);
chk_list_t chk_list_read(const byte *base);
/** What the extents of a list have in common. */
typedef struct chk_rule {
    const char *name;
    uint32_t state;
    uint64_t seg;
    uint32_t used_min;
    uint32_t used_max;
} chk_rule_t;
/** Walks a list of extents; *n_used = their used pages. */
void chk_extent_list(chk_fsp_t *fsp, const chk_list_t *list, const chk_rule_t *rule,
                     uint64_t *n_used);
__attribute__((format(printf, 3, 4))) void chk_fsp_find(const chk_fsp_t *fsp, page_no_t page_no,
                                                        const char *format, ...);
/** Collects the inodes from their pages. */
WARN_UNUSED dberr_t chk_inodes(chk_fsp_t *fsp);
/** Lists and fragment pages of all segments. */
WARN_UNUSED dberr_t chk_segs(chk_fsp_t *fsp);
/** Owner number of the segment with this id; CHK_OWNER_UNKNOWN if there is none, or it is not known. */
uint32_t chk_seg_by_id(const chk_file_t *file, uint64_t id);
/** The same by a segment header, and claims it. *valid = nothing is wrong with that, as far as the inodes
could be read. */
uint32_t chk_seg_claim(chk_file_t *file, const byte *header, bool *valid);

/* ---- check_tree.c ---- */

typedef struct chk_leaf chk_leaf_t; /**< check_memo.h */

/** What a scan of records keeps per leaf, so that the memo can stand for it. */
typedef struct chk_leaf_ops {
    /** Hash of what the records of the next leaf are held against, besides its tree. */
    uint64_t (*context)(void *ctx);
    void (*begin)(void *ctx);
    /** In place of its records. False: they have to be read. */
    bool (*take)(void *ctx, page_no_t page_no, const chk_leaf_t *leaf);
    /** Behind its records. @return they were all right: *leaf says what they add up to */
    bool (*end)(void *ctx, page_no_t page_no, chk_leaf_t *leaf);
} chk_leaf_ops_t;

typedef struct chk_tree {
    chk_file_t *file;
    const char *table; /**< names, for messages */
    const char *index;
    index_id_t id;
    page_no_t root;
    uint32_t key_len;
    uint32_t rec_size; /**< of leaf records, or PAGE_REC_VARIES */
    uint32_t *leaves;  /**< gets the owner number of the leaves' segment, before the first record */
    uint64_t definition;       /**< hash of all that says what its records must be */
    const chk_leaf_ops_t *ops; /**< NULL: leaves are always read */
} chk_tree_t;

/** Called for each leaf record in key order: info byte first, len bytes. */
typedef dberr_t (*chk_rec_fn)(void *ctx, page_no_t page_no, const byte *rec, uint32_t len);

/** Walks a whole tree. *whole = nothing wrong was met; otherwise the walk stopped at the first
thing. */
WARN_UNUSED dberr_t chk_tree_walk(chk_t *chk, const chk_tree_t *tree, chk_rec_fn fn, void *ctx,
                                  bool *whole);

/* ---- check_undo.c ---- */

/** TRX_SYS and, of each rollback segment, RSEG, the history and active undo logs. */
WARN_UNUSED dberr_t chk_undo(chk_t *chk);

/* ---- check_dict.c ---- */

/** Reads the catalogue into chk->tables and matches it with the files (I12). */
WARN_UNUSED dberr_t chk_dict(chk_t *chk);
chk_table_t *chk_table_by_id(const chk_t *chk, table_id_t id); /**< NULL: there is none */

/* ---- check_record.c ---- */

#define CHK_ROW_BYTES_MAX                                                                          \
    (ROW_SIZE_MAX + 3 * COLUMNS_MAX) /**< that chk_row_bytes() makes of a row */

/** Computes offsets and sizes of a table whose cols and fields are set. False: they cannot be. */
bool chk_table_layout(chk_table_t *table, uint32_t page_size);
/** The values of a clustered record, by column. False: it is none of the table. */
bool chk_row_read(const chk_table_t *table, const byte *rec, uint32_t len, chk_value_t *values);
/** What the digest is over: @return its length. */
uint32_t chk_row_bytes(const chk_table_t *table, const chk_value_t *values, byte *to);
/** The entry of a row in a secondary index: key_len bytes. */
void chk_entry_bytes(const chk_table_t *table, const chk_index_t *index, const chk_value_t *values,
                     byte *to);
/** Is one of the key columns NULL? */
bool chk_key_has_null(const chk_table_t *table, const chk_index_t *index, const byte *key);

/* ---- check_blob.c ---- */

/** Reads a reference as a record or an undo record has it; *owner = its chain goes with that. False: it is none. */
bool chk_ref_read(const byte *from, space_id_t space, chk_ref_t *out, bool *owner);
/** Walks the chain of a long value of the table; its bytes go to `to` (NULL: nowhere). *whole = nothing wrong
was met. */
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
/** Walks all trees of a READY table: I6 to I10, I25, and its digests. */
WARN_UNUSED dberr_t chk_table_rows(chk_t *chk, chk_table_t *table);

#endif
