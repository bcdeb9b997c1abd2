/* `engine run`: reads a script, opens the database, executes statement by statement.

Place: cli/, above cli_stmt.c.

Rules
1. The journal: marker `issue` before a statement, `ack` after it succeeded (for a commit: after it
   is as durable as flush_log_at_trx_commit says), `fail` after it failed and changed nothing. A
   statement that met a fatal error gets neither: it may have been applied.
2. A run-time failure of a statement is reported, and the script goes on; a fatal error ends it, and
   so does a restart that fails.
3. Counters of the end are those of all starts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_run.h"

#define SCRIPT_BLOCK ((size_t)64 * 1024)
#define SCRIPT_LEN_MAX ((size_t)64 * 1024 * 1024) /* it is held in memory as a whole */

/** Did the statement change nothing, so that the script can go on? */
static bool is_statement_error(dberr_t err)
{
    switch (err) {
    case DB_ERROR:
    case DB_DUPLICATE_KEY:
    case DB_RECORD_NOT_FOUND:
    case DB_LOCK_CONFLICT:
    case DB_NOT_FOUND:
    case DB_ALREADY_EXISTS:
    case DB_TABLE_LOCKED:
    case DB_OUT_OF_SPACE:
    case DB_TEMP_FILE_FAILED:
    case DB_UNSUPPORTED:
    case DB_ONLINE_LOG_TOO_BIG:
    case DB_BACKUP_ABORTED:
    case DB_PAUSED:
        return true;
    default:
        return false;
    }
}

static const char *run_message(const run_t *run)
{
    return run->err.msg[0] != '\0' ? run->err.msg : engine_error(run->engine);
}

static dberr_t run_open(run_t *run)
{
    return engine_open(run->os, &run->probe.base, &run->options, run->n_restarts == 0, &run->engine,
                       &run->err);
}

/** Everything, or nothing but letting go. */
static dberr_t run_close(run_t *run, bool clean)
{
    engine_t *engine = run->engine;
    while (run->open != NULL) {
        named_trx_t *next = run->open->next;
        free(run->open);
        run->open = next;
    }
    run->engine = NULL;
    return engine_close(engine, clean, run->err.msg[0] == '\0' ? &run->err : NULL);
}

/** The engine's, with the counters of all starts; zeros if a restart has failed. */
static void run_get_status(const run_t *run, engine_status_t *status)
{
    stats_t sum = run->earlier;
    *status = (engine_status_t){.page_size = 0};
    if (run->engine != NULL) {
        engine_get_status(run->engine, status);
    }
    stats_add(&sum, &status->stats);
    status->stats = sum;
}

static void run_report_failure(run_t *run, const stmt_t *stmt, dberr_t err)
{
    const char *message = run_message(run);
    run->n_failed++;
    if (run->args->json) {
        (void)json_array_append_new(run->failed,
                                    json_pack("{s:I, s:s, s:o}", "line", (json_int_t)stmt->line,
                                              "error", err_name(err), "message",
                                              cli_escaped((const byte *)message, strlen(message))));
    } else {
        (void)fflush(stdout);
        (void)fprintf(stderr, "engine: line %" PRIu32 ": %s: %s\n", stmt->line, err_name(err),
                      message);
    }
}

/** A commit that has not written its log would be lost, and nobody can predict which ones have: the
log is written first. */
static dberr_t run_end_start(run_t *run, bool clean)
{
    if (!clean && run->options.flush_log_at_trx_commit == 0) {
        TRY(engine_flush_log(run->engine));
    }
    engine_status_t status;
    engine_get_status(run->engine, &status);
    dberr_t err = run_close(run, clean);
    stats_add(&run->earlier, &status.stats);
    return err;
}

dberr_t run_restart(run_t *run, const stmt_t *stmt)
{
    dberr_t err = run_end_start(run, stmt->flag);
    for (uint32_t i = 0; err == DB_SUCCESS && i < stmt->n_options; i++) {
        err =
            options_parse(&run->options, stmt->options[i].name, stmt->options[i].value, &run->err);
    }
    run->n_restarts++;
    TRY(err);
    return run_open(run);
}

static dberr_t run_script(run_t *run, const script_t *script)
{
    for (uint32_t i = 0; i < script_n_stmts(script); i++) {
        const stmt_t *stmt = script_stmt(script, i);
        run->err.msg[0] = '\0';
        PROBE_MARK(&run->probe.base, "issue n=%" PRIu32 " trx=%s", stmt->line,
                   stmt->trx != NULL ? stmt->trx : "-");
        dberr_t err = run_statement(run, stmt);
        engine_status_t status;
        run_get_status(run, &status);
        if (err != DB_SUCCESS
            && (run->engine == NULL || status.poisoned || !is_statement_error(err))) {
            char message[sizeof(run->err.msg)];
            (void)snprintf(message, sizeof(message), "%s", run_message(run));
            return err_set(&run->err, err, "line %" PRIu32 ": %.400s", stmt->line, message);
        }
        if (err != DB_SUCCESS) {
            PROBE_MARK(&run->probe.base, "fail n=%" PRIu32 " err=%s", stmt->line, err_name(err));
            run_report_failure(run, stmt, err);
            continue;
        }
        PROBE_MARK(&run->probe.base, "ack n=%" PRIu32, stmt->line);
        run->n_acked++;
        if (run->args->acks
            && (printf("ack %" PRIu32 "\n", stmt->line) < 0 || fflush(stdout) != 0)) {
            return err_set(&run->err, DB_IO_ERROR,
                           "line %" PRIu32 ": the acknowledgement cannot be "
                           "written",
                           stmt->line);
        }
    }
    run->err.msg[0] = '\0';
    return DB_SUCCESS;
}

/** The last line of output. */
static int run_print_result(run_t *run, dberr_t err, const engine_status_t *status)
{
    if (err != DB_SUCCESS) {
        (void)fflush(stdout);
        (void)fprintf(stderr, "engine: %s\n", run->err.msg);
    }
    if (!run->args->json) {
        (void)printf("%" PRIu32 " statements done, %" PRIu32 " failed\n", run->n_acked,
                     run->n_failed);
        return cli_finish(cli_exit_code(err));
    }
    json_t *result = json_object();
    (void)json_object_set_new(result, "ok", json_boolean(err == DB_SUCCESS));
    if (err != DB_SUCCESS) {
        (void)json_object_set_new(result, "error", json_string(err_name(err)));
        (void)json_object_set_new(result, "message",
                                  cli_escaped((const byte *)run->err.msg, strlen(run->err.msg)));
    }
    (void)json_object_set_new(result, "statements", cli_u64(run->n_acked + run->n_failed));
    (void)json_object_set(result, "failed", run->failed);
    json_t *counters = cli_status_json(status);
    (void)json_object_set_new(counters, "restarts", cli_u64(run->n_restarts));
    (void)json_object_set_new(result, "status", counters);
    cli_print_json(result);
    return cli_finish(cli_exit_code(err));
}

static int run_open_and_execute(run_t *run, const script_t *script)
{
    const cli_args_t *args = run->args;
    dberr_t err = run_open(run);
    if (err != DB_SUCCESS) {
        return cli_fail(args, err, &run->err);
    }
    if (args->sets_log_optimize_ddl) {
        cli_warn_ignored(run->engine);
    }
    err = run_script(run, script);
    engine_status_t status;
    run_get_status(run, &status);
    if (run->engine != NULL) {
        dberr_t close_err = run_close(run, !args->crash && !status.poisoned);
        AND_THEN(err, close_err);
    }
    return run_print_result(run, err, &status);
}

/** Reads a whole file of at most SCRIPT_LEN_MAX bytes. Caller: free(). NULL with a message in
err. */
static char *read_script(const char *path, size_t *len, err_sink_t *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    *len = 0;
    char *text = NULL;
    size_t size = 0;
    while (file != NULL && !ferror(file) && !feof(file) && *len <= SCRIPT_LEN_MAX) {
        if (*len == size) {
            size = size == 0 ? SCRIPT_BLOCK : 2 * size;
            char *grown = realloc(text, size);
            if (grown == NULL) {
                break;
            }
            text = grown;
        }
        *len += fread(text + *len, 1, size - *len, file);
    }
    if (*len > SCRIPT_LEN_MAX || file == NULL || ferror(file) || !feof(file)) {
        (void)(*len > SCRIPT_LEN_MAX ? err_set(err, DB_ERROR, "script %s is longer than %zu bytes",
                                               path, SCRIPT_LEN_MAX)
                                     : err_set(err, DB_ERROR, "script %s cannot be read", path));
        free(text);
        text = NULL;
    }
    if (file != NULL && file != stdin) {
        (void)fclose(file);
    }
    return text;
}

int cli_run(const cli_args_t *args)
{
    run_t run = {.args = args, .options = args->options};
    script_t *script = NULL;
    size_t len = 0;
    char *text = read_script(args->script, &len, &run.err);
    if (text == NULL) {
        return cli_fail(args, DB_ERROR, &run.err);
    }
    dberr_t err = script_parse(text, len, &script, &run.err);
    free(text);
    AND_THEN(err, os_posix_create(args->path, true, &run.err, &run.os));
    if (err != DB_SUCCESS) {
        script_free(script);
        return cli_fail(args, err, &run.err);
    }
    cli_probe_init(&run.probe);
    run.failed = json_array();
    int code = run_open_and_execute(&run, script);
    json_decref(run.failed);
    os_destroy(run.os);
    script_free(script);
    return code;
}
