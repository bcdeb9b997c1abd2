/** File operations: create, open, delete, rename, extend, shrink.

Place: beside fil.c, same registry. Each operation that a crash can split is told to the log first.

Invariants
1. (I24) the log record is durable before the operation, the directory is synced after it;
2. what can be refused (name taken, id taken) is refused before the record is written; once the
   record is durable, a failed operation poisons the handle, because log and directory differ then;
3. (I20) whoever asks for an operation has asked for room in the log first, as for an mtr: fil,
   which is below the page cleaner, can only insist on it;
4. an extension is not logged here: fsp/ logs FSP_SIZE, and recovery extends the file to it. Nor is
   a truncation: its caller has logged it together with the new contents. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "fil/fil_int.h"

/** Appends the record of a file operation and makes it durable. CHECK: there was room (invariant
3). */
static dberr_t fil_op_log(fil_t *fil, redo_op_t op, space_id_t id, const char *path,
                          const char *path2, lsn_t *end_lsn)
{
    if (fil->env->io_failed) {
        return err_set(&fil->env->err, DB_IO_ERROR, "%s: refused after an earlier failure", path);
    }
    redo_rec_t rec = {.op = op, .space = id, .path = path, .path_len = (uint32_t)strlen(path)};
    if (path2 != NULL) {
        rec.path2 = path2;
        rec.path2_len = (uint32_t)strlen(path2);
    }
    CHECK(log_is_reserved(fil->log, LOG_REC_OVERHEAD_MAX + rec.path_len + rec.path2_len));
    log_append_rec(fil->log, &rec, end_lsn);
    return log_write_up_to(fil->log, *end_lsn, true);
}

/** The logged operation did not happen: nothing may be written on top of that (invariant 2). */
static dberr_t fil_op_failed(fil_t *fil, dberr_t err)
{
    env_poison(fil->env);
    return err;
}

static dberr_t fil_check_new(fil_t *fil, space_id_t id, const char *path)
{
    CHECK(strlen(path) <= PATH_LEN_MAX);
    if (fil_space_get(fil, id) != NULL) {
        return err_set(&fil->env->err, DB_ALREADY_EXISTS,
                       "%s: space id %" PRIu32 " is already in use", path, id);
    }
    if (fil_space_by_path(fil, path) != NULL) {
        return err_set(&fil->env->err, DB_ALREADY_EXISTS, "%s is already open", path);
    }
    return DB_SUCCESS;
}

static dberr_t fil_check_absent(fil_t *fil, const char *path)
{
    bool exists = false;
    TRY(env_exists(fil->env, path, &exists));
    if (exists) {
        return err_set(&fil->env->err, DB_ALREADY_EXISTS, "a file %s exists already", path);
    }
    return DB_SUCCESS;
}

/** Creates the file with size_pages zero pages; *out is open on success. */
static dberr_t fil_file_create(fil_t *fil, const char *path, uint32_t size_pages, os_file_t **out)
{
    env_t *env = fil->env;
    TRY(fil_make_room(fil));
    os_file_t *file = NULL;
    TRY(env_open(env, path, OS_CREATE_NEW, &file));
    PROBE_POINT(env->probe, "fil.create.created");
    dberr_t err = env_truncate(env, file, (uint64_t)size_pages * fil->page_size);
    AND_THEN(err, env_sync(env, file));
    if (err == DB_SUCCESS) {
        env->stats.data_fsyncs++;
        PROBE_POINT(env->probe, "fil.create.synced");
        err = env_sync_dir(env);
    }
    if (err != DB_SUCCESS) {
        env_close(env, file);
        return err;
    }
    *out = file;
    return DB_SUCCESS;
}

dberr_t fil_space_create(fil_t *fil, space_id_t id, const char *path, uint32_t size_pages,
                         fil_space_t **out)
{
    CHECK(size_pages > 0 && size_pages <= FIL_PAGES_MAX);
    TRY(fil_check_new(fil, id, path));
    TRY(fil_check_absent(fil, path));
    lsn_t lsn = 0;
    TRY(fil_op_log(fil, OP_FILE_CREATE, id, path, NULL, &lsn));
    PROBE_POINT(fil->env->probe, "fil.create.logged");
    PROBE_MARK(fil->env->probe, "file_op op=create path=%s lsn=%" PRIu64, path, lsn);
    os_file_t *file = NULL;
    dberr_t err = fil_file_create(fil, path, size_pages, &file);
    if (err != DB_SUCCESS) {
        return fil_op_failed(fil, err);
    }
    PROBE_MARK(fil->env->probe, "file_op_done op=create path=%s", path);
    fil_space_t *space = NULL;
    err = fil_space_register(fil, id, path, file, size_pages, &space);
    if (err != DB_SUCCESS) {
        env_close(fil->env, file);
        return fil_op_failed(fil, err);
    }
    space->max_lsn = lsn;
    *out = space;
    return DB_SUCCESS;
}

dberr_t fil_space_open(fil_t *fil, space_id_t id, const char *path, uint32_t size_pages,
                       fil_space_t **out)
{
    TRY(fil_check_new(fil, id, path));
    TRY(fil_make_room(fil));
    os_file_t *file = NULL;
    TRY(env_open(fil->env, path, OS_OPEN, &file));
    dberr_t err = DB_SUCCESS;
    if (size_pages == 0) {
        uint64_t size_bytes = 0;
        err = env_size(fil->env, file, &size_bytes);
        uint64_t pages = size_bytes / fil->page_size;
        size_pages = pages < FIL_PAGES_MAX ? (uint32_t)pages : FIL_PAGES_MAX;
    }
    if (err == DB_SUCCESS && size_pages > FIL_PAGES_MAX) {
        err = err_set(&fil->env->err, DB_CORRUPTION, "%s: impossible size of %" PRIu32 " pages",
                      path, size_pages);
    }
    AND_THEN(err, fil_space_register(fil, id, path, file, size_pages, out));
    if (err != DB_SUCCESS) {
        env_close(fil->env, file);
    }
    return err;
}

dberr_t fil_space_recreate(fil_t *fil, space_id_t id, const char *path, fil_space_t **out)
{
    TRY(fil_check_new(fil, id, path));
    bool exists = false;
    TRY(env_exists(fil->env, path, &exists));
    if (exists) {
        return fil_space_open(fil, id, path, 0, out);
    }
    os_file_t *file = NULL;
    TRY(fil_file_create(fil, path, 0, &file));
    dberr_t err = fil_space_register(fil, id, path, file, 0, out);
    if (err != DB_SUCCESS) {
        env_close(fil->env, file);
    }
    return err;
}

dberr_t fil_space_delete(fil_t *fil, fil_space_t *space)
{
    env_t *env = fil->env;
    CHECK(space->flush_list == NULL && space->n_syncing == 0);
    lsn_t lsn = 0;
    TRY(fil_op_log(fil, OP_FILE_DELETE, space->id, space->path, NULL, &lsn));
    PROBE_POINT(env->probe, "fil.delete.logged");
    PROBE_MARK(env->probe, "file_op op=delete path=%s lsn=%" PRIu64, space->path, lsn);
    dberr_t err = env_unlink(env, space->path);
    if (err == DB_NOT_FOUND) {
        err = DB_SUCCESS; /* gone already: the wanted state */
    }
    if (err == DB_SUCCESS) {
        PROBE_POINT(env->probe, "fil.delete.unlinked");
        err = env_sync_dir(env);
    }
    if (err != DB_SUCCESS) {
        return fil_op_failed(fil, err);
    }
    PROBE_MARK(env->probe, "file_op_done op=delete path=%s", space->path);
    fil_space_forget(fil, space);
    return DB_SUCCESS;
}

dberr_t fil_space_rename(fil_t *fil, fil_space_t *space, const char *new_path)
{
    env_t *env = fil->env;
    CHECK(strlen(new_path) <= PATH_LEN_MAX);
    TRY(fil_check_absent(fil, new_path));
    lsn_t lsn = 0;
    TRY(fil_op_log(fil, OP_FILE_RENAME, space->id, space->path, new_path, &lsn));
    PROBE_POINT(env->probe, "fil.rename.logged");
    PROBE_MARK(env->probe, "file_op op=rename path=%s lsn=%" PRIu64 " to=%s", space->path, lsn,
               new_path);
    dberr_t err = env_rename(env, space->path, new_path);
    if (err == DB_SUCCESS) {
        PROBE_POINT(env->probe, "fil.rename.renamed");
        err = env_sync_dir(env);
    }
    if (err != DB_SUCCESS) {
        return fil_op_failed(fil, err);
    }
    PROBE_MARK(env->probe, "file_op_done op=rename path=%s", space->path);
    fil_space_set_path(fil, space, new_path);
    space->named = false; /* the name in the log since the checkpoint is the old one */
    space->max_lsn = lsn;
    return DB_SUCCESS;
}

dberr_t fil_space_length(fil_t *fil, fil_space_t *space, uint64_t *size_bytes)
{
    os_file_t *file = NULL;
    TRY(fil_space_file(fil, space, &file));
    return env_size(fil->env, file, size_bytes);
}

dberr_t fil_space_extend(fil_t *fil, fil_space_t *space, uint32_t size_pages)
{
    env_t *env = fil->env;
    if (size_pages > FIL_PAGES_MAX) {
        return err_set(&env->err, DB_OUT_OF_SPACE, "%s cannot grow to %" PRIu32 " pages",
                       space->path, size_pages);
    }
    os_file_t *file = NULL;
    TRY(fil_space_file(fil, space, &file));
    uint64_t now_bytes = 0;
    TRY(env_size(env, file, &now_bytes));
    uint64_t want_bytes = (uint64_t)size_pages * fil->page_size;
    if (now_bytes < want_bytes) {
        PROBE_MARK(env->probe, "extend space=%" PRIu32 " pages=%" PRIu32, space->id, size_pages);
        fil_mark_unsynced(space);
        TRY(env_truncate(env, file, want_bytes));
        PROBE_POINT(env->probe, "fil.extend");
        TRY(fil_sync(fil, space));
    }
    if (space->size_pages < size_pages) {
        space->size_pages = size_pages;
    }
    return DB_SUCCESS;
}

dberr_t fil_space_shrink(fil_t *fil, fil_space_t *space, uint32_t size_pages)
{
    env_t *env = fil->env;
    uint64_t want_bytes = (uint64_t)size_pages * fil->page_size;
    space->size_pages = size_pages;
    os_file_t *file = NULL;
    dberr_t err = fil_space_file(fil, space, &file);
    uint64_t now_bytes = 0;
    AND_THEN(err, env_size(env, file, &now_bytes));
    if (err == DB_SUCCESS && now_bytes > want_bytes) {
        PROBE_MARK(env->probe, "file_trim path=%s pages=%" PRIu32, space->path, size_pages);
        fil_mark_unsynced(space);
        err = env_truncate(env, file, want_bytes);
        if (err == DB_SUCCESS) {
            PROBE_POINT(env->probe, "fil.shrink");
            err = fil_sync(fil, space);
        }
    }
    return err == DB_SUCCESS ? err : fil_op_failed(fil, err);
}
