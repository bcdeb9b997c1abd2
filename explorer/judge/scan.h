/** The scan of an image by the engine's scanner, which knows what earlier scans found right. */
#ifndef EXPLORER_SCAN_H
#define EXPLORER_SCAN_H

#include "check/check.h"

typedef struct scan {
    check_memo_t *memo;
    bool in_full;       /**< scan without the memo as well: both must say the same */
    err_sink_t *failed; /**< gets where they do not */
} scan_t;

/** As check_run(). */
WARN_UNUSED dberr_t scan_run(const scan_t *scan, os_t *os, check_report_t *report, err_sink_t *err);

/** The first difference of two reports in words, or NULL. */
const char *scan_difference(const check_report_t *a, const check_report_t *b);

#endif
