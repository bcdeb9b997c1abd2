/** The verifier of a target that is a command: a folder per line in, a JSON line out.

    {"ok": true, "state": {"accounts": "1 100\n2 250\n", ...}, "findings": ["a broken page", ...]}
    {"ok": false, "message": "why it refuses to start"}

One question, one line: whoever says more has given no answer, and of a long-lived process, whose
next answer that might be taken for, no verdict counts any more.

"state" has a text for each name (state_json.h); "findings" may be left out, and one may be
{"invariant": N, "what": "..."} instead of a text, which is I6. A program that computes digests as
the model does (scanned) answers with the scanner's object instead: {"ok": true, "check":
{"needs_recovery": false, "tables": [...], "findings": [...]}}, where nothing may be left out. Which
of the two is read is never up to the answer. */
#ifndef COMMAND_VERIFY_COMMAND_H
#define COMMAND_VERIFY_COMMAND_H

#include <sys/types.h>

#include "explorer/targets/verifier.h"

#define COMMAND_ARGS_MAX 64U

/** What is run, and the process that runs now: each process of the explorer has one of its own. */
typedef struct verify_command {
    const char *argv[COMMAND_ARGS_MAX + 1]; /**< ends with NULL */
    uint32_t n_args;
    uint32_t deadline_s; /**< of one state */
    bool long_lived;     /**< one process answers for many states; else one for each */
    bool scanned;        /**< answers have the scanner's object; else a state */
    const char *preload; /**< the library that records; NULL: no recovery can be recorded */
    const char *fs;      /**< the program that records in its place; NULL: it does */
    const char *root;    /**< of this process: what is recorded, and where */
    const char *trace;
    pid_t pid;    /**< 0: none */
    pid_t spared; /**< a process of another command, which goes on; 0: none */
    int to_fd;
    int from_fd;
    int log_fd; /**< its standard error */
    char *answer;
    size_t used;     /**< bytes that were read */
    size_t line_end; /**< of these: the line, with its end */
    size_t room;
} verify_command_t;

/** The verifier of the command, which stays where it is. */
verifier_t verify_command_verifier(verify_command_t *command);
/** verifier_t's stop. */
dberr_t verify_command_stop(void *self, err_sink_t *err);

#endif
