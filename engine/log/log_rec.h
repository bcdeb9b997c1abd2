/** Redo: the operations that a log tells of (redo_rec_t), what they do to a page (log_rec_apply),
how they are put together to a group (redo_group_t), and the formats that write and read their bytes
(log_format_t).

    callers: fil, buf, mtr     recv, check, cli, explorer
              | redo_rec_t          ^ redo_rec_t
              v                     |
         log_format_t: encode    decode     log_rec_10_4.c, log_rec_10_5.c

Nobody above knows a format's record types; nobody below knows what an operation is for. FORMAT.md,
"Redo records", tells the bytes. */
#ifndef LOG_LOG_REC_H
#define LOG_LOG_REC_H

#include "base/err.h"
#include "base/options.h"
#include "base/types.h"

/** What a record says. First those of pages, then the others. */
typedef enum redo_op {
    OP_NONE,
    OP_INIT_PAGE,         /**< value = page type; all bytes are defined then */
    OP_FREE_PAGE,         /**< no contents until the next initialisation */
    OP_NUMBER,            /**< offset, len = 1, 2, 4 or 8, value */
    OP_WRITE,             /**< offset, data, len */
    OP_FILL,              /**< offset, len, value = byte */
    OP_MOVE,              /**< offset, len, from = offset of the bytes to copy there */
    OP_INDEX_CREATE,      /**< level, rec_size, key_len, index_id */
    OP_REC_INSERT,        /**< slot, info, shared, data, len: see page_rec_insert() */
    OP_REC_UPDATE,        /**< slot, offset in the record, data, len; marks too */
    OP_REC_DELETE,        /**< slot */
    OP_LIST_END_DELETE,   /**< slot */
    OP_LIST_START_DELETE, /**< slot */
    OP_REORGANIZE,        /**< the records of an index page are put together */
    OP_PAGE_CHECKSUM,     /**< value = fil_page_contents_checksum() as it must be now */
    OP_INDEX_LOAD,        /**< space, page_no = root, value = index id */
    OP_FILE_CREATE,       /**< space, path; the file is about to be created */
    OP_FILE_DELETE,       /**< space, path */
    OP_FILE_RENAME,       /**< space, path (old), path2 (new) */
    OP_FILE_NAME,         /**< space, path: of a space that is changed from here on */
    /** space, page_no = pages that its file has now, path; void is what the log says of any before
    */
    OP_TRIM_PAGES,
    OP_CHECKPOINT, /**< value = C */
    OP_FILLER,     /**< nothing */
    OP_GROUP_END   /**< nothing; never encoded by itself */
} redo_op_t;

/** One record. data and paths point into the caller's buffer. Unused fields are 0. */
typedef struct redo_rec {
    redo_op_t op;
    space_id_t space;
    page_no_t page_no;
    uint32_t offset;
    uint32_t from;
    uint32_t slot;
    uint32_t info;   /**< OP_REC_INSERT: the info byte */
    uint32_t shared; /**< OP_REC_INSERT: bytes behind it that are those of the record before */
    uint64_t value;
    uint32_t level; /**< OP_INDEX_CREATE, with the next three */
    uint32_t rec_size;
    uint32_t key_len;
    index_id_t index_id;
    const byte *data;
    uint32_t len;
    const char *path; /**< path_len bytes, not 0-terminated */
    uint32_t path_len;
    const char *path2;
    uint32_t path2_len;
    /** Decoded from a format whose records do not depend on those before them: these bytes, which
    decode to the same record by themselves; else NULL. Nothing that is encoded. */
    const byte *raw;
    uint32_t raw_len;
} redo_rec_t;

/** Is this a change of a page (rather than a file operation, a marker, INDEX_LOAD or filler)? */
bool redo_op_is_page(redo_op_t op);

/** Are the fields in the ranges that every format keeps, whatever page the record will meet? */
bool redo_rec_is_valid(const redo_rec_t *rec);

/** Does the record write the whole number of len bytes at offset? Then *value is what it writes. */
bool redo_rec_writes(const redo_rec_t *rec, uint32_t offset, uint32_t len, uint64_t *value);

/** What encoder and decoder remember from one record of a group to the next; zero at its start. */
typedef struct redo_context {
    uint32_t n_recs;
    bool has_page; /**< 10.5, as all that follows: there was a record of a page, this one ... */
    bool freed;    /**< ... was freed by the last one, or cut off */
    page_id_t page;
    uint32_t offset; /**< where offsets of further records of the page count from */
} redo_context_t;

typedef struct log_format {
    const char *name;    /**< "10.4" */
    uint32_t id;         /**< stored in the log file header */
    bool unlogged_loads; /**< contents of a load may be left out: it has OP_INDEX_LOAD */
    /** it says of each page that it is free: whose home need not be written, and may be scrubbed */
    bool all_frees;
    bool page_checksums; /**< it has OP_PAGE_CHECKSUM */
    /** Changes of pages are logged by their bytes: it has no OP_REC_UPDATE and no list operations,
    but OP_MOVE, and writes that change nothing are left out. See mtr/mtr_physical.c. */
    bool by_bytes;
    /** Its name for the record: "MLOG_INDEX_LOAD", ... */
    const char *(*rec_name)(const redo_rec_t *rec);
    /** Appends rec to a group's bytes; *len is advanced. CHECK: it is valid. buf has room for
    LOG_REC_OVERHEAD_MAX + len + paths (CHECK). */
    void (*encode)(redo_context_t *at, const redo_rec_t *rec, byte *buf, size_t buf_size,
                   size_t *len);
    /** Ends a group of at->n_recs records. Room for LOG_REC_OVERHEAD_MAX. */
    void (*finish)(const redo_context_t *at, byte *group, size_t *len);
    /** Decodes one record of a group. *used = bytes read, *last = the group ends with it. *at
    changes on success only. DB_NOT_FOUND: more than n bytes are needed. DB_CORRUPTION: no such
    record can stand here. Hostile bytes never read beyond buf[n]. */
    dberr_t (*decode)(redo_context_t *at, const byte *buf, size_t n, redo_rec_t *rec, size_t *used,
                      bool *last);
} log_format_t;

extern const log_format_t log_format_10_4;
extern const log_format_t log_format_10_5;
/** Of engines that logged inserted records whole: read only, as far as a log without changes goes;
all else is DB_CORRUPTION. No encode. */
extern const log_format_t log_format_10_4_whole;

/** The format with this number in the header of the log file, or NULL. */
const log_format_t *log_format_find(uint32_t id);

#define LOG_REC_OVERHEAD_MAX 64U

/** A group under construction. Out of memory ends the process: half a change is in memory. */
typedef struct redo_group {
    const log_format_t *format;
    redo_context_t at;
    byte *bytes;
    size_t len;
    size_t size;
} redo_group_t;

void redo_group_init(redo_group_t *group, const log_format_t *format);
void redo_group_add(redo_group_t *group, const redo_rec_t *rec);
/** Puts the records of `first`, none of a page, in front. */
void redo_group_prepend(redo_group_t *group, const redo_group_t *first);
/** After this its bytes are what log_append() takes. CHECK: there is a record. */
void redo_group_finish(redo_group_t *group);
void redo_group_free(redo_group_t *group);

/** Performs a page record on a page image: the one function that both the running engine and
recovery change pages with. Bad bytes give DB_CORRUPTION and an unchanged page. LSN and checksum are
not touched. OP_FREE_PAGE changes no byte. */
WARN_UNUSED dberr_t log_rec_apply(const redo_rec_t *rec, byte *page, uint32_t page_size);

#endif
