/** Status values. What can fail returns a dberr_t; the text for a person goes into an
err_sink_t. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>

#include "base/types.h"

typedef enum dberr {
    DB_SUCCESS = 0,
    DB_ERROR,            /**< bad argument of a user: usage, unknown name, value too long */
    DB_DUPLICATE_KEY,    /**< the primary key exists */
    DB_RECORD_NOT_FOUND, /**< no live row with this primary key */
    DB_LOCK_CONFLICT,    /**< the row was changed by another open transaction */
    DB_NOT_FOUND,        /**< no such table, index, file or transaction */
    DB_ALREADY_EXISTS,   /**< a table, index, file or transaction of this name exists */
    DB_TABLE_LOCKED,     /**< DDL on a table that an open transaction has changed, or the reverse */
    DB_OUT_OF_SPACE,     /**< no free page, buffer frame or undo slot */
    DB_TEMP_FILE_FAILED, /**< no room in a temporary file, or it failed; nothing else is touched */
    DB_OUT_OF_MEMORY,
    DB_IO_ERROR,           /**< a file operation failed; the handle is poisoned (I23) */
    DB_CORRUPTION,         /**< bytes on disk break a format rule */
    DB_UNRECOVERABLE,      /**< recovery refuses this image (I30); the message names the cause */
    DB_NEEDS_RECOVERY,     /**< the log holds changes that the data files lack */
    DB_DIR_LOCKED,         /**< another process or handle has this data directory open */
    DB_INTERRUPTED,        /**< stopped on request between two steps */
    DB_UNSUPPORTED,        /**< known, but not built */
    DB_ONLINE_LOG_TOO_BIG, /**< rows changed too much during a build with LOCK=NONE */
    DB_BACKUP_ABORTED,     /**< a hot backup was given up; nothing else is touched */
    DB_PAUSED              /**< a defragmentation rests where it is: it is switched off */
} dberr_t;

/** Why a database is refused: what judges and scripts go by instead of the message. The names
(refusal_name) are part of the interface: RECOVERY.md, "Refusals". */
typedef enum refusal {
    REFUSAL_NONE = 0,          /**< no refusal of an image: usage, locked, not a database, ... */
    REFUSAL_TORN_PAGE,         /**< a page is damaged, and there is no copy to restore */
    REFUSAL_PAGE_BEYOND_LOG,   /**< a page's LSN is beyond the end of the log */
    REFUSAL_PAGE_FREED,        /**< a page was changed or is used although it was freed */
    REFUSAL_MARKER_MISSING,    /**< the log ends before the marker of the newest checkpoint */
    REFUSAL_LOG_DAMAGED,       /**< header, slots, length or blocks of the redo file */
    REFUSAL_LOG_MISSING,       /**< data files without a redo file */
    REFUSAL_PAGE_DIFFERS,      /**< redo made another page than the one that was logged */
    REFUSAL_BAD_RECORD,        /**< a redo record says what no engine writes, or fits no page */
    REFUSAL_FILE_MISSING,      /**< a data file that must be there is not */
    REFUSAL_FILE_SHORT,        /**< a data file is shorter than its committed size */
    REFUSAL_FILE_CONFLICT,     /**< files, names and space ids contradict each other */
    REFUSAL_CORRUPTION,        /**< other bytes on disk break a format rule */
    REFUSAL_UNSUPPORTED,       /**< an unknown format */
    REFUSAL_BACKUP_UNFINISHED, /**< a backup that was not finished */
    REFUSAL_BACKUP_UNPREPARED, /**< a backup that has to be prepared first */
    REFUSAL_OUT_OF_SPACE,      /**< no room in log, pool or files */
    REFUSAL_IO_ERROR,          /**< a file operation failed */
    REFUSAL_OUT_OF_MEMORY
} refusal_t;

#define WARN_UNUSED __attribute__((warn_unused_result))

/** The one way in which a failure is passed on (docs/adr/0011): returns what call returned, unless
that is DB_SUCCESS. For functions that hold nothing which must be released. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const dberr_t try_err = (call);                                                            \
        if (try_err != DB_SUCCESS) {                                                               \
            return try_err;                                                                        \
        }                                                                                          \
    } while (0)

/** Where something is released behind the last step: err = call, unless an earlier step has
failed. */
#define AND_THEN(err, call)                                                                        \
    do {                                                                                           \
        if ((err) == DB_SUCCESS) {                                                                 \
            (err) = (call);                                                                        \
        }                                                                                          \
    } while (0)

/** The message of a database handle, one line of UTF-8 without a final newline. Starts zeroed. */
typedef struct err_sink {
    char msg[512];
    refusal_t refusal; /**< of the failure that msg tells of */
    bool held;         /**< the message stays, whatever fails from now on */
    /** notes who fails, where call stacks are recorded; borrowed; NULL: nobody asks */
    struct probe *probe;
} err_sink_t;

/** "torn-page", "io-error", ...; "" for REFUSAL_NONE. Never NULL. */
const char *refusal_name(refusal_t refusal);

/** The field's name of a status, as "DB_CORRUPTION". Never NULL. */
const char *err_name(dberr_t err);

/** Formats a message into sink (which may be NULL) and returns err, so that callers can write
`return err_set(sink, DB_CORRUPTION, "page %u: ...", n);`. The innermost message wins: callers pass
an error on without a second err_set unless they have more to tell. A held message is not
replaced. */
__attribute__((format(printf, 3, 4))) dberr_t err_set(err_sink_t *sink, dberr_t err,
                                                      const char *format, ...);

/** The same with a refusal of its own; err_set() takes the one that its status stands for. */
__attribute__((format(printf, 4, 5))) dberr_t
err_refuse(err_sink_t *sink, dberr_t err, refusal_t refusal, const char *format, ...);

/** Copies the message of a handle that goes away; it is not held there. to may be NULL. */
void err_copy(err_sink_t *to, const err_sink_t *from);

#endif
