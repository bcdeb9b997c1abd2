/* `engine recover` and `engine check`.

Rules
1. `check` never changes a file and never recovers; `recover` does nothing but open and close
   cleanly.
2. Violations are a result, not an error: exit code 1 with the whole report printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static int report_exit(const check_report_t *report)
{
    if (report->needs_recovery) {
        return EXIT_NEEDS_RECOVERY;
    }
    return report->n_findings > 0 ? EXIT_FINDINGS : EXIT_OK;
}

int cli_check(const cli_args_t *args)
{
    cli_dir_t dir;
    check_report_t report;
    dberr_t err = cli_dir_open(&dir, args->path);
    AND_THEN(err, check_run(dir.os, &report, &dir.env.err));
    int code = EXIT_OK;
    if (err != DB_SUCCESS) {
        code = cli_fail(args, err, &dir.env.err);
    } else {
        if (args->json) {
            cli_print_json(cli_check_json(&report));
        } else {
            cli_print_check(&report);
        }
        code = cli_finish(report_exit(&report));
        check_report_free(&report);
    }
    cli_dir_close(&dir);
    return code;
}

/** Opens (which recovers) and closes cleanly. */
static dberr_t recover_open_close(const cli_args_t *args, os_t *os, cli_probe_t *probe,
                                  engine_status_t *status, err_sink_t *err)
{
    engine_t *engine = NULL;
    TRY(engine_open(os, &probe->base, &args->options, false, &engine, err));
    if (args->sets_log_optimize_ddl) {
        cli_warn_ignored(engine);
    }
    engine_get_status(engine, status);
    return engine_close(engine, true, err);
}

static int recover_print(const cli_args_t *args, const engine_status_t *status,
                         const check_report_t *report, json_t *backups, uint32_t n_wrong)
{
    if (args->json) {
        json_t *result = json_object();
        (void)json_object_set_new(result, "ok", json_true());
        (void)json_object_set_new(result, "status", cli_status_json(status));
        if (report != NULL) {
            (void)json_object_set_new(result, "check", cli_check_json(report));
        }
        if (backups != NULL) {
            (void)json_object_set(result, "backups", backups);
        }
        cli_print_json(result);
    } else {
        cli_print_status(status);
        if (report != NULL) {
            cli_print_check(report);
        }
        if (backups != NULL) {
            cli_print_json(json_incref(backups));
        }
    }
    int code = report != NULL ? report_exit(report) : EXIT_OK;
    return cli_finish(code == EXIT_OK && n_wrong > 0 ? EXIT_FINDINGS : code);
}

int cli_recover(const cli_args_t *args)
{
    cli_probe_t probe;
    engine_status_t status;
    err_sink_t err = {.msg = ""};
    os_t *os = NULL;
    dberr_t e = os_posix_create(args->path, false, &err, &os);
    if (e == DB_SUCCESS) {
        cli_probe_init(&probe);
        e = recover_open_close(args, os, &probe, &status, &err);
    }
    check_report_t report;
    if (e == DB_SUCCESS && args->check) {
        e = check_run(os, &report, &err);
    }
    int code = EXIT_OK;
    if (e != DB_SUCCESS) {
        code = cli_fail(args, e, &err);
    } else {
        uint32_t n_wrong = 0;
        json_t *backups = args->backups ? cli_backups_json(args, os, &probe, &n_wrong) : NULL;
        code = recover_print(args, &status, args->check ? &report : NULL, backups, n_wrong);
        json_decref(backups);
        if (args->check) {
            check_report_free(&report);
        }
    }
    os_destroy(os);
    return code;
}
