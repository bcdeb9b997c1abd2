/** Tablespaces: files, space ids, create / rename / delete / extend. FORMAT.md, "Files".

Rules (README.md of this folder): the log record of a file operation is durable before the operation
and the directory is synced after it (I24). Files: "ibdata1" is space 0; a table's space is
"NAME.ibd", an undo tablespace "undo001" and so on. fil does not know what is inside a page, except
that page 0 tells the space id. */
#ifndef FIL_FIL_H
#define FIL_FIL_H

#include "log/log.h"

#define FIL_SYSTEM_PATH "ibdata1"
#define FIL_IBD_SUFFIX ".ibd"
#define FIL_UNDO_PREFIX "undo"   /**< and three digits */
#define FIL_PAGES_MAX (1U << 26) /**< largest size of a space in pages */

typedef struct fil fil_t;

typedef struct fil_space {
    space_id_t id;
    char path[PATH_LEN_MAX + 1]; /**< changed by fil_space_set_path() only */
    uint32_t size_pages;         /**< committed size: FSP_SIZE of page 0; I/O is bounded by it */
    bool named;                  /**< FILE_NAME is in the log at or after the last checkpoint */
    uint64_t n_writes;           /**< writes of the file begun so far */
    uint64_t n_synced;           /**< of them, those that an fsync has made durable */
    uint32_t n_syncing;          /**< fsyncs begun and not ended */
    lsn_t enable_lsn;            /**< end of the last INDEX_LOAD, in recovery that seen, or 0 */
    lsn_t torn_lsn;   /**< of the pages that may be torn without a copy the newest initialisation or
                       free, or 0 */
    lsn_t max_lsn;    /**< end of the newest mtr that changed a page of the space */
    void *flush_list; /**< owned by buf/: the dirty pages of this space */
    struct fil_space *next;      /**< in order of id */
    struct fil_space *hash_next; /**< private to fil/ */
    os_file_t *file; /**< private to fil/: NULL while its descriptor is given to others */
    struct fil_space *lru_prev, *lru_next; /**< private to fil/: open files, newest use first */
} fil_space_t;

/** A page that was initialised or freed at lsn may be torn where it lies, without a copy. */
static inline void fil_space_torn(fil_space_t *space, lsn_t lsn)
{
    space->torn_lsn = lsn > space->torn_lsn ? lsn : space->torn_lsn;
}

/** log may still be closed for writing; it must be writable before the first file operation. At
most open_files files are open at any time (at least 1): the one used longest ago is fsynced, if it
needs it, and closed for the next one. */
WARN_UNUSED dberr_t fil_create(env_t *env, log_t *log, uint32_t page_size, uint32_t open_files,
                               fil_t **out);
void fil_close(fil_t *fil); /**< closes all files; NULL is fine */

fil_space_t *fil_space_get(fil_t *fil, space_id_t id);        /**< NULL if unknown */
fil_space_t *fil_space_by_path(fil_t *fil, const char *path); /**< NULL if unknown */
fil_space_t *fil_first(fil_t *fil);                           /**< walk with ->next */
uint32_t fil_page_size(const fil_t *fil);

/** How many spaces there are, and how long their paths are together: bounds their FILE_NAME
records. */
typedef struct fil_names {
    uint32_t n;
    uint64_t path_bytes;
} fil_names_t;
fil_names_t fil_names(const fil_t *fil);

/** Another path, after the file was renamed by others (recovery). */
void fil_space_set_path(fil_t *fil, fil_space_t *space, const char *path);
env_t *fil_env(const fil_t *fil);

/* Create, delete and rename are logged: call buf_log_free_check() (or log_reserve()) before
(CHECK). */

/** New file: FILE_CREATE2 durable, create, extend to size_pages zero pages, fsync, directory
sync. */
WARN_UNUSED dberr_t fil_space_create(fil_t *fil, space_id_t id, const char *path,
                                     uint32_t size_pages, fil_space_t **out);

/** Registers an existing file. size_pages is what page 0 says, or 0 = as many as the file holds. */
WARN_UNUSED dberr_t fil_space_open(fil_t *fil, space_id_t id, const char *path, uint32_t size_pages,
                                   fil_space_t **out);

/** Recovery of FILE_CREATE2: creates the empty file (kept if it exists) and registers it; no
log. */
WARN_UNUSED dberr_t fil_space_recreate(fil_t *fil, space_id_t id, const char *path,
                                       fil_space_t **out);

/** FILE_DELETE durable, unlink, directory sync, forget. No page of it may be in the pool (CHECK by
buf). */
WARN_UNUSED dberr_t fil_space_delete(fil_t *fil, fil_space_t *space);

/** FILE_RENAME2 durable, rename, directory sync. */
WARN_UNUSED dberr_t fil_space_rename(fil_t *fil, fil_space_t *space, const char *new_path);

/** Length of the file, which may differ from size_pages. */
WARN_UNUSED dberr_t fil_space_length(fil_t *fil, fil_space_t *space, uint64_t *size_bytes);

/** Makes the file at least size_pages long (zero pages), fsyncs it if it grew, and raises
space->size_pages. */
WARN_UNUSED dberr_t fil_space_extend(fil_t *fil, fil_space_t *space, uint32_t size_pages);

/** DB_CORRUPTION if page_no is not below size_pages; bytes past the end of the file read as zero. A
compressed page is decompressed; one that cannot be stays as it is, and fil_page_verify() refuses
it. */
WARN_UNUSED dberr_t fil_page_read(fil_t *fil, fil_space_t *space, page_no_t page_no, byte *page);
/** Of a page image that is compressed only what has to be stored is written. */
WARN_UNUSED dberr_t fil_page_write(fil_t *fil, fil_space_t *space, page_no_t page_no,
                                   const byte *page);
/** Gives the bytes of a page from `from` on back to the file system: they are zeros then. *done =
false: it cannot do that, nothing was changed, and nobody need ask again (fil_can_punch). */
WARN_UNUSED dberr_t fil_page_punch(fil_t *fil, fil_space_t *space, page_no_t page_no, uint32_t from,
                                   bool *done);
bool fil_can_punch(const fil_t *fil); /**< as far as is known */

/** Has the file writes that no fsync has made durable? It is not closed with such. */
bool fil_needs_sync(const fil_space_t *space);
/** The file holds what may not be durable, by others or from before. */
void fil_mark_unsynced(fil_space_t *space);
/** Is write number n of the file (n_writes when it was done) durable? */
bool fil_is_synced(const fil_space_t *space, uint64_t n);

/** An fsync under way. */
typedef struct fil_sync {
    fil_space_t *space; /**< NULL: none is under way */
    uint64_t n_writes;  /**< it covers the writes up to this one */
    bool issued;        /**< the system has been called */
} fil_sync_t;

/** An fsync in two steps, between which others may write the file: only what was written before it
began is durable when it has ended, and nothing earlier. The system may act at any moment in
between; the schedule draws whether it is called at the beginning or at the end. Begins none if the
file needs none. The space must not be deleted before the end (CHECK). */
WARN_UNUSED dberr_t fil_sync_begin(fil_t *fil, fil_space_t *space, fil_sync_t *sync);
WARN_UNUSED dberr_t fil_sync_end(fil_t *fil, fil_sync_t *sync);

WARN_UNUSED dberr_t fil_sync(fil_t *fil, fil_space_t *space); /**< both steps at once */
WARN_UNUSED dberr_t fil_sync_all(fil_t *fil);

/** Cuts the file to size_pages, fsyncs it, and lowers space->size_pages. The record that says so is
durable, and no page beyond it is in the pool. A file that is shorter stays as it is. A failure
poisons the handle. */
WARN_UNUSED dberr_t fil_space_shrink(fil_t *fil, fil_space_t *space, uint32_t size_pages);

/** Is it the name of a table's file or of an undo tablespace: of any space but the system space? */
bool fil_path_is_space(const char *path, size_t len);
bool fil_path_is_undo(const char *path, size_t len);
void fil_path_of_undo(uint32_t number, char path[PATH_LEN_MAX + 1]); /**< 1 -> "undo001" */
/** "t1" -> "t1.ibd". CHECK: the name is at most NAME_LEN_MAX. */
void fil_path_of_table(const char *table, char path[PATH_LEN_MAX + 1]);

#endif
