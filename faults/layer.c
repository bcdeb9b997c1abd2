/** Set-up from the environment, begin and end of an operation, the lock.

Above files.c, record.c and plan.c; below inject.c and the interposed functions. A preload library
has no handle that its caller could pass, so that the state here, in files.c and in real.c is
static: the one place of the project where that is unavoidable.

1. Reads, writes, syncs and changes of size run side by side, as without the layer. Each takes a
   ticket when it begins, and is recorded when it has ended: the stream has the order of the ends.
2. What changes descriptors or paths is made under the lock, and so is what a plan hits: the tables
   are true, and a thread that dies inside ends all others that come to a tracked file.
3. The lock is one of all processes of the recording: those that TORNPAGE_TRACE reached, forked or
   executed.
4. The layer is not re-entrant: what a signal handler or a library does while its thread is inside
   passes through.
5. A thread inside cannot be cancelled: it would take the lock, or a write that nobody recorded,
   with it.
6. The tables are those of the process whose memory they lie in. A child of vfork, or another that
   shares it, has descriptors of its own, and changes none of them. */
#include "faults/layer_int.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include "faults/control.h"
#include "faults/environment.h"
#include "faults/fiu_points.h"
#include "faults/io.h"
#include "faults/real.h"
#include "faults/stacks.h"

#define SYNC_NS 1000000 /* of a disk with a cache that power loss does not clear, or flash */

static layer_t layer;

layer_t *layer_state(void)
{
    return &layer;
}

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

void layer_set_host(const layer_host_t *host)
{
    layer.host = host;
}

void layer_set_thread(uint32_t number)
{
    layer_self.number = number;
}

void layer_die(void)
{
    if (layer.host != NULL) {
        layer.host->die();
    }
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
        stacks_recover();
    }
    layer_self.locked = true;
    if (layer.share->ended) { /* of a host, which goes on without what it has killed */
        layer_die();
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
    static const char MARK[] = "refused ";
    const char *name = layer.host != NULL ? layer.host->name : "tornpage_preload";
    char text[1024];
    va_list args;
    int used = snprintf(text, sizeof(text), "%s: ", name);
    va_start(args, format);
    (void)vsnprintf(text + used, sizeof(text) - (size_t)used - 1, format, args);
    va_end(args);
    size_t len = strlen(text);
    text[len] = '\n';
    if (real_get()->write(STDERR_FILENO, text, len + 1) < 0) {
        /* then the trace alone says it */
    }
    text[len] = '\0';
    char *mark = text + used + 1 - sizeof(MARK); /* a name is longer than that */
    memcpy(mark, MARK, sizeof(MARK) - 1);
    layer_mark_refusal(mark);
    _exit(LAYER_EXIT_REFUSED);
}

/* Once per process. */
static void layer_start_control(void)
{
    if (layer.control[0] == '\0' || atomic_exchange(&layer.control_started, true)) {
        return;
    }
    int failure = control_start(layer.control, &layer.share->control,
                                layer.host != NULL ? layer.host->peer : NULL);
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

/* The same for an operation, which has a stack. */
static void layer_go_in_from_program(void)
{
    layer_go_in();
    stacks_take();
}

static void layer_go_out(void)
{
    layer_self.busy = false;
    if (layer_self.held) {
        (void)pthread_setcancelstate(layer_self.cancel_state, NULL);
    }
}

void layer_make_positions(void)
{
    for (uint32_t i = 0; i < POSITIONS; i++) {
        (void)pthread_mutex_init(&layer.positions[i], NULL);
    }
}

/* The lock is the parent's; a position may have been held by a thread that is not here. */
void layer_after_fork_child(void)
{
    layer_self.number = 0;
    layer_self.call = 0;
    atomic_store(&layer.identity->pid, getpid());
    layer_make_positions();
    atomic_store(&layer.started, false);
    atomic_store(&layer.control_started, false);
}

/* The descriptor's number is being given away, or was when we looked. Who comes meanwhile is no
thread of the stream by that. */
static bool layer_wait(const struct stat *st)
{
    int saved = errno;
    int state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    layer_self.busy = true;
    layer_take_lock();
    bool known = st != NULL && share_file_find(layer.share, st) != 0;
    layer_unlock();
    layer_self.busy = false;
    (void)pthread_setcancelstate(state, NULL);
    errno = saved;
    return known;
}

bool layer_knows(const struct stat *st)
{
    return layer_is_on() && layer_wait(st);
}

bool layer_is_guest(void)
{
    pid_t pid = getpid();
    if (!layer_is_on()) {
        return false;
    }
    pid_t owner = atomic_load(&layer.identity->pid);
    if (owner == 0) {
        layer_after_fork_child();
        return false;
    }
    if (owner != pid) {
        atomic_store(&layer.identity->guests_move, true);
    }
    return owner != pid;
}

/* The file of a descriptor; NULL: not ours. Of a guest's numbers we know nothing as soon as they
are not its host's. */
static file_t *layer_find(int fd)
{
    file_t *file = files_of_descriptor(fd);

    if ((file == NULL && files_is_free(fd)) || layer_self.busy) {
        return NULL;
    }
    if (atomic_load_explicit(&layer.identity->guests_move, memory_order_relaxed)
        && layer_is_guest()) {
        return NULL;
    }
    if (file == NULL) {
        (void)layer_wait(NULL);
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
    layer_begin_file(file, kind, op);
    return file;
}

void layer_begin_file(const file_t *file, uint16_t kind, record_op_t *op)
{
    layer_go_in_from_program();
    *op = (record_op_t){.kind = kind,
                        .file = file->id,
                        .matches = file->matches,
                        .began = record_ticket(&layer.log)};
}

void layer_begin_path(record_op_t *op, uint16_t kind)
{
    layer_go_in_from_program();
    *op = (record_op_t){.kind = kind, .began = record_ticket(&layer.log)};
}

file_t *layer_enter(int fd)
{
    file_t *file = layer_find(fd);

    if (file == NULL) {
        return NULL;
    }
    layer_go_in_from_program();
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
    layer_go_in_from_program();
    layer_lock();
    return true;
}

bool layer_enter_mark(void)
{
    if (!layer_is_on()) {
        return false;
    }
    layer_go_in();
    layer_lock();
    return true;
}

bool layer_enter_note(void)
{
    if (!layer_is_on()) {
        return false;
    }
    layer_go_in_from_program();
    layer_take_lock(); /* no event, so this thread has no number by it */
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

/* The size is at stake, and so is the whole file. */
void layer_resize_begins(const record_op_t *op)
{
    record_op_t all = {.file = op->file, .length = UINT64_MAX};

    layer_call_begins(&all);
}

void layer_call_ended(void)
{
    atomic_store_explicit(&layer_own_call()->file, 0, memory_order_release);
}

void layer_sync_lasts(void)
{
    if (!layer_is_alone()
        || atomic_load_explicit(&layer.share->threads, memory_order_relaxed) > 1) {
        const struct timespec time = {.tv_nsec = SYNC_NS};
        (void)nanosleep(&time, NULL);
    }
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

void layer_record_mark(const record_op_t *op, const char *text)
{
    struct iovec part = {(void *)(uintptr_t)text, op->length};

    record_append(&layer.log, op, &part, part.iov_len);
    pause_at_mark(layer.pause, text, part.iov_len);
}

void layer_record_path(const record_op_t *op, const char *path)
{
    struct iovec part = {(void *)(uintptr_t)path, strlen(path)};

    record_append(&layer.log, op, &part, part.iov_len);
}

void layer_record_paths(const record_op_t *op, const char *from, const char *to)
{
    const struct iovec parts[] = {{(void *)(uintptr_t)from, strlen(from) + 1},
                                  {(void *)(uintptr_t)to, strlen(to)}};

    record_append(&layer.log, op, parts, parts[0].iov_len + parts[1].iov_len);
}

void layer_before_fork(void)
{
    if (!layer_self.busy) {
        layer_take_lock();
    }
}

void layer_after_fork_parent(void)
{
    if (!layer_self.busy) {
        layer_unlock();
    }
}
