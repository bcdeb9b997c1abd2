/** Interposed calls that change directories and paths: rename, link, unlink, mkdir, truncate.

Top of the preload. Keeps the paths of known files true (files.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "faults/inject.h"
#include "faults/layer.h"
#include "faults/real.h"

/* Which function the program called. */
typedef enum path_via { VIA_PLAIN, VIA_AT, VIA_FLAGS, VIA_REMOVE, VIA_RMDIR } path_via_t;

typedef struct rename_call {
    int from_dirfd;
    const char *from;
    int to_dirfd;
    const char *to;
    unsigned flags;
    path_via_t via;
} rename_call_t;

static bool path_is_ours(int dirfd, const char *path, bool follow, place_t *place)
{
    return layer_is_on() && files_find_place(dirfd, path, follow, place) && layer_enter_path();
}

static int path_finish(const record_op_t *op, const plan_rule_t *rule, const char *path)
{
    layer_record_path(op, path);
    inject_after(op, rule);
    return (int)layer_leave(op->result);
}

static int rename_real(const rename_call_t *call)
{
    const real_calls_t *real = real_get();

    switch (call->via) {
    case VIA_PLAIN:
        return real->rename(call->from, call->to);
    case VIA_AT:
        return real->renameat(call->from_dirfd, call->from, call->to_dirfd, call->to);
    default:
        return real->renameat2(call->from_dirfd, call->from, call->to_dirfd, call->to, call->flags);
    }
}

static bool rename_exchanges(const rename_call_t *call)
{
    return call->via == VIA_FLAGS && (call->flags & RENAME_EXCHANGE) != 0;
}

static int rename_call(const rename_call_t *call)
{
    place_t from;
    place_t to;
    bool ours = false;

    if (layer_is_on()) {
        if (files_find_place(call->from_dirfd, call->from, false, &from)) {
            ours = true;
        } else {
            from.path[0] = '\0';
            from.exists = false;
        }
        if (files_find_place(call->to_dirfd, call->to, false, &to)) {
            ours = true;
        } else {
            to.path[0] = '\0';
            to.exists = false;
        }
    }
    if (!ours || !layer_enter_path()) {
        return rename_real(call);
    }
    if (files_have_no_data(&from) && !to.exists) {
        return (int)layer_leave(layer_result(rename_real(call)));
    }
    record_op_t op = layer_op_at(TP_OP_RENAME, &from);
    op.matches |= plan_match_path(layer_plan(), to.path);
    op.flags = (uint16_t)call->flags;
    const plan_rule_t *rule;
    if (!inject_before(&op, &rule)) {
        op.result = layer_result(rename_real(call));
        if (op.result == 0) {
            files_follow_rename(&from, &to, rename_exchanges(call));
        }
    }
    layer_record_paths(&op, from.path, to.path);
    inject_after(&op, rule);
    return (int)layer_leave(op.result);
}

LAYER_EXPORT int rename(const char *from, const char *to)
{
    return rename_call(&(rename_call_t){AT_FDCWD, from, AT_FDCWD, to, 0, VIA_PLAIN});
}

LAYER_EXPORT int renameat(int from_dirfd, const char *from, int to_dirfd, const char *to)
{
    return rename_call(&(rename_call_t){from_dirfd, from, to_dirfd, to, 0, VIA_AT});
}

LAYER_EXPORT int renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
                           unsigned flags)
{
    return rename_call(&(rename_call_t){from_dirfd, from, to_dirfd, to, flags, VIA_FLAGS});
}

typedef struct link_call {
    int from_dirfd;
    const char *from;
    int to_dirfd;
    const char *to;
    int flags;
    bool at; /**< the program called linkat */
} link_call_t;

static int link_real(const link_call_t *call)
{
    return call->at ? real_get()->linkat(call->from_dirfd, call->from, call->to_dirfd, call->to,
                                         call->flags)
                    : real_get()->link(call->from, call->to);
}

/* Under the lock. Which file gets a further name, and can it be told? One without any name
   (O_TMPFILE) cannot: what it holds was forgotten with its last one. */
static bool link_is_followed(const place_t *from, const place_t *to)
{
    return from->path[0] != '\0' && to->path[0] != '\0' && from->exists
           && S_ISREG(from->st.st_mode);
}

/* Under the lock, after success: a file is called by its newest name. */
static void link_follow(const place_t *from, const char *to)
{
    file_t *file = files_lookup(&from->st);

    if (file != NULL) {
        files_rename(file, to);
    }
}

static int link_call(const link_call_t *call)
{
    place_t from = {.exists = false};
    place_t to = {.exists = false};
    bool ours = false;

    if (layer_is_on()) {
        bool follow = (call->flags & AT_SYMLINK_FOLLOW) != 0;
        ours = files_find_place(call->from_dirfd, call->from, follow, &from);
        from.path[0] = ours ? from.path[0] : '\0';
        if (files_find_place(call->to_dirfd, call->to, false, &to)) {
            ours = true;
        } else {
            to.path[0] = '\0';
        }
    }
    if (!ours || !layer_enter_path()) {
        return link_real(call);
    }
    record_op_t op = layer_op_at(TP_OP_LINK, &from);
    op.matches |= plan_match_path(layer_plan(), to.path);
    const plan_rule_t *rule;
    if (!inject_before(&op, &rule)) {
        op.result = layer_result(link_real(call));
    }
    if (link_is_followed(&from, &to)) {
        if (op.result == 0) {
            link_follow(&from, to.path);
        }
        layer_record_paths(&op, from.path, to.path);
    } else if (op.result == 0) {
        layer_mark_unseen("link", to.path[0] != '\0' ? to.path : from.path);
    }
    inject_after(&op, rule);
    return (int)layer_leave(op.result);
}

LAYER_EXPORT int link(const char *from, const char *to)
{
    return link_call(&(link_call_t){AT_FDCWD, from, AT_FDCWD, to, 0, false});
}

LAYER_EXPORT int linkat(int from_dirfd, const char *from, int to_dirfd, const char *to, int flags)
{
    return link_call(&(link_call_t){from_dirfd, from, to_dirfd, to, flags, true});
}

static int unlink_real(int dirfd, const char *path, int flags, path_via_t via)
{
    switch (via) {
    case VIA_PLAIN:
        return real_get()->unlink(path);
    case VIA_REMOVE:
        return real_get()->remove(path);
    case VIA_RMDIR:
        return real_get()->rmdir(path);
    default:
        return real_get()->unlinkat(dirfd, path, flags);
    }
}

static int unlink_call(int dirfd, const char *path, int flags, path_via_t via)
{
    place_t place;

    if (!path_is_ours(dirfd, path, false, &place)) {
        return unlink_real(dirfd, path, flags, via);
    }
    if (files_have_no_data(&place)) {
        return (int)layer_leave(layer_result(unlink_real(dirfd, path, flags, via)));
    }
    record_op_t op = layer_op_at(TP_OP_UNLINK, &place);
    if (place.exists && S_ISDIR(place.st.st_mode)) {
        op.flags = TP_UNLINK_DIRECTORY;
    }
    const plan_rule_t *rule;
    if (!inject_before(&op, &rule)) {
        op.result = layer_result(unlink_real(dirfd, path, flags, via));
        if (op.result == 0) {
            files_lose_path(&place);
        }
    }
    return path_finish(&op, rule, place.path);
}

LAYER_EXPORT int unlink(const char *path)
{
    return unlink_call(AT_FDCWD, path, 0, VIA_PLAIN);
}

LAYER_EXPORT int unlinkat(int dirfd, const char *path, int flags)
{
    return unlink_call(dirfd, path, flags, VIA_AT);
}

LAYER_EXPORT int remove(const char *path)
{
    return unlink_call(AT_FDCWD, path, 0, VIA_REMOVE);
}

LAYER_EXPORT int rmdir(const char *path)
{
    return unlink_call(AT_FDCWD, path, 0, VIA_RMDIR);
}

static int mkdir_real(int dirfd, const char *path, mode_t mode, path_via_t via)
{
    return via == VIA_AT ? real_get()->mkdirat(dirfd, path, mode) : real_get()->mkdir(path, mode);
}

static int mkdir_call(int dirfd, const char *path, mode_t mode, path_via_t via)
{
    place_t place;

    if (!path_is_ours(dirfd, path, false, &place)) {
        return mkdir_real(dirfd, path, mode, via);
    }
    record_op_t op = layer_op_at(TP_OP_MKDIR, &place);
    op.offset = mode;
    const plan_rule_t *rule;
    if (!inject_before(&op, &rule)) {
        op.result = layer_result(mkdir_real(dirfd, path, mode, via));
    }
    return path_finish(&op, rule, place.path);
}

LAYER_EXPORT int mkdir(const char *path, mode_t mode)
{
    return mkdir_call(AT_FDCWD, path, mode, VIA_PLAIN);
}

LAYER_EXPORT int mkdirat(int dirfd, const char *path, mode_t mode)
{
    return mkdir_call(dirfd, path, mode, VIA_AT);
}

static int truncate_call(const char *path, off_t size)
{
    place_t place;

    if (!path_is_ours(AT_FDCWD, path, true, &place)) {
        return real_get()->truncate(path, size);
    }
    record_op_t op = layer_op_at(TP_OP_TRUNCATE, &place);
    op.offset = (uint64_t)size;
    const plan_rule_t *rule;
    if (!inject_before(&op, &rule)) {
        op.result = layer_result(real_get()->truncate(path, size));
    }
    return path_finish(&op, rule, place.path);
}

LAYER_EXPORT int truncate(const char *path, off_t size)
{
    return truncate_call(path, size);
}

LAYER_EXPORT int truncate64(const char *path, off64_t size)
{
    return truncate_call(path, size);
}
