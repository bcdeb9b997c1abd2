/** Set-up from the environment: what the layer records, and where.

Beside layer.c, whose state it fills in. What the environment or the plan asks and cannot be done
ends the process before main. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults/environment.h"
#include "faults/fiu_points.h"
#include "faults/io.h"
#include "faults/layer_int.h"
#include "faults/real.h"
#include "faults/stacks.h"

#define TRACE_BYTES_DEFAULT ((uint64_t)256 << 20)
#define TRACE_BYTES_MIN 4096u
#define ATTACH_NAME "TORNPAGE_ATTACH"

static void layer_load_plan(const char *path)
{
    int fd = real_get()->open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        layer_refuse("plan %s: %s", path, strerror(errno));
    }
    size_t used = 0;
    ssize_t got = 1;
    while (got > 0 && used <= PLAN_BYTES_MAX) {
        got = real_get()->read(fd, layer_state()->plan_text + used, PLAN_BYTES_MAX + 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        layer_refuse("plan %s: %s", path, strerror(errno));
    }
    (void)real_get()->close(fd);
    if (used > PLAN_BYTES_MAX) {
        layer_refuse("plan %s: longer than %u bytes", path, PLAN_BYTES_MAX);
    }
    if (memchr(layer_state()->plan_text, '\0', used) != NULL) {
        layer_refuse("plan %s: not a text", path);
    }
    layer_state()->plan_text[used] = '\0';
    plan_error_t error;
    if (!plan_parse(layer_state()->plan_text, &layer_state()->plan, &error)) {
        layer_refuse("plan %s: %s", path, error.text);
    }
}

static void layer_load_stacks(uint64_t bytes, bool attach)
{
    const char *path = environment_get("TORNPAGE_STACKS");

    if (path == NULL) {
        return;
    }
    if (path[0] != '/') {
        layer_refuse("TORNPAGE_STACKS=%s: not an absolute path", path);
    }
    int failure = stacks_open(path, bytes, attach, &layer_state()->log);
    if (failure == ENOSYS) {
        layer_refuse("TORNPAGE_STACKS: libgcc_s.so.1 is not there: install libgcc (Debian: "
                     "libgcc-s1), or do without stacks");
    }
    if (failure != 0 && !attach) {
        layer_refuse("stacks %s: %s", path, strerror(failure));
    }
}

/* False: it is gone, and the recording that this process was started in has ended. */
static bool layer_load_trace(const char *path)
{
    const char *payload = environment_get("TORNPAGE_PAYLOAD");
    const char *max = environment_get("TORNPAGE_TRACE_MAX");
    const char *parent = environment_get(ATTACH_NAME);
    bool attach = parent != NULL && strcmp(parent, path) == 0;
    if (path[0] != '/') {
        layer_refuse("TORNPAGE_TRACE=%s: not an absolute path", path);
    }
    if (payload != NULL && strcmp(payload, "full") != 0 && strcmp(payload, "hash") != 0) {
        layer_refuse("TORNPAGE_PAYLOAD=%s: wants full or hash", payload);
    }
    layer_state()->log.keep_data = payload != NULL && strcmp(payload, "full") == 0;
    uint64_t bytes = TRACE_BYTES_DEFAULT;
    char *end = NULL;
    if (max != NULL) {
        errno = 0;
        bytes = strtoull(max, &end, 10);
        if (errno != 0 || *end != '\0' || max[0] == '-' || bytes < TRACE_BYTES_MIN
            || bytes > INT64_MAX) {
            layer_refuse("TORNPAGE_TRACE_MAX=%s: wants a number of bytes, at least %u", max,
                         TRACE_BYTES_MIN);
        }
    }
    int failure = record_open(&layer_state()->log, TP_TRACE_MAGIC, path, bytes, attach,
                              &layer_state()->share);
    if (failure != 0 && !attach) {
        layer_refuse("trace %s: %s", path, strerror(failure));
    }
    if (failure == 0) {
        layer_load_stacks(bytes, attach);
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
    if (commands == NULL && fifo == NULL) {
        return;
    }
    layer_state()->uses_fiu = true;
    if (preloads != NULL && strstr(preloads, "fiu_run_preload") != NULL) {
        return; /* fiu-run's own library reads these variables */
    }
    const char *failed = fiu_points_setup(commands, fifo);
    if (failed != NULL) {
        layer_refuse("libfiu: %s", failed);
    }
}

/* Copied: the program may overwrite its environment, as one that shows its state in its title
does. */
static void layer_take_name(const char *variable, char *to, size_t longest)
{
    const char *name = environment_get(variable);

    if (name == NULL) {
        return;
    }
    if (strlen(name) > longest) {
        layer_refuse("%s=%s: %s", variable, name, strerror(ENAMETOOLONG));
    }
    strcpy(to, name);
}

static void layer_make_identity(void)
{
    if (layer_state()->identity == NULL) {
        layer_state()->identity = io_map_memory(IO_PAGE_BYTES);
    }
    if (layer_state()->identity == NULL) {
        layer_refuse("out of memory");
    }
    (void)madvise(layer_state()->identity, IO_PAGE_BYTES, MADV_WIPEONFORK);
    atomic_store(&layer_state()->identity->pid, getpid());
}

bool layer_is_server(void)
{
    return environment_get("TORNPAGE_SERVE") != NULL;
}

void layer_start(void)
{
    const char *root = environment_get("TORNPAGE_ROOT");
    const char *trace = environment_get("TORNPAGE_TRACE");
    const char *plan = environment_get("TORNPAGE_PLAN");
    if (root == NULL) {
        if (trace != NULL || plan != NULL) {
            layer_refuse("TORNPAGE_ROOT is not set");
        }
        return;
    }
    int failure = files_set_root(root, &layer_state()->plan);
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
    layer_take_name("TORNPAGE_CONTROL", layer_state()->control, CONTROL_NAME_MAX);
    layer_take_name("TORNPAGE_PAUSE", layer_state()->pause, PAUSE_NAME_MAX);
    if (trace == NULL && plan == NULL && !layer_state()->uses_fiu) {
        return;
    }
    if (layer_state()->share == NULL) {
        layer_state()->share = share_create();
    }
    if (layer_state()->share == NULL) {
        layer_refuse("out of memory");
    }
    layer_make_positions();
    layer_make_identity();
    files_share(layer_state()->share);
    if (pthread_atfork(layer_before_fork, layer_after_fork_parent, layer_after_fork_child) != 0) {
        layer_refuse("cannot register for fork");
    }
    atomic_store_explicit(&layer_state()->on, true, memory_order_release);
}
