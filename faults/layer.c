/** Set-up from the environment, begin and end of an operation, the lock.

Above files.c, record.c and plan.c; below inject.c and the interposed functions. A preload library has no
handle that its caller could pass, so that the state here, in files.c and in real.c is static: the
one place of the project where that is unavoidable.

1. Reads, writes, syncs and changes of size run side by side, as without the layer. Each takes a ticket when it begins,
   and is recorded when it has ended: the stream has the order of the ends.
2. What changes descriptors or paths is made under the lock, and so is what a plan hits: the tables are true, and a thread
   that dies inside ends all others that come to a tracked file.
3. The lock is one of all processes of the recording: those that TORNPAGE_TRACE reached, forked or executed.
4. The layer is not re-entrant: what a signal handler or a library does while its thread is inside
   passes through.
5. A thread inside cannot be cancelled: it would take the lock, or a write that nobody recorded, with it.
6. The tables are those of the process whose memory they lie in. A child of vfork, or another that shares it, has descriptors of
   its own, and changes none of them.
7. What the environment or the plan asks and cannot be done ends the process before main. */
#include "faults/layer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include "faults/control.h"
#include "faults/environment.h"
#include "faults/fiu_points.h"
#include "faults/io.h"
#include "faults/real.h"

#define TRACE_BYTES_DEFAULT ((uint64_t)256 << 20)
#define TRACE_BYTES_MIN 4096u
#define ATTACH_NAME "TORNPAGE_ATTACH"

#define POSITIONS 64u

/* A page of its own, which a fork wipes, also one that the C library does not know of. */
typedef struct identity {
    _Atomic pid_t pid;       /* whose memory this is; 0: a fork's */
    atomic_bool guests_move; /* a process that shares it has changed descriptors of its own */
} identity_t;

static struct {
    share_t *share;
    atomic_bool on;
    atomic_bool started;         /* what comes with the first event of this process is done */
    atomic_bool control_started; /* its thread runs, or will */
    bool uses_fiu;
    char control[CONTROL_NAME_MAX + 1]; /* name of the control socket; empty: none */
    identity_t *identity;
    plan_t plan;
    record_log_t log;
    pthread_mutex_t positions[POSITIONS]; /* files share them by id */
    char plan_text[PLAN_BYTES_MAX + 1];
} layer;

static _Thread_local struct {
    uint32_t number; /* thread index plus one; 0 before the thread's first event */
    uint32_t call;   /* its place among the calls under way plus one; 0 before its first write */
    int cancel_state;
    bool held; /* from being cancelled */
    int saved_errno;
    bool busy;
    bool locked; /* the lock is this thread's */
} layer_self;

bool layer_is_on(void)
{
    return atomic_load_explicit(&layer.on, memory_order_acquire) && !layer_self.busy;
}

void layer_die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;) {
        (void)pause();
    }
}

static void layer_take_lock(void)
{
    share_locked_t locked = share_lock(layer.share);

    if (locked == SHARE_ENDED) {
        layer_die();
    }
    if (locked == SHARE_OWNER_DIED) {
        record_recover(&layer.log);
    }
    layer_self.locked = true;
}

void layer_lock(void)
{
    layer_take_lock();
    if (layer_self.number == 0) {
        layer_self.number = ++layer.share->threads;
    }
}

void layer_unlock(void)
{
    layer_self.locked = false;
    share_unlock(layer.share);
}

/* The program's standard error may lead nowhere, as a server's does. */
static void layer_mark_refusal(const char *text)
{
    record_op_t op = {.kind = TP_OP_MARK, .length = strlen(text)};

    if (layer.share == NULL || layer.log.header == NULL) {
        return;
    }
    if (!layer_self.locked) {
        layer_lock();
    }
    op.thread = layer_self.number - 1;
    op.began = record_ticket(&layer.log);
    record_set_flag(&layer.log, TP_TRACE_REFUSED);
    layer_record_path(&op, text);
    layer_unlock();
}

void layer_refuse(const char *format, ...)
{
    static const char BEGIN[] = "tornpage_preload: ";
    static const char MARK[] = "refused ";
    char text[1024];
    va_list args;
    int used = snprintf(text, sizeof(text), "%s", BEGIN);
    size_t len;

    va_start(args, format);
    (void)vsnprintf(text + used, sizeof(text) - (size_t)used - 1, format, args);
    va_end(args);
    len = strlen(text);
    text[len] = '\n';
    if (real_get()->write(STDERR_FILENO, text, len + 1) < 0) {
        /* then the trace alone says it */
    }
    text[len] = '\0';
    memcpy(text + sizeof(BEGIN) - sizeof(MARK), MARK, sizeof(MARK) - 1);
    layer_mark_refusal(text + sizeof(BEGIN) - sizeof(MARK));
    _exit(LAYER_EXIT_REFUSED);
}

/* Once per process. */
static void layer_start_control(void)
{
    int failure;

    if (layer.control[0] == '\0' || atomic_exchange(&layer.control_started, true)) {
        return;
    }
    failure = control_start(layer.control, &layer.share->control);
    if (failure != 0) {
        layer_refuse("TORNPAGE_CONTROL=%s: %s", layer.control, strerror(failure));
    }
}

/* No other thread is there that could cancel this one. */
static bool layer_is_alone(void)
{
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded != 0;
#else
    return false;
#endif
}

/* Busy for longer than locked: a signal handler in between passes through instead of waiting. */
static void layer_go_in(void)
{
    int saved = errno;

    layer_self.held = !layer_is_alone();
    if (layer_self.held) {
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &layer_self.cancel_state);
    }
    layer_self.busy = true;
    if (!atomic_load_explicit(&layer.started, memory_order_relaxed)) {
        record_claim(&layer.log);
        layer_start_control();
        atomic_store(&layer.started, true);
    }
    layer_self.saved_errno = saved;
}

static void layer_go_out(void)
{
    layer_self.busy = false;
    if (layer_self.held) {
        (void)pthread_setcancelstate(layer_self.cancel_state, NULL);
    }
}

static void layer_make_positions(void)
{
    for (uint32_t i = 0; i < POSITIONS; i++) {
        (void)pthread_mutex_init(&layer.positions[i], NULL);
    }
}

/* The lock is the parent's; a position may have been held by a thread that is not here. */
static void layer_after_fork_child(void)
{
    layer_self.number = 0;
    layer_self.call = 0;
    atomic_store(&layer.identity->pid, getpid());
    layer_make_positions();
    atomic_store(&layer.started, false);
    atomic_store(&layer.control_started, false);
}

/* The descriptor's number is being given away, or was when we looked. Who comes meanwhile is no thread of the stream by that. */
static void layer_wait(void)
{
    int saved = errno;
    int state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    layer_self.busy = true;
    layer_take_lock();
    layer_unlock();
    layer_self.busy = false;
    (void)pthread_setcancelstate(state, NULL);
    errno = saved;
}

bool layer_is_guest(void)
{
    pid_t pid = getpid();
    pid_t owner;

    if (!layer_is_on()) {
        return false;
    }
    owner = atomic_load(&layer.identity->pid);
    if (owner == 0) {
        layer_after_fork_child();
        return false;
    }
    if (owner != pid) {
        atomic_store(&layer.identity->guests_move, true);
    }
    return owner != pid;
}

/* The file of a descriptor; NULL: not ours. Of a guest's numbers we know nothing as soon as they are not its host's. */
static file_t *layer_find(int fd)
{
    file_t *file;

    if (files_is_free(fd) || layer_self.busy) {
        return NULL;
    }
    if (atomic_load_explicit(&layer.identity->guests_move, memory_order_relaxed)
        && layer_is_guest()) {
        return NULL;
    }
    file = files_of_descriptor(fd);
    if (file == NULL) {
        layer_wait();
        file = files_of_descriptor(fd);
    }
    return file;
}

file_t *layer_begin(int fd, uint16_t kind, record_op_t *op)
{
    file_t *file = layer_find(fd);

    if (file == NULL) {
        return NULL;
    }
    layer_go_in();
    *op = (record_op_t){.kind = kind,
                        .file = file->id,
                        .matches = file->matches,
                        .began = record_ticket(&layer.log)};
    return file;
}

file_t *layer_enter(int fd)
{
    file_t *file = layer_find(fd);

    if (file == NULL) {
        return NULL;
    }
    layer_go_in();
    layer_lock();
    file = files_of_descriptor(fd); /* another thread may have closed it meanwhile */
    if (file == NULL) {
        (void)layer_leave(0);
    }
    return file;
}

bool layer_enter_path(void)
{
    if (!layer_is_on()) {
        return false;
    }
    layer_go_in();
    layer_lock();
    return true;
}

/* Its place is this thread's: the lock is free, and a kill may come at any instruction. */
static tp_trace_call_t *layer_own_call(void)
{
    if (layer_self.call == 0) {
        layer_self.call = 1 + atomic_fetch_add(&layer.share->callers, 1) % TP_TRACE_CALLS;
    }
    return &layer.share->calls[layer_self.call - 1];
}

void layer_call_begins(const record_op_t *op)
{
    tp_trace_call_t *call = layer_own_call();

    call->offset = op->offset;
    call->length = op->length;
    atomic_store_explicit(&call->file, op->file, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
}

void layer_call_ended(void)
{
    atomic_store_explicit(&layer_own_call()->file, 0, memory_order_release);
}

void layer_hold_position(const file_t *file)
{
    (void)pthread_mutex_lock(&layer.positions[file->id % POSITIONS]);
}

void layer_release_position(const file_t *file)
{
    (void)pthread_mutex_unlock(&layer.positions[file->id % POSITIONS]);
}

int64_t layer_leave(int64_t result)
{
    int saved = layer_self.saved_errno;

    layer_unlock();
    record_populate_ahead(&layer.log);
    layer_go_out();
    errno = result < 0 ? (int)-result : saved;
    return result < 0 ? -1 : result;
}

int64_t layer_result(int64_t returned)
{
    return returned < 0 ? -(int64_t)errno : returned;
}

plan_t *layer_plan(void)
{
    return &layer.plan;
}

record_log_t *layer_log(void)
{
    return &layer.log;
}

share_t *layer_share(void)
{
    return layer.share;
}

bool layer_uses_fiu(void)
{
    return layer.uses_fiu;
}

uint32_t layer_thread(void)
{
    return layer_self.number - 1;
}

record_op_t layer_op(uint16_t kind, const file_t *file)
{
    return (record_op_t){
        .kind = kind,
        .file = file == NULL ? 0 : file->id,
        .thread = layer_thread(),
        .matches = file == NULL ? 0 : file->matches,
        .began = record_ticket(&layer.log),
    };
}

record_op_t layer_op_at(uint16_t kind, const place_t *place)
{
    record_op_t op = layer_op(kind, place->exists ? files_lookup(&place->st) : NULL);

    op.matches = plan_match_path(&layer.plan, place->path);
    return op;
}

/* Values in marks have no spaces. */
void layer_mark_unseen(const char *call, const char *path)
{
    record_op_t op = layer_op(TP_OP_MARK, NULL);
    char text[64 + 3 * PATH_MAX];
    size_t used = (size_t)snprintf(text, 64, "unseen %s path=", call);

    for (; *path != '\0'; path++) {
        if (*path == ' ') {
            memcpy(text + used, "%20", 3);
            used += 3;
        } else {
            text[used++] = *path;
        }
    }
    op.length = used;
    text[used] = '\0';
    record_set_flag(&layer.log, TP_TRACE_UNSEEN);
    layer_record_path(&op, text);
}

void layer_check_moved(int fd, const file_t *file)
{
    if (files_of_descriptor(fd) != file) {
        layer_mark_unseen("close-during-call", file->path);
    }
}

void layer_record(const record_op_t *op)
{
    record_append(&layer.log, op, NULL, 0);
}

void layer_record_path(const record_op_t *op, const char *path)
{
    struct iovec part = {(void *)(uintptr_t)path, strlen(path)};

    record_append(&layer.log, op, &part, part.iov_len);
}

static void layer_load_plan(const char *path)
{
    int fd = real_get()->open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 1;
    plan_error_t error;

    if (fd < 0) {
        layer_refuse("plan %s: %s", path, strerror(errno));
    }
    while (got > 0 && used <= PLAN_BYTES_MAX) {
        got = real_get()->read(fd, layer.plan_text + used, PLAN_BYTES_MAX + 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        layer_refuse("plan %s: %s", path, strerror(errno));
    }
    (void)real_get()->close(fd);
    if (used > PLAN_BYTES_MAX) {
        layer_refuse("plan %s: longer than %u bytes", path, PLAN_BYTES_MAX);
    }
    if (memchr(layer.plan_text, '\0', used) != NULL) {
        layer_refuse("plan %s: not a text", path);
    }
    layer.plan_text[used] = '\0';
    if (!plan_parse(layer.plan_text, &layer.plan, &error)) {
        layer_refuse("plan %s: %s", path, error.text);
    }
}

/* False: it is gone, and the recording that this process was started in has ended. */
static bool layer_load_trace(const char *path)
{
    const char *payload = environment_get("TORNPAGE_PAYLOAD");
    const char *max = environment_get("TORNPAGE_TRACE_MAX");
    const char *parent = environment_get(ATTACH_NAME);
    bool attach = parent != NULL && strcmp(parent, path) == 0;
    uint64_t bytes = TRACE_BYTES_DEFAULT;
    char *end = NULL;
    int failure;

    if (path[0] != '/') {
        layer_refuse("TORNPAGE_TRACE=%s: not an absolute path", path);
    }
    if (payload != NULL && strcmp(payload, "full") != 0 && strcmp(payload, "hash") != 0) {
        layer_refuse("TORNPAGE_PAYLOAD=%s: wants full or hash", payload);
    }
    layer.log.keep_data = payload != NULL && strcmp(payload, "full") == 0;
    if (max != NULL) {
        errno = 0;
        bytes = strtoull(max, &end, 10);
        if (errno != 0 || *end != '\0' || max[0] == '-' || bytes < TRACE_BYTES_MIN
            || bytes > INT64_MAX) {
            layer_refuse("TORNPAGE_TRACE_MAX=%s: wants a number of bytes, at least %u", max,
                         TRACE_BYTES_MIN);
        }
    }
    failure = record_open(&layer.log, path, bytes, attach, &layer.share);
    if (failure != 0 && !attach) {
        layer_refuse("trace %s: %s", path, strerror(failure));
    }
    if (!attach) {
        if (!environment_put(ATTACH_NAME, path)) {
            layer_refuse("out of memory");
        }
    }
    return failure == 0;
}

static void layer_load_fiu(void)
{
    const char *commands = environment_get("FIU_ENABLE");
    const char *fifo = environment_get("FIU_CTRL_FIFO");
    const char *preloads = environment_get("LD_PRELOAD");
    const char *failed;

    if (commands == NULL && fifo == NULL) {
        return;
    }
    layer.uses_fiu = true;
    if (preloads != NULL && strstr(preloads, "fiu_run_preload") != NULL) {
        return; /* fiu-run's own library reads these variables */
    }
    failed = fiu_points_setup(commands, fifo);
    if (failed != NULL) {
        layer_refuse("libfiu: %s", failed);
    }
}

static void layer_before_fork(void)
{
    if (!layer_self.busy) {
        layer_take_lock();
    }
}

static void layer_after_fork_parent(void)
{
    if (!layer_self.busy) {
        layer_unlock();
    }
}

/* Copied: the program may overwrite its environment, as one that shows its state in its title does. */
static void layer_take_control(const char *name)
{
    if (name == NULL) {
        return;
    }
    if (strlen(name) > CONTROL_NAME_MAX) {
        layer_refuse("TORNPAGE_CONTROL=%s: %s", name, strerror(ENAMETOOLONG));
    }
    strcpy(layer.control, name);
}

static void layer_make_identity(void)
{
    if (layer.identity == NULL) {
        layer.identity = io_map_memory(IO_PAGE_BYTES);
    }
    if (layer.identity == NULL) {
        layer_refuse("out of memory");
    }
    (void)madvise(layer.identity, IO_PAGE_BYTES, MADV_WIPEONFORK);
    atomic_store(&layer.identity->pid, getpid());
}

bool layer_is_server(void)
{
    return environment_get("TORNPAGE_SERVE") != NULL;
}

/* A fork server's children start it themselves, with what they were asked for. */
__attribute__((constructor)) static void layer_construct(void)
{
    (void)real_get();
    if (!layer_is_server()) {
        layer_start();
    }
}

void layer_start(void)
{
    const char *root = environment_get("TORNPAGE_ROOT");
    const char *trace = environment_get("TORNPAGE_TRACE");
    const char *plan = environment_get("TORNPAGE_PLAN");
    int failure;

    if (root == NULL) {
        if (trace != NULL || plan != NULL) {
            layer_refuse("TORNPAGE_ROOT is not set");
        }
        return;
    }
    failure = files_set_root(root, &layer.plan);
    if (failure != 0) {
        layer_refuse("TORNPAGE_ROOT=%s: %s", root,
                     root[0] == '/' ? strerror(failure) : "not an absolute path");
    }
    if (trace != NULL && !layer_load_trace(trace)) {
        return;
    }
    if (plan != NULL) {
        layer_load_plan(plan);
    }
    layer_load_fiu();
    layer_take_control(environment_get("TORNPAGE_CONTROL"));
    if (trace == NULL && plan == NULL && !layer.uses_fiu) {
        return;
    }
    if (layer.share == NULL) {
        layer.share = share_create();
    }
    if (layer.share == NULL) {
        layer_refuse("out of memory");
    }
    layer_make_positions();
    layer_make_identity();
    files_share(layer.share);
    if (pthread_atfork(layer_before_fork, layer_after_fork_parent, layer_after_fork_child) != 0) {
        layer_refuse("cannot register for fork");
    }
    atomic_store_explicit(&layer.on, true, memory_order_release);
}
