/** The calls on open files and folders.

Above tree.c, caller.c and the layer. Reads, writes, syncs and changes of size run side by side, as
in the preload.
1. Files are open for direct I/O: each read and write of the program is one request, up to a MiB,
   and what it writes through a shared mapping comes when the kernel hands it over: msync, fsync, a
   read or write of the same bytes, the last unmapping, or writeback.
2. A write is durable if the kernel says so of the call: by its descriptor's O_DSYNC or O_SYNC, or
   its own RWF_DSYNC or RWF_SYNC.
3. The descriptor behind a handle appends nothing and syncs nothing by itself; it may read what it
   may write, so that a fault can tell what was there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults/data.h"
#include "faults/fs/ops.h"

#define TEMPORARY "/#tmpfile"
#define NOT_BEHIND (O_APPEND | O_DIRECT | O_SYNC | O_NOFOLLOW | O_NOATIME)

handle_t *ops_handle_of(const struct fuse_file_info *fi)
{
    return (handle_t *)(uintptr_t)fi->fh;
}

static bool is_temporary(int flags)
{
    return (flags & O_TMPFILE) == O_TMPFILE;
}

static void answer(fuse_req_t req, int64_t result)
{
    (void)fuse_reply_err(req, result < 0 ? (int)-result : 0);
}

/* Invariant 3. */
static int open_behind(int folder, const char *path, int flags, mode_t mode)
{
    int plain = (flags & ~NOT_BEHIND) | O_CLOEXEC;
    int both = (plain & ~O_ACCMODE) | O_RDWR;
    int fd = openat(folder, path, (flags & O_ACCMODE) == O_WRONLY ? both : plain, mode);

    if (fd < 0 && errno == EACCES) {
        fd = openat(folder, path, plain, mode);
    }
    return fd;
}

void ops_path_behind(const node_t *node, char *path, size_t room)
{
    (void)snprintf(path, room, "/proc/self/fd/%d", node->fd);
}

handle_t *ops_bind(int fd, place_t *place, bool created, record_op_t *op)
{
    struct stat st;
    handle_t *handle = malloc(sizeof(*handle));
    file_t *file = fstat(fd, &st) == 0 ? files_intern(place, &st, created) : NULL;

    if (handle == NULL || file == NULL) {
        layer_refuse("no memory to follow another file");
    }
    file->descriptors++;
    *handle = (handle_t){.fd = fd, .file = file, .closer = caller_thread()};
    op->file = file->id;
    op->flags =
        (uint16_t)((created ? TP_OPEN_CREATED : 0) | (file->directory ? TP_OPEN_DIRECTORY : 0));
    return handle;
}

void ops_unbind(handle_t *handle)
{
    record_op_t op = layer_op(TP_OP_CLOSE, handle->file);

    handle->file->descriptors--;
    op.length = handle->file->descriptors;
    layer_record(&op);
    if (handle->dir != NULL) {
        (void)closedir(handle->dir);
    } else {
        (void)close(handle->fd);
    }
    free(handle);
}

static void hand_out(struct fuse_file_info *fi, const handle_t *handle)
{
    fi->fh = (uint64_t)(uintptr_t)handle;
    fi->direct_io = 1;
    fi->keep_cache = 1;
}

bool ops_place_of(const node_t *node, place_t *place)
{
    place->exists = fstat(node->fd, &place->st) == 0;
    const file_t *file = place->exists ? files_lookup(&place->st) : NULL;

    if (tree_path(node, place->path)) {
        return true;
    }
    (void)snprintf(place->path, sizeof(place->path), "%s", file == NULL ? "" : file->path);
    return file != NULL;
}

/* With the lock, which is free behind it. NULL: it failed, by op->result. */
static handle_t *open_node(node_t *node, int flags, place_t *place, record_op_t *op)
{
    char path[64];

    *op = layer_op_at(TP_OP_OPEN, place);
    op->offset = (uint64_t)(unsigned)flags;
    ops_path_behind(node, path, sizeof(path));
    int fd = open_behind(AT_FDCWD, path, flags & ~(O_CREAT | O_EXCL), 0);
    op->result = fd < 0 ? -errno : 0;
    handle_t *handle = fd < 0 ? NULL : ops_bind(fd, place, false, op);
    caller_record(op, NULL, place->path);
    return handle;
}

static handle_t *enter_and_open(fuse_req_t req, fuse_ino_t ino, int flags)
{
    place_t place;
    record_op_t op;
    if (!caller_enter_names(req)) {
        return NULL;
    }
    if (!ops_place_of(tree_node(ino), &place)) {
        caller_leave();
        (void)fuse_reply_err(req, ENOENT);
        return NULL;
    }
    handle_t *handle = open_node(tree_node(ino), flags, &place, &op);
    if (handle == NULL) {
        answer(req, op.result);
    }
    return handle;
}

static void files_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const handle_t *handle = enter_and_open(req, ino, fi->flags);

    if (handle != NULL) {
        hand_out(fi, handle);
        (void)fuse_reply_open(req, fi);
    }
}

/* What was made is told of as by a lookup; a file of O_TMPFILE has no name to be looked up by. */
static int told_of(node_t *parent, const char *name, int fd, struct fuse_entry_param *entry)
{
    char path[64];
    if (name != NULL) {
        return ops_look_up(parent, name, entry);
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int behind = open(path, O_PATH | O_CLOEXEC);
    return behind < 0 ? errno : ops_tell(parent, NULL, behind, entry);
}

/* With the lock. The path that is recorded of a file without a name: DIR/#tmpfile. */
static bool place_to_make(node_t *parent, const char *name, place_t *place)
{
    bool found =
        name != NULL ? tree_path_of(parent, name, place->path) : tree_path(parent, place->path);
    size_t len = found ? strlen(place->path) : 0;
    place->exists = name != NULL && fstatat(parent->fd, name, &place->st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!found || (name == NULL && len + sizeof(TEMPORARY) > sizeof(place->path))) {
        return false;
    }
    if (name == NULL) {
        memcpy(place->path + len, TEMPORARY, sizeof(TEMPORARY));
    }
    return true;
}

static void files_op_create(fuse_req_t req, fuse_ino_t ino, const char *given, mode_t mode,
                            struct fuse_file_info *fi)
{
    node_t *parent = tree_node(ino);
    const char *name = is_temporary(fi->flags) ? NULL : given;
    place_t place;
    struct fuse_entry_param entry;
    if (!caller_enter_names(req)) {
        return;
    }
    if (!place_to_make(parent, name, &place)) {
        caller_leave();
        (void)fuse_reply_err(req, ENOENT);
        return;
    }
    record_op_t op = layer_op_at(TP_OP_OPEN, &place);
    op.offset = (uint64_t)(unsigned)fi->flags;
    int fd = open_behind(parent->fd, name == NULL ? "." : name, fi->flags,
                         mode & ~fuse_req_ctx(req)->umask);
    op.result = fd < 0 ? -errno : 0;
    handle_t *handle = fd < 0 ? NULL : ops_bind(fd, &place, !place.exists, &op);
    if (handle != NULL && !place.exists) {
        ops_give(req, fd, "");
    }
    caller_record(&op, NULL, place.path);
    int failure = handle == NULL ? (int)-op.result : told_of(parent, name, fd, &entry);
    if (failure != 0) {
        (void)fuse_reply_err(req, failure);
        return;
    }
    hand_out(fi, handle);
    (void)fuse_reply_create(req, &entry, fi);
}

/* Each close of a descriptor; the handle goes with the last one. */
static void files_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    ops_handle_of(fi)->closer = fuse_req_ctx(req)->pid;
    (void)fuse_reply_err(req, 0);
}

static void files_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    if (caller_enter_as(req, ops_handle_of(fi)->closer)) {
        (void)layer_enter_path();
        ops_unbind(ops_handle_of(fi));
        caller_leave();
        (void)fuse_reply_err(req, 0);
    }
}

static void files_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                          struct fuse_file_info *fi)
{
    (void)ino;
    const handle_t *handle = ops_handle_of(fi);
    record_op_t op;
    if (!caller_begin(req, handle->file, TP_OP_READ, &op)) {
        return;
    }
    char *data = malloc(size);
    op.offset = (uint64_t)offset;
    op.length = size;
    const plan_rule_t *rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = data == NULL ? -ENOMEM : layer_result(pread(handle->fd, data, size, offset));
    }
    caller_end(handle->file, &op, rule);
    if (op.result < 0) {
        answer(req, op.result);
    } else {
        (void)fuse_reply_buf(req, data, (size_t)op.result);
    }
    free(data);
}

/* The process is dead whose mapping this was, and its page cache is not. */
static void write_unrecorded(fuse_req_t req, const handle_t *handle, const struct iovec *part,
                             off_t offset)
{
    ssize_t put = pwritev(handle->fd, part, 1, offset);

    if (put < 0) {
        (void)fuse_reply_err(req, errno);
    } else {
        (void)fuse_reply_write(req, (size_t)put);
    }
}

static void files_op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
                           off_t offset, struct fuse_file_info *fi)
{
    (void)ino;
    const handle_t *handle = ops_handle_of(fi);
    const struct iovec part = {(void *)(uintptr_t)data, size};
    const io_call_t call = {IO_AT, handle->fd, &part, 1, offset, 0};
    record_op_t op;
    if (fi->writepage && layer_share()->ended) {
        write_unrecorded(req, handle, &part, offset);
        return;
    }
    if (!caller_begin(req, handle->file, TP_OP_WRITE, &op)) {
        return;
    }
    op.flags = (uint16_t)(((fi->flags & O_APPEND) != 0 ? TP_WRITE_APPEND : 0)
                          | ((fi->flags & O_DSYNC) != 0 ? TP_WRITE_DURABLE : 0));
    op.offset = (uint64_t)offset;
    op.length = size;
    op.mapped = fi->writepage;
    const plan_rule_t *rule = data_write_placed(&call, &op);
    data_record_write(&op, rule, &call);
    layer_call_ended();
    caller_leave();
    if (op.result < 0) {
        answer(req, op.result);
    } else {
        (void)fuse_reply_write(req, (size_t)op.result);
    }
}

static void files_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)ino;
    const handle_t *handle = ops_handle_of(fi);
    record_op_t op;
    if (!caller_begin(req, handle->file, datasync != 0 ? TP_OP_FDATASYNC : TP_OP_FSYNC, &op)) {
        return;
    }
    op.kind = handle->file->directory ? TP_OP_SYNC_DIR : op.kind;
    const plan_rule_t *rule = inject_begin(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(datasync != 0 ? fdatasync(handle->fd) : fsync(handle->fd));
    }
    caller_end(handle->file, &op, rule);
    answer(req, op.result);
}

static void files_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t bytes,
                               struct fuse_file_info *fi)
{
    (void)ino;
    const handle_t *handle = ops_handle_of(fi);
    record_op_t op;
    if (!caller_begin(req, handle->file, TP_OP_FALLOCATE, &op)) {
        return;
    }
    op.flags = (uint16_t)mode;
    op.offset = (uint64_t)offset;
    op.length = (uint64_t)bytes;
    const plan_rule_t *rule = inject_begin(&op);
    layer_resize_begins(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(fallocate(handle->fd, mode, offset, bytes));
    }
    caller_end(handle->file, &op, rule);
    answer(req, op.result);
}

static void files_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
                           struct fuse_file_info *fi)
{
    (void)ino;
    off_t found = lseek(ops_handle_of(fi)->fd, offset, whence);

    if (found < 0) {
        (void)fuse_reply_err(req, errno);
    } else {
        (void)fuse_reply_lseek(req, found);
    }
}

static void files_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    handle_t *handle = enter_and_open(req, ino, fi->flags | O_DIRECTORY);

    if (handle == NULL) {
        return;
    }
    handle->dir = fdopendir(handle->fd);
    if (handle->dir == NULL) {
        layer_refuse("no memory to follow another folder");
    }
    fi->fh = (uint64_t)(uintptr_t)handle;
    (void)fuse_reply_open(req, fi);
}

/* The place of an entry is where the next one is. */
static void files_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                             struct fuse_file_info *fi)
{
    (void)ino;
    DIR *dir = ops_handle_of(fi)->dir;
    char *data = malloc(size);
    size_t used = 0;
    if (data == NULL) {
        (void)fuse_reply_err(req, ENOMEM);
        return;
    }
    seekdir(dir, offset);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const struct stat st = {.st_ino = entry->d_ino, .st_mode = (mode_t)DTTOIF(entry->d_type)};
        size_t need =
            fuse_add_direntry(req, data + used, size - used, entry->d_name, &st, entry->d_off);
        if (need > size - used) {
            break;
        }
        used += need;
    }
    (void)fuse_reply_buf(req, data, used);
    free(data);
}

void ops_set_files(struct fuse_lowlevel_ops *ops)
{
    ops->open = files_op_open;
    ops->create = files_op_create;
    ops->flush = files_op_flush;
    ops->release = files_op_release;
    ops->read = files_op_read;
    ops->write = files_op_write;
    ops->fsync = files_op_fsync;
    ops->fsyncdir = files_op_fsync;
    ops->fallocate = files_op_fallocate;
    ops->lseek = files_op_lseek;
    ops->opendir = files_op_opendir;
    ops->readdir = files_op_readdir;
    ops->releasedir = files_op_release;
}
