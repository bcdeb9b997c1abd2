/** Private to trace_canary.c and trace_seen.c: what a record of a recording is, as far as canaries
ask. */
#ifndef EXPLORER_TRACE_SEEN_H
#define EXPLORER_TRACE_SEEN_H

#include "explorer/judge/trace_int.h"

#define FIXED_PAGES 4U /* of the system tablespace: never freed, never begun anew */

/** What a record is, as far as canaries ask. */
enum {
    PAGE = 1 << 0,         /**< a home write, whose first page is whole, plain and right */
    FIXED_PAGE = 1 << 1,   /**< one that is never free */
    COPIED_PAGE = 1 << 2,  /**< one that doublewrite protects */
    TREE_PAGE = 1 << 3,    /**< of an index without an INDEX_LOAD, changed since the log began */
    AREA = 1 << 4,         /**< a write to the doublewrite area */
    LOG = 1 << 5,          /**< a write of whole log blocks */
    LOG_ROOM = 1 << 6,     /**< one that has a block behind it in the file */
    LOG_TAIL = 1 << 7,     /**< one that begins with the block in which the log ends */
    LOG_BEHIND_C = 1 << 8, /**< one while C lies in an earlier block than the end */
    SLOT = 1 << 9,         /**< a write of a checkpoint slot that is one */
    SYNC_DATA = 1 << 10,
    SYNC_SYSTEM = 1 << 11, /**< of the system tablespace */
    SYNC_AREA = 1 << 12,
    SYNC_LOG = 1 << 13,
    SYNC_FOLDER = 1 << 14,
    SYNC_ALL = 1 << 15,
    TABLE_NAME = 1 << 16, /**< a table's file is made, named or removed */
    TABLE_MADE = 1 << 17,
    SHORTENED = 1 << 18, /**< a file is cut or removed */
    ACK = 1 << 19
};

typedef struct seen {
    uint32_t is;    /**< 0: nothing that matters */
    page_id_t page; /**< of PAGE */
    lsn_t c;        /**< of SLOT */
} seen_t;

/** Of a record that succeeded, before the rules hear of it. */
seen_t trace_see(const reader_t *reader);
/** The file of the record, or NULL. */
const file_map_t *trace_file(const reader_t *reader);
/** A page of the tablespace, whose file is written, which the log frees last, and says so of all;
else 0. */
uint64_t trace_freed_page(const reader_t *reader, space_id_t space);
/** Is there an INDEX_LOAD of this index in the log? */
bool trace_has_load(const rules_t *rules, index_id_t id);

#endif
