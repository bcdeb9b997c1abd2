/** Marks of changes that the layer cannot follow, and what brings descriptors from elsewhere.

Among the interposed functions, below the others that mark. Each leaves a mark "unseen CALL
path=PATH" in the trace, unless it fails, so that whoever computes states from the trace knows that
it is not the whole truth. Never refused: a program may map a scratch file whose content does not
matter. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faults/adopt.h"
#include "faults/layer.h"
#include "faults/real.h"
#include "faults/unseen.h"

void unseen_at_descriptor(const char *call, int fd)
{
    file_t *file = layer_enter(fd);

    if (file != NULL) {
        layer_mark_unseen(call, file->path);
        (void)layer_leave(0);
    }
}

void unseen_anywhere(const char *call)
{
    if (layer_enter_path()) {
        layer_mark_unseen(call, ".");
        (void)layer_leave(0);
    }
}

void unseen_at_path(const char *call, int dirfd, const char *path)
{
    place_t place;

    if (layer_is_on() && files_find_place(dirfd, path, true, &place) && layer_enter_path()) {
        layer_mark_unseen(call, place.path);
        (void)layer_leave(0);
    }
}

static int unseen_symlink(int result, int dirfd, const char *path)
{
    place_t place;

    if (result == 0 && layer_is_on() && files_find_place(dirfd, path, false, &place)
        && layer_enter_path()) {
        layer_mark_unseen("symlink", place.path);
        (void)layer_leave(0);
    }
    return result;
}

LAYER_EXPORT int symlink(const char *target, const char *path)
{
    return unseen_symlink(real_get()->symlink(target, path), AT_FDCWD, path);
}

LAYER_EXPORT int symlinkat(const char *target, int dirfd, const char *path)
{
    return unseen_symlink(real_get()->symlinkat(target, dirfd, path), dirfd, path);
}

/* Descriptors that came with a message. */
static void unseen_receive(const struct msghdr *message)
{
    struct msghdr *whole = (struct msghdr *)(uintptr_t)message;

    for (struct cmsghdr *part = CMSG_FIRSTHDR(whole); part != NULL;
         part = CMSG_NXTHDR(whole, part)) {
        size_t bytes = part->cmsg_len - CMSG_LEN(0);
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
            adopt_descriptor("received", fd);
        }
    }
}

LAYER_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t got = real_get()->recvmsg(fd, message, flags);

    if (got >= 0 && message->msg_controllen > 0) {
        unseen_receive(message);
    }
    return got;
}

LAYER_EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                          struct timespec *timeout)
{
    int got = real_get()->recvmmsg(fd, messages, count, flags, timeout);

    for (int i = 0; i < got; i++) {
        unseen_receive(&messages[i].msg_hdr);
    }
    return got;
}

LAYER_EXPORT int open_by_handle_at(int mount_fd, struct file_handle *handle, int flags)
{
    int fd = real_get()->open_by_handle_at(mount_fd, handle, flags);

    if (fd >= 0) {
        adopt_descriptor("open_by_handle_at", fd);
    }
    return fd;
}
