/* What the `engine` program prints, and its exit codes.

Rules
1. JSON objects have a fixed key order, and text from files is escaped: the same database prints the
   same bytes.
2. A reader that went away (SIGPIPE is ignored) is an I/O error, noticed at the end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

int cli_exit_code(dberr_t err)
{
    switch (err) {
    case DB_SUCCESS:
        return EXIT_OK;
    case DB_NOT_FOUND:
        return EXIT_NO_DATABASE;
    case DB_DIR_LOCKED:
        return EXIT_LOCKED;
    case DB_NEEDS_RECOVERY:
        return EXIT_NEEDS_RECOVERY;
    case DB_IO_ERROR:
    case DB_OUT_OF_MEMORY:
        return EXIT_IO;
    case DB_CORRUPTION:
    case DB_UNRECOVERABLE:
    case DB_UNSUPPORTED:
    case DB_OUT_OF_SPACE:
        return EXIT_REFUSED;
    default:
        return EXIT_USAGE;
    }
}

void cli_warn_ignored(const engine_t *engine)
{
    engine_status_t status;
    engine_get_status(engine, &status);
    if (status.ignores_log_optimize_ddl) {
        (void)fprintf(stderr, "engine: warning: log_optimize_ddl is ignored: the redo log is of "
                              "format 10.5, which holds all of an index load\n");
    }
}

int cli_fail(const cli_args_t *args, dberr_t err, const err_sink_t *why)
{
    const char *refusal = refusal_name(why->refusal);
    (void)fflush(stdout);
    if (why->refusal == REFUSAL_NONE) {
        (void)fprintf(stderr, "engine: %s\n", why->msg);
    } else {
        (void)fprintf(stderr, "engine: error[%s]: %s\n", refusal, why->msg);
    }
    if (args->json) {
        cli_print_json(json_pack("{s:b, s:s, s:s, s:o}", "ok", 0, "error", err_name(err), "refusal",
                                 refusal, "message",
                                 cli_escaped((const byte *)why->msg, strlen(why->msg))));
    }
    return cli_finish(cli_exit_code(err));
}

void cli_print_json(json_t *object)
{
    if (object == NULL || json_dumpf(object, stdout, JSON_COMPACT) != 0) {
        (void)fprintf(stderr, "engine: the result cannot be printed\n");
    }
    (void)putchar('\n');
    json_decref(object);
}

int cli_finish(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fprintf(stderr, "engine: standard output cannot be written\n");
        return code == EXIT_OK ? EXIT_IO : code;
    }
    return code;
}

json_t *cli_u64(uint64_t value)
{
    return json_integer((json_int_t)value);
}

char *cli_escape(const byte *text, size_t len)
{
    char *out = malloc(4 * len + 1);
    char *to = out;
    for (size_t i = 0; out != NULL && i < len; i++) {
        byte c = text[i];
        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = (char)c;
        } else if (c >= 0x20 && c <= 0x7E) {
            *to++ = (char)c;
        } else {
            to += snprintf(to, 5, "\\x%02x", c);
        }
    }
    if (out != NULL) {
        *to = '\0';
    }
    return out;
}

json_t *cli_escaped(const byte *text, size_t len)
{
    char *escaped = cli_escape(text, len);
    json_t *string = escaped != NULL ? json_string(escaped) : NULL;
    free(escaped);
    return string;
}

char *cli_hex(const byte *bytes, size_t len)
{
    static const char DIGITS[] = "0123456789abcdef";
    char *out = malloc(2 * len + 1);
    for (size_t i = 0; out != NULL && i < len; i++) {
        out[2 * i] = DIGITS[bytes[i] >> 4];
        out[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    if (out != NULL) {
        out[2 * len] = '\0';
    }
    return out;
}

/* ---- status ---- */

/** Calls fn for every number of the status, in the order of the output. */
static void status_each(const engine_status_t *s, stats_fn fn, void *ctx)
{
    fn(ctx, "page_size", s->page_size);
    fn(ctx, "log_file_size", s->log_file_size);
    fn(ctx, "lsn_current", s->lsn_current);
    fn(ctx, "lsn_flushed", s->lsn_flushed);
    fn(ctx, "lsn_last_checkpoint", s->lsn_last_checkpoint);
    fn(ctx, "checkpoint_age", s->checkpoint_age);
    fn(ctx, "dirty_pages", s->dirty_pages);
    fn(ctx, "history_len", s->history_len);
    fn(ctx, "active_trx", s->active_trx);
    fn(ctx, "onlineddl_rowlog_rows", s->onlineddl_rowlog_rows);
    fn(ctx, "onlineddl_rowlog_pct_used", s->onlineddl_rowlog_pct_used);
    fn(ctx, "onlineddl_pct_progress", s->onlineddl_pct_progress);
    stats_each(&s->stats, fn, ctx);
}

static void json_counter(void *ctx, const char *name, uint64_t value)
{
    json_t *object = ctx;
    (void)json_object_set_new(object, name, cli_u64(value));
}

json_t *cli_status_json(const engine_status_t *s)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "recovered", json_boolean(s->recovered));
    (void)json_object_set_new(object, "poisoned", json_boolean(s->poisoned));
    status_each(s, json_counter, object);
    return object;
}

static void print_counter(void *ctx, const char *name, uint64_t value)
{
    (void)ctx;
    (void)printf("%-24s %" PRIu64 "\n", name, value);
}

void cli_print_status(const engine_status_t *s)
{
    (void)printf("%-24s %s\n", "recovered", s->recovered ? "yes" : "no");
    (void)printf("%-24s %s\n", "poisoned", s->poisoned ? "yes" : "no");
    status_each(s, print_counter, NULL);
}

/* ---- check ---- */

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    (void)snprintf(text, sizeof(text), "%016" PRIx64, hash);
    return json_string(text);
}

static json_t *finding_json(const check_finding_t *f)
{
    return json_pack("{s:I, s:o, s:o, s:o}", "invariant", (json_int_t)f->invariant, "path",
                     cli_escaped((const byte *)f->path, strlen(f->path)), "page",
                     f->page_no == FIL_NULL ? json_null() : cli_u64(f->page_no), "what",
                     cli_escaped((const byte *)f->what, strlen(f->what)));
}

static int index_order(const void *a, const void *b)
{
    const check_index_t *x = a;
    const check_index_t *y = b;
    return strcmp(x->name, y->name);
}

static json_t *table_json(const check_table_t *t)
{
    check_index_t sorted[INDEXES_MAX];
    memcpy(sorted, t->indexes, sizeof(sorted));
    qsort(sorted, t->n_indexes, sizeof(sorted[0]), index_order);
    json_t *indexes = json_array();
    for (uint32_t i = 0; i < t->n_indexes; i++) {
        (void)json_array_append_new(
            indexes,
            json_pack("{s:o, s:o, s:o}", "name",
                      cli_escaped((const byte *)sorted[i].name, strlen(sorted[i].name)), "entries",
                      cli_u64(sorted[i].entries), "hash", hash_json(sorted[i].hash)));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "name",
                     cli_escaped((const byte *)t->name, strlen(t->name)), "rows", cli_u64(t->rows),
                     "hash", hash_json(t->hash), "indexes", indexes);
}

static uint64_t findings_kept(const check_report_t *report)
{
    return report->n_findings < CHECK_FINDINGS_MAX ? report->n_findings : CHECK_FINDINGS_MAX;
}

json_t *cli_check_json(const check_report_t *report)
{
    json_t *findings = json_array();
    for (uint64_t i = 0; i < findings_kept(report); i++) {
        (void)json_array_append_new(findings, finding_json(&report->findings[i]));
    }
    json_t *tables = json_array();
    for (uint32_t i = 0; i < report->n_tables; i++) {
        (void)json_array_append_new(tables, table_json(&report->tables[i]));
    }
    return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "needs_recovery",
                     report->needs_recovery ? 1 : 0, "n_findings", cli_u64(report->n_findings),
                     "findings", findings, "tables", tables, "pages_checked",
                     cli_u64(report->pages_checked), "history_len", cli_u64(report->history_len),
                     "log_end_lsn", cli_u64(report->log_end_lsn));
}

void cli_print_check(const check_report_t *report)
{
    for (uint64_t i = 0; i < findings_kept(report); i++) {
        const check_finding_t *f = &report->findings[i];
        (void)printf("I%" PRIu32 " %s", f->invariant, f->path);
        if (f->page_no != FIL_NULL) {
            (void)printf(" page %" PRIu32, f->page_no);
        }
        (void)printf(": %s\n", f->what);
    }
    for (uint32_t i = 0; i < report->n_tables; i++) {
        const check_table_t *t = &report->tables[i];
        (void)printf("table %s: %" PRIu64 " rows, digest %016" PRIx64 "\n", t->name, t->rows,
                     t->hash);
        for (uint32_t j = 0; j < t->n_indexes; j++) {
            (void)printf("  index %s: %" PRIu64 " entries, digest %016" PRIx64 "\n",
                         t->indexes[j].name, t->indexes[j].entries, t->indexes[j].hash);
        }
    }
    if (report->needs_recovery) {
        (void)printf("needs recovery: nothing was checked\n");
    } else {
        (void)printf("%" PRIu64 " pages checked, %" PRIu64 " findings\n", report->pages_checked,
                     report->n_findings);
    }
}
