/* The verdict on one state: the real recovery, the real scanner, the oracle's digests.

Place: above image.c, rules.c, outcome.c and work.c; below engine_target.c.

    image --engine_open--> recovered --clean close--> closed --check_run--> digest in [low, high]?
      \--each finished backup in it: engine_prepare, check_run, the digest of its prefix?  (I28)
      \--open, let go, open, close, check--> the same digest?                      (I17)
      \--open in the smallest memory, under other options, close, check--> the same digest?  (I18)
      \--the file of an exported table: open, import it in the table's place, close, check--> the
      same digest?  (I28)
      \--open, purge all, close, open, close, check--> the same digest?            (I25)

Rules
1. No state is allowed to be unrecoverable: a refusal is a violation, and its message says of what.
2. The image comes back as it was, whatever happened on it. */
#include "explorer/targets/engine/judge.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "explorer/targets/engine/carried.h"
#include "explorer/targets/engine/judge_backups.h"
#include "explorer/targets/engine/work.h"

#define POOL_SMALLEST 32U
#define MEMO_BYTES_MAX ((size_t)64 << 20)
#define RECV_MEMORY_SMALLEST (64U << 10)
#define DBLWR_PAGES_SMALLEST 4U

static engine_options_t small_options(const judge_t *judge)
{
    engine_options_t options = judge->options;
    options.buffer_pool_pages = POOL_SMALLEST;
    options.recv_memory = RECV_MEMORY_SMALLEST;
    return options;
}

/** As a database is started on other storage, by somebody who minds the copies less: what the crash
has torn must be restored all the same. Only for recoveries that no crash follows. */
static engine_options_t other_options(const judge_t *judge)
{
    engine_options_t options = small_options(judge);
    options.atomic_write_unit = options.atomic_write_unit > 0 ? 0 : PAGE_SIZE_MAX;
    options.log_optimize_ddl = !options.log_optimize_ddl;
    options.optimize_ddl_drain = !options.optimize_ddl_drain;
    options.doublewrite = !options.doublewrite;
    options.scrub = !options.scrub;
    return options;
}

/** As a database is started that nobody asks for a conversion: its log stays what it is. */
static engine_options_t options_in(const judge_t *judge, const engine_options_t *options)
{
    engine_options_t in = *options;
    uint32_t name = image_name_find(judge->image, LOG_FILE_NAME);
    if (name != IMAGE_NONE && image_lookup(judge->image, name) != IMAGE_NONE) {
        in.log_format = 0;
    }
    return in;
}

/** Opening in one state; a failure is a finding. */
static bool judge_open(judge_t *judge, const engine_options_t *options, const char *what,
                       engine_t **engine, verdict_t *verdict)
{
    err_sink_t sink = {.msg = ""};
    engine_options_t in = options_in(judge, options);
    dberr_t err = engine_open(image_os(judge->image), &judge->probe, &in, true, engine, &sink);
    if (err == DB_SUCCESS) {
        return true;
    }
    uint32_t invariant = sink.refusal == REFUSAL_TORN_PAGE         ? 5
                         : sink.refusal == REFUSAL_PAGE_BEYOND_LOG ? 4
                         : sink.refusal == REFUSAL_PAGE_DIFFERS    ? 27
                                                                   : 30;
    verdict_add(verdict, SOURCE_RECOVERY, invariant, "%srefused: %s: %.180s", what, err_name(err),
                sink.msg);
    return false;
}

static bool judge_close(engine_t *engine, const char *what, verdict_t *verdict)
{
    dberr_t err = engine_close(engine, true, NULL);
    if (err != DB_SUCCESS) {
        verdict_add(verdict, SOURCE_RECOVERY, 30, "%sthe recovered database cannot be closed: %s",
                    what, err_name(err));
    }
    return err == DB_SUCCESS;
}

/** Scans the closed database. report: to be freed by the caller if this is true. */
static bool judge_scan(judge_t *judge, const char *what, check_report_t *report, verdict_t *verdict)
{
    err_sink_t sink = {.msg = ""};
    dberr_t err = scan_run(&judge->scan, image_os(judge->image), report, &sink);
    if (err != DB_SUCCESS) {
        verdict_add(verdict, SOURCE_RECOVERY, 30,
                    "%sthe recovered database cannot be scanned: %.160s", what, sink.msg);
        return false;
    }
    if (report->needs_recovery) {
        verdict_add(verdict, SOURCE_RECOVERY, 19, "%sthe log needs recovery after a clean close",
                    what);
    }
    for (uint64_t i = 0; i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        const check_finding_t *finding = &report->findings[i];
        verdict_add(verdict, SOURCE_SCAN, finding->invariant, "%s%.60s page %d: %.150s", what,
                    finding->path, (int)finding->page_no, finding->what);
    }
    return true;
}

/** The whole way once more, on the image as it is now. False: something failed. */
static bool judge_again(judge_t *judge, const engine_options_t *options, const char *what,
                        uint64_t *digest, verdict_t *verdict)
{
    engine_t *engine = NULL;
    check_report_t report;
    if (!judge_open(judge, options, what, &engine, verdict) || !judge_close(engine, what, verdict)
        || !judge_scan(judge, what, &report, verdict)) {
        return false;
    }
    *digest = allowed_digest(report.tables, report.n_tables);
    check_report_free(&report);
    return true;
}

/** I17: after a recovery that was let go of, as a crash right after it would. */
static void judge_twice(judge_t *judge, outcome_t *outcome)
{
    verdict_t *verdict = &outcome->verdict;
    image_mark(judge->image);
    const char *what = "recovered twice: ";
    uint64_t digest = 0;
    engine_t *engine = NULL;
    if (judge_open(judge, &judge->options, what, &engine, verdict)) {
        dberr_t err = engine_close(engine, false, NULL);
        CHECK(err == DB_SUCCESS);
        if (judge_again(judge, &judge->options, what, &digest, verdict)) {
            outcome_compare(outcome, 17, what, digest);
        }
    }
    image_undo(judge->image);
}

/** I18, and recovery under other options than the run's. */
static void judge_in_batches(judge_t *judge, outcome_t *outcome)
{
    engine_options_t options = other_options(judge);
    image_mark(judge->image);
    const char *what = "recovered in small batches under other options: ";
    uint64_t digest = 0;
    if (judge_again(judge, &options, what, &digest, &outcome->verdict)) {
        outcome_compare(outcome, 18, what, digest);
    }
    image_undo(judge->image);
}

/** I18, with the other format of the log asked for. A log that recovery needs is not converted: the
start is refused and has changed nothing, or the database comes to the same. */
static void judge_converted(judge_t *judge, outcome_t *outcome)
{
    verdict_t *verdict = &outcome->verdict;
    engine_options_t options = judge->options;
    options.log_format = options.log_format == LOG_FORMAT_10_5 ? LOG_FORMAT_10_4 : LOG_FORMAT_10_5;
    image_mark(judge->image);
    const char *what = "with the other log format: ";
    err_sink_t sink = {.msg = ""};
    engine_t *engine = NULL;
    dberr_t err =
        engine_open(image_os(judge->image), &judge->probe, &options, true, &engine, &sink);
    if (err != DB_SUCCESS && err != DB_UNSUPPORTED) {
        verdict_add(verdict, SOURCE_RECOVERY, 18, "%s%s: %.180s", what, err_name(err), sink.msg);
    }
    uint64_t digest = 0;
    if ((err == DB_SUCCESS && judge_close(engine, what, verdict)) || err == DB_UNSUPPORTED) {
        if (judge_again(judge, &judge->options, what, &digest, verdict)) {
            outcome_compare(outcome, 18, what, digest);
        }
    }
    image_undo(judge->image);
}

/** I25: purge finishes what the crash has cut short, and changes no row. */
static void judge_purged(judge_t *judge, outcome_t *outcome)
{
    verdict_t *verdict = &outcome->verdict;
    image_mark(judge->image);
    const char *what = "recovered and purged: ";
    uint64_t digest = 0;
    engine_t *engine = NULL;
    bool done = false;
    if (judge_open(judge, &judge->options, what, &engine, verdict)) {
        dberr_t err = engine_purge(engine, UINT32_MAX, &done);
        bool purged = err == DB_SUCCESS && done;
        if (!purged) {
            verdict_add(verdict, SOURCE_RECOVERY, 30, "%s%s: %.180s", what, err_name(err),
                        engine_error(engine));
            err = engine_close(engine, false, NULL);
            CHECK(err == DB_SUCCESS);
        }
        if (purged && judge_close(engine, what, verdict)
            && judge_again(judge, &judge->options, what, &digest, verdict)) {
            outcome_compare(outcome, 25, what, digest);
        }
    }
    image_undo(judge->image);
}

/** Those of the first recovery and of new work, which may be crashed again. A small one has the
smallest doublewrite area, too, in a file whose copies lie further behind. It, every other one with
as much memory as the run, and all of a table that is torn have a mode of loads that is drawn: the
log's mode counts until it is recovered, and with much memory what it left is still there when the
new one begins. */
static engine_options_t first_options(const judge_t *judge, const judge_case_t *c)
{
    engine_options_t options = c->small ? small_options(judge) : judge->options;
    if (c->small) {
        options.dblwr_pages = DBLWR_PAGES_SMALLEST;
    } else if ((c->seed & 4) != 0 && c->torn[0] == '\0') {
        return options;
    }
    options.log_optimize_ddl = (c->seed & 1) != 0;
    options.optimize_ddl_drain = (c->seed & 2) != 0;
    return options;
}

/* ---- exported tables (I28) ---- */

/** Puts what was carried away in the place of the table that it was taken from. */
static bool judge_import(judge_t *judge, const carried_t *carried, const char *table,
                         verdict_t *verdict)
{
    const char *what = "with the exported file: ";
    const ddl_alter_t alter = {.kind = ALTER_IMPORT, .table = table, .name = CARRIED_NAME};
    engine_t *engine = NULL;
    if (!judge_open(judge, &judge->options, what, &engine, verdict)) {
        return false;
    }
    carried_lay_down(judge->image, carried, true);
    dberr_t err = engine_alter(engine, &alter);
    if (err != DB_SUCCESS) {
        verdict_add(verdict, SOURCE_RECOVERY, 28, "export of %s: refused: %s: %.160s", table,
                    err_name(err), engine_error(engine));
    }
    carried_lay_down(judge->image, carried, false);
    return judge_close(engine, what, verdict) && err == DB_SUCCESS;
}

/** The file of an exported table is the table, by itself; the table cannot have changed since. */
static void judge_exported(judge_t *judge, const char *table, bool acked, outcome_t *outcome)
{
    verdict_t *verdict = &outcome->verdict;
    image_mark(judge->image);
    carried_t carried;
    bool whole = carried_take(judge->image, table, &carried);
    outcome->counters[ENGINE_EXPORTS_JUDGED] = whole || acked;
    check_report_t report;
    if (!whole) {
        if (acked) {
            verdict_add(verdict, SOURCE_RECOVERY, 28,
                        "export of %s: acknowledged, but there is no whole .cfg", table);
        }
    } else if (judge_import(judge, &carried, table, verdict)
               && judge_scan(judge, "with the exported file: ", &report, verdict)) {
        if (allowed_digest(report.tables, report.n_tables) != outcome->digest) {
            verdict_add(verdict, SOURCE_ORACLE, 28, "export of %s: other rows than the table has",
                        table);
        }
        check_report_free(&report);
    }
    image_undo(judge->image);
}

/** An export that is over has no whole .cfg: it would vouch for a file that may have changed. */
static void judge_exports_over(judge_t *judge, const expected_t *expected, verdict_t *verdict)
{
    for (uint32_t k = 0; k < expected->script_low; k++) {
        const char *table =
            allowed_export_over(expected->allowed, k, expected->script_low, expected->high);
        if (table != NULL && carried_cfg_is_whole(judge->image, table)) {
            verdict_add(verdict, SOURCE_RECOVERY, 28,
                        "export of %s: it is over, but a whole .cfg is there", table);
        }
    }
}

void judge_export(judge_t *judge, const char *table, bool acked, outcome_t *outcome)
{
    image_set_hashing(judge->image, false);
    image_mark(judge->image);
    bool recovered = judge_again(judge, &judge->options, "", &outcome->digest, &outcome->verdict);
    image_undo(judge->image);
    if (recovered) {
        judge_exported(judge, table, acked, outcome);
    }
    image_set_hashing(judge->image, true);
}

/** From here on the rules hear, and the case records, what the engine does. */
static void judge_listen(judge_t *judge, const judge_case_t *c)
{
    image_mark(judge->image);
    rules_start(judge->rules, judge->image, c->killed, judge->history);
    image_os_watch(judge->image, &judge->watch);
    judge->record = c->record;
    if (c->record != NULL) {
        fs_list_clear(c->record);
    }
    image_os_record(judge->image, c->record);
}

static void judge_listen_no_more(const judge_t *judge)
{
    image_os_record(judge->image, NULL);
    image_os_watch(judge->image, NULL);
}

/** The first way. False: there is no report, or none to go by. */
static bool judge_first(judge_t *judge, const judge_case_t *c, check_report_t *report,
                        outcome_t *outcome, stats_t *stats)
{
    verdict_t *verdict = &outcome->verdict;
    engine_t *engine = NULL;
    engine_options_t options = first_options(judge, c);
    if (!judge_open(judge, &options, "", &engine, verdict)) {
        return false;
    }
    engine_status_t status;
    engine_get_status(engine, &status);
    *stats = status.stats;
    if (!judge_close(engine, "", verdict)) {
        return false;
    }
    judge_backups_prepare(judge, c->expected, &options, outcome, stats);
    judge_listen_no_more(judge);
    judge_backups_scan(judge, c->expected, verdict);
    if (!judge_scan(judge, "", report, verdict)) {
        return false;
    }
    if (report->needs_recovery) {
        check_report_free(report);
        return false;
    }
    outcome_judge(outcome, c->expected, report);
    return true;
}

/** The end of new work: closed, or let go of with its log written. */
static bool judge_end(engine_t *engine, bool clean, const char *what, verdict_t *verdict)
{
    if (clean) {
        return judge_close(engine, what, verdict);
    }
    dberr_t err = engine_flush_log(engine);
    if (err != DB_SUCCESS) {
        verdict_add(verdict, SOURCE_RECOVERY, 30, "%sthe log cannot be written: %.180s", what,
                    engine_error(engine));
    }
    dberr_t let_go = engine_close(engine, false, NULL);
    CHECK(let_go == DB_SUCCESS);
    return err == DB_SUCCESS;
}

/** New work on what was found, and what must be there after it. */
static void judge_worked(judge_t *judge, const judge_case_t *c, const check_report_t *found,
                         outcome_t *outcome)
{
    verdict_t *verdict = &outcome->verdict;
    allowed_t *worked = &outcome->worked;
    const char *what = "after new work: ";
    engine_t *engine = NULL;
    engine_options_t options = first_options(judge, c);
    bool clean = c->seed >> 63 != 0;
    if (!judge_open(judge, &options, what, &engine, verdict)) {
        return;
    }
    rules_journal(judge->rules, JOURNAL_ISSUE, 0); /* recovery is over */
    outcome->counters[ENGINE_WORKED] = 1;
    allowed_extend(worked, c->expected->allowed, c->expected->high, c->seed);
    const work_draw_t draw = {
        .seed = c->seed, .torn = c->torn, .options = &options, .probe = &judge->probe};
    bool right = work_run(engine, judge->image, found, &draw, worked, verdict);
    if (!judge_end(engine, right && clean, what, verdict) || !right) {
        return;
    }
    judge_listen_no_more(judge);
    check_report_t report;
    if ((!clean
         && (!judge_open(judge, &options, what, &engine, verdict)
             || !judge_close(engine, what, verdict)))
        || !judge_scan(judge, what, &report, verdict)) {
        return;
    }
    uint32_t last;
    (void)allowed_judge(worked, &report, worked->n - 1, worked->n - 1, what, verdict, &last);
    check_report_free(&report);
}

/** The other ways from the same image, which must come to the same. */
static void judge_other_ways(judge_t *judge, const judge_case_t *c, const check_report_t *found,
                             outcome_t *outcome)
{
    if (c->twice) {
        judge_twice(judge, outcome);
    }
    if (c->in_batches) {
        judge_in_batches(judge, outcome);
    }
    if (c->converted) {
        judge_converted(judge, outcome);
    }
    if (c->purged) {
        judge_purged(judge, outcome);
    }
    if (c->exported != NULL) {
        judge_exported(judge, c->exported, c->export_acked, outcome);
    }
    judge_exports_over(judge, c->expected, &outcome->verdict);
    if (c->worked && verdict_state_is_right(&outcome->verdict)) {
        judge_listen(judge, c); /* the record begins anew, and no backup is prepared in it */
        memset(outcome->prepared, 0, sizeof(outcome->prepared));
        judge_worked(judge, c, found, outcome);
        judge_listen_no_more(judge);
        image_undo(judge->image);
    }
}

static void count_paths(const stats_t *stats, outcome_t *outcome)
{
    uint64_t *counters = outcome->counters;
    counters[ENGINE_DBLWR_RESTORED] = stats->recv_dblwr_restored;
    counters[ENGINE_REDO_RECORDS] = stats->recv_records;
    counters[ENGINE_PAGES_CREATED] = stats->recv_pages_created;
    counters[ENGINE_INDEX_LOAD_READS] = stats->recv_index_load_reads;
    counters[ENGINE_FREED_READS] = stats->recv_freed_reads;
    counters[ENGINE_INDEXES_DROPPED] = stats->recv_indexes_dropped;
    counters[ENGINE_TABLES_DROPPED] = stats->recv_tables_dropped;
    counters[ENGINE_TRX_ROLLED_BACK] = stats->recv_trx_rolled_back;
    counters[ENGINE_SEVERAL_BATCHES] = stats->recv_batches > 1;
    counters[ENGINE_SWAPS_FINISHED] = stats->recv_swaps_finished;
    counters[ENGINE_PAGES_COMPARED] = stats->recv_pages_compared;
    counters[ENGINE_BACKUPS_PREPARED] = stats->backups_prepared;
}

void judge_state(judge_t *judge, const judge_case_t *c, outcome_t *outcome)
{
    image_t *image = judge->image;
    image_set_hashing(image, false);
    judge->verdict = &outcome->verdict;
    judge->scan.in_full = judge->backup_scan.in_full = c->in_full;
    judge_listen(judge, c);
    check_report_t report;
    stats_t stats = {.data_reads = 0};
    bool ok = judge_first(judge, c, &report, outcome, &stats);
    judge_listen_no_more(judge);
    image_undo(image);
    count_paths(&stats, outcome);
    outcome->counters[ENGINE_IN_BATCHES] = c->in_batches;
    outcome->counters[ENGINE_PURGED] = c->purged;
    if (ok) {
        judge_other_ways(judge, c, &report, outcome);
        check_report_free(&report);
    }
    image_set_hashing(image, true);
}

/* ---- the rules listen ---- */

static void judge_found(void *ctx, uint32_t invariant, const char *rule, uint64_t page,
                        const char *what)
{
    char text[VERDICT_WHAT_MAX];
    const judge_t *judge = ctx;
    (void)page;
    (void)snprintf(text, sizeof(text), "recovery: %s", what);
    verdict_add_rule(judge->verdict, invariant, rule, judge->record != NULL ? judge->record->n : 0,
                     text);
}

static void judge_event(void *ctx, fs_event_t *event, const char *path)
{
    rules_event(ctx, event, path);
}

static void judge_before(void *ctx, uint32_t inode, const char *path, uint64_t offset, uint64_t len)
{
    rules_before(ctx, inode, path, offset, len);
}

static void judge_read(void *ctx, uint32_t inode, const char *path, uint64_t offset, uint64_t len)
{
    rules_read(ctx, inode, path, offset, len);
}

void judge_init(judge_t *judge, image_t *image, const engine_options_t *options,
                const rules_t *history)
{
    rules_config_t config = {.doublewrite = options->doublewrite,
                             .atomic_unit = options->atomic_write_unit,
                             .found = judge_found,
                             .ctx = judge};
    *judge = (judge_t){.image = image, .options = *options, .history = history};
    judge->rules = rules_create(&config);
    judge->scan = judge->backup_scan = (scan_t){.failed = &judge->failed};
    judge->scan.memo = check_memo_create(MEMO_BYTES_MAX);
    judge->backup_scan.memo = check_memo_create(MEMO_BYTES_MAX);
    CHECK(judge->scan.memo != NULL && judge->backup_scan.memo != NULL);
    judge->watch = (image_watch_t){
        .event = judge_event, .before = judge_before, .read = judge_read, .ctx = judge->rules};
}

void judge_free(judge_t *judge)
{
    rules_destroy(judge->rules);
    check_memo_free(judge->scan.memo);
    check_memo_free(judge->backup_scan.memo);
}
