/* A directory in a directory: every back end is one for its folders, too.

Place: above the back ends, whose vtable it calls with longer paths.

1. A path has one component here and two there, so none leads out of the folder.
2. A file of the folder is one of its parent's under the longer path, which is the one that the
   parent knows. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "os/os.h"

typedef struct folder_os {
    os_t base;
    os_t *parent;
    char name[PATH_LEN_MAX + 1];
    bool entry_synced; /* its own entry in the parent */
    bool locked;
} folder_os_t;

typedef struct folder_file {
    os_file_t base;
    os_file_t *inner;
} folder_file_t;

static folder_os_t *folder_of(os_t *os)
{
    return (folder_os_t *)os;
}

static os_file_t *inner_of(os_file_t *file)
{
    return ((folder_file_t *)file)->inner;
}

/** What the parent's call has come to. */
static dberr_t folder_done(os_t *os, dberr_t err)
{
    os->last_errno = folder_of(os)->parent->last_errno;
    return err;
}

/** DB_IO_ERROR: the path is too long. */
static dberr_t folder_path(os_t *os, const char *path, char out[PATH_LEN_MAX + 1])
{
    const char *name = folder_of(os)->name;
    size_t head = strlen(name);
    size_t tail = strlen(path);
    os->last_errno = 0;
    if (head + 1 + tail > PATH_LEN_MAX || strchr(path, '/') != NULL) {
        return DB_IO_ERROR;
    }
    memcpy(out, name, head);
    out[head] = '/';
    memcpy(out + head + 1, path, tail + 1);
    return DB_SUCCESS;
}

static dberr_t folder_open(os_t *os, const char *path, os_open_mode_t mode, os_file_t **out)
{
    os_t *parent = folder_of(os)->parent;
    char full[PATH_LEN_MAX + 1];
    dberr_t err = folder_path(os, path, full);
    folder_file_t *file = err == DB_SUCCESS ? calloc(1, sizeof(*file)) : NULL;
    if (file == NULL) {
        TRY(err);
        return DB_OUT_OF_MEMORY;
    }
    err = folder_done(os, parent->vt->open(parent, full, mode, &file->inner));
    if (err != DB_SUCCESS) {
        free(file);
        return err;
    }
    memcpy(file->inner->path, full, strlen(full) + 1);
    file->base.os = os;
    *out = &file->base;
    return DB_SUCCESS;
}

static dberr_t folder_read(os_file_t *file, uint64_t offset, void *buf, size_t len, size_t *n_read)
{
    os_file_t *inner = inner_of(file);
    return folder_done(file->os, inner->os->vt->read(inner, offset, buf, len, n_read));
}

static bool folder_view(os_file_t *file, uint64_t offset, size_t len, os_view_t *out)
{
    os_file_t *inner = inner_of(file);
    return inner->os->vt->view != NULL && inner->os->vt->view(inner, offset, len, out);
}

static dberr_t folder_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    os_file_t *inner = inner_of(file);
    return folder_done(file->os, inner->os->vt->write(inner, offset, buf, len));
}

static dberr_t folder_sync(os_file_t *file)
{
    os_file_t *inner = inner_of(file);
    return folder_done(file->os, inner->os->vt->sync(inner));
}

static dberr_t folder_truncate(os_file_t *file, uint64_t size_bytes)
{
    os_file_t *inner = inner_of(file);
    return folder_done(file->os, inner->os->vt->truncate(inner, size_bytes));
}

static dberr_t folder_punch(os_file_t *file, uint64_t offset, uint64_t len, bool *done)
{
    os_file_t *inner = inner_of(file);
    return folder_done(file->os, inner->os->vt->punch(inner, offset, len, done));
}

static dberr_t folder_size(os_file_t *file, uint64_t *size_bytes)
{
    os_file_t *inner = inner_of(file);
    return folder_done(file->os, inner->os->vt->size(inner, size_bytes));
}

static void folder_close(os_file_t *file)
{
    inner_of(file)->os->vt->close(inner_of(file));
    free(file);
}

static dberr_t folder_rename(os_t *os, const char *from, const char *to)
{
    os_t *parent = folder_of(os)->parent;
    char full_from[PATH_LEN_MAX + 1];
    TRY(folder_path(os, from, full_from));
    char full_to[PATH_LEN_MAX + 1];
    TRY(folder_path(os, to, full_to));
    return folder_done(os, parent->vt->rename(parent, full_from, full_to));
}

static dberr_t folder_unlink(os_t *os, const char *path)
{
    os_t *parent = folder_of(os)->parent;
    char full[PATH_LEN_MAX + 1];
    TRY(folder_path(os, path, full));
    return folder_done(os, parent->vt->unlink(parent, full));
}

static dberr_t folder_sync_dir(os_t *os, const char *dir)
{
    folder_os_t *folder = folder_of(os);
    os_t *parent = folder->parent;
    CHECK(strcmp(dir, OS_ROOT) == 0);
    dberr_t err = folder_done(os, parent->vt->sync_dir(parent, folder->name));
    if (err == DB_SUCCESS && !folder->entry_synced) {
        err = folder_done(os, parent->vt->sync_dir(parent, OS_ROOT));
        folder->entry_synced = err == DB_SUCCESS;
    }
    return err;
}

static dberr_t folder_exists(os_t *os, const char *path, bool *exists)
{
    os_t *parent = folder_of(os)->parent;
    char full[PATH_LEN_MAX + 1];
    TRY(folder_path(os, path, full));
    return folder_done(os, parent->vt->exists(parent, full, exists));
}

static dberr_t folder_list(os_t *os, const char *dir, os_list_fn fn, void *ctx)
{
    os_t *parent = folder_of(os)->parent;
    CHECK(strcmp(dir, OS_ROOT) == 0);
    return folder_done(os, parent->vt->list(parent, folder_of(os)->name, fn, ctx));
}

static dberr_t folder_lock(os_t *os)
{
    if (folder_of(os)->locked) {
        return DB_DIR_LOCKED;
    }
    folder_of(os)->locked = true;
    return DB_SUCCESS;
}

static void folder_unlock(os_t *os)
{
    folder_of(os)->locked = false;
}

static void folder_destroy(os_t *os)
{
    free(os);
}

static const os_vtable_t FOLDER_VTABLE = {
    .open = folder_open,
    .read = folder_read,
    .view = folder_view,
    .write = folder_write,
    .sync = folder_sync,
    .truncate = folder_truncate,
    .punch = folder_punch,
    .size = folder_size,
    .close = folder_close,
    .rename = folder_rename,
    .unlink = folder_unlink,
    .sync_dir = folder_sync_dir,
    .exists = folder_exists,
    .list = folder_list,
    .lock = folder_lock,
    .unlock = folder_unlock,
    .destroy = folder_destroy,
};

dberr_t os_folder_create(os_t *parent, const char *name, os_t **out)
{
    size_t len = strlen(name);
    folder_os_t *folder = calloc(1, sizeof(*folder));
    CHECK(os_path_is_valid(name, len) && strchr(name, '/') == NULL);
    if (folder == NULL) {
        return DB_OUT_OF_MEMORY;
    }
    folder->base.vt = &FOLDER_VTABLE;
    folder->parent = parent;
    memcpy(folder->name, name, len + 1);
    *out = &folder->base;
    return DB_SUCCESS;
}
