/* The backups in an image (I28). Place: below judge.c. */
#include "explorer/targets/engine/judge_backups.h"

#include <stdio.h>

#include "backup/backup_info.h"
#include "base/check.h"

static os_t *backup_folder(judge_t *judge, const allowed_prefix_t *prefix)
{
    char folder[NAME_LEN_MAX + sizeof(BACKUP_FOLDER_SUFFIX)];
    (void)snprintf(folder, sizeof(folder), "%s" BACKUP_FOLDER_SUFFIX, prefix->backup);
    os_t *os = NULL;
    dberr_t err = os_folder_create(image_os(judge->image), folder, &os);
    CHECK(err == DB_SUCCESS);
    return os;
}

static bool backup_is_finished(judge_t *judge, os_t *folder)
{
    backup_info_t info;
    env_t env = {.os = folder, .probe = &judge->probe};
    dberr_t err = backup_info_read(&env, &info);
    return err == DB_SUCCESS && (info.state == BACKUP_COPIED || info.state == BACKUP_PREPARED);
}

/** A finished backup must become a database; an acknowledged one must be finished. */
static void prepare_backup(judge_t *judge, const allowed_prefix_t *prefix, bool acked,
                           const engine_options_t *options, verdict_t *verdict, stats_t *stats)
{
    os_t *folder = backup_folder(judge, prefix);
    engine_status_t status;
    err_sink_t sink = {.msg = ""};
    if (backup_is_finished(judge, folder)) {
        dberr_t err = engine_prepare(folder, &judge->probe, options, &status, &sink);
        stats->backups_prepared += status.stats.backups_prepared;
        if (err != DB_SUCCESS) {
            verdict_add(verdict, SOURCE_RECOVERY, 28, "backup %s: refused: %s: %.160s",
                        prefix->backup, err_name(err), sink.msg);
        }
    } else if (acked) {
        verdict_add(verdict, SOURCE_RECOVERY, 28, "backup %s: acknowledged, but not finished",
                    prefix->backup);
    }
    os_destroy(folder);
}

/** A prepared backup must have the state of its prefix. */
static void scan_backup(judge_t *judge, const allowed_prefix_t *prefix, verdict_t *verdict)
{
    os_t *folder = backup_folder(judge, prefix);
    check_report_t report;
    err_sink_t sink = {.msg = ""};
    dberr_t err = DB_SUCCESS;
    if (backup_is_finished(judge, folder)) {
        err = scan_run(&judge->backup_scan, folder, &report, &sink);
        if (err != DB_SUCCESS) {
            verdict_add(verdict, SOURCE_RECOVERY, 28, "backup %s: cannot be scanned: %.160s",
                        prefix->backup, sink.msg);
        } else {
            if (report.n_findings > 0) {
                verdict_add(verdict, SOURCE_SCAN, 28, "backup %s: %.60s page %d: %.120s",
                            prefix->backup, report.findings[0].path,
                            (int)report.findings[0].page_no, report.findings[0].what);
            }
            if (report.needs_recovery
                || allowed_digest(report.tables, report.n_tables) != prefix->digest) {
                verdict_add(verdict, SOURCE_ORACLE, 28,
                            "backup %s: another state than that of line %u", prefix->backup,
                            prefix->line);
            }
            check_report_free(&report);
        }
    }
    os_destroy(folder);
}

void judge_backups_prepare(judge_t *judge, const expected_t *expected,
                           const engine_options_t *options, verdict_t *verdict, stats_t *stats)
{
    for (uint32_t p = 0; p <= expected->high; p++) {
        const allowed_prefix_t *prefix = &expected->allowed->prefixes[p];
        if (prefix->backup[0] != '\0') {
            prepare_backup(judge, prefix, prefix->backup_is_sure && p <= expected->script_low,
                           options, verdict, stats);
        }
    }
}

void judge_backups_scan(judge_t *judge, const expected_t *expected, verdict_t *verdict)
{
    const allowed_prefix_t *prefixes = expected->allowed->prefixes;
    for (uint32_t p = 0; p <= expected->high && verdict_state_is_right(verdict); p++) {
        if (prefixes[p].backup[0] != '\0') {
            scan_backup(judge, &prefixes[p], verdict);
        }
    }
}
