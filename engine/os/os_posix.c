/* The POSIX back end: a data directory is a directory descriptor, files are opened relative to it.

1. One write() of the vtable is one pwrite, unless the system interrupts or cuts it: the preload
   that tears writes sees a page, or a run of log blocks, whole.
2. Every transfer is complete or failed; only a read may end early, at the end of the file.
3. No path is resolved outside the directory (os_path_is_valid() was applied above).
4. The lock is an flock on "engine.lock": it ends with the process, however that ends. */
#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

#define LOCK_FILE "engine.lock"

typedef struct posix_os {
    os_t base;
    int dir_fd;
    int lock_fd; /* -1: not held */
    uint32_t n_open;
} posix_os_t;

typedef struct posix_file {
    os_file_t base;
    int fd;
    bool read_only; /* the system allows no more */
} posix_file_t;

static posix_os_t *posix_os(os_t *os)
{
    return (posix_os_t *)os;
}

static posix_file_t *posix_file(os_file_t *file)
{
    return (posix_file_t *)file;
}

/** Keeps errno for the message and maps it to a status. */
static dberr_t posix_fail(os_t *os)
{
    os->last_errno = errno;
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
        return DB_NOT_FOUND;
    case EEXIST:
        return DB_ALREADY_EXISTS;
    case ENOMEM:
        return DB_OUT_OF_MEMORY;
    default:
        return DB_IO_ERROR;
    }
}

/** Makes the directory of a two-component path if need be. */
static dberr_t posix_make_parent(os_t *os, const char *path)
{
    const char *slash = strchr(path, '/');
    if (slash == NULL) {
        return DB_SUCCESS;
    }
    char dir[PATH_LEN_MAX + 1];
    memcpy(dir, path, (size_t)(slash - path));
    dir[slash - path] = '\0';
    if (mkdirat(posix_os(os)->dir_fd, dir, 0777) != 0 && errno != EEXIST) {
        return posix_fail(os);
    }
    return DB_SUCCESS;
}

/** For reading and writing, or for reading only where no more is allowed: tools look at directories
that they may not change. (O_NONBLOCK: a FIFO must not make them wait.) */
static int posix_openat(int dir_fd, const char *path, int flags, bool *read_only)
{
    int fd;
    do {
        fd = openat(dir_fd, path, flags | O_RDWR | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EINTR);
    *read_only = fd < 0 && (errno == EACCES || errno == EROFS) && (flags & (O_EXCL | O_TRUNC)) == 0;
    if (*read_only) {
        int cause = errno;
        fd = openat(dir_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        errno = fd < 0 ? cause : errno;
    }
    return fd;
}

static dberr_t posix_open(os_t *os, const char *path, os_open_mode_t mode, os_file_t **out)
{
    int flags = 0;
    struct stat st;
    posix_file_t *file;
    dberr_t err;
    if (mode != OS_OPEN) {
        flags |= mode == OS_CREATE_NEW ? O_CREAT | O_EXCL : O_CREAT | O_TRUNC;
        TRY(posix_make_parent(os, path));
    }
    file = calloc(1, sizeof(*file));
    if (file == NULL) {
        return DB_OUT_OF_MEMORY;
    }
    file->fd = posix_openat(posix_os(os)->dir_fd, path, flags, &file->read_only);
    if (file->fd < 0 || fstat(file->fd, &st) != 0) {
        err = posix_fail(os);
        goto fail;
    }
    if (!S_ISREG(st.st_mode)) {
        os->last_errno = EINVAL;
        err = DB_IO_ERROR;
        goto fail;
    }
    file->base.os = os;
    posix_os(os)->n_open++;
    *out = &file->base;
    return DB_SUCCESS;
fail:
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    free(file);
    return err;
}

static bool range_is_valid(os_t *os, uint64_t offset, size_t len)
{
    if (len > INT64_MAX || offset > (uint64_t)INT64_MAX - len) {
        os->last_errno = EFBIG;
        return false;
    }
    return true;
}

static dberr_t posix_read(os_file_t *file, uint64_t offset, void *buf, size_t len, size_t *n_read)
{
    if (!range_is_valid(file->os, offset, len)) {
        return DB_IO_ERROR;
    }
    size_t done = 0;
    while (done < len) {
        ssize_t n =
            pread(posix_file(file)->fd, (byte *)buf + done, len - done, (off_t)(offset + done));

        if (n == 0) {
            break;
        }
        if (n > 0) {
            done += (size_t)n;
        } else if (errno != EINTR) {
            (void)posix_fail(file->os);
            return DB_IO_ERROR;
        }
    }
    *n_read = done;
    return DB_SUCCESS;
}

/** May the file be changed up to this offset? */
static bool change_is_valid(os_file_t *file, uint64_t offset, size_t len)
{
    if (posix_file(file)->read_only) {
        file->os->last_errno = EACCES;
        return false;
    }
    return range_is_valid(file->os, offset, len);
}

static dberr_t posix_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    if (!change_is_valid(file, offset, len)) {
        return DB_IO_ERROR;
    }
    size_t done = 0;
    while (done < len) {
        ssize_t n = pwrite(posix_file(file)->fd, (const byte *)buf + done, len - done,
                           (off_t)(offset + done));

        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0) {
            file->os->last_errno = 0;
            return DB_IO_ERROR;
        } else if (errno != EINTR) {
            (void)posix_fail(file->os);
            return DB_IO_ERROR;
        }
    }
    return DB_SUCCESS;
}

static dberr_t posix_sync(os_file_t *file)
{
    if (fsync(posix_file(file)->fd) != 0) {
        (void)posix_fail(file->os);
        return DB_IO_ERROR;
    }
    return DB_SUCCESS;
}

static dberr_t posix_truncate(os_file_t *file, uint64_t size_bytes)
{
    if (!change_is_valid(file, size_bytes, 0)) {
        return DB_IO_ERROR;
    }
    int rc;
    do {
        rc = ftruncate(posix_file(file)->fd, (off_t)size_bytes);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) {
        (void)posix_fail(file->os);
        return DB_IO_ERROR;
    }
    return DB_SUCCESS;
}

static dberr_t posix_punch(os_file_t *file, uint64_t offset, uint64_t len, bool *done)
{
    if (!change_is_valid(file, offset, len)) {
        return DB_IO_ERROR;
    }
    int rc;
    do {
        rc = fallocate(posix_file(file)->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       (off_t)offset, (off_t)len);
    } while (rc != 0 && errno == EINTR);
    *done = rc == 0;
    if (rc != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
        (void)posix_fail(file->os);
        return DB_IO_ERROR;
    }
    return DB_SUCCESS;
}

static dberr_t posix_size(os_file_t *file, uint64_t *size_bytes)
{
    struct stat st;
    if (fstat(posix_file(file)->fd, &st) != 0) {
        (void)posix_fail(file->os);
        return DB_IO_ERROR;
    }
    *size_bytes = (uint64_t)st.st_size;
    return DB_SUCCESS;
}

static void posix_close(os_file_t *file)
{
    posix_os(file->os)->n_open--;
    (void)close(posix_file(file)->fd);
    free(file);
}

static dberr_t posix_rename(os_t *os, const char *from, const char *to)
{
    TRY(posix_make_parent(os, to));
    if (renameat(posix_os(os)->dir_fd, from, posix_os(os)->dir_fd, to) != 0) {
        return posix_fail(os);
    }
    return DB_SUCCESS;
}

static dberr_t posix_unlink(os_t *os, const char *path)
{
    const char *slash = strchr(path, '/');
    if (unlinkat(posix_os(os)->dir_fd, path, 0) != 0) {
        return posix_fail(os);
    }
    if (slash != NULL) {
        char dir[PATH_LEN_MAX + 1];

        /* A directory exists as long as a file in it, as on the simulated disk: it fails while
        others are left. */
        memcpy(dir, path, (size_t)(slash - path));
        dir[slash - path] = '\0';
        (void)unlinkat(posix_os(os)->dir_fd, dir, AT_REMOVEDIR);
    }
    return DB_SUCCESS;
}

/** A descriptor of its own. */
static int posix_open_dir(os_t *os, const char *dir)
{
    return openat(posix_os(os)->dir_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static dberr_t posix_sync_dir(os_t *os, const char *dir)
{
    bool root = strcmp(dir, OS_ROOT) == 0;
    int fd = root ? posix_os(os)->dir_fd : posix_open_dir(os, dir);
    dberr_t err = DB_SUCCESS;
    if (fd < 0 || fsync(fd) != 0) {
        (void)posix_fail(os);
        err = DB_IO_ERROR;
    }
    if (!root && fd >= 0) {
        (void)close(fd);
    }
    return err;
}

static dberr_t posix_exists(os_t *os, const char *path, bool *exists)
{
    struct stat st;
    if (fstatat(posix_os(os)->dir_fd, path, &st, 0) == 0) {
        *exists = true;
        return DB_SUCCESS;
    }
    dberr_t err = posix_fail(os);
    if (err == DB_NOT_FOUND) {
        *exists = false;
        return DB_SUCCESS;
    }
    return err;
}

typedef struct name_list {
    char **names;
    size_t n;
    size_t size;
} name_list_t;

static dberr_t name_list_add(name_list_t *list, const char *name)
{
    if (list->n == list->size) {
        size_t size = list->size == 0 ? 64 : list->size * 2;
        char **names = realloc(list->names, size * sizeof(*names));
        if (names == NULL) {
            return DB_OUT_OF_MEMORY;
        }
        list->names = names;
        list->size = size;
    }
    list->names[list->n] = strdup(name);
    if (list->names[list->n] == NULL) {
        return DB_OUT_OF_MEMORY;
    }
    list->n++;
    return DB_SUCCESS;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static dberr_t collect_names(os_t *os, DIR *dir, name_list_t *list)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            return errno == 0 ? DB_SUCCESS : posix_fail(os);
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            TRY(name_list_add(list, entry->d_name));
        }
    }
}

static dberr_t posix_list(os_t *os, const char *path, os_list_fn fn, void *ctx)
{
    name_list_t list = {NULL, 0, 0};
    dberr_t err;
    int fd = posix_open_dir(os, path);
    if (fd < 0) {
        err = posix_fail(os);
        return err == DB_NOT_FOUND && strcmp(path, OS_ROOT) != 0 ? DB_SUCCESS : err;
    }
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        err = posix_fail(os);
        (void)close(fd);
        return err;
    }
    err = collect_names(os, dir, &list);
    (void)closedir(dir);
    if (err == DB_SUCCESS && list.n > 0) {
        qsort(list.names, list.n, sizeof(*list.names), compare_names);
    }
    for (size_t i = 0; i < list.n; i++) {
        AND_THEN(err, fn(ctx, list.names[i]));
        free(list.names[i]);
    }
    free(list.names);
    return err;
}

static dberr_t posix_lock(os_t *os)
{
    posix_os_t *p = posix_os(os);
    if (p->lock_fd >= 0) {
        return DB_DIR_LOCKED;
    }
    bool read_only = false;
    int fd = posix_openat(p->dir_fd, LOCK_FILE, O_CREAT, &read_only);
    if (fd < 0) {
        return posix_fail(os);
    }
    dberr_t err;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        err = errno == EWOULDBLOCK ? DB_DIR_LOCKED : posix_fail(os);
        (void)close(fd);
        return err;
    }
    p->lock_fd = fd;
    return DB_SUCCESS;
}

static void posix_unlock(os_t *os)
{
    if (posix_os(os)->lock_fd >= 0) {
        (void)close(posix_os(os)->lock_fd);
        posix_os(os)->lock_fd = -1;
    }
}

static void posix_destroy(os_t *os)
{
    CHECK(posix_os(os)->n_open == 0);
    posix_unlock(os);
    (void)close(posix_os(os)->dir_fd);
    free(os);
}

static const os_vtable_t POSIX_VTABLE = {
    .open = posix_open,
    .read = posix_read,
    .write = posix_write,
    .sync = posix_sync,
    .truncate = posix_truncate,
    .punch = posix_punch,
    .size = posix_size,
    .close = posix_close,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .sync_dir = posix_sync_dir,
    .exists = posix_exists,
    .list = posix_list,
    .lock = posix_lock,
    .unlock = posix_unlock,
    .destroy = posix_destroy,
};

/** Makes the entry of a new data directory durable in its parent. */
static dberr_t sync_parent(int dir_fd, const char *dir, err_sink_t *err)
{
    int fd = openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) {
        dberr_t e = err_set(err, DB_IO_ERROR, "%s: fsync of the parent directory failed: %s", dir,
                            strerrordesc_np(errno));

        if (fd >= 0) {
            (void)close(fd);
        }
        return e;
    }
    (void)close(fd);
    return DB_SUCCESS;
}

dberr_t os_posix_create(const char *dir, bool create, err_sink_t *err, os_t **out)
{
    bool made = create && mkdir(dir, 0777) == 0;
    if (create && !made && errno != EEXIST) {
        return err_set(err, DB_IO_ERROR, "%s: mkdir failed: %s", dir, strerrordesc_np(errno));
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return err_set(err, absent ? DB_NOT_FOUND : DB_IO_ERROR,
                       "%s: cannot open the data directory: %s", dir, strerrordesc_np(errno));
    }
    dberr_t e = made ? sync_parent(fd, dir, err) : DB_SUCCESS;
    posix_os_t *os = e == DB_SUCCESS ? calloc(1, sizeof(*os)) : NULL;
    if (os == NULL) {
        (void)close(fd);
        TRY(e);
        return err_set(err, DB_OUT_OF_MEMORY, "%s: out of memory", dir);
    }
    os->base.vt = &POSIX_VTABLE;
    os->dir_fd = fd;
    os->lock_fd = -1;
    *out = &os->base;
    return DB_SUCCESS;
}
