/** Pauses at acknowledgements. Beside control.c, below layer.c. */
#include "faults/pause.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "faults/real.h"

#define ACK "ack "

static int pause_connect(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }
    memcpy(address.sun_path + 1, name, strlen(name));
    while (connect(fd, (struct sockaddr *)&address, len) != 0) {
        if (errno != EINTR) {
            (void)real_get()->close(fd);
            return -1;
        }
    }
    return fd;
}

void pause_at_mark(const char *name, const char *text, size_t len)
{
    if (name[0] == '\0' || len < sizeof(ACK) - 1 || memcmp(text, ACK, sizeof(ACK) - 1) != 0) {
        return;
    }
    int fd = pause_connect(name);
    char byte;
    if (fd >= 0) {
        while (recv(fd, &byte, 1, 0) < 0 && errno == EINTR) {
        }
        (void)real_get()->close(fd);
    }
}
