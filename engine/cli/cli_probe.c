/* The probe of the `engine` program: markers go to the recorder, fault points to libfiu.

Place: cli/; the engine itself knows neither.

Rules
1. Nobody listens, nothing happens: the probe stays unarmed, and libfiu is not even initialised.
2. libfiu is set up from the environment once per process: by the preload library or by fiu-run's
   own if one of them is here, else by this file.
3. A point that libfiu fails ends the process as a crash would, by SIGKILL: no handler, no buffer
   flushed. */
#include <dlfcn.h>
#include <fiu-control.h>
#define FIU_ENABLE 1
#include <fiu.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/cli.h"
#include "marking/tornpage_mark.h"

#define POINT_PREFIX "tornpage/"
#define POINT_NAME_MAX 128
#define COMMAND_MAX 512

static void probe_to_trace(void *ctx, const char *text, size_t len)
{
    const cli_probe_t *probe = ctx;
    probe->trace_mark(text, len);
}

/** Of a recorder that is a file system, and in no process. */
static void probe_to_socket(void *ctx, const char *text, size_t len)
{
    const cli_probe_t *probe = ctx;
    char line[MARK_LEN_MAX + 1];
    CHECK(len < sizeof(line));
    (void)snprintf(line, sizeof(line), "%.*s", (int)len, text);
    tornpage_mark_by_socket(probe->control, line);
}

static void probe_to_stacks(void *ctx, const char *text, size_t len)
{
    const cli_probe_t *probe = ctx;
    (void)probe->stack_note(text, len);
}

static void probe_to_fiu(void *ctx, const char *name)
{
    (void)ctx;
    char full[POINT_NAME_MAX];
    (void)snprintf(full, sizeof(full), POINT_PREFIX "%s", name);
    if (fiu_fail(full) != 0) {
        (void)kill(getpid(), SIGKILL);
        for (;;) {
            (void)pause();
        }
    }
}

/** One command per line, as fiu-run writes them. */
static void run_fiu_commands(const char *commands)
{
    while (*commands != '\0') {
        char command[COMMAND_MAX];
        size_t len = strcspn(commands, "\n");
        char *error = NULL;
        if (len > 0 && len < sizeof(command)) {
            memcpy(command, commands, len);
            command[len] = '\0';
            if (fiu_rc_string(command, &error) != 0) {
                (void)fprintf(stderr, "engine: FIU_ENABLE: %s\n",
                              error != NULL ? error : "bad command");
            }
        }
        commands += len + (commands[len] == '\n');
    }
}

static void setup_fiu(bool traced, const char *commands, const char *fifo)
{
    const char *preload = getenv("LD_PRELOAD");
    (void)fiu_init(0);
    if (traced || (preload != NULL && strstr(preload, "fiu_run_preload") != NULL)) {
        return;
    }
    if (commands != NULL) {
        run_fiu_commands(commands);
    }
    if (fifo != NULL && fifo[0] != '\0' && fiu_rc_fifo(fifo) < 0) {
        (void)fprintf(stderr, "engine: FIU_CTRL_FIFO: the control pipe cannot be opened\n");
    }
}

/** function: gets the address of the function, NULL if it is not here. */
static void symbol_of(void *function, const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &symbol, sizeof(symbol)); /* a data and a code pointer do not convert */
}

void cli_probe_init(cli_probe_t *probe)
{
    const char *commands = getenv("FIU_ENABLE");
    const char *fifo = getenv("FIU_CTRL_FIFO");
    symbol_of(&probe->trace_mark, "tp_trace_mark");
    symbol_of(&probe->stack_note, "tp_stack_note");
    probe->base = (probe_t){.ctx = probe};
    if (commands != NULL || fifo != NULL) {
        setup_fiu(probe->trace_mark != NULL, commands, fifo);
        probe->base.point = probe_to_fiu;
    }
    probe->control = getenv("TORNPAGE_CONTROL");
    if (probe->trace_mark != NULL) {
        probe->base.mark = probe_to_trace;
    } else if (probe->control != NULL) {
        probe->base.mark = probe_to_socket;
    }
    if (probe->stack_note != NULL && probe->stack_note("", 0)) {
        probe->base.note = probe_to_stacks;
    }
    atomic_store(&probe->base.armed, probe->base.point != NULL || probe->base.mark != NULL);
}
