/* The backups in an image (I28). Place: below judge.c. */
#include "explorer/targets/engine/judge_backups.h"

#include <stdio.h>

#include "backup/backup_info.h"
#include "base/check.h"

static os_t *backup_folder(judge_t *judge, const char *name)
{
    char folder[NAME_LEN_MAX + sizeof(BACKUP_FOLDER_SUFFIX)];
    (void)snprintf(folder, sizeof(folder), "%s" BACKUP_FOLDER_SUFFIX, name);
    os_t *os = NULL;
    dberr_t err = os_folder_create(image_os(judge->image), folder, &os);
    CHECK(err == DB_SUCCESS);
    return os;
}

static backup_state_t backup_state(judge_t *judge, os_t *folder)
{
    backup_info_t info;
    env_t env = {.os = folder, .probe = &judge->probe};
    return backup_info_read(&env, &info) == DB_SUCCESS ? info.state : BACKUP_NONE;
}

static bool backup_is_finished(judge_t *judge, os_t *folder)
{
    backup_state_t state = backup_state(judge, folder);
    return state == BACKUP_COPIED || state == BACKUP_PREPARED;
}

/** What is claimed of a backup. */
typedef struct backup_claim {
    const char *name;
    bool acked;    /**< it is finished */
    bool prepared; /**< a prepare that a crash has ended, or come after, was acknowledged */
} backup_claim_t;

/** A finished backup must become a database; an acknowledged one must be finished. One that was
prepared is one already, which somebody may have used: a second prepare would be too late.
@return a prepare was acknowledged */
static bool prepare_backup(judge_t *judge, const backup_claim_t *claim,
                           const engine_options_t *options, verdict_t *verdict, stats_t *stats)
{
    os_t *folder = backup_folder(judge, claim->name);
    engine_status_t status;
    err_sink_t sink = {.msg = ""};
    bool prepared = false;
    if (claim->prepared && backup_state(judge, folder) != BACKUP_PREPARED) {
        verdict_add(verdict, SOURCE_RECOVERY, 28,
                    "backup %s: its prepare was acknowledged, but it is not prepared", claim->name);
    } else if (backup_is_finished(judge, folder)) {
        dberr_t err = engine_prepare(folder, &judge->probe, options, &status, &sink);
        stats->backups_prepared += status.stats.backups_prepared;
        prepared = err == DB_SUCCESS;
        if (!prepared) {
            verdict_add(verdict, SOURCE_RECOVERY, 28, "backup %s: refused: %s: %.160s", claim->name,
                        err_name(err), sink.msg);
        }
    } else if (claim->acked) {
        verdict_add(verdict, SOURCE_RECOVERY, 28, "backup %s: acknowledged, but not finished",
                    claim->name);
    }
    os_destroy(folder);
    return prepared;
}

/** A prepared backup must have the state of its prefix. */
static void scan_backup(judge_t *judge, const allowed_prefix_t *prefix, verdict_t *verdict)
{
    os_t *folder = backup_folder(judge, prefix->backup);
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
                           const engine_options_t *options, outcome_t *outcome, stats_t *stats)
{
    uint32_t nth = 0;
    for (uint32_t p = 0; p <= expected->high; p++) {
        const allowed_prefix_t *prefix = &expected->allowed->prefixes[p];
        if (prefix->backup[0] == '\0') {
            continue;
        }
        bool is_told = nth < OUTCOME_BACKUPS_MAX;
        const backup_claim_t claim = {
            .name = prefix->backup,
            .acked = prefix->backup_is_sure && p <= expected->script_low,
            .prepared = is_told && (expected->prepared >> nth & 1U) != 0,
        };
        if (prepare_backup(judge, &claim, options, &outcome->verdict, stats) && is_told) {
            outcome->prepared[nth] = (judge->record != NULL ? judge->record->n : 0) + 1;
        }
        nth++;
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
