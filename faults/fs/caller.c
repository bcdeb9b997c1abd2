/** See caller.h. Above the layer, whose thread numbers are given by the kernel's thread ids here.

1. The caller waits for the answer as long as its call is in the layer: what it does next comes
   later in the stream.
2. Of a fault that kills, the caller gets its SIGKILL before the answer: it never returns from the
   call. All that comes behind it dies in the same way, unrecorded; only what the kernel hands over
   of mapped pages is written still: the page cache outlives a process. */
#include "faults/fs/caller.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "faults/data.h"

#define CHAINS 1024u

typedef struct thread {
    struct thread *next;
    pid_t id;
    uint32_t number; /* as layer_set_thread() has it */
} thread_t;

static struct {
    pthread_mutex_t lock;
    thread_t *chains[CHAINS];
    void (*replace)(void);
    pid_t program;
} callers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
    fuse_req_t req;
    pid_t thread;
    uint32_t number;
} caller;

static thread_t *thread_find(pid_t id)
{
    thread_t *thread = callers.chains[(unsigned)id % CHAINS];

    while (thread != NULL && thread->id != id) {
        thread = thread->next;
    }
    return thread;
}

static uint32_t thread_number(pid_t id)
{
    (void)pthread_mutex_lock(&callers.lock);
    const thread_t *thread = thread_find(id);
    uint32_t number = thread == NULL ? 0 : thread->number;
    (void)pthread_mutex_unlock(&callers.lock);
    return number;
}

static void thread_keep(pid_t id, uint32_t number)
{
    (void)pthread_mutex_lock(&callers.lock);
    thread_t *thread = thread_find(id) == NULL ? malloc(sizeof(*thread)) : NULL;
    if (thread != NULL) {
        *thread = (thread_t){callers.chains[(unsigned)id % CHAINS], id, number};
        callers.chains[(unsigned)id % CHAINS] = thread;
    }
    (void)pthread_mutex_unlock(&callers.lock);
}

static void caller_kill(void)
{
    (void)kill(caller.thread > 0 ? caller.thread : callers.program, SIGKILL);
}

bool caller_enter_as(fuse_req_t req, pid_t thread)
{
    caller.req = req;
    caller.thread = thread;
    if (layer_share()->ended) {
        caller_kill();
        (void)fuse_reply_err(req, EIO);
        return false;
    }
    caller.number = thread_number(thread);
    layer_set_thread(caller.number);
    return true;
}

bool caller_enter(fuse_req_t req)
{
    return caller_enter_as(req, fuse_req_ctx(req)->pid);
}

bool caller_enter_names(fuse_req_t req)
{
    if (!caller_enter(req)) {
        return false;
    }
    (void)layer_enter_path();
    return true;
}

bool caller_begin(fuse_req_t req, const file_t *file, uint16_t kind, record_op_t *op)
{
    bool entered = caller_enter(req);

    if (entered) {
        layer_begin_file(file, kind, op);
    }
    return entered;
}

void caller_end(const file_t *file, record_op_t *op, const plan_rule_t *rule)
{
    data_record_call(file, op, rule);
    inject_after(op, rule);
    caller_leave();
}

pid_t caller_thread(void)
{
    return caller.thread;
}

static void keep_number(void)
{
    uint32_t number = layer_thread() + 1;

    if (caller.number == 0 && number > 0) {
        thread_keep(caller.thread, number);
    }
}

void caller_leave(void)
{
    (void)layer_leave(0);
    keep_number();
}

void caller_record(record_op_t *op, const plan_rule_t *rule, const char *path)
{
    if (path != NULL) {
        layer_record_path(op, path);
    } else {
        layer_record(op);
    }
    inject_after(op, rule);
    caller_leave();
}

void caller_set_program(pid_t program)
{
    callers.program = program;
}

void caller_set_replacement(void (*replace)(void))
{
    callers.replace = replace;
}

void caller_die(void)
{
    caller_kill();
    if (caller.req != NULL) {
        (void)fuse_reply_err(caller.req, EIO);
    }
    layer_unlock();
    callers.replace();
    for (;;) {
        (void)pause();
    }
}

void caller_marks(pid_t process)
{
    caller.req = NULL;
    caller.thread = process;
}

/* Of a thread that only takes marks. A process of one thread is one with it. */
void tp_trace_mark(const char *text, size_t len)
{
    caller.number = thread_number(caller.thread);
    layer_set_thread(caller.number);
    data_mark(text, len);
    keep_number();
}
