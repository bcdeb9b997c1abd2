/** Redo records: what one says (redo_rec_t), how it is written (log_format_t), and what it does to
a page (log_rec_apply). The rest of the engine knows redo_rec_t only, so that the 10.5 physical
format can stand beside the 10.4 one behind log_format_t. FORMAT.md, "Redo records", tells the
bytes. */
#ifndef LOG_LOG_REC_H
#define LOG_LOG_REC_H

#include "base/err.h"
#include "base/types.h"

/** Numbers follow MariaDB 10.4's mlog_id_t where that has the record. */
typedef enum mlog_type {
    MLOG_1BYTE = 1, /**< offset, value */
    MLOG_2BYTES = 2,
    MLOG_4BYTES = 4,
    MLOG_8BYTES = 8,
    MLOG_WRITE_STRING = 30,             /**< offset, data, len */
    MLOG_MULTI_REC_END = 31,            /**< ends an mtr of several records; no page */
    MLOG_DUMMY_RECORD = 32,             /**< padding; no page */
    MLOG_FILE_DELETE = 35,              /**< space, path */
    MLOG_COMP_PAGE_CREATE = 37,         /**< shape */
    MLOG_COMP_REC_INSERT = 38,          /**< slot, data = record, len */
    MLOG_COMP_REC_UPDATE_IN_PLACE = 41, /**< slot, offset in record, data, len; marks too */
    MLOG_COMP_REC_DELETE = 42,          /**< slot */
    MLOG_COMP_LIST_END_DELETE = 43,     /**< slot */
    MLOG_COMP_LIST_START_DELETE = 44,   /**< slot */
    MLOG_FILE_CREATE2 = 47,             /**< space, path */
    MLOG_FILE_RENAME2 = 54,             /**< space, path (old), path2 (new) */
    MLOG_FILE_NAME = 55,                /**< space, path */
    MLOG_CHECKPOINT = 56,               /**< value = checkpoint LSN C; no page, a fixed 9 bytes */
    MLOG_INIT_FILE_PAGE2 = 59, /**< value = page type; initialises the page: all bytes defined */
    MLOG_INDEX_LOAD = 61,      /**< space, page_no = root, value = index id */
    MLOG_MEMSET = 63,          /**< offset, len, value = byte */
    MLOG_INIT_FREE_PAGE = 64   /**< the page is free: no contents until the next initialisation */
} mlog_type_t;

/** One record, decoded. data and paths point into the caller's buffer. Unused fields are 0. */
typedef struct redo_rec {
    mlog_type_t type;
    space_id_t space;
    page_no_t page_no;
    uint32_t offset;
    uint32_t slot;
    uint64_t value;
    uint32_t level; /**< MLOG_COMP_PAGE_CREATE, with the next three */
    uint32_t rec_size;
    uint32_t key_len;
    index_id_t index_id;
    const byte *data;
    uint32_t len;
    const char *path; /**< path_len bytes, not 0-terminated */
    uint32_t path_len;
    const char *path2;
    uint32_t path2_len;
} redo_rec_t;

/** Is this a change of a page (rather than a file operation, a marker, INDEX_LOAD or filler)? */
bool log_rec_is_page_op(mlog_type_t type);
const char *mlog_type_name(mlog_type_t type); /**< "MLOG_INDEX_LOAD", ...; "unknown" */

typedef struct log_format {
    const char *name; /**< "10.4" */
    uint32_t id;      /**< stored in the log file header */
    /** Appends rec to buf; *len is advanced. CHECK: every field is in the range that decode
    demands. single = the only record of its mtr (flag 0x80 on the type byte). buf has room for
    LOG_REC_OVERHEAD_MAX + len + paths (CHECK). */
    void (*encode)(const redo_rec_t *rec, bool single, byte *buf, size_t buf_size, size_t *len);
    /** Decodes one record at buf. *used = bytes read, *single = the flag. DB_NOT_FOUND: more than n
    bytes are needed. DB_CORRUPTION: no such record can start like this. Hostile bytes never read
    beyond buf[n]. */
    dberr_t (*decode)(const byte *buf, size_t n, redo_rec_t *rec, size_t *used, bool *single);
} log_format_t;

extern const log_format_t log_format_10_4;

#define LOG_REC_OVERHEAD_MAX 64U

/** Performs a page record on a page image: the one function that both the running engine and
recovery change pages with. Bad bytes give DB_CORRUPTION and an unchanged page. LSN and checksum are
not touched. MLOG_INIT_FREE_PAGE changes no byte. */
WARN_UNUSED dberr_t log_rec_apply(const redo_rec_t *rec, byte *page, uint32_t page_size);

#endif
