/* Recovers, checks and digests one crashed SQLite database, thousands of times per second.

On top of sqlite_schema.c and sqlite_digest.c. Rules:
 1. Opening is recovery: SQLite rolls a hot journal back, or reads the log. Nothing is done to help
    it.
 2. A missing or empty main.db is an empty database, as for every program that opens one.
 3. What SQLite reports as damage is a refusal in its own words; lines of integrity_check are
    findings.
 4. The connection locks exclusively, so that the log's index is in private memory and not in a -shm
    file, and leaves the log where it is when it closes: neither changes what recovery reads. Where
    what recovery writes is recorded (TORNPAGE_TRACE, faults/README.md), it does none of this: that
    is what a user's program would write.
 5. The work on one image is bounded, whatever its bytes say. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explorer/targets/sqlite/sqlite_int.h"
#include "explorer/targets/sqlite/verify_sqlite.h"

#define STEPS_PER_CALL                                                                             \
    1000000 /**< SQLite's instructions between two calls of the progress handler */
#define CALLS_MAX 200U
#define FINDINGS_TEXT "20" /**< lines that integrity_check may give */
#define WHAT_LEN_MAX 240

dberr_t sq_error(sq_t *sq)
{
    int code = sqlite3_extended_errcode(sq->db);
    dberr_t err = DB_UNRECOVERABLE;
    if ((code & 0xFF) == SQLITE_NOMEM) {
        err = DB_OUT_OF_MEMORY;
    } else if ((code & 0xFF) == SQLITE_FULL) {
        err = DB_IO_ERROR;
    }
    const char *text =
        (code & 0xFF) == SQLITE_INTERRUPT ? "it does not come to an end" : sqlite3_errmsg(sq->db);
    return err_set(sq->err, err, "SQLite error %d: %.400s", code, text);
}

dberr_t sq_prepare(sq_t *sq, const char *sql, sqlite3_stmt **stmt)
{
    *stmt = NULL;
    return sqlite3_prepare_v2(sq->db, sql, -1, stmt, NULL) == SQLITE_OK ? DB_SUCCESS : sq_error(sq);
}

dberr_t sq_step(sq_t *sq, sqlite3_stmt *stmt, bool *row)
{
    int code = sqlite3_step(stmt);
    *row = code == SQLITE_ROW;
    return *row || code == SQLITE_DONE ? DB_SUCCESS : sq_error(sq);
}

static int progress(void *calls)
{
    return ++*(uint32_t *)calls > CALLS_MAX;
}

/** Which invariant a line of integrity_check is about, by what it contains; otherwise page
shape. */
static uint32_t invariant_of(const char *line)
{
    static const struct {
        uint32_t invariant;
        const char *text;
    } table[] = {
        {10, "missing from index"}, {10, "wrong # of entries"},
        {7, "non-unique entry"},    {11, "never used"},
        {11, "reference to page"},  {11, "reelist"},
        {11, "free-page"},          {11, "ptr map"},
        {11, "page number"},        {7, "out of order"},
        {9, "depth differs"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strstr(line, table[i].text) != NULL) {
            return table[i].invariant;
        }
    }
    return 6;
}

static dberr_t finding_add(sq_t *sq, check_report_t *report, uint32_t invariant, const char *what)
{
    if (report->findings == NULL) {
        report->findings = calloc(CHECK_FINDINGS_MAX, sizeof(*report->findings));
        if (report->findings == NULL) {
            return err_set(sq->err, DB_OUT_OF_MEMORY, "no memory for findings");
        }
    }
    if (report->n_findings++ < CHECK_FINDINGS_MAX) {
        check_finding_t *finding = &report->findings[report->n_findings - 1];
        finding->invariant = invariant;
        finding->page_no = FIL_NULL;
        snprintf(finding->path, sizeof(finding->path), "main.db");
        snprintf(finding->what, sizeof(finding->what), "%.*s", WHAT_LEN_MAX, what);
    }
    return DB_SUCCESS;
}

/** Also the first read of the database, hence the recovery. */
static dberr_t integrity_check(sq_t *sq, check_report_t *report)
{
    sqlite3_stmt *stmt;
    dberr_t err = sq_prepare(sq, "PRAGMA integrity_check(" FINDINGS_TEXT ")", &stmt);
    bool row = true;
    while (err == DB_SUCCESS) {
        err = sq_step(sq, stmt, &row);
        if (err != DB_SUCCESS || !row) {
            break;
        }
        const void *text = sqlite3_column_text(stmt, 0);
        const char *line = text != NULL ? text : "no text";
        if (strcmp(line, "ok") != 0) {
            err = finding_add(sq, report, invariant_of(line), line);
        }
    }
    sqlite3_finalize(stmt);
    return err;
}

static dberr_t counts_check(sq_t *sq, check_report_t *report)
{
    for (uint32_t i = 0; i < report->n_tables; i++) {
        const check_table_t *table = &report->tables[i];
        for (uint32_t j = 0; j < table->n_indexes; j++) {
            const check_index_t *index = &table->indexes[j];
            if (index->entries == table->rows) {
                continue;
            }
            char what[WHAT_LEN_MAX];
            snprintf(what, sizeof(what), "%s.%s has %" PRIu64 " entries for %" PRIu64 " rows",
                     table->name, index->name, index->entries, table->rows);
            TRY(finding_add(sq, report, 10, what));
        }
    }
    return DB_SUCCESS;
}

static dberr_t digest(sq_t *sq, check_report_t *report)
{
    sq_table_t *tables = NULL;
    uint32_t n_tables = 0;
    dberr_t err = sq_schema_read(sq, &tables, &n_tables);
    if (err == DB_SUCCESS && n_tables > 0) {
        report->tables = calloc(n_tables, sizeof(*report->tables));
        if (report->tables == NULL) {
            err = err_set(sq->err, DB_OUT_OF_MEMORY, "no memory for the digest");
        }
    }
    for (uint32_t i = 0; err == DB_SUCCESS && i < n_tables; i++) {
        err = sq_table_digest(sq, &tables[i], &report->tables[i]);
        report->n_tables = i + 1;
    }
    free(tables);
    TRY(err);
    return counts_check(sq, report);
}

static dberr_t verify_open(sq_t *sq, const char *dir, uint32_t *calls)
{
    char path[4096];
    int len = snprintf(path, sizeof(path), "%s/main.db", dir);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        return err_set(sq->err, DB_IO_ERROR, "the path of the image is too long");
    }
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    /* The library of this process, before its first use: one thread, nobody asks how much memory it
       has. */
    (void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (sqlite3_open_v2(path, &sq->db, flags, NULL) != SQLITE_OK) {
        return sq->db != NULL ? sq_error(sq) : err_set(sq->err, DB_OUT_OF_MEMORY, "no memory");
    }
    (void)sqlite3_db_config(sq->db, SQLITE_DBCONFIG_LOOKASIDE, NULL, 1200, 400);
    sqlite3_extended_result_codes(sq->db, 1);
    sqlite3_progress_handler(sq->db, STEPS_PER_CALL, progress, calls);
    if (getenv("TORNPAGE_TRACE") != NULL) {
        return DB_SUCCESS;
    }
    sqlite3_db_config(sq->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
    if (sqlite3_exec(sq->db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF", NULL,
                     NULL, NULL)
        != SQLITE_OK) {
        return sq_error(sq);
    }
    return DB_SUCCESS;
}

static dberr_t verify_run(void *self, const char *dir, check_report_t *report, err_sink_t *err)
{
    (void)self;
    err_sink_t sink = {.msg = ""};
    sq_t sq = {.db = NULL, .err = &sink};
    *report = (check_report_t){.needs_recovery = false};
    uint32_t calls = 0;
    dberr_t status = verify_open(&sq, dir, &calls);
    AND_THEN(status, integrity_check(&sq, report));
    AND_THEN(status, digest(&sq, report));
    sqlite3_close(sq.db);
    if (status != DB_SUCCESS) {
        check_report_free(report);
        if (err != NULL) {
            *err = sink;
        }
    }
    return status;
}

const verifier_t verify_sqlite = {
    .name = "sqlite",
    .run = verify_run,
};
