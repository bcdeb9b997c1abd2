/** Marks of other processes.

Above record.c; started by layer.c with the first event of a process.
1. The answer is sent after the mark is recorded: what the client does next comes later in the
   stream, and what the server did for it before lies before.
2. The thread takes no signal of the program, and passes through the layer but for its marks.
3. The socket is abstract: it leaves no file, and ends with the process. The next one that has had
   an event takes it over: a robust mutex tells when. */
#include "faults/control.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "faults/real.h"
#include "faults/trace.h"

#define LINE_MAX_BYTES 4096u
#define BACKLOG 64
#define BIND_TRIES                                                                                 \
    2000 /* one per millisecond: of a process that ends, the socket goes behind the mutex */

typedef struct control {
    const char *name;
    pthread_mutex_t *mutex;
    void (*peer)(pid_t);
    sem_t ready;
    int failure;
} control_t;

/* The line without its end; 0: there is none. */
static size_t read_line(int fd, char *line)
{
    size_t used = 0;

    while (used < LINE_MAX_BYTES) {
        ssize_t got = recv(fd, line + used, LINE_MAX_BYTES - used, 0);
        if (got <= 0) {
            return 0;
        }
        char *end = memchr(line + used, '\n', (size_t)got);
        used += (size_t)got;
        if (end != NULL) {
            return (size_t)(end - line);
        }
    }
    return 0;
}

static void control_answer(int fd, void (*peer)(pid_t))
{
    char line[LINE_MAX_BYTES];
    struct ucred who = {0};
    socklen_t room = sizeof(who);
    size_t len = read_line(fd, line);

    if (len > 0) {
        if (peer != NULL && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &room) == 0) {
            peer(who.pid);
        }
        tp_trace_mark(line, len);
        (void)send(fd, "ok\n", 3, MSG_NOSIGNAL);
    }
}

static void control_serve(int listener, void (*peer)(pid_t))
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            control_answer(fd, peer);
            (void)real_get()->close(fd);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return; /* the program has closed it */
        }
    }
}

static int control_bind(int listener, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    struct timespec pause = {.tv_nsec = 1000000};

    memcpy(address.sun_path + 1, name, strlen(name));
    for (int i = 0; i < BIND_TRIES; i++) {
        if (bind(listener, (struct sockaddr *)&address, len) == 0) {
            return listen(listener, BACKLOG) == 0 ? 0 : errno;
        }
        if (errno != EADDRINUSE) {
            return errno;
        }
        (void)nanosleep(&pause, NULL);
    }
    return EADDRINUSE;
}

/* Holds the mutex as long as the process lives. */
static void *control_thread(void *argument)
{
    control_t *control = argument;
    const char *name = control->name;
    pthread_mutex_t *mutex = control->mutex;
    void (*peer)(pid_t) = control->peer;
    int locked = pthread_mutex_trylock(mutex);
    bool waits = locked == EBUSY;

    if (waits) {
        (void)sem_post(&control->ready); /* and control is gone */
        locked = pthread_mutex_lock(mutex);
    }
    if (locked == EOWNERDEAD) {
        (void)pthread_mutex_consistent(mutex);
    }
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failure = listener < 0 ? errno : control_bind(listener, name);
    if (!waits) {
        control->failure = failure;
        (void)sem_post(&control->ready);
    }
    if (failure == 0) {
        control_serve(listener, peer);
    }
    return NULL;
}

int control_start(const char *name, pthread_mutex_t *mutex, void (*peer)(pid_t))
{
    control_t control = {.name = name, .mutex = mutex, .peer = peer};
    (void)sem_init(&control.ready, 0, 0);
    sigset_t all;
    (void)sigfillset(&all);
    sigset_t before;
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t detached;
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    control.failure = pthread_create(&thread, &detached, control_thread, &control);
    (void)pthread_attr_destroy(&detached);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (control.failure == 0) {
        while (sem_wait(&control.ready) != 0) { /* EINTR */
        }
    }
    return control.failure;
}
