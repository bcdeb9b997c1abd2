/** Hot backup: copies the database into another directory while it is used. README.md of this
folder has the rules.

A backup is begun, goes on in steps between (and, at yield points, amid) everything else, and is
finished by one call, in which nobody changes anything. It holds the state at the end of the log
then; its own changes of the database are none. */
#ifndef BACKUP_BACKUP_H
#define BACKUP_BACKUP_H

#include "buf/buf.h"

typedef struct backup backup_t;

/** What a backup is to be like. */
typedef struct backup_config {
    /** files into which an index was loaded without redo are not copied again at the end: such a
    load ends the backup */
    bool no_lock;
    uint32_t interval; /**< some pages are copied at one yield point in so many; 0: at none */
} backup_config_t;

/** Begins one in target, an existing or new directory without files, which is borrowed until
backup_free(). The pool has a copier from now on, and must not have one (CHECK). On failure nothing
is left, and *err (not NULL) has the message: DB_ALREADY_EXISTS, DB_IO_ERROR, DB_OUT_OF_MEMORY. */
WARN_UNUSED dberr_t backup_start(buf_pool_t *pool, os_t *target, const backup_config_t *config,
                                 err_sink_t *err, backup_t **out);

/** Copies up to n_pages pages, and the log that is durable. What fails, here or at a yield point
before, fails the whole backup: its message is backup_error(), and nothing can be done with it but
to discard it. */
WARN_UNUSED dberr_t backup_step(backup_t *backup, uint32_t n_pages);

/** The rest: all pages, files with loads again, the log to its end. On success everything is
durable, target says so, and nothing but backup_free() is left to do. No mtr may be open. */
WARN_UNUSED dberr_t backup_finish(backup_t *backup);

/** Removes what was copied, as far as that is possible; what stays is an unfinished backup. */
void backup_discard(backup_t *backup);

const err_sink_t *backup_error(const backup_t *backup);
void backup_free(
    backup_t *backup); /**< NULL is fine; the files stay; the pool has no copier any more */

#endif
