/** Private to `engine run`: the state of a run, and the execution of one statement. */
#ifndef CLI_CLI_RUN_H
#define CLI_CLI_RUN_H

#include "cli/cli.h"
#include "cli/script.h"

typedef struct named_trx {
    const char *name;
    trx_t *trx;
    struct named_trx *next;
} named_trx_t;

typedef struct run {
    const cli_args_t *args;
    os_t *os;
    engine_options_t options; /**< as started last */
    engine_t *engine;         /**< NULL: a restart has failed */
    stats_t earlier;          /**< counters of the starts before */
    uint32_t n_restarts;
    cli_probe_t probe;
    named_trx_t *open;
    err_sink_t err; /**< message of a failure found here, not in the engine */
    json_t *failed;
    uint32_t n_acked;
    uint32_t n_failed;
} run_t;

/** Executes one statement. A failure's message is in run->err or, if empty, the engine's. */
WARN_UNUSED dberr_t run_statement(run_t *run, const stmt_t *stmt);

/** Ends this start of the engine and begins another one, with the statement's options. On failure
run->engine is NULL, unless the end has not begun. */
WARN_UNUSED dberr_t run_restart(run_t *run, const stmt_t *stmt);

#endif
