/** Marks of other processes.

Above record.c; started by layer.c when its process has become the one that is recorded.
1. The answer is sent after the mark is recorded: what the client does next comes later in the stream, and what the
   server did for it before lies before.
2. The thread takes no signal of the program, and passes through the layer but for its marks.
3. The socket is abstract: it leaves no file, and ends with the process. */
#include "faults/control.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "faults/real.h"
#include "faults/trace.h"

#define LINE_MAX_BYTES 4096u
#define BACKLOG 64

/* The line without its end; 0: there is none. */
static size_t read_line(int fd, char *line)
{
    size_t used = 0;

    while (used < LINE_MAX_BYTES) {
        ssize_t got = recv(fd, line + used, LINE_MAX_BYTES - used, 0);
        char *end;
        if (got <= 0) {
            return 0;
        }
        end = memchr(line + used, '\n', (size_t)got);
        used += (size_t)got;
        if (end != NULL) {
            return (size_t)(end - line);
        }
    }
    return 0;
}

static void *control_serve(void *argument)
{
    int listener = (int)(intptr_t)argument;
    char line[LINE_MAX_BYTES];

    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        size_t len;
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }
            return NULL; /* the program has closed it */
        }
        len = read_line(fd, line);
        if (len > 0) {
            tp_trace_mark(line, len);
            (void)send(fd, "ok\n", 3, MSG_NOSIGNAL);
        }
        (void)real_get()->close(fd);
    }
}

static int control_thread(int listener)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t detached;
    int failure;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    failure = pthread_create(&thread, &detached, control_serve, (void *)(intptr_t)listener);
    (void)pthread_attr_destroy(&detached);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
}

int control_start(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    int failure = 0;
    int listener;

    if (len == 0 || len > sizeof(address.sun_path) - 1) {
        return ENAMETOOLONG;
    }
    memcpy(address.sun_path + 1, name, len);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) {
        return errno;
    }
    if (bind(listener, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len))
            != 0
        || listen(listener, BACKLOG) != 0) {
        failure = errno;
    } else {
        failure = control_thread(listener);
    }
    if (failure != 0) {
        (void)real_get()->close(listener);
    }
    return failure;
}
