/** What a finished backup says of itself: the file "backup_info" (FORMAT.md, "Backup"). Its name
appears when everything else of the backup is durable; without it the directory holds an unfinished
one. */
#ifndef BACKUP_BACKUP_INFO_H
#define BACKUP_BACKUP_INFO_H

#include "os/os.h"

#define BACKUP_INFO_NAME "backup_info"
#define BACKUP_LOG_NAME "backup_log" /**< the copy of the log, until the backup is prepared */

typedef enum backup_state {
    BACKUP_NONE,       /**< the directory holds no backup */
    BACKUP_UNFINISHED, /**< a copy of a log without the file, or with one that is damaged */
    BACKUP_COPIED,     /**< finished: to be prepared */
    BACKUP_PREPARED    /**< a database, closed cleanly when it became one */
} backup_state_t;

typedef struct backup_info {
    backup_state_t state;
    lsn_t start_lsn; /**< the checkpoint that its log begins with */
    lsn_t end_lsn;   /**< what it holds the state of */
} backup_info_t;

/** What the directory holds. Numbers are set for COPIED and PREPARED only. */
WARN_UNUSED dberr_t backup_info_read(env_t *env, backup_info_t *out);

/** Writes and fsyncs the file: one sector, in place if it is there. The name is not durable yet. */
WARN_UNUSED dberr_t backup_info_write(env_t *env, const backup_info_t *info);

/** fsyncs the file that is there. */
WARN_UNUSED dberr_t backup_info_sync(env_t *env);

#endif
