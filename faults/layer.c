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
6. What the environment or the plan asks and cannot be done ends the process before main. */
#include "faults/layer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include "faults/control.h"
#include "faults/fiu_points.h"
#include "faults/io.h"
#include "faults/real.h"

#define TRACE_BYTES_DEFAULT ((uint64_t)256 << 20)
#define TRACE_BYTES_MIN 4096u
#define ATTACH_NAME "TORNPAGE_ATTACH"

#define POSITIONS 64u

static struct {
    share_t *share;
    atomic_bool on;
    atomic_bool has_events;      /* this process, or the one that it was forked from, has had one */
    atomic_bool started;         /* what comes with the first event of this process is done */
    atomic_bool control_started; /* its thread runs, or will */
    bool uses_fiu;
    const char *control; /* name of the control socket, or NULL */
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
} layer_self;

void layer_refuse(const char *format, ...)
{
    char text[1024];
    va_list args;
    int used = snprintf(text, sizeof(text), "tornpage_preload: ");
    size_t len;

    va_start(args, format);
    (void)vsnprintf(text + used, sizeof(text) - (size_t)used - 1, format, args);
    va_end(args);
    len = strlen(text);
    text[len++] = '\n';
    if (real_get()->write(STDERR_FILENO, text, len) < 0) {
        _exit(LAYER_EXIT_REFUSED);
    }
    _exit(LAYER_EXIT_REFUSED);
}

bool layer_is_on(void)
{
    return atomic_load_explicit(&layer.on, memory_order_acquire) && !layer_self.busy;
}

bool layer_has_events(void)
{
    return layer_is_on() && atomic_load_explicit(&layer.has_events, memory_order_relaxed);
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
    share_unlock(layer.share);
}

/* Once per process. */
static void layer_start_control(void)
{
    int failure;

    if (layer.control == NULL || atomic_exchange(&layer.control_started, true)) {
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
        atomic_store(&layer.has_events, true);
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

file_t *layer_begin(int fd, uint16_t kind, record_op_t *op)
{
    file_t *file = files_of_descriptor(fd);

    if (file == NULL || layer_self.busy) {
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
    file_t *file = files_of_descriptor(fd);

    if (file == NULL || layer_self.busy) {
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

void layer_record(const record_op_t *op)
{
    record_append(&layer.log, op, NULL, 0);
}

void layer_record_path(const record_op_t *op, const char *path)
{
    struct iovec part = {(void *)(uintptr_t)path, strlen(path)};

    record_append(&layer.log, op, &part, part.iov_len);
}

/* Not getenv: a program such as bash brings its own, which is not ready before main. */
static const char *env_get(const char *name)
{
    size_t len = strlen(name);

    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (strncmp(*at, name, len) == 0 && (*at)[len] == '=' && (*at)[len + 1] != '\0') {
            return *at + len + 1;
        }
    }
    return NULL;
}

/* Adds NAME=VALUE in front of a copy of the environment, for the same reason. */
static void env_put(const char *name, const char *value)
{
    size_t count = 0;
    size_t text_len = strlen(name) + strlen(value) + 2;
    char **copy;
    char *text;

    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    copy = io_map_memory((count + 2) * sizeof(*copy) + text_len);
    if (copy == NULL) {
        layer_refuse("out of memory");
    }
    text = (char *)(copy + count + 2);
    (void)snprintf(text, text_len, "%s=%s", name, value);
    copy[0] = text;
    if (count > 0) {
        memcpy(copy + 1, environ, count * sizeof(*copy));
    }
    environ = copy;
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
    const char *payload = env_get("TORNPAGE_PAYLOAD");
    const char *max = env_get("TORNPAGE_TRACE_MAX");
    const char *parent = env_get(ATTACH_NAME);
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
        env_put(ATTACH_NAME, path);
    }
    return failure == 0;
}

static void layer_load_fiu(void)
{
    const char *commands = env_get("FIU_ENABLE");
    const char *fifo = env_get("FIU_CTRL_FIFO");
    const char *preloads = env_get("LD_PRELOAD");
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
    layer_make_positions();
    atomic_store(&layer.started, false);
    atomic_store(&layer.control_started, false);
}

bool layer_is_server(void)
{
    return env_get("TORNPAGE_SERVE") != NULL;
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
    const char *root = env_get("TORNPAGE_ROOT");
    const char *trace = env_get("TORNPAGE_TRACE");
    const char *plan = env_get("TORNPAGE_PLAN");
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
    if (plan != NULL) {
        layer_load_plan(plan);
    }
    if (trace != NULL && !layer_load_trace(trace)) {
        return;
    }
    layer_load_fiu();
    layer.control = env_get("TORNPAGE_CONTROL");
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
    files_share(layer.share);
    if (pthread_atfork(layer_before_fork, layer_after_fork_parent, layer_after_fork_child) != 0) {
        layer_refuse("cannot register for fork");
    }
    atomic_store_explicit(&layer.on, true, memory_order_release);
}
