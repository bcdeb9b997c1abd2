/** libfiu points "tornpage/io/NAME", one per kind of operation.

Leaf of the preload. libfiu is linked, not searched for: the engine links it too, and both must see
one instance. Nothing here runs unless libfiu's environment variables are set.
1. A point is asked under the layer's lock, with the layer marked busy: what libfiu itself opens or
   reads passes through. */
#include "faults/fiu_points.h"

#include <errno.h>
#include <fiu-control.h>
#define FIU_ENABLE 1
#include <fiu.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "faults/trace.h"

static const char *const fiu_names[TP_OP_KINDS] = {
    [TP_OP_OPEN] = "tornpage/io/open",           [TP_OP_READ] = "tornpage/io/read",
    [TP_OP_WRITE] = "tornpage/io/write",         [TP_OP_FSYNC] = "tornpage/io/fsync",
    [TP_OP_FDATASYNC] = "tornpage/io/fdatasync", [TP_OP_SYNC_RANGE] = "tornpage/io/sync_range",
    [TP_OP_TRUNCATE] = "tornpage/io/truncate",   [TP_OP_FALLOCATE] = "tornpage/io/fallocate",
    [TP_OP_RENAME] = "tornpage/io/rename",       [TP_OP_UNLINK] = "tornpage/io/unlink",
    [TP_OP_SYNC_DIR] = "tornpage/io/sync_dir",   [TP_OP_MKDIR] = "tornpage/io/mkdir",
    [TP_OP_LINK] = "tornpage/io/link",
};

static const char *fiu_run_command(const char *text, size_t len)
{
    char command[512];
    if (len >= sizeof(command)) {
        return "FIU_ENABLE: command too long";
    }
    memcpy(command, text, len);
    command[len] = '\0';
    if (strspn(command, " \t") == len) {
        return NULL;
    }
    char *error = NULL;
    if (fiu_rc_string(command, &error) != 0) {
        return error == NULL ? "FIU_ENABLE: bad command" : error;
    }
    return NULL;
}

const char *fiu_points_setup(const char *commands, const char *fifo)
{
    if (fiu_init(0) < 0) {
        return "cannot be initialised";
    }
    while (commands != NULL) {
        size_t len = strcspn(commands, "\n");
        const char *failed = fiu_run_command(commands, len);
        if (failed != NULL) {
            return failed;
        }
        commands = commands[len] == '\n' ? commands + len + 1 : NULL;
    }
    if (fifo != NULL && fiu_rc_fifo(fifo) < 0) {
        return "cannot open the control pipe FIU_CTRL_FIFO";
    }
    return NULL;
}

int fiu_points_fail(uint16_t kind)
{
    const char *name = fiu_names[kind];
    if (name == NULL || fiu_fail(name) == 0) {
        return 0;
    }
    uintptr_t info = (uintptr_t)fiu_failinfo();
    return info > 0 && info < 4096 ? (int)info : EIO;
}
