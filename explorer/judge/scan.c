/* The scan with a memo, held against the full one.

Place: below judge.c, above the engine's scanner.

Rule: what a memo spares is work and never a check. So both ways must give the same report, to the
last word of each finding; where they do not, the explorer is wrong, and nothing it says counts. */
#include "explorer/judge/scan.h"

#include <string.h>

static bool same_finding(const check_finding_t *a, const check_finding_t *b)
{
    return a->invariant == b->invariant && a->page_no == b->page_no && strcmp(a->path, b->path) == 0
           && strcmp(a->what, b->what) == 0;
}

static bool same_table(const check_table_t *a, const check_table_t *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->rows == b->rows && a->hash == b->hash
                && a->n_indexes == b->n_indexes;
    for (uint32_t i = 0; same && i < a->n_indexes; i++) {
        const check_index_t *x = &a->indexes[i];
        const check_index_t *y = &b->indexes[i];
        same = strcmp(x->name, y->name) == 0 && x->entries == y->entries && x->hash == y->hash;
    }
    return same;
}

const char *scan_difference(const check_report_t *a, const check_report_t *b)
{
    if (a->needs_recovery != b->needs_recovery || a->log_end_lsn != b->log_end_lsn) {
        return "the log";
    }
    if (a->pages_checked != b->pages_checked || a->history_len != b->history_len) {
        return "pages or history";
    }
    if (a->n_findings != b->n_findings) {
        return "the number of findings";
    }
    for (uint64_t i = 0; i < a->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        if (!same_finding(&a->findings[i], &b->findings[i])) {
            return "a finding";
        }
    }
    if (a->n_tables != b->n_tables) {
        return "the number of tables";
    }
    for (uint32_t i = 0; i < a->n_tables; i++) {
        if (!same_table(&a->tables[i], &b->tables[i])) {
            return "a table";
        }
    }
    return NULL;
}

/** Says so if the full scan comes to something else. */
static void scan_compare(const scan_t *scan, os_t *os, dberr_t status, const check_report_t *report)
{
    check_report_t full;
    dberr_t err = check_run(os, &full, NULL);
    const char *what = err != status       ? "success"
                       : err != DB_SUCCESS ? NULL
                                           : scan_difference(report, &full);
    if (what != NULL) {
        (void)err_set(scan->failed, DB_ERROR, "the scan with a memo and the full one differ in %s",
                      what);
    }
    if (err == DB_SUCCESS) {
        check_report_free(&full);
    }
}

dberr_t scan_run(const scan_t *scan, os_t *os, check_report_t *report, err_sink_t *err)
{
    dberr_t status = check_run_again(os, scan->memo, report, err);
    if (scan->in_full) {
        scan_compare(scan, os, status, report);
    }
    return status;
}
