/** Packets with descriptors. Place: below all fork servers; nothing of the preload. */
#include "faults/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

packet_t packet_receive(int fd, void *place, size_t size)
{
    packet_t packet = {.n_fds = 0};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(packet.fds))];
    } control;
    struct iovec into = {place, size};
    struct msghdr message = {.msg_iov = &into,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};

    do {
        packet.bytes = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    } while (packet.bytes < 0 && errno == EINTR);
    if (packet.bytes <= 0) {
        return packet;
    }
    packet.is_cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    if (part != NULL && part->cmsg_type == SCM_RIGHTS) {
        size_t bytes = part->cmsg_len - CMSG_LEN(0);
        memcpy(packet.fds, CMSG_DATA(part), bytes);
        packet.n_fds = (unsigned)(bytes / sizeof(*packet.fds));
    }
    return packet;
}
