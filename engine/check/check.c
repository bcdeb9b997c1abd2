/** The scan: order of the parts, findings, digests.

Place: top of check/, used by cli/ and by tests. Shares base/, os/, page/ and log/ with the engine
and nothing else.

    log -> files and page 0 -> extents, segments, every used page -> transactions -> catalogue ->
    trees and rows
        -> what nothing led to

Rules
1. no file is changed, and the scan ends with bounded memory whatever the bytes are;
2. if the log still has changes to apply, the files are not expected to be right: nothing is
   checked. */
#include <stdlib.h>
#include <string.h>

#include "check/check_memo.h"
#include "check/check_table.h"

/** A directory without log and system space is something else. */
static dberr_t chk_is_database(chk_t *chk)
{
    bool log = false;
    bool system = false;
    dberr_t err = env_exists(chk->env, LOG_FILE_NAME, &log);
    AND_THEN(err, env_exists(chk->env, CHK_SYSTEM_PATH, &system));
    if (err == DB_SUCCESS && !log && !system) {
        err = err_set(&chk->env->err, DB_NOT_FOUND, "not a data directory: it has no %s",
                      LOG_FILE_NAME);
    } else if (err == DB_SUCCESS && !(log && system)) {
        err = err_refuse(&chk->env->err, DB_UNRECOVERABLE, REFUSAL_FILE_MISSING, "%s is missing",
                         log ? CHK_SYSTEM_PATH : LOG_FILE_NAME);
    }
    return err;
}

static dberr_t chk_files_scan(chk_t *chk)
{
    TRY(chk_files_open(chk));
    for (chk_file_t *file = chk->files; file != NULL; file = file->next) {
        TRY(file->usable ? chk_file_scan(chk, file) : DB_SUCCESS);
    }
    return DB_SUCCESS;
}

/** Unclaimed files and a catalogue that cannot be read say nothing about what their pages are for.
*/
static void chk_unreached(chk_t *chk)
{
    for (chk_file_t *file = chk->files; file != NULL; file = file->next) {
        if (file->usable && chk->dict_whole && file->claimed) {
            chk_file_unreached(chk, file);
        }
    }
}

static dberr_t chk_all(chk_t *chk)
{
    TRY(chk_files_scan(chk));
    TRY(chk_undo(chk));
    TRY(chk_dict(chk));
    for (uint32_t i = 0; i < chk->n_tables; i++) {
        chk_table_t *table = chk->tables[i];
        chk_file_t *file = chk_file_of_space(chk, table->space);
        if (table->status == CHK_READY) {
            TRY(chk_table_rows(chk, table));
        }
        if (file != NULL && (table->status != CHK_READY || !table->sound)) {
            file->claimed = false; /* reported with the catalogue; its trees are not known */
        }
    }
    TRY(chk_undo_refs_walk(chk));
    chk_unreached(chk);
    return DB_SUCCESS;
}

/* ---- the report ---- */

static int chk_index_name_cmp(const void *a, const void *b)
{
    const check_index_t *x = a;
    const check_index_t *y = b;
    return strcmp(x->name, y->name);
}

static int chk_table_name_cmp(const void *a, const void *b)
{
    const check_table_t *x = a;
    const check_table_t *y = b;
    return strcmp(x->name, y->name);
}

static void chk_table_report(const chk_table_t *table, check_table_t *out)
{
    memcpy(out->name, table->name, sizeof(out->name));
    out->rows = table->indexes[0].live.n;
    out->hash = table->indexes[0].live.hash + chk_names_hash(table);
    for (uint32_t i = 1; i < table->n_indexes; i++) {
        const chk_index_t *index = &table->indexes[i];
        if (index->status == CHK_READY) {
            check_index_t *to = &out->indexes[out->n_indexes++];
            memcpy(to->name, index->name, sizeof(to->name));
            to->entries = index->live.n;
            to->hash = index->live.hash + (index->unique ? 1 : 0);
        }
    }
    qsort(out->indexes, out->n_indexes, sizeof(*out->indexes), chk_index_name_cmp);
}

static dberr_t chk_digests(chk_t *chk)
{
    check_report_t *report = chk->report;
    report->tables = calloc((size_t)chk->n_tables + 1, sizeof(*report->tables));
    if (report->tables == NULL) {
        return err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for the report");
    }
    for (uint32_t i = 0; i < chk->n_tables; i++) {
        const chk_table_t *table = chk->tables[i];
        if (table->status == CHK_READY && table->sound) {
            chk_table_report(table, &report->tables[report->n_tables++]);
        }
    }
    qsort(report->tables, report->n_tables, sizeof(*report->tables), chk_table_name_cmp);
    return DB_SUCCESS;
}

static dberr_t chk_run(chk_t *chk)
{
    dberr_t err = chk_is_database(chk);
    AND_THEN(err, chk_log(chk));
    if (err != DB_SUCCESS || chk->report->needs_recovery) {
        return err;
    }
    chk->page = malloc(chk->page_size);
    if (chk->page == NULL) {
        return err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for a page");
    }
    chk_memo_begin(chk);
    TRY(chk_all(chk));
    return chk_digests(chk);
}

dberr_t check_run(os_t *os, check_report_t *report, err_sink_t *err)
{
    return check_run_again(os, NULL, report, err);
}

dberr_t check_run_again(os_t *os, check_memo_t *memo, check_report_t *report, err_sink_t *err)
{
    probe_t probe = {.ctx = NULL};
    env_t env = {.os = os, .probe = &probe};
    chk_t chk = {.env = &env, .report = report, .memo = memo};
    *report = (check_report_t){.needs_recovery = false};
    report->findings = malloc(CHECK_FINDINGS_MAX * sizeof(*report->findings));
    dberr_t status = report->findings != NULL
                         ? chk_run(&chk)
                         : err_set(&env.err, DB_OUT_OF_MEMORY, "no memory for findings");
    for (uint32_t i = 0; i < chk.n_tables; i++) {
        free(chk.tables[i]);
    }
    free(chk.tables);
    free(chk.undo_refs);
    chk_files_close(&chk);
    free(chk.page);
    if (status != DB_SUCCESS) {
        check_report_free(report);
        if (err != NULL) {
            err_copy(err, &env.err);
        }
    }
    return status;
}

void check_report_free(check_report_t *report)
{
    free(report->findings);
    free(report->tables);
    *report = (check_report_t){.needs_recovery = false};
}
