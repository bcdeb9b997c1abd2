/** See serve.h. Above the calls (ops.h) and below main.c.

1. Requests are read one by one. A release, which the program does not wait for, is worked on before
   the next one is read: what the program does next comes later in the stream. So is a request of a
   program of which one thread only has made any: there is no other call beside it, and to hand over
   the reading costs more than most calls.
2. libfuse 3.14 knows neither FUSE_TMPFILE nor mappings of files for direct I/O. The first has the
   form of a create, and becomes one whose flags say what it is; the second is one bit of the answer
   to the kernel's greeting. */
#include "faults/fs/serve.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "faults/fs/ops.h"

#define THREADS 8
#define BACKGROUND_MAX 65535u /* requests that wait for no other: their order is kept */

#ifndef FUSE_DIRECT_IO_ALLOW_MMAP
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ULL << 36) /* Linux 6.6 */
#endif

static struct {
    struct fuse_session *session;
    pthread_mutex_t reading;
    bool maps;     /* the kernel can map files for direct I/O */
    uint32_t only; /* the thread that has made all requests so far; 0: none has */
    bool several;
} server = {.reading = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
    bool reads;   /* has the lock */
    bool greeted; /* answers the greeting */
} self;

static void serve_init(void *data, struct fuse_conn_info *conn)
{
    (void)data;
    conn->want &= ~(unsigned)(FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_AUTO_INVAL_DATA
                              | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE);
    conn->want |= FUSE_CAP_DONT_MASK;
    conn->max_background = BACKGROUND_MAX;
    conn->congestion_threshold = BACKGROUND_MAX;
}

static ssize_t serve_writev(int fd, struct iovec *parts, int count, void *data)
{
    (void)data;
    if (self.greeted && count > 1 && parts[1].iov_len >= sizeof(struct fuse_init_out)) {
        struct fuse_init_out *greeting = parts[1].iov_base;
        greeting->flags |= FUSE_INIT_EXT;
        greeting->flags2 |= server.maps ? (uint32_t)(FUSE_DIRECT_IO_ALLOW_MMAP >> 32) : 0;
    }
    return writev(fd, parts, count);
}

static ssize_t serve_read(int fd, void *room, size_t bytes, void *data)
{
    (void)data;
    return read(fd, room, bytes);
}

bool serve_prepare(int device)
{
    static const struct fuse_custom_io io = {.writev = serve_writev, .read = serve_read};
    struct fuse_lowlevel_ops ops = {.init = serve_init};
    char name[] = "tornpage-fs";
    char *argv[] = {name};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    ops_set_names(&ops);
    ops_set_files(&ops);
    ops_set_attr(&ops);
    server.session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
    return server.session != NULL && fuse_session_custom_io(server.session, &io, device) == 0;
}

/* Invariant 2. */
static void look_at(struct fuse_in_header *head)
{
    const struct fuse_init_in *greeting = (const void *)(head + 1);

    self.greeted = head->opcode == FUSE_INIT;
    if (self.greeted && head->len >= sizeof(*head) + sizeof(*greeting)
        && (greeting->flags & FUSE_INIT_EXT) != 0) {
        server.maps = (greeting->flags2 & (FUSE_DIRECT_IO_ALLOW_MMAP >> 32)) != 0;
    }
    if (head->opcode == FUSE_TMPFILE) {
        head->opcode = FUSE_CREATE;
    }
}

/* With the lock: whether the next request may wait for this one (invariant 1). */
static bool is_alone(const struct fuse_in_header *head)
{
    switch (head->opcode) {
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        return true;
    case FUSE_INIT:
    case FUSE_STATFS: /* of nobody, and this process's own (main.c) */
        return false;
    default:
        server.only = server.only == 0 ? head->pid : server.only;
        server.several = server.several || head->pid != server.only;
        return !server.several && head->pid != 0;
    }
}

static void begin_reading(void)
{
    if (!self.reads) {
        (void)pthread_mutex_lock(&server.reading);
        self.reads = true;
    }
}

static void stop_reading(void)
{
    if (self.reads) {
        self.reads = false;
        (void)pthread_mutex_unlock(&server.reading);
    }
}

static void *serve_thread(void *argument)
{
    struct fuse_buf request = {0};
    (void)argument;
    for (;;) {
        begin_reading();
        int got = fuse_session_receive_buf(server.session, &request);
        if (got <= 0) {
            stop_reading();
            if (got == -EINTR || got == -EAGAIN) {
                continue;
            }
            free(request.mem);
            return NULL;
        }
        struct fuse_in_header *head = request.mem;
        look_at(head);
        if (!is_alone(head)) {
            stop_reading();
        }
        fuse_session_process_buf(server.session, &request);
    }
}

static bool start_thread(void)
{
    pthread_t thread;
    bool done = pthread_create(&thread, NULL, serve_thread, NULL) == 0;

    if (done) {
        (void)pthread_detach(thread);
    }
    return done;
}

static void replace_thread(void)
{
    stop_reading();
    if (!start_thread()) {
        layer_refuse("no thread to serve requests");
    }
}

bool serve_start(void)
{
    bool done = true;

    caller_set_replacement(replace_thread);
    for (int i = 0; done && i < THREADS; i++) {
        done = start_thread();
    }
    return done;
}
