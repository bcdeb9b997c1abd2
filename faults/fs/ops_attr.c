/** The calls on sizes, modes, owners and times.

Beside ops_files.c. Of these only sizes are in the stream: no image has the others. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/fs/ops.h"

/* Of an open file, beside others' calls. False: the request is answered. */
static bool truncate_open(fuse_req_t req, const handle_t *handle, off_t size, int64_t *result)
{
    record_op_t op;

    if (!caller_begin(req, handle->file, TP_OP_TRUNCATE, &op)) {
        return false;
    }
    op.offset = (uint64_t)size;
    const plan_rule_t *rule = inject_begin(&op);
    layer_resize_begins(&op);
    if (!inject_replaces(&op, rule)) {
        op.result = layer_result(ftruncate(handle->fd, size));
    }
    caller_end(handle->file, &op, rule);
    *result = op.result;
    return true;
}

/* Of a path. */
static bool truncate_node(fuse_req_t req, const node_t *node, off_t size, int64_t *result)
{
    char path[64];
    place_t place;

    if (!caller_enter_names(req)) {
        return false;
    }
    if (!ops_place_of(node, &place)) {
        caller_leave();
        *result = -ENOENT;
        return true;
    }
    record_op_t op = layer_op_at(TP_OP_TRUNCATE, &place);
    op.offset = (uint64_t)size;
    const plan_rule_t *rule;
    ops_path_behind(node, path, sizeof(path));
    if (!inject_before(&op, &rule)) {
        op.result = layer_result(truncate(path, size));
    }
    caller_record(&op, rule, place.path);
    *result = op.result;
    return true;
}

static struct timespec time_of(const struct timespec *given, int asked, int now)
{
    if (now != 0) {
        return (struct timespec){.tv_nsec = UTIME_NOW};
    }
    return asked != 0 ? *given : (struct timespec){.tv_nsec = UTIME_OMIT};
}

/* What no image has: not recorded. */
static int64_t set_others(const node_t *node, const struct stat *attr, int asked)
{
    char path[64];
    int64_t result = 0;
    const struct timespec times[] = {
        time_of(&attr->st_atim, asked & FUSE_SET_ATTR_ATIME, asked & FUSE_SET_ATTR_ATIME_NOW),
        time_of(&attr->st_mtim, asked & FUSE_SET_ATTR_MTIME, asked & FUSE_SET_ATTR_MTIME_NOW)};

    ops_path_behind(node, path, sizeof(path));
    if ((asked & FUSE_SET_ATTR_MODE) != 0) {
        result = layer_result(chmod(path, attr->st_mode));
    }
    if (result == 0 && (asked & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
        uid_t uid = (asked & FUSE_SET_ATTR_UID) != 0 ? attr->st_uid : (uid_t)-1;
        gid_t gid = (asked & FUSE_SET_ATTR_GID) != 0 ? attr->st_gid : (gid_t)-1;
        result =
            layer_result(fchownat(node->fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
    }
    if (result == 0 && (asked & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) != 0) {
        result = layer_result(utimensat(AT_FDCWD, path, times, 0));
    }
    return result;
}

static void answer_attr(fuse_req_t req, const node_t *node)
{
    struct stat st;

    if (fstat(node->fd, &st) != 0) {
        (void)fuse_reply_err(req, errno);
    } else {
        (void)fuse_reply_attr(req, &st, OPS_FOREVER);
    }
}

static void attr_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    answer_attr(req, tree_node(ino));
}

static void attr_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int asked,
                            struct fuse_file_info *fi)
{
    const node_t *node = tree_node(ino);
    int64_t result = set_others(node, attr, asked);

    if (result == 0 && (asked & FUSE_SET_ATTR_SIZE) != 0) {
        bool done = fi != NULL ? truncate_open(req, ops_handle_of(fi), attr->st_size, &result)
                               : truncate_node(req, node, attr->st_size, &result);
        if (!done) {
            return;
        }
    }
    if (result < 0) {
        (void)fuse_reply_err(req, (int)-result);
    } else {
        answer_attr(req, node);
    }
}

void ops_set_attr(struct fuse_lowlevel_ops *ops)
{
    ops->getattr = attr_op_getattr;
    ops->setattr = attr_op_setattr;
}
