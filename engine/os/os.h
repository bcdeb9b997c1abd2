/** The only door to files: a vtable. The back end of the engine is POSIX (os_posix.c); the
simulated disk has one of its own. All paths are relative to the data directory that the back end
was opened on, and flat or one level deep ("t1.ibd", "tmp/merge0"). Reads and writes are positioned
and complete: a short transfer is an error, except that a read at or past the end of a file returns
what is there. */
#ifndef OS_OS_H
#define OS_OS_H

#include "base/err.h"
#include "base/probe.h"
#include "base/sched.h"
#include "base/stats.h"
#include "base/types.h"

typedef struct os os_t;
typedef struct os_file os_file_t;

typedef enum os_open_mode {
    OS_OPEN,        /**< the file must exist (else DB_NOT_FOUND) */
    OS_CREATE_NEW,  /**< it must not exist (else DB_ALREADY_EXISTS) */
    OS_CREATE_TRUNC /**< created, or emptied if it exists */
} os_open_mode_t;

/** Called once per directory entry, sorted by name; a non-success return ends the listing. */
typedef dberr_t (*os_list_fn)(void *ctx, const char *name);

#define OS_ROOT "." /**< the directory itself, where an operation takes one */

/** Bytes of a file where they lie in memory. */
typedef struct os_view {
    const byte *bytes; /**< valid until the next view, or change of a file */
    uint64_t version;  /**< stands for these bytes: the back end gives no others the same number */
} os_view_t;

/** Back end operations. errno is 0 or what the system said (POSIX), for the message. */
typedef struct os_vtable {
    dberr_t (*open)(os_t *os, const char *path, os_open_mode_t mode, os_file_t **out);
    dberr_t (*read)(os_file_t *file, uint64_t offset, void *buf, size_t len, size_t *n_read);
    dberr_t (*write)(os_file_t *file, uint64_t offset, const void *buf, size_t len);
    dberr_t (*sync)(os_file_t *file);
    dberr_t (*truncate)(os_file_t *file, uint64_t size_bytes); /**< grows with zeros, or cuts */
    /** Bytes inside the file become zeros, without blocks where these are whole; *done = false: the
       file system cannot. */
    dberr_t (*punch)(os_file_t *file, uint64_t offset, uint64_t len, bool *done);
    dberr_t (*size)(os_file_t *file, uint64_t *size_bytes);
    /** A range inside the file without reading it; NULL, or false: it has to be read. */
    bool (*view)(os_file_t *file, uint64_t offset, size_t len, os_view_t *out);
    void (*close)(os_file_t *file);
    dberr_t (*rename)(os_t *os, const char *from, const char *to); /**< replaces `to` */
    dberr_t (*unlink)(os_t *os, const char *path);
    /** Makes entries durable: of the directory itself (OS_ROOT), or of one in it. */
    dberr_t (*sync_dir)(os_t *os, const char *dir);
    dberr_t (*exists)(os_t *os, const char *path, bool *exists);
    /** Entries of the directory itself (OS_ROOT), or of one in it: none if there is no such one. */
    dberr_t (*list)(os_t *os, const char *dir, os_list_fn fn, void *ctx);
    dberr_t (*lock)(os_t *os); /**< exclusive; DB_DIR_LOCKED if held already */
    void (*unlock)(os_t *os);  /**< nothing if not held */
    void (*destroy)(os_t *os); /**< releases the lock and the back end */
} os_vtable_t;

/** A data directory. Fields are private to os/. */
struct os {
    const os_vtable_t *vt;
    int last_errno;
};

struct os_file {
    os_t *os;
    char path[PATH_LEN_MAX + 1]; /**< as it was opened, for messages */
    bool temporary;              /**< by env_tmp_create() */
};

/** Is this a path that the back ends accept: at most PATH_LEN_MAX bytes, none of them 0, one or two
components separated by one '/', none of them starting with '.'? Redo records of hostile images
carry paths too. */
bool os_path_is_valid(const char *path, size_t len);

/** Opens the directory dir (an existing one; created when create is true). Caller: os_destroy().
@return DB_NOT_FOUND, DB_IO_ERROR, DB_OUT_OF_MEMORY */
WARN_UNUSED dberr_t os_posix_create(const char *dir, bool create, err_sink_t *err, os_t **out);

/** A directory in a directory, as one of its own: paths have one component. It need not exist: it
is made with its first file, and its first sync_dir makes its own entry durable too. parent is
borrowed; its lock is not the folder's, whose lock counts within this os_t only. Caller:
os_destroy(). */
WARN_UNUSED dberr_t os_folder_create(os_t *parent, const char *name, os_t **out);

void os_destroy(os_t *os); /**< os may be NULL; every file must be closed */

/** What every module of one database handle shares. A failed create, write, truncate, punch,
rename, unlink or sync sets io_failed for good: every later change of a file is then refused with
DB_IO_ERROR (I23), and a failed fsync is never retried. */
typedef struct env {
    os_t *os;       /**< borrowed */
    probe_t *probe; /**< borrowed, never NULL */
    err_sink_t err;
    stats_t stats;
    sched_t sched;
    bool io_failed;
} env_t;

/** Closes the handle for changes, and keeps the present message as the cause for good (I23). */
void env_poison(env_t *env);

/** Around what follows a failure (undoing, cleaning up): the present message, if there is one,
stays. Returns what env_release() takes to end that; they nest. After a poisoning it stays for
good. */
bool env_hold(env_t *env);
void env_release(env_t *env, bool before);

/** Wrappers that apply the poison rule and set env->err; modules call these, never the vtable. */
WARN_UNUSED dberr_t env_open(env_t *env, const char *path, os_open_mode_t mode, os_file_t **out);
WARN_UNUSED dberr_t env_read(env_t *env, os_file_t *file, uint64_t offset, void *buf, size_t len,
                             size_t *n_read);
WARN_UNUSED dberr_t env_write(env_t *env, os_file_t *file, uint64_t offset, const void *buf,
                              size_t len);
WARN_UNUSED dberr_t env_sync(env_t *env, os_file_t *file);
WARN_UNUSED dberr_t env_truncate(env_t *env, os_file_t *file, uint64_t size_bytes);
/** A hole: bytes inside the file become zeros, and their blocks free. *done = false: the file
system cannot, nothing was changed. */
WARN_UNUSED dberr_t env_punch(env_t *env, os_file_t *file, uint64_t offset, uint64_t len,
                              bool *done);
WARN_UNUSED dberr_t env_size(env_t *env, os_file_t *file, uint64_t *size_bytes);
/** False: the back end has no such thing, or the range is not all in the file. */
WARN_UNUSED bool env_view(const env_t *env, os_file_t *file, uint64_t offset, size_t len,
                          os_view_t *out);
void env_close(env_t *env, os_file_t *file); /**< file may be NULL */

/** A temporary file holds nothing that must outlive the statement. Creating, reading and writing it
may fail with DB_TEMP_FILE_FAILED, which does not poison; a poisoned handle refuses it like any
other. An existing file of that name is emptied. */
WARN_UNUSED dberr_t env_tmp_create(env_t *env, const char *path, os_file_t **out);
/** Removes one that is closed. What cannot be removed now stays until the next recovery does it. */
void env_tmp_remove(env_t *env, const char *path);

WARN_UNUSED dberr_t env_rename(env_t *env, const char *from, const char *to);
WARN_UNUSED dberr_t env_unlink(env_t *env, const char *path); /**< DB_NOT_FOUND does not poison */
WARN_UNUSED dberr_t env_sync_dir(env_t *env);
WARN_UNUSED dberr_t env_exists(env_t *env, const char *path, bool *exists);
WARN_UNUSED dberr_t env_list(env_t *env, os_list_fn fn, void *ctx);
/** The exclusive lock of the data directory, on the file "engine.lock" where there are real files.
DB_DIR_LOCKED when another process or handle holds it. */
WARN_UNUSED dberr_t env_lock(env_t *env);
void env_unlock(env_t *env);

#endif
