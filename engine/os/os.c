/* env_*: the calls that every module uses for files. Above the two back ends, below page/.

1. (I23) After one failed create, write, truncate, rename, unlink or sync of a handle, every later
   change is refused; a failed fsync is never retried, since the kernel may have dropped the pages.
2. A path reaches a back end only when os_path_is_valid() accepts it.
   A temporary file is the exception: nothing durable depends on it, so its failures stay with the
   statement.
3. Every failure leaves one line in env->err; that of the failure that poisons stays. */
#include "os/os.h"

#include <string.h>

#include "base/check.h"

bool os_path_is_valid(const char *path, size_t len)
{
    if (len == 0 || len > PATH_LEN_MAX || memchr(path, '\0', len) != NULL) {
        return false;
    }
    const char *slash = memchr(path, '/', len);
    size_t head = slash == NULL ? len : (size_t)(slash - path);
    size_t tail = slash == NULL ? 0 : len - head - 1;
    if (slash != NULL && (tail == 0 || memchr(slash + 1, '/', tail) != NULL || slash[1] == '.')) {
        return false;
    }
    return head > 0 && path[0] != '.';
}

void os_destroy(os_t *os)
{
    if (os != NULL) {
        os->vt->destroy(os);
    }
}

void env_poison(env_t *env)
{
    env->io_failed = true;
    (void)env_hold(env);
}

bool env_hold(env_t *env)
{
    bool before = env->err.held;
    env->err.held = before || env->err.msg[0] != '\0';
    return before;
}

void env_release(env_t *env, bool before)
{
    env->err.held = before || (env->io_failed && env->err.held);
}

/** Turns a back end's failure into a message. */
static dberr_t env_report(env_t *env, dberr_t err, const char *what, const char *path)
{
    switch (err) {
    case DB_SUCCESS:
        return err;
    case DB_NOT_FOUND:
        return err_set(&env->err, err, "%s: no such file", path);
    case DB_ALREADY_EXISTS:
        return err_set(&env->err, err, "%s: the file exists already", path);
    case DB_OUT_OF_MEMORY:
        return err_set(&env->err, err, "%s: %s: out of memory", path, what);
    default:
        return err_set(&env->err, err, "%s: %s failed: %s", path, what,
                       env->os->last_errno != 0 ? strerrordesc_np(env->os->last_errno)
                                                : "short transfer");
    }
}

/** The same for an operation that changes something: poisons the handle (I23). */
static dberr_t env_report_change(env_t *env, dberr_t err, const char *what, const char *path)
{
    err = env_report(env, err, what, path);
    if (err != DB_SUCCESS) {
        env_poison(env);
    }
    return err;
}

/** The same for a temporary file: the statement fails, the handle goes on. */
static dberr_t env_report_tmp(env_t *env, dberr_t err, const char *what, const char *path)
{
    err = env_report(env, err, what, path);
    return err == DB_SUCCESS || err == DB_OUT_OF_MEMORY ? err : DB_TEMP_FILE_FAILED;
}

static dberr_t env_check_poison(env_t *env, const char *what, const char *path)
{
    if (!env->io_failed) {
        return DB_SUCCESS;
    }
    return err_set(&env->err, DB_IO_ERROR, "%s: %s refused after an earlier I/O failure", path,
                   what);
}

static dberr_t env_check_path(env_t *env, const char *path)
{
    if (os_path_is_valid(path, strnlen(path, PATH_LEN_MAX + 1))) {
        return DB_SUCCESS;
    }
    return err_set(&env->err, DB_CORRUPTION, "'%.*s' is not a path inside the data directory",
                   (int)PATH_LEN_MAX, path);
}

dberr_t env_open(env_t *env, const char *path, os_open_mode_t mode, os_file_t **out)
{
    bool change = mode != OS_OPEN;
    TRY(env_check_path(env, path));
    if (change) {
        TRY(env_check_poison(env, "create", path));
    }
    os_file_t *file = NULL;
    dberr_t err = env->os->vt->open(env->os, path, mode, &file);
    if (err != DB_SUCCESS) {
        return change && err != DB_ALREADY_EXISTS ? env_report_change(env, err, "create", path)
                                                  : env_report(env, err, "open", path);
    }
    memcpy(file->path, path, strlen(path) + 1);
    *out = file;
    return DB_SUCCESS;
}

dberr_t env_tmp_create(env_t *env, const char *path, os_file_t **out)
{
    TRY(env_check_path(env, path));
    TRY(env_check_poison(env, "create", path));
    os_file_t *file = NULL;
    TRY(env_report_tmp(env, env->os->vt->open(env->os, path, OS_CREATE_TRUNC, &file), "create",
                       path));
    memcpy(file->path, path, strlen(path) + 1);
    file->temporary = true;
    *out = file;
    return DB_SUCCESS;
}

void env_tmp_remove(env_t *env, const char *path)
{
    if (!env->io_failed && os_path_is_valid(path, strnlen(path, PATH_LEN_MAX + 1))) {
        (void)env->os->vt->unlink(env->os, path);
    }
}

dberr_t env_read(env_t *env, os_file_t *file, uint64_t offset, void *buf, size_t len,
                 size_t *n_read)
{
    dberr_t err = env->os->vt->read(file, offset, buf, len, n_read);
    return file->temporary ? env_report_tmp(env, err, "read", file->path)
                           : env_report(env, err, "read", file->path);
}

bool env_view(const env_t *env, os_file_t *file, uint64_t offset, size_t len, os_view_t *out)
{
    return env->os->vt->view != NULL && env->os->vt->view(file, offset, len, out);
}

dberr_t env_write(env_t *env, os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    TRY(env_check_poison(env, "write", file->path));
    dberr_t err = env->os->vt->write(file, offset, buf, len);
    return file->temporary ? env_report_tmp(env, err, "write", file->path)
                           : env_report_change(env, err, "write", file->path);
}

dberr_t env_sync(env_t *env, os_file_t *file)
{
    TRY(env_check_poison(env, "fsync", file->path));
    dberr_t err = env->os->vt->sync(file);
    return env_report_change(env, err, "fsync", file->path);
}

dberr_t env_truncate(env_t *env, os_file_t *file, uint64_t size_bytes)
{
    TRY(env_check_poison(env, "truncate", file->path));
    return env_report_change(env, env->os->vt->truncate(file, size_bytes), "truncate", file->path);
}

dberr_t env_punch(env_t *env, os_file_t *file, uint64_t offset, uint64_t len, bool *done)
{
    TRY(env_check_poison(env, "punch", file->path));
    return env_report_change(env, env->os->vt->punch(file, offset, len, done), "punch", file->path);
}

dberr_t env_size(env_t *env, os_file_t *file, uint64_t *size_bytes)
{
    return env_report(env, env->os->vt->size(file, size_bytes), "size", file->path);
}

void env_close(env_t *env, os_file_t *file)
{
    if (file != NULL) {
        CHECK(file->os == env->os);
        env->os->vt->close(file);
    }
}

dberr_t env_rename(env_t *env, const char *from, const char *to)
{
    TRY(env_check_path(env, from));
    TRY(env_check_path(env, to));
    TRY(env_check_poison(env, "rename", from));
    return env_report_change(env, env->os->vt->rename(env->os, from, to), "rename", from);
}

dberr_t env_unlink(env_t *env, const char *path)
{
    TRY(env_check_path(env, path));
    TRY(env_check_poison(env, "unlink", path));
    dberr_t err = env->os->vt->unlink(env->os, path);
    return err == DB_NOT_FOUND ? env_report(env, err, "unlink", path)
                               : env_report_change(env, err, "unlink", path);
}

dberr_t env_sync_dir(env_t *env)
{
    TRY(env_check_poison(env, "fsync", "data directory"));
    return env_report_change(env, env->os->vt->sync_dir(env->os, OS_ROOT), "fsync",
                             "data directory");
}

dberr_t env_exists(env_t *env, const char *path, bool *exists)
{
    TRY(env_check_path(env, path));
    return env_report(env, env->os->vt->exists(env->os, path, exists), "stat", path);
}

typedef struct list_call {
    os_list_fn fn;
    void *ctx;
    bool failed; /* it was fn that ended the listing: its message stays */
} list_call_t;

static dberr_t list_entry(void *ctx, const char *name)
{
    list_call_t *call = ctx;
    dberr_t err = call->fn(call->ctx, name);
    call->failed = err != DB_SUCCESS;
    return err;
}

dberr_t env_list(env_t *env, os_list_fn fn, void *ctx)
{
    list_call_t call = {fn, ctx, false};
    dberr_t err = env->os->vt->list(env->os, OS_ROOT, list_entry, &call);
    return call.failed ? err : env_report(env, err, "list", "data directory");
}

dberr_t env_lock(env_t *env)
{
    dberr_t err = env->os->vt->lock(env->os);
    if (err == DB_DIR_LOCKED) {
        return err_set(&env->err, err, "the data directory is in use by another process or handle");
    }
    return env_report(env, err, "lock", "engine.lock");
}

void env_unlock(env_t *env)
{
    env->os->vt->unlock(env->os);
}
