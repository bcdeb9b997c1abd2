/** Private to backup/: the state of a backup. */
#ifndef BACKUP_BACKUP_INT_H
#define BACKUP_BACKUP_INT_H

#include "backup/backup.h"
#include "backup/backup_info.h"

#define BACKUP_YIELD_PAGES 4U /**< most pages that are copied at one yield point, or between two */

/** A data file. Its copy is named after its space until the end, because names change hands
meanwhile. */
typedef struct backup_file {
    struct backup_file *next;
    space_id_t id;
    char path[PATH_LEN_MAX + 1]; /**< when it was found */
    page_no_t next_page;
    /** end of the log when its copy began: what was loaded before is in the file; 0: not begun */
    lsn_t begin_lsn;
    bool done; /**< copied and fsynced, or its space is gone */
} backup_file_t;

struct backup {
    env_t env; /**< of the target */
    buf_pool_t *pool;
    backup_config_t config;
    log_copy_t *log;
    backup_file_t *files;
    os_file_t *open; /**< the copy that is being written, or NULL */
    byte *page;
    dberr_t failure; /**< the first one; nothing more is done */
    bool finishing;
};

/* ---- backup_files.c ---- */

/** Lists all spaces that there are and are not listed yet. DB_OUT_OF_MEMORY. */
WARN_UNUSED dberr_t backup_files_list(backup_t *backup);
void backup_files_free(backup_t *backup);
/** Copies up to *n_pages pages, in the order of the list; less are left in it when a page is being
written or all is done. */
WARN_UNUSED dberr_t backup_files_copy(backup_t *backup, uint32_t *n_pages);
/** All that is left, with yield points, waiting for pages that are being written. */
WARN_UNUSED dberr_t backup_files_finish(backup_t *backup);
/** The copied log tells of a load without redo into this space: its file has to be copied again if
the copy began before. */
WARN_UNUSED dberr_t backup_file_loaded(backup_t *backup, space_id_t id, lsn_t load_lsn);
/** Gives every copy the name that its space has now; those of spaces that are gone are removed. */
WARN_UNUSED dberr_t backup_files_name(backup_t *backup);
/** Removes all copies. */
WARN_UNUSED dberr_t backup_files_remove(backup_t *backup);

#endif
