/** Private to recv/: what the scan learns about pages, spaces and files, and how batches are kept.
*/
#ifndef RECV_RECV_INT_H
#define RECV_RECV_INT_H

#include "buf/buf_dblwr.h"
#include "recv/recv.h"

/* ---- recv_store.c: tables keyed by page id, and the memory of parsed records ---- */

/** A hash table whose entries begin with a page_id_t. Entries move when the table grows: look one
up again after every recv_table_put(). */
typedef struct recv_table {
    size_t entry_size;
    byte *entries;
    uint32_t n;
    uint32_t capacity;
    uint32_t last;    /**< entry number of the last put, or 0: where to look first */
    uint32_t *slots;  /**< entry number + 1; 0 = empty */
    uint32_t n_slots; /**< a power of two, at least twice capacity */
} recv_table_t;

/** The entry of id, or NULL. */
void *recv_table_find(const recv_table_t *table, page_id_t id);
/** Finds the entry of id, or adds a zeroed one. DB_OUT_OF_MEMORY. */
WARN_UNUSED dberr_t recv_table_put(env_t *env, recv_table_t *table, page_id_t id, void **out);
void *recv_table_at(const recv_table_t *table, uint32_t i);
/** Orders the entries by page id, for a walk with recv_table_at(); no find or put until a reset. */
void recv_table_sort(recv_table_t *table);
void recv_table_reset(recv_table_t *table); /**< empties it; keeps entry_size */

/** One parsed record of a batch, in the bytes of the log format (a few bytes instead of a
redo_rec_t). */
typedef struct recv_rec {
    struct recv_rec *next; /**< of the same page, later in the log */
    lsn_t end_lsn;         /**< of its group: the page LSN after it */
    size_t len;
    byte bytes[];
} recv_rec_t;

typedef struct recv_page {
    page_id_t id;
    recv_rec_t *first;
    recv_rec_t *last;
} recv_page_t;

/** Records of one apply batch. */
typedef struct recv_batch {
    recv_table_t pages;        /**< recv_page_t; also of spaces that the log deletes later */
    struct recv_chunk *chunks; /**< memory of the records */
    size_t used_bytes;         /**< records and table entries */
    lsn_t start_lsn;           /**< end of the last group of the batch before */
    lsn_t end_lsn;             /**< end of the last group stored */
    uint32_t no;               /**< 1 for the first */
} recv_batch_t;

/** Keeps the group's changes of pages. */
WARN_UNUSED dberr_t recv_batch_add(env_t *env, recv_batch_t *batch, const log_format_t *format,
                                   const log_group_t *group);
/** Frees its memory; the next batch starts at end_lsn. */
void recv_batch_reset(recv_batch_t *batch);

/* ---- state of one recovery ---- */

/** The latest initialisation or freeing of a page in the whole log: what decides its fate. */
typedef struct recv_hist {
    page_id_t id;
    lsn_t event_lsn; /**< end LSN of the group with that record */
    lsn_t used_lsn;  /**< freed only: end LSN of the last change after it; 0 = none */
    bool freed;
} recv_hist_t;

/** What the log and the directory say of one space. */
typedef struct recv_space {
    page_id_t id;     /**< page number 0 */
    lsn_t enable_lsn; /**< end of the last OP_INDEX_LOAD, or 0 */
    bool named;       /**< the log says that its file exists */
    bool changed;     /**< the log has changes of its pages */
    bool deleted;     /**< FILE_DELETE at or after the checkpoint */
    /** end of the last OP_TRIM_PAGES: older records of its pages are void; 0: none */
    lsn_t trim_lsn;
    bool page0_zero;          /**< page 0 was never written */
    lsn_t rename_lsn;         /**< last FILE_RENAME2 of it in the log, or 0 */
    uint32_t log_size_first;  /**< first logged FSP_SIZE, or 0 */
    uint32_t log_size_pages;  /**< latest logged FSP_SIZE, or 0 */
    uint32_t file_size_pages; /**< FSP_SIZE of an undamaged page 0 */
    char *name;               /**< last name in the log; NULL if the log does not tell */
    char *path;               /**< its file in the directory; NULL if there is none */
} recv_space_t;

/** A record about a file, in the order of the log. */
typedef struct recv_event {
    struct recv_event *next;
    redo_op_t op;
    space_id_t space;
    lsn_t lsn;
    char *path;
    char *path2; /**< FILE_RENAME2: the new name */
} recv_event_t;

#define RECV_COPIES_MAX DBLWR_POSITIONS_MAX

/** A usable page copy in the doublewrite file. */
typedef struct recv_copy {
    page_id_t id;
    lsn_t lsn;
    uint32_t fsp_size; /**< page 0 only */
} recv_copy_t;

typedef struct recv {
    env_t *env;
    log_t *log;
    fil_t *fil;
    buf_pool_t *pool;
    uint32_t page_size;
    uint64_t memory_max;
    log_checkpoint_t ckpt;
    lsn_t end_lsn;       /**< where the log ends */
    recv_batch_t batch;  /**< the first one is kept by the scan */
    recv_table_t hist;   /**< recv_hist_t */
    recv_table_t spaces; /**< recv_space_t */
    recv_event_t *events;
    recv_event_t **events_tail;
    recv_copy_t copies[RECV_COPIES_MAX]; /**< the newest one of each page */
    uint32_t n_copies;
    byte *page_buf; /**< one page */
} recv_t;

recv_space_t *recv_space_find(const recv_t *recv, space_id_t id); /**< NULL if unknown */
WARN_UNUSED dberr_t recv_space_put(recv_t *recv, space_id_t id, recv_space_t **out);
/** A name of the space for messages: its file, its name in the log, or "space N" in buf. */
const char *recv_space_name(const recv_t *recv, space_id_t id, char buf[PATH_LEN_MAX + 1]);

/** Header fields of an undamaged page 0: its committed size, or 0 if they cannot be. */
uint32_t recv_page0_size(const recv_t *recv, const byte *page);

/* ---- the steps, in this order ---- */

/** Chooses the checkpoint, finds its marker and the end of the log, fills hist, spaces and events,
and the first batch. */
WARN_UNUSED dberr_t recv_scan(recv_t *recv);
/** Lists the usable copies of the doublewrite file. */
WARN_UNUSED dberr_t recv_dblwr_collect(recv_t *recv);
/** Finds each space's file, repeats file operations, registers the spaces in fil. */
WARN_UNUSED dberr_t recv_spaces_open(recv_t *recv);
/** Zeros over torn pages that are free, if no start is behind the log since it was converted. */
WARN_UNUSED dberr_t recv_dblwr_converted(recv_t *recv);
/** Brings files to the committed size that the log tells; refuses those cut short otherwise. */
WARN_UNUSED dberr_t recv_spaces_extend(recv_t *recv);
/** Overwrites torn and zero home pages from their copies, then fsyncs. */
WARN_UNUSED dberr_t recv_dblwr_restore(recv_t *recv);
/** Applies all records, in as many batches as memory asks for. */
WARN_UNUSED dberr_t recv_apply(recv_t *recv);

#endif
