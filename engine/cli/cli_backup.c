/* `engine backup`, `engine prepare`, and the backups in the folders of a database.

Place: cli/, beside cli_check.c.

Rules
1. A backup that cannot be prepared is a result where many are looked at, and a failure where it is
   the one asked for.
2. An unfinished backup is left as it is: nothing is known of it but that it is unfinished. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backup/backup_info.h"
#include "cli/cli.h"

static int backup_print(const cli_args_t *args, const engine_status_t *status)
{
    if (args->json) {
        cli_print_json(json_pack("{s:b, s:o}", "ok", 1, "status", cli_status_json(status)));
    } else {
        cli_print_status(status);
    }
    return cli_finish(EXIT_OK);
}

/** Opens the database, makes the backup, and closes it. */
static dberr_t backup_make(const cli_args_t *args, os_t *os, os_t *target, cli_probe_t *probe,
                           engine_status_t *status, err_sink_t *err)
{
    engine_t *engine = NULL;
    TRY(engine_open(os, &probe->base, &args->options, false, &engine, err));
    dberr_t e = engine_backup(engine, target);
    if (e != DB_SUCCESS) {
        (void)err_set(err, e, "%s", engine_error(engine));
    }
    engine_get_status(engine, status);
    dberr_t close_err = engine_close(engine, !status->poisoned, e == DB_SUCCESS ? err : NULL);
    TRY(e);
    return close_err;
}

int cli_backup(const cli_args_t *args)
{
    err_sink_t err = {.msg = ""};
    os_t *os = NULL;
    dberr_t e = os_posix_create(args->path, false, &err, &os);
    AND_THEN(e, engine_check_dir(os, &err));
    os_t *target = NULL;
    AND_THEN(e, os_posix_create(args->target, true, &err, &target));
    cli_probe_t probe;
    engine_status_t status;
    if (e == DB_SUCCESS) {
        cli_probe_init(&probe);
        e = backup_make(args, os, target, &probe, &status, &err);
    }
    os_destroy(target);
    os_destroy(os);
    return e == DB_SUCCESS ? backup_print(args, &status) : cli_fail(args, e, &err);
}

static int prepare_print(const cli_args_t *args, const engine_status_t *status,
                         const check_report_t *report)
{
    if (args->json) {
        json_t *result = json_pack("{s:b, s:o}", "ok", 1, "status", cli_status_json(status));
        if (report != NULL) {
            (void)json_object_set_new(result, "check", cli_check_json(report));
        }
        cli_print_json(result);
    } else {
        cli_print_status(status);
        if (report != NULL) {
            cli_print_check(report);
        }
    }
    return cli_finish(report != NULL && report->n_findings > 0 ? EXIT_FINDINGS : EXIT_OK);
}

int cli_prepare(const cli_args_t *args)
{
    cli_probe_t probe;
    engine_status_t status;
    err_sink_t err = {.msg = ""};
    os_t *os = NULL;
    dberr_t e = os_posix_create(args->path, false, &err, &os);
    if (e == DB_SUCCESS) {
        cli_probe_init(&probe);
        e = engine_prepare(os, &probe.base, &args->options, &status, &err);
    }
    check_report_t report;
    if (e == DB_SUCCESS && args->check) {
        e = check_run(os, &report, &err);
    }
    int code = EXIT_OK;
    if (e != DB_SUCCESS) {
        code = cli_fail(args, e, &err);
    } else {
        code = prepare_print(args, &status, args->check ? &report : NULL);
        if (args->check) {
            check_report_free(&report);
        }
    }
    os_destroy(os);
    return code;
}

/* ---- the backups of a database ---- */

typedef struct backups {
    const cli_args_t *args;
    os_t *os;
    cli_probe_t *probe;
    json_t *list;
    uint32_t n_wrong;
} backups_t;

static json_t *failed_json(const char *name, dberr_t err, const err_sink_t *why)
{
    return json_pack("{s:s, s:b, s:s, s:s, s:o}", "name", name, "ok", 0, "error", err_name(err),
                     "refusal", refusal_name(why->refusal), "message",
                     cli_escaped((const byte *)why->msg, strlen(why->msg)));
}

static dberr_t backup_prepare(backups_t *backups, os_t *folder, const char *name, err_sink_t *why)
{
    engine_status_t status;
    TRY(engine_prepare(folder, &backups->probe->base, &backups->args->options, &status, why));
    check_report_t report;
    TRY(check_run(folder, &report, why));
    backups->n_wrong += report.needs_recovery || report.n_findings > 0;
    (void)json_array_append_new(backups->list, json_pack("{s:s, s:b, s:o}", "name", name, "ok", 1,
                                                         "check", cli_check_json(&report)));
    check_report_free(&report);
    return DB_SUCCESS;
}

/** A folder of the data directory whose name says that it is a backup. */
static dberr_t backup_see(void *ctx, const char *entry)
{
    backups_t *backups = ctx;
    size_t suffix = strlen(BACKUP_FOLDER_SUFFIX);
    size_t len = strlen(entry);
    if (entry[0] == '.' || len <= suffix || len > NAME_LEN_MAX + suffix
        || strcmp(entry + len - suffix, BACKUP_FOLDER_SUFFIX) != 0) {
        return DB_SUCCESS;
    }
    char name[PATH_LEN_MAX + 1];
    memcpy(name, entry, len - suffix);
    name[len - suffix] = '\0';
    os_t *folder = NULL;
    err_sink_t why = {.msg = ""};
    backup_info_t info = {.state = BACKUP_NONE};
    dberr_t err = os_folder_create(backups->os, entry, &folder);
    if (err == DB_SUCCESS) {
        env_t env = {.os = folder, .probe = &backups->probe->base};
        err = backup_info_read(&env, &info);
        err_copy(&why, &env.err);
    }
    if (err == DB_SUCCESS && (info.state == BACKUP_COPIED || info.state == BACKUP_PREPARED)) {
        err = backup_prepare(backups, folder, name, &why);
    }
    if (err != DB_SUCCESS) {
        backups->n_wrong++;
        (void)json_array_append_new(backups->list, failed_json(name, err, &why));
    }
    os_destroy(folder);
    return DB_SUCCESS;
}

json_t *cli_backups_json(const cli_args_t *args, os_t *os, cli_probe_t *probe, uint32_t *n_wrong)
{
    backups_t backups = {.args = args, .os = os, .probe = probe, .list = json_array()};
    env_t env = {.os = os, .probe = &probe->base};
    dberr_t err = env_list(&env, backup_see, &backups);
    if (err != DB_SUCCESS) {
        backups.n_wrong++;
        (void)json_array_append_new(backups.list, failed_json("", err, &env.err));
    }
    *n_wrong = backups.n_wrong;
    return backups.list;
}
