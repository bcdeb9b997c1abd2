/** Kills and power losses, one after the other, at any change of a file: also inside recovery, and
in the work that follows a recovery. Recovery must not trust what only the page cache holds (a kill
leaves unsynced writes that a later power loss takes away), nor copies that a lost log left behind.

A session opens a directory, finds out which acknowledged state it is in, and runs statements; at a
few changes of files drawn beforehand its directory is copied, crashed, and becomes the next
session. Everything follows from one seed:

    POWERLOSS_ITERATIONS=1000 POWERLOSS_SEED=1 test_api_powerloss */
#include <inttypes.h>

#include "api/api_int.h"
#include "test_api_fixture.h"

#include "test_disk_fixture.h"

#define ITERATIONS_DEFAULT 16U
#define DEPTH_MAX 4U
#define CRASHES_MAX 3U
#define N_TABLES 3U

/** What a table has: rows with keys [first, next). */
typedef struct model_table {
    bool exists;
    int64_t first;
    int64_t next;
    uint32_t n_indexes;
} model_table_t;

typedef struct tables {
    model_table_t at[N_TABLES];
} tables_t;

static const char *const NAMES[N_TABLES] = {"a", "b", "c"};

/** States that a crash may leave: models[0 .. n), the acknowledged ones first. */
typedef struct allowed {
    tables_t at[64];
    uint32_t n;
} allowed_t;

typedef struct session {
    fixture_t f;
    disk_t *disk;
    uint64_t *rnd;
    uint32_t depth;
    tables_t model; /**< after the last acknowledged statement */
    allowed_t allowed;
    uint32_t n_changes; /**< of files so far */
    uint32_t crash_at[CRASHES_MAX];
    disk_t *crashing; /**< after the last change, if a crash was drawn for it */
    bool recovering;
    const char *story;
} session_t;

static char seed_line[96];

static void session_run(disk_t *disk, const engine_options_t *options, const allowed_t *allowed,
                        uint64_t *rnd, uint32_t depth, const char *story);

static uint32_t draw(uint64_t *rnd, uint32_t n)
{
    return (uint32_t)(random_split(rnd) % n);
}

/** Takes the disk. */
static void session_crash(session_t *s, disk_t *disk)
{
    bool power_loss = draw(s->rnd, 3) != 0;
    if (power_loss) {
        disk_power_loss(disk, s->rnd);
    }
    char story[512];
    (void)snprintf(story, sizeof(story), "%s%s %u %s,", s->story, power_loss ? "loss" : "kill",
                   s->n_changes, s->recovering ? "in recovery" : "at work");
    session_run(disk, &s->f.options, &s->allowed, s->rnd, s->depth + 1, story);
}

/** A crash comes when the next change is about to: what was acknowledged since the last one must be
there. */
static void on_change(void *ctx)
{
    session_t *s = ctx;
    if (s->crashing != NULL) {
        session_crash(s, s->crashing);
        s->crashing = NULL;
    }
    s->n_changes++;
    for (uint32_t i = 0; i < CRASHES_MAX; i++) {
        if (s->crash_at[i] == s->n_changes && s->crashing == NULL && s->depth < DEPTH_MAX) {
            s->crashing = disk_kill(s->disk);
        }
    }
}

/* ---- which state is it ---- */

static bool table_is(const check_table_t *t, const model_table_t *m)
{
    return t == NULL ? !m->exists
                     : m->exists && t->rows == (uint64_t)(m->next - m->first)
                           && t->n_indexes == m->n_indexes;
}

/** A killed copy of the directory, recovered and closed cleanly: recovery itself leaves the pages
in the pool and the checkpoint where it was. */
static disk_t *session_settled_copy(session_t *s)
{
    disk_t *copy = disk_kill(s->disk);
    fixture_t f = {.os = disk_os(copy), .options = s->f.options};
    dberr_t err = engine_open(f.os, &f.probe, &f.options, false, &f.engine, &f.err);
    if (err != DB_SUCCESS) {
        fail_msg("%s%s open again: %s", seed_line, s->story, f.err.msg);
    }
    fixture_close(&f, true);
    return copy;
}

/** The latest allowed state that the files are in. */
static void session_identify(session_t *s, const allowed_t *allowed)
{
    disk_t *copy = session_settled_copy(s);
    err_sink_t err = {.msg = ""};
    check_report_t report;
    if (check_run(disk_os(copy), &report, &err) != DB_SUCCESS || report.needs_recovery) {
        fail_msg("%s%s scan: %s", seed_line, s->story, err.msg);
    }
    if (report.n_findings > 0) {
        fail_msg("%s%s I%u %s page %u: %s", seed_line, s->story, report.findings[0].invariant,
                 report.findings[0].path, report.findings[0].page_no, report.findings[0].what);
    }
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < allowed->n; i++) {
        bool same = true;
        for (uint32_t t = 0; t < N_TABLES; t++) {
            same = same && table_is(report_table(&report, NAMES[t]), &allowed->at[i].at[t]);
        }
        found = same ? i : found;
    }
    if (found == UINT32_MAX) {
        for (uint32_t t = 0; t < N_TABLES; t++) {
            const check_table_t *c = report_table(&report, NAMES[t]);
            print_error("%s: %" PRId64 " rows, %d indexes\n", NAMES[t],
                        c != NULL ? (int64_t)c->rows : -1, c != NULL ? (int)c->n_indexes : -1);
        }
        fail_msg("%s%s the state is none of the %u that it may be", seed_line, s->story,
                 allowed->n);
    }
    s->model = allowed->at[found];
    check_report_free(&report);
    disk_destroy(copy);
}

/* ---- statements ---- */

/** Before a statement: its outcome is one more possibility. */
static void statement_begin(session_t *s, const tables_t *after)
{
    s->allowed.at[s->allowed.n] = *after;
    s->allowed.n++;
}

/** After it: what durability promises is the only possibility now. */
static void statement_end(session_t *s, const tables_t *after, bool durable)
{
    s->model = *after;
    if (durable || s->allowed.n == 63) {
        if (!durable) {
            OK(&s->f, engine_flush_log(s->f.engine));
        }
        s->allowed.at[0] = *after;
        s->allowed.n = 1;
    }
}

static void work_rows(session_t *s, uint32_t t, uint32_t what)
{
    tables_t after = s->model;
    model_table_t *m = &after.at[t];
    int64_t n = 1 + draw(s->rnd, 120);
    bool durable = s->f.options.flush_log_at_trx_commit == 1;
    int64_t rows = m->next - m->first;
    if (what == 0) {
        m->next += n;
        statement_begin(s, &after);
        insert_rows(&s->f, NAMES[t], m->next - n, m->next - 1);
    } else if (what == 1 && rows > n) {
        m->first += n;
        statement_begin(s, &after);
        delete_rows(&s->f, NAMES[t], m->first - n, m->first - 1);
    } else if (rows > n) {
        statement_begin(s, &after);
        update_rows(&s->f, NAMES[t], m->next - n, m->next - 1, (char)('a' + draw(s->rnd, 26)));
    } else {
        return;
    }
    statement_end(s, &after, durable);
}

static void work_rolled_back(session_t *s, uint32_t t)
{
    trx_t *trx = NULL;
    OK(&s->f, engine_begin(s->f.engine, &trx));
    byte row[8 + B_LEN + 8];
    for (int64_t a = 5000; a < 5000 + (int64_t)draw(s->rnd, 100); a++) {
        make_row(a, row);
        OK(&s->f, engine_insert(s->f.engine, trx, NAMES[t], row));
    }
    if (draw(s->rnd, 2) == 0) {
        OK(&s->f, engine_flush_log(s->f.engine));
    }
    OK(&s->f, engine_rollback(s->f.engine, trx));
}

/** An index build given up in its scan or load, before it can have committed. */
static void work_build_given_up(session_t *s, uint32_t t)
{
    const ddl_index_def_t def = index_def("ig", "b", 0);
    uint32_t rows = (uint32_t)(s->model.at[t].next - s->model.at[t].first);
    ddl_build_t *build = NULL;
    OK(&s->f,
       ddl_build_begin(s->f.engine->sys, ADD_INDEXES(NAMES[t], &def, 1), &s->f.options, &build));
    bool done = false;
    for (uint32_t n = draw(s->rnd, 2 * rows / 10 + 1); n > 0; n--) {
        OK(&s->f, ddl_build_step(build, 10, &done));
    }
    assert_false(done);
    OK(&s->f, ddl_build_abort(build));
    ddl_build_free(build);
}

static void work_index(session_t *s, uint32_t t)
{
    tables_t after = s->model;
    if (draw(s->rnd, 3) == 0) {
        work_build_given_up(s, t);
        return;
    }
    if (s->model.at[t].n_indexes == 0) {
        after.at[t].n_indexes = 2;
        statement_begin(s, &after);
        add_two_indexes(&s->f, NAMES[t]);
        statement_end(s, &after, true);
        return;
    }
    if (draw(s->rnd, 3) == 0) {
        statement_begin(s, &after);
        OK(&s->f, rebuild_table(s->f.engine, NAMES[t]));
        statement_end(s, &after, true);
        return;
    }
    const char *name = s->model.at[t].n_indexes == 2 ? "ib" : "ic";
    after.at[t].n_indexes--;
    statement_begin(s, &after);
    OK(&s->f, drop_index(s->f.engine, NAMES[t], name));
    statement_end(s, &after, true);
}

/** CREATE, DROP, RENAME: the three names are used again and again. */
static void work_table(session_t *s, uint32_t t)
{
    tables_t after = s->model;
    uint32_t to = draw(s->rnd, N_TABLES);
    if (!s->model.at[t].exists) {
        after.at[t] = (model_table_t){.exists = true, .first = 1, .next = 1};
        statement_begin(s, &after);
        create_table(&s->f, NAMES[t]);
    } else if (!s->model.at[to].exists) {
        after.at[to] = after.at[t];
        after.at[t] = (model_table_t){.exists = false};
        statement_begin(s, &after);
        OK(&s->f, engine_rename_table(s->f.engine, NAMES[t], NAMES[to]));
    } else if (draw(s->rnd, 3) == 0) {
        after.at[t] = (model_table_t){.exists = false};
        statement_begin(s, &after);
        OK(&s->f, engine_drop_table(s->f.engine, NAMES[t]));
    } else {
        return;
    }
    statement_end(s, &after, true);
}

static void work_pages(session_t *s)
{
    bool done = false;
    switch (draw(s->rnd, 5)) {
    case 0:
        OK(&s->f, engine_checkpoint(s->f.engine, false));
        break;
    case 1:
        OK(&s->f, engine_checkpoint(s->f.engine, true));
        break;
    case 2:
        OK(&s->f, engine_purge(s->f.engine, 100, &done));
        break;
    case 3:
        OK(&s->f, engine_clean_pages(s->f.engine, 10));
        break;
    default:
        OK(&s->f, engine_set_log_optimize_ddl(s->f.engine, draw(s->rnd, 2) == 0));
    }
}

static void session_statement(session_t *s)
{
    uint32_t t = draw(s->rnd, N_TABLES);
    uint32_t what = draw(s->rnd, 10);
    if (!s->model.at[t].exists || what < 3) {
        work_table(s, t);
    } else if (what < 6) {
        work_rows(s, t, what - 3);
    } else if (what == 6) {
        work_rolled_back(s, t);
    } else if (what == 7) {
        work_index(s, t);
    } else {
        work_pages(s);
    }
}

/** Takes the disk. */
static void session_run(disk_t *disk, const engine_options_t *options, const allowed_t *allowed,
                        uint64_t *rnd, uint32_t depth, const char *story)
{
    session_t *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->rnd = rnd;
    s->depth = depth;
    s->allowed = *allowed;
    s->story = story;
    s->disk = disk;
    s->f.os = disk_os(disk);
    s->f.options = *options;
    s->f.options.log_optimize_ddl = draw(rnd, 2) == 0;
    s->f.options.dblwr_pages = 4U << draw(rnd, 3);
    s->f.options.cleaner_interval = draw(rnd, 2) * (1 + draw(rnd, 5));
    s->f.options.schedule_seed = (uint32_t)*rnd;
    s->f.options.purge_interval = s->f.options.schedule_seed % 3;
    s->f.options.flush_log_at_trx_commit = draw(rnd, 3) == 0 ? 2 * draw(rnd, 2) : 1;
    for (uint32_t i = 0; i < CRASHES_MAX; i++) {
        s->crash_at[i] = draw(rnd, i == 0 ? 60 : 600) << (depth == 0 ? 2 : 0);
    }
    disk->on_change = on_change;
    disk->ctx = s;
    s->recovering = true;
    dberr_t err = engine_open(s->f.os, &s->f.probe, &s->f.options, true, &s->f.engine, &s->f.err);
    if (err != DB_SUCCESS) {
        fail_msg("%s%s open: %s", seed_line, story, s->f.err.msg);
    }
    s->recovering = false;
    session_identify(s, allowed);
    s->allowed.at[0] = s->model;
    s->allowed.n = 1;
    for (uint32_t n = draw(rnd, depth == 0 ? 60 : 25); n > 0; n--) {
        session_statement(s);
    }
    if (s->crashing != NULL) {
        session_crash(s, s->crashing);
    }
    disk->on_change = NULL;
    fixture_close(&s->f, draw(rnd, 2) == 0);
    disk_destroy(disk);
    free(s);
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void test_sessions(void **state)
{
    uint64_t n = env_number("POWERLOSS_ITERATIONS", ITERATIONS_DEFAULT);
    uint64_t first = env_number("POWERLOSS_SEED", 1);
    const allowed_t nothing = {.n = 1};
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.buffer_pool_pages = 32;
    options.sort_buffer_size = 64 * 1024;
    options.recv_memory = 64 * 1024;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rnd = first + i;
        options.page_size = draw(&rnd, 4) == 0 ? 8192 : 4096;
        options.log_file_size = 64 * (uint64_t)options.page_size;
        options.log_format = draw(&rnd, 3) == 0 ? LOG_FORMAT_10_5 : LOG_FORMAT_10_4;
        options.log_page_checksums = draw(&rnd, 2) == 0;
        (void)snprintf(seed_line, sizeof(seed_line),
                       "POWERLOSS_ITERATIONS=1 POWERLOSS_SEED=%" PRIu64 ": ", first + i);
        session_run(disk_create(), &options, &nothing, &rnd, 0, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
