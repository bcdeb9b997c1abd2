/** Private to rules*.c: what the rules know of one process. */
#ifndef EXPLORER_RULES_INT_H
#define EXPLORER_RULES_INT_H

#include "explorer/judge/redo_int.h"
#include "explorer/judge/rules.h"
#include "explorer/judge/sites.h"
#include "page/fil_page.h"

/** A page of a data file, as far as this process touched it. */
typedef struct rules_page {
    uint64_t key;
    lsn_t home_lsn;    /**< page LSN of its newest home write */
    lsn_t durable_lsn; /**< of the newest one that was fsynced */
    uint32_t copy;     /**< its newest copy in the area, by position + 1; 0: none by this process */
    index_id_t unlogged; /**< index whose page went home last without a record, 0: none */
    bool late; /**< that write was not fsynced when the index's INDEX_LOAD became durable */
    bool read; /**< since that write, or since the start */
    bool written;
    bool touched; /**< written since the start */
} rules_page_t;

/** A page's place in the doublewrite area; all zero: this process has not written it. */
typedef struct rules_copy {
    uint64_t key;
    uint32_t pins; /**< unsynced home writes that rely on it */
    bool written;
    bool durable;
    bool found; /**< written before this start of the process */
} rules_copy_t;

/** A home write that is not fsynced. */
typedef struct rules_home {
    uint32_t page; /**< position in pages */
    uint32_t inode;
    uint32_t copy; /**< position of its copy + 1, or 0 */
    lsn_t lsn;
    index_id_t unlogged; /**< index whose page was written without a record, or 0 */
} rules_home_t;

/** A home write that skipped doublewrite. */
typedef struct rules_skip {
    uint64_t key;
    lsn_t init_start;
    lsn_t init_end;
} rules_skip_t;

/** An index that this process loads, as far as that shows. */
typedef struct rules_index {
    index_id_t id;
    lsn_t load_lsn; /**< end of its INDEX_LOAD, 0: none */
    bool load_seen; /**< durable, and its pages looked at */
} rules_index_t;

/** A change of a directory entry that is not synced. */
typedef struct rules_entry {
    lsn_t record_lsn; /**< LSN_MAX: no record tells of it */
    char path[PATH_LEN_MAX + 1];
} rules_entry_t;

/** A data file, by inode. */
typedef struct rules_datafile {
    uint32_t inode;
    bool synced; /**< by this process */
    /** made or written by this process: its own page 0 is no evidence of whose it is */
    bool written;
    bool known; /**< space is */
    space_id_t space;
} rules_datafile_t;

typedef struct rules_log {
    uint32_t inode; /**< IMAGE_NONE: no log yet */
    bool found;     /**< it was there at the start */
    lsn_t found_c;
    lsn_t found_end;
    lsn_t durable;
    log_checkpoint_t slot; /**< durable, the newest */
    log_checkpoint_t slot_written;
    bool slot_pending;
    uint32_t epoch;            /**< that blocks are written with */
    bool epoch_taken;          /**< since the start, or the log is its own */
    bool cut_unsynced;         /**< the first block of an epoch */
    byte tail[LOG_BLOCK_SIZE]; /**< the block in which the log ends */
} rules_log_t;

struct rules {
    rules_config_t config;
    const image_t *image;
    bool cold;
    uint32_t page_size; /**< 0: no log yet, nothing can be decoded */
    byte *plain;        /**< room for a page that is stored compressed */
    byte *home;         /**< for one that goes home, where it does not lie in one piece */
    byte *copy;         /**< for one of the area */
    byte *other;        /**< for one that is looked at in passing */
    redo_t redo;
    rules_log_t log;

    REDO_LIST(rules_page_t) pages;
    key_table_t page_table; /**< by key: position in pages */
    REDO_LIST(rules_home_t) homes;
    REDO_LIST(rules_skip_t) skips;
    REDO_LIST(rules_index_t) indexes;
    REDO_LIST(rules_entry_t) entries;
    REDO_LIST(rules_datafile_t) files;

    uint32_t area_inode; /**< IMAGE_NONE: unknown */
    REDO_LIST(rules_copy_t) copies;
    REDO_LIST(uint32_t) fresh_copies; /**< not fsynced */
    bool area_synced;                 /**< by this process: what it found is durable too */

    bool journal;                  /**< statements are told of */
    char failed[PATH_LEN_MAX + 1]; /**< file of the first failed operation; "": none */
    bool closed;                   /**< the log is: what is read from here on is not recovery's */
};

/** page: key of the one that is accused, or RULES_NO_PAGE. */
__attribute__((format(printf, 5, 6))) void rules_report(const rules_t *rules, uint64_t page,
                                                        uint32_t invariant, const char *rule,
                                                        const char *format, ...);
/** C of the durable checkpoint, 0 before the first. */
static inline lsn_t rules_c(const rules_t *rules)
{
    return rules->log.slot.lsn;
}

static inline space_id_t key_space(uint64_t key)
{
    return (space_id_t)(key >> 32);
}

static inline page_no_t key_page(uint64_t key)
{
    return (page_no_t)key;
}

bool rules_is_undo_file(const char *path);
bool rules_is_table_file(const char *path); /**< or an undo tablespace */
bool rules_is_data_file(const char *path);
bool rules_is_log_file(const char *path);

/** Files by name, as FORMAT.md has them. */
#define SYSTEM_PATH "ibdata1"
#define UNDO_PREFIX "undo" /* and three digits */
#define UNDO_PREFIX_LEN 4U
#define UNDO_DIGITS 3U
#define AREA_PATH "ib_dblwr"
#define SORT_FILE_PREFIX "#sql-tmp-" /* nothing in it lasts */

/** The page as the file has it, which may be damaged. room: see image_view(). */
static inline const byte *rules_stored(const rules_t *rules, uint32_t inode, uint64_t page_no,
                                       byte *room)
{
    return image_view(rules->image, inode, page_no * rules->page_size, rules->page_size, room);
}

/* rules_pages.c */
void rules_pages_clear(rules_t *rules);
/** The process starts once more: it has read and written nothing yet. Which pages went home without
a record is remembered. */
void rules_pages_again(rules_t *rules);
rules_page_t *rules_page(rules_t *rules, uint64_t key);
const rules_page_t *rules_page_find(const rules_t *rules, uint64_t key);
rules_datafile_t *rules_datafile(rules_t *rules, uint32_t inode, const char *path);
/** The LSN of the whole page of this key that the image holds in its place and that survives a
crash; 0: none. */
lsn_t rules_home_in_image(rules_t *rules, uint64_t key);

/* rules_log.c */
void rules_log_start(rules_t *rules, uint32_t inode, const rules_t *history);
/** The process starts once more: what the log holds now is what it finds. */
void rules_log_again(rules_t *rules);
void rules_log_write(rules_t *rules, const fs_event_t *event);
void rules_log_sync(rules_t *rules);
/** A page is written with this LSN (I4). where: "home" or "into the area". */
void rules_log_ahead(rules_t *rules, page_id_t id, lsn_t lsn, const char *where);

/* rules_slot.c */
void rules_slot_write(rules_t *rules, uint32_t slot, const byte *block);

/* rules_home.c */
/** A page is about to be written: notes what its place holds. */
void rules_home_before(rules_t *rules, uint32_t inode, const char *path, page_no_t page_no);
void rules_home_write(rules_t *rules, fs_event_t *event, const char *path);
/** To a copy of a database in a folder: the write of one page has the page's site. */
void rules_home_elsewhere(rules_t *rules, fs_event_t *event);
/** A hole. */
void rules_home_punch(rules_t *rules, const fs_event_t *event, const char *path);
void rules_home_sync(rules_t *rules, uint32_t inode);
void rules_home_gone(rules_t *rules, uint32_t inode);
/** The newest checkpoint is past some skips: they need their initialisations no more. */
void rules_skips_passed(rules_t *rules);

/* rules_area.c */
void rules_area_write(rules_t *rules, const fs_event_t *event);
void rules_area_sync(rules_t *rules);
/** The process starts once more: what is there is what it finds. */
void rules_area_again(rules_t *rules);
typedef struct copy_match {
    bool exists;       /**< there is a copy equal to the bytes */
    bool found;        /**< it lay there when the process began */
    bool durable;      /**< it survives a crash */
    uint32_t position; /**< where it lies */
} copy_match_t;
copy_match_t rules_copy_match(const rules_t *rules, const rules_page_t *page, const byte *bytes);
/** A home write that is not fsynced relies on the copy there. */
void rules_copy_pin(rules_t *rules, uint32_t position, uint64_t key);
/** Did a whole copy of the page lie in the area when the process began? */
bool rules_copy_found(const rules_t *rules, uint64_t key);

/* rules_index.c */
void rules_index_loaded(void *ctx, const redo_load_t *load);
void rules_index_changed(void *ctx, uint64_t key, const redo_touch_t *touch);
/** A page of the index goes home without a record: is its INDEX_LOAD durable by then? */
bool rules_index_written(rules_t *rules, index_id_t id);
void rules_index_durable(rules_t *rules);

/* rules_recv.c */
void rules_recv_read(rules_t *rules, uint32_t inode, uint64_t key);
void rules_recv_write(rules_t *rules, const rules_page_t *page, bool restored);

/* rules_file.c */
/** A file became shorter. */
void rules_file_cut(rules_t *rules, const fs_event_t *event, const char *path);
void rules_file_event(rules_t *rules, const fs_event_t *event, const char *path);
/** Something rests on directory entries: those with records up to this LSN must be synced. */
void rules_file_check(rules_t *rules, lsn_t limit, const char *what);

#endif
