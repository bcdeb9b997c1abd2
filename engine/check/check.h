/** The offline scanner: reads the files of a data directory, cleanly shut down or just recovered,
and checks I4 to I12 and I25. It decodes pages by itself: it shares page/ and log/ decoding with the
engine and nothing else (no fil, buf, fsp, btr, dict, trx, recv). It also computes the logical
digest of every table and index.

It never changes a file, and terminates with bounded memory on any bytes.

Digest of a table: number of live rows and the sum modulo 2^64 of XXH64 (seed 0) of each live row's
values, plus XXH64 of the names of its columns, in order, each with a comma behind it, that of a
VARCHAR with its greatest length in brackets before that: `a,b(40),`.
Digest of an index: number of entries that are not delete-marked and the
sum of XXH64 of each one's record without its info byte, plus 1 if the index is unique. Both are
independent of physical order and layout.

The values of a row: the columns in the order of definition, in front of each that may be NULL a
byte, 0 = NULL, which has nothing more, 1 = a value; BIGINT 8 bytes with the sign bit inverted;
CHAR(n) n bytes, padded with spaces; VARCHAR its length in 2 bytes and so many bytes. */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "os/os.h"

typedef struct check_finding {
    uint32_t invariant;          /**< 2 (a transaction is still active), 4 ... 12, 25 */
    char path[PATH_LEN_MAX + 1]; /**< file, or "" */
    uint32_t page_no;            /**< FIL_NULL if the finding is not about one page */
    char what[256];              /**< one clear line */
} check_finding_t;

typedef struct check_index {
    char name[NAME_LEN_MAX + 1];
    uint64_t entries;
    uint64_t hash;
} check_index_t;

typedef struct check_table {
    char name[NAME_LEN_MAX + 1];
    uint64_t rows;
    uint64_t hash;
    uint32_t n_indexes; /**< secondary ones */
    check_index_t indexes[INDEXES_MAX];
} check_table_t;

#define CHECK_FINDINGS_MAX 100U /**< findings kept; more are counted */

typedef struct check_report {
    bool needs_recovery; /**< the log holds changes after the checkpoint: nothing was checked */
    uint64_t n_findings;
    check_finding_t *findings; /**< min(n_findings, CHECK_FINDINGS_MAX) */
    uint32_t n_tables;         /**< READY user tables, sorted by name */
    check_table_t *tables;
    uint64_t pages_checked;
    uint64_t history_len; /**< committed, unpurged undo logs */
    uint64_t log_end_lsn;
} check_report_t;

/** What was found right before, by content, so that it need not be looked at again. It belongs to
one back end: os_view_t has versions. A scan with it says what a scan without would say. */
typedef struct check_memo check_memo_t;
/** bytes_max: of what it keeps; before a scan for which that was too little it forgets everything.
NULL: no memory. */
WARN_UNUSED check_memo_t *check_memo_create(size_t bytes_max);
size_t check_memo_bytes(const check_memo_t *memo); /**< that it keeps */
void check_memo_free(check_memo_t *memo);          /**< may be NULL */

/** Scans. DB_SUCCESS: the report is complete (whatever it found). DB_NOT_FOUND: not a data
directory. DB_UNRECOVERABLE: no usable log header. Caller: check_report_free() after success. */
WARN_UNUSED dberr_t check_run(os_t *os, check_report_t *report, err_sink_t *err);
/** The same with a memo, which learns from it. */
WARN_UNUSED dberr_t check_run_again(os_t *os, check_memo_t *memo, check_report_t *report,
                                    err_sink_t *err);
void check_report_free(check_report_t *report);

#endif
