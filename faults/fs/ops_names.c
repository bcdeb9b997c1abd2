/** The calls that change names, and those that look at them.

Above tree.c, caller.c and the layer. Each keeps the tables of the layer and the tree true, under
the lock, as intercept_path.c does for a program's own calls. The kernel has resolved every path. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "faults/fs/ops.h"

int ops_tell(node_t *parent, const char *name, int fd, struct fuse_entry_param *entry)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int failure = errno;
        (void)close(fd);
        return failure;
    }
    const node_t *node = tree_told(parent, name, &st, fd);
    if (node == NULL) {
        return ENOMEM;
    }
    *entry = (struct fuse_entry_param){.ino = tree_number(node),
                                       .attr = st,
                                       .attr_timeout = OPS_FOREVER,
                                       .entry_timeout = OPS_FOREVER};
    return 0;
}

int ops_look_up(node_t *parent, const char *name, struct fuse_entry_param *entry)
{
    int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? errno : ops_tell(parent, name, fd, entry);
}

static void answer_entry(fuse_req_t req, node_t *parent, const char *name)
{
    struct fuse_entry_param entry;
    int failure = ops_look_up(parent, name, &entry);

    if (failure != 0) {
        (void)fuse_reply_err(req, failure);
    } else {
        (void)fuse_reply_entry(req, &entry);
    }
}

static void answer_made(fuse_req_t req, int64_t result, node_t *parent, const char *name)
{
    if (result < 0) {
        (void)fuse_reply_err(req, (int)-result);
    } else {
        answer_entry(req, parent, name);
    }
}

void ops_give(fuse_req_t req, int folder, const char *name)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);

    if (ctx->uid != geteuid() || ctx->gid != getegid()) {
        (void)fchownat(folder, name, ctx->uid, ctx->gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    }
}

/* False: the folder has no path any more, or it is too long; the request is answered, and the lock
free. */
static bool enter_place(fuse_req_t req, node_t *parent, const char *name, place_t *place)
{
    if (!caller_enter_names(req)) {
        return false;
    }
    if (!tree_path_of(parent, name, place->path)) {
        caller_leave();
        (void)fuse_reply_err(req, ENOENT);
        return false;
    }
    place->exists = fstatat(parent->fd, name, &place->st, AT_SYMLINK_NOFOLLOW) == 0;
    return true;
}

static void names_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    answer_entry(req, tree_node(parent), name);
}

static void names_forget(fuse_req_t req, fuse_ino_t ino, uint64_t tellings)
{
    tree_forget(tree_node(ino), tellings);
    fuse_reply_none(req);
}

static void names_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++) {
        tree_forget(tree_node(forgets[i].ino), forgets[i].nlookup);
    }
    fuse_reply_none(req);
}

static void names_readlink(fuse_req_t req, fuse_ino_t ino)
{
    char text[PATH_MAX + 1];
    ssize_t bytes = readlinkat(tree_node(ino)->fd, "", text, sizeof(text) - 1);

    if (bytes < 0) {
        (void)fuse_reply_err(req, errno);
        return;
    }
    text[bytes] = '\0';
    (void)fuse_reply_readlink(req, text);
}

static void names_mkdir(fuse_req_t req, fuse_ino_t ino, const char *name, mode_t mode)
{
    node_t *parent = tree_node(ino);
    place_t place;
    if (!enter_place(req, parent, name, &place)) {
        return;
    }
    record_op_t op = layer_op_at(TP_OP_MKDIR, &place);
    op.offset = mode & ~(mode_t)S_IFMT;
    const plan_rule_t *rule;
    if (!inject_before(&op, &rule)) {
        op.result = layer_result(mkdirat(parent->fd, name, mode & ~fuse_req_ctx(req)->umask));
        if (op.result == 0) {
            ops_give(req, parent->fd, name);
        }
    }
    caller_record(&op, rule, place.path);
    answer_made(req, op.result, parent, name);
}

/* Not a change that an image shows, or one that the harness is told of by a mark. */
static void names_symlink(fuse_req_t req, const char *text, fuse_ino_t ino, const char *name)
{
    node_t *parent = tree_node(ino);
    place_t place;
    if (!enter_place(req, parent, name, &place)) {
        return;
    }
    int64_t result = layer_result(symlinkat(text, parent->fd, name));
    if (result == 0) {
        ops_give(req, parent->fd, name);
        layer_mark_unseen("symlink", place.path);
    }
    caller_leave();
    answer_made(req, result, parent, name);
}

/* A file that is made so is one that was opened, and closed again. */
static int64_t make_file(node_t *parent, const char *name, mode_t mode, place_t *place)
{
    record_op_t op = layer_op_at(TP_OP_OPEN, place);
    const int flags = O_WRONLY | O_CREAT | O_EXCL;
    op.offset = (uint64_t)flags;
    int fd = openat(parent->fd, name, flags | O_CLOEXEC, mode);
    op.result = fd < 0 ? -errno : 0;
    if (fd >= 0) {
        handle_t *handle = ops_bind(fd, place, true, &op);
        layer_record_path(&op, place->path);
        ops_unbind(handle);
    } else {
        layer_record_path(&op, place->path);
    }
    return op.result;
}

static void names_mknod(fuse_req_t req, fuse_ino_t ino, const char *name, mode_t mode, dev_t device)
{
    node_t *parent = tree_node(ino);
    place_t place;
    if (!enter_place(req, parent, name, &place)) {
        return;
    }
    mode &= ~fuse_req_ctx(req)->umask;
    int64_t result = S_ISREG(mode) ? make_file(parent, name, mode, &place)
                                   : layer_result(mknodat(parent->fd, name, mode, device));
    if (result == 0) {
        ops_give(req, parent->fd, name);
    }
    caller_leave();
    answer_made(req, result, parent, name);
}

static void remove_name(fuse_req_t req, fuse_ino_t ino, const char *name, int flags)
{
    node_t *parent = tree_node(ino);
    place_t place;
    if (!enter_place(req, parent, name, &place)) {
        return;
    }
    bool silent = files_have_no_data(&place);
    record_op_t op = layer_op_at(TP_OP_UNLINK, &place);
    op.flags = place.exists && S_ISDIR(place.st.st_mode) ? TP_UNLINK_DIRECTORY : 0;
    const plan_rule_t *rule = NULL;
    if (silent || !inject_before(&op, &rule)) {
        op.result = layer_result(unlinkat(parent->fd, name, flags));
        if (op.result == 0) {
            files_lose_path(&place);
            const entry_t gone = {parent, name, place.st};
            tree_unlinked(&gone);
        }
    }
    if (silent) {
        caller_leave();
    } else {
        caller_record(&op, rule, place.path);
    }
    (void)fuse_reply_err(req, (int)-op.result);
}

static void names_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_name(req, parent, name, 0);
}

static void names_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    remove_name(req, parent, name, AT_REMOVEDIR);
}

/* Two names of one inode: the kernel leaves both. */
static void follow_rename(const entry_t *from, const entry_t *to, bool there, bool exchange)
{
    if (there && from->st.st_ino == to->st.st_ino) {
        return;
    }
    if (there && !exchange) {
        tree_unlinked(to);
    }
    tree_renamed(from, to->parent, to->name);
    if (exchange) {
        tree_renamed(to, from->parent, from->name);
    }
}

static void names_rename(fuse_req_t req, fuse_ino_t ino, const char *name, fuse_ino_t to_ino,
                         const char *to_name, unsigned flags)
{
    node_t *parent = tree_node(ino);
    node_t *to_parent = tree_node(to_ino);
    place_t from;
    place_t to;
    if ((flags & RENAME_WHITEOUT) != 0) {
        (void)fuse_reply_err(req, EINVAL);
        return;
    }
    if (!enter_place(req, parent, name, &from)) {
        return;
    }
    if (!tree_path_of(to_parent, to_name, to.path)) {
        caller_leave();
        (void)fuse_reply_err(req, ENOENT);
        return;
    }
    to.exists = fstatat(to_parent->fd, to_name, &to.st, AT_SYMLINK_NOFOLLOW) == 0;
    bool silent = files_have_no_data(&from) && !to.exists;
    bool exchange = (flags & RENAME_EXCHANGE) != 0;
    record_op_t op = layer_op_at(TP_OP_RENAME, &from);
    op.matches |= plan_match_path(layer_plan(), to.path);
    op.flags = (uint16_t)flags;
    const plan_rule_t *rule = NULL;
    if (silent || !inject_before(&op, &rule)) {
        op.result = layer_result(renameat2(parent->fd, name, to_parent->fd, to_name, flags));
        if (op.result == 0) {
            const entry_t was = {parent, name, from.st};
            const entry_t there = {to_parent, to_name, to.st};
            files_follow_rename(&from, &to, exchange);
            follow_rename(&was, &there, to.exists, exchange);
        }
    }
    if (!silent) {
        layer_record_paths(&op, from.path, to.path);
        inject_after(&op, rule);
    }
    caller_leave();
    (void)fuse_reply_err(req, (int)-op.result);
}

static void names_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t to_ino, const char *name)
{
    const node_t *node = tree_node(ino);
    node_t *parent = tree_node(to_ino);
    place_t from;
    place_t to;
    if (!enter_place(req, parent, name, &to)) {
        return;
    }
    if (!ops_place_of(node, &from)) {
        caller_leave();
        (void)fuse_reply_err(req, ENOENT);
        return;
    }
    record_op_t op = layer_op_at(TP_OP_LINK, &from);
    op.matches |= plan_match_path(layer_plan(), to.path);
    const plan_rule_t *rule;
    if (!inject_before(&op, &rule)) {
        char link[64];
        ops_path_behind(node, link, sizeof(link));
        op.result = layer_result(linkat(AT_FDCWD, link, parent->fd, name, AT_SYMLINK_FOLLOW));
    }
    file_t *file = from.exists ? files_lookup(&from.st) : NULL;
    if (op.result == 0 && file != NULL) {
        files_rename(file, to.path);
    }
    layer_record_paths(&op, from.path, to.path);
    inject_after(&op, rule);
    caller_leave();
    answer_made(req, op.result, parent, name);
}

static void names_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct statvfs st;

    if (fstatvfs(tree_node(ino)->fd, &st) != 0) {
        (void)fuse_reply_err(req, errno);
    } else {
        (void)fuse_reply_statfs(req, &st);
    }
}

void ops_set_names(struct fuse_lowlevel_ops *ops)
{
    ops->lookup = names_lookup;
    ops->forget = names_forget;
    ops->forget_multi = names_forget_multi;
    ops->readlink = names_readlink;
    ops->mkdir = names_mkdir;
    ops->symlink = names_symlink;
    ops->mknod = names_mknod;
    ops->unlink = names_unlink;
    ops->rmdir = names_rmdir;
    ops->rename = names_rename;
    ops->link = names_link;
    ops->statfs = names_statfs;
}
