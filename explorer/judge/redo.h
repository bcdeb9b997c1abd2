/** What a redo log says, decoded from its bytes: per page its initialisations, frees and changes,
INDEX_LOAD per space, extents that are given back whole, file operations, checkpoint markers.

The log is read forward from a record group's start, as far as complete groups lie in valid blocks;
what follows can be read later, when more is there. A log that begins as another one that was read
before takes that part from it (redo_start()). Bytes may be anything. */
#ifndef EXPLORER_REDO_H
#define EXPLORER_REDO_H

#include "disk/image.h"
#include "explorer/judge/key_table.h"
#include "log/log_block.h"

/** What a record group did to a page. */
typedef enum redo_kind {
    REDO_CHANGE, /**< changed it */
    REDO_INIT,   /**< initialised it, and may have changed it then */
    REDO_FREE    /**< freed it last */
} redo_kind_t;

/** What one record does to a page. */
typedef struct redo_touch {
    redo_kind_t kind;
    /** a change whose effect depends on what the page held: no plain bytes at an offset */
    bool relies;
    lsn_t start_lsn;
    lsn_t end_lsn;
} redo_touch_t;

typedef struct redo_entry {
    lsn_t start_lsn;
    lsn_t end_lsn;
    /** the page's newest entry up to here that is no REDO_CHANGE, by number; 0: none */
    uint32_t defined;
    redo_kind_t kind;
} redo_entry_t;

typedef struct redo_page {
    uint64_t key;
    redo_entry_t *entries; /**< number 1 is the first; end LSNs ascend ... */
    lsn_t first_lsn;       /**< ... from here ... */
    lsn_t last_lsn;        /**< ... to here */
    uint32_t n;
    uint32_t capacity;
} redo_page_t;

typedef struct redo_load {
    lsn_t start_lsn;
    lsn_t end_lsn;
    space_id_t space;
    index_id_t index;
} redo_load_t;

typedef struct redo_file {
    redo_op_t op; /**< of a file */
    lsn_t end_lsn;
    space_id_t space;
    char path[PATH_LEN_MAX + 1];
    char path2[PATH_LEN_MAX + 1];
} redo_file_t;

/** An extent that went back to its space whole: no page of it has a record of that. */
typedef struct redo_extent {
    lsn_t end_lsn;
    uint64_t first; /**< key of its first page */
} redo_extent_t;

/** A space that began anew: what was said of its pages before is void. */
typedef struct redo_trim {
    lsn_t end_lsn;
    space_id_t space;
} redo_trim_t;

typedef struct redo_marker {
    lsn_t start_lsn;
    lsn_t end_lsn;
    lsn_t checkpoint;
} redo_marker_t;

typedef struct redo_pages {
    redo_page_t *pages;
    uint32_t capacity; /**< pages beyond table.n keep their memory */
    key_table_t table;
} redo_pages_t;

/** A list of fixed-size items. */
#define REDO_LIST(type)                                                                            \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t n;                                                                                \
        uint32_t capacity;                                                                         \
    }

#define REDO_RECS_KEPT 128U /**< few groups have more records */

typedef struct redo redo_t;
struct redo {
    const image_t *image; /**< that the log file is in */
    uint32_t inode;
    log_file_info_t info; /**< of the log file; page_size 0: there is none yet */
    const log_format_t *format;
    lsn_t from_lsn; /**< what was read starts here ... */
    lsn_t end_lsn;  /**< ... and ends here, behind the last complete group */
    uint32_t epoch; /**< of the block of that group's last byte; 0: unknown */
    redo_pages_t pages;
    REDO_LIST(redo_load_t) loads;
    REDO_LIST(redo_extent_t) extents;
    REDO_LIST(redo_trim_t) trims;
    REDO_LIST(redo_file_t) files;
    REDO_LIST(redo_marker_t) markers;
    REDO_LIST(lsn_t) ends; /**< of groups, ascending */

    const redo_t *shared; /**< groups up to shared_lsn are in there, and not in here */
    lsn_t shared_lsn;
    /** with keep_history: each block as it was written last, from info.start_lsn on */
    byte *history;
    uint64_t history_bytes;
    uint64_t history_capacity;
    bool keep_history;

    byte *payload; /**< of the blocks that are being read */
    size_t payload_capacity;
    redo_rec_t recs[REDO_RECS_KEPT
                    + 1]; /**< of the group that is being read; the last one: what is not kept */
    /** Hears of each INDEX_LOAD and each record about a page when it is read; may be NULL. */
    void (*on_load)(void *ctx, const redo_load_t *load);
    void (*on_page)(void *ctx, uint64_t key, const redo_touch_t *touch);
    void *ctx;
};

static inline uint64_t redo_key(space_id_t space, page_no_t page_no)
{
    return (uint64_t)space << 32 | page_no;
}

/** keep_history: others may share what this one reads. */
void redo_init(redo_t *redo, bool keep_history);
void redo_free(redo_t *redo);
/** Starts anew, with a log file: the image stays. shared: a log that may begin in the same way,
kept alive by the caller; may be NULL. False: the header is damaged, there is no log then. */
WARN_UNUSED bool redo_open(redo_t *redo, const image_t *image, uint32_t inode,
                           const redo_t *shared);
/** The newest valid checkpoint slot. False: there is none. */
WARN_UNUSED bool redo_slot(const redo_t *redo, log_checkpoint_t *out);
/** Reads on from `from`, the start of a group, as far as it goes. */
void redo_start(redo_t *redo, lsn_t from);
/** Reads on from end_lsn, in the file as it is now. */
void redo_extend(redo_t *redo);
/** A block that was written: only with keep_history. */
void redo_keep(redo_t *redo, lsn_t block_lsn, const byte *block);

/** The block at this offset of the file, as it is now. */
const byte *redo_block(const redo_t *redo, uint64_t offset);
/** Where the block lies in the file. */
uint64_t redo_offset(const redo_t *redo, lsn_t block_lsn);

/** The page's newest entry that ends at or before limit, or NULL. Behind a log that was shared it
may be older than from_lsn. */
const redo_entry_t *redo_last(const redo_t *redo, uint64_t key, lsn_t limit);
/** The same among its initialisations and frees. */
const redo_entry_t *redo_defined(const redo_t *redo, uint64_t key, lsn_t limit);
/** Does a record of the page end at this LSN? */
bool redo_has_record(const redo_t *redo, uint64_t key, lsn_t lsn);
/** End of the newest INDEX_LOAD of the space that starts at or after `from` and ends by limit; 0:
there is none. */
lsn_t redo_space_load(const redo_t *redo, space_id_t space, lsn_t from, lsn_t limit);
/** Is the extent of the page given back whole by a record that ends behind `after`, and by
limit? */
bool redo_extent_freed(const redo_t *redo, uint64_t key, lsn_t after, lsn_t limit);
/** End of the newest group up to limit with which the space began anew; 0: there is none. */
lsn_t redo_trim_lsn(const redo_t *redo, space_id_t space, lsn_t limit);
#define REDO_ANY_SPACE UINT32_MAX
/** The newest file operation of this kind, of this space, up to limit; path2 may be NULL: any.
NULL: none. */
const redo_file_t *redo_file(const redo_t *redo, redo_op_t op, space_id_t space, const char *path,
                             const char *path2, lsn_t limit);
/** The newest file operation that names the path, old or new; OP_FILE_NAME is none. */
const redo_file_t *redo_file_about(const redo_t *redo, const char *path);
/** The newest record that gives the path, old or new, to this space; OP_FILE_NAME is one. NULL:
none. */
const redo_file_t *redo_file_named(const redo_t *redo, space_id_t space, const char *path);
/** Does a record that ends behind `after`, and by limit, delete the space's file? */
bool redo_space_deleted(const redo_t *redo, space_id_t space, lsn_t after, lsn_t limit);
/** End of the group that starts here, if it holds the marker of this checkpoint; 0: it does not. */
lsn_t redo_marker_end(const redo_t *redo, lsn_t start_lsn, lsn_t checkpoint);
/** Does a group end (and so the next one start) here? */
bool redo_is_boundary(const redo_t *redo, lsn_t lsn);
/** Calls fn for each page with its newest entry in (after, limit], if it has one. */
void redo_each_page(const redo_t *redo, lsn_t after, lsn_t limit,
                    void (*fn)(void *ctx, uint64_t key, const redo_entry_t *last), void *ctx);

#endif
