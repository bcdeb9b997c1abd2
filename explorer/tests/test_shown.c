/* What a recovery has shown binds those that follow a crash in it (I17). The target is a store of
one file, a line per commit, whose recovery is done here, in the process, and tells by a trace what
it did to the files. */
#include "runner_fixture.h"

#include <stdio.h>

#include "explorer/targets/external_target.h"
#include "trace_builder.h"

#define LOG "log"
#define NEW_LOG "log2"
#define HALF_LOG "log2.half"
#define SEEN "seen"
#define FILE_ID 3U
#define COMMITS 2U

/** What recovery does besides reading. */
typedef enum habit {
    HABIT_NONE, /**< it leaves a file behind, and takes no notice of it */
    /** where it finds that file, it drops the second commit, which nobody has acknowledged */
    HABIT_FORGETS,
    HABIT_MOVES, /**< a new file takes the place of the old one, and nothing is synced */
    /** it leaves the file behind, and where it finds it empty, drops the second commit */
    HABIT_TEARS,
    HABIT_CUTS,         /**< it cuts the file behind the first commit, having shown both */
    HABIT_LOSES,        /**< it never shows the newest commit that is there */
    HABIT_BABBLES,      /**< its answers cannot be told apart, from the second crash on */
    HABIT_BABBLES_LAST, /**< the same, at the end of its work */
    HABIT_ISSUES, /**< it leaves the file behind, and tells of a statement that nobody issued */
    HABIT_READS   /**< it changes nothing */
} habit_t;

typedef struct toy {
    fixture_t f;
    habit_t habit;
    allowed_t allowed;
    external_config_t external;
    verifier_t verifier;
    char base[64];
} toy_t;

static bool read_file(const char *dir, const char *name, char *text, size_t room)
{
    char path[PATH_LEN_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "re");
    size_t n = file != NULL ? fread(text, 1, room - 1, file) : 0;
    text[n] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
    return file != NULL;
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[PATH_LEN_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    (void)fclose(file);
}

/** The table of a store in which so many commits are. */
static check_table_t table_of(uint64_t commits)
{
    return (check_table_t){.name = "t", .rows = commits, .hash = 100 + commits};
}

static void tell_habit(const toy_t *toy, const char *text, bool moves, const char *trace)
{
    builder_t b;
    const char *name = moves ? HALF_LOG : SEEN;
    if (toy->habit == HABIT_CUTS && text[0] != '\0') {
        begin(&b);
        put_record(&b, TP_OP_OPEN, FILE_ID, LOG, strlen(LOG))->flags = 0;
        put_record(&b, TP_OP_TRUNCATE, FILE_ID, NULL, 0)->offset = 2;
        save(&b, trace);
        return;
    }
    begin(&b);
    if (toy->habit == HABIT_READS) {
        if (text[0] != '\0') {
            put_record(&b, TP_OP_OPEN, FILE_ID, LOG, strlen(LOG))->flags = 0;
            (void)put_record(&b, TP_OP_FSYNC, FILE_ID, NULL, 0);
        }
        save(&b, trace);
        return;
    }
    if (toy->habit == HABIT_ISSUES) {
        mark(&b, "issue n=4000000000");
        mark(&b, "ack n=4000000000");
    }
    (void)put_record(&b, TP_OP_OPEN, FILE_ID, name, strlen(name));
    (void)put_record(&b, TP_OP_WRITE, FILE_ID, text, strlen(text));
    if (moves) {
        static const char NAMES[] = HALF_LOG "\0" NEW_LOG;
        (void)put_record(&b, TP_OP_RENAME, FILE_ID, NAMES, sizeof(NAMES));
        (void)put_record(&b, TP_OP_UNLINK, FILE_ID, LOG, strlen(LOG));
    }
    save(&b, trace);
}

static dberr_t record(void *self, const char *dir, const char *trace, check_report_t *report,
                      err_sink_t *err)
{
    const toy_t *toy = self;
    (void)err;
    bool moves = false;
    char text[64];
    bool was_seen = read_file(dir, SEEN, text, sizeof(text));
    bool is_empty = was_seen && text[0] == '\0';
    if (!read_file(dir, NEW_LOG, text, sizeof(text))) {
        moves = read_file(dir, LOG, text, sizeof(text)) && toy->habit == HABIT_MOVES;
    }
    uint64_t commits = 0;
    for (const char *at = text; at[0] != '\0' && at[1] == '\n'; at += 2) {
        commits++;
    }
    bool drops = toy->habit == HABIT_FORGETS ? was_seen : toy->habit == HABIT_TEARS && is_empty;
    if ((drops && commits == COMMITS) || (toy->habit == HABIT_LOSES && commits > 0)) {
        commits--;
    }
    *report = (check_report_t){.n_tables = 1, .tables = malloc(sizeof(check_table_t))};
    assert_non_null(report->tables);
    report->tables[0] = table_of(commits);
    if (toy->habit != HABIT_READS) {
        put_file(dir, moves ? NEW_LOG : SEEN, text);
    }
    char path[PATH_LEN_MAX + 16];
    if (moves) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, LOG);
        (void)unlink(path);
    }
    if (trace != NULL) {
        tell_habit(toy, text, moves, trace);
    }
    return DB_SUCCESS;
}

static dberr_t run_only(void *self, const char *dir, check_report_t *report, err_sink_t *err)
{
    const toy_t *toy = self;
    if (toy->habit == HABIT_BABBLES) {
        return err_set(err, DB_ERROR, "more than one line");
    }
    return record(self, dir, NULL, report, err);
}

static dberr_t stop(void *self, err_sink_t *err)
{
    const toy_t *toy = self;
    return toy->habit == HABIT_BABBLES_LAST ? err_set(err, DB_ERROR, "more than one line")
                                            : DB_SUCCESS;
}

/** Two commits; the first is durable and acknowledged, the second is under way. */
static void record_run(fixture_t *f, bool second_is_synced)
{
    fs_list_t *list = &f->trace.list;
    uint32_t inode = image_inode_create(f->image);
    add_entry(list, f->image, FS_LINK, inode, LOG, NULL);
    add_sync_dir(list, f->image, ".");
    add_write(list, inode, 0, "1\n");
    add_sync(list, f->image, inode, LOG);
    list->events[list->n - 1].acked_line = 1;
    uint32_t n_first = list->n;
    add_write(list, inode, 2, "2\n");
    if (second_is_synced) {
        add_sync(list, f->image, inode, LOG);
    }
    for (uint32_t i = 0; i < list->n; i++) {
        list->events[i].issued_line = i < n_first ? 1 : 2;
        list->events[i].acked_line = i + 1 < n_first ? 0 : 1;
    }
}

static toy_t *create(habit_t habit, bool second_is_synced, uint32_t models)
{
    static toy_t toy;
    toy = (toy_t){.habit = habit, .base = "/tmp/test_shown_XXXXXX"};
    fixture_t *f = &toy.f;
    assert_non_null(mkdtemp(toy.base));
    f->image = image_create();
    record_run(f, second_is_synced);
    for (uint32_t i = 0; i <= COMMITS; i++) {
        check_table_t table = table_of(i);
        allowed_add(&toy.allowed, &table, 1);
        toy.allowed.prefixes[i].line = i;
    }
    toy.verifier =
        (verifier_t){.name = "toy", .self = &toy, .run = run_only, .record = record, .stop = stop};
    toy.external = (external_config_t){.verifier = &toy.verifier, .base = toy.base};
    f->campaign = (campaign_t){.models = {.enabled = models, .sector = 512, .seed = 1},
                               .depth = 2,
                               .nested = 8,
                               .target = external_target(&toy.external)};
    fixture_plan(f);
    f->shared = shared_create(1U << 14, false);
    assert_non_null(f->shared);
    return &toy;
}

static void run(toy_t *toy, bool relaxed)
{
    fixture_t *f = &toy->f;
    const run_limits_t limits = {.jobs = 1, .batch_states = 64, .deadline_s = 10};
    f->campaign.relaxed = relaxed;
    explorer_init(&f->explorer, &f->campaign, &f->trace, f->image, &toy->allowed, f->shared);
    double seconds;
    (void)runner_run(&f->explorer, &f->plan, &f->order, &limits, &seconds);
}

static void destroy(toy_t *toy)
{
    (void)teardown((void *[]){&toy->f});
    allowed_free(&toy->allowed);
    external_remove(toy->base);
}

/** How many there are; all are of this invariant. */
static uint64_t findings(habit_t habit, uint32_t invariant, bool second_is_synced, bool relaxed,
                         uint32_t models)
{
    toy_t *toy = create(habit, second_is_synced, models);
    run(toy, relaxed);
    assert_int_equal(atomic_load(&toy->f.shared->machine_failures), 0);
    assert_true(atomic_load(&toy->f.shared->counts.second_crash) > 0);
    uint64_t n = atomic_load(&toy->f.shared->n_records);
    for (uint64_t i = 0; i < n; i++) {
        const record_t *record = &toy->f.shared->records[i];
        if (record->finding.invariant != invariant) {
            fail_msg("I%u: %s", record->finding.invariant, record->finding.what);
        }
        if (invariant == 17) {
            assert_int_equal(record->low, record->high);
        }
    }
    destroy(toy);
    return n;
}

/** A recovery that shows both commits, is crashed with nothing lost, and shows one is found; one
that leaves the same files behind and shows both is right. */
static void test_shown_then_lost(void **state)
{
    (void)state;
    assert_true(findings(HABIT_FORGETS, 17, true, false, MODELS_ALL) > 0);
    assert_int_equal(findings(HABIT_NONE, 17, true, false, MODELS_ALL), 0);
}

/** Below a kill too, where the crash has lost nothing of what the killed process wrote. A power
loss that takes the second commit from the page cache is no fault of the recovery, which had read it
there. */
static void test_below_a_kill(void **state)
{
    const uint32_t kill = 1U << MODEL_KILL | 1U << MODEL_ALL_PERSISTED | 1U << MODEL_NONE_PERSISTED
                          | 1U << MODEL_ONE_DROPPED;
    (void)state;
    toy_t *toy = create(HABIT_FORGETS, false, kill);
    run(toy, false);
    uint32_t n_below = 0;
    for (uint64_t i = 0; i < atomic_load(&toy->f.shared->n_records); i++) {
        n_below += toy->f.shared->records[i].path.level[0].model == MODEL_KILL;
    }
    destroy(toy);
    assert_true(n_below > 0);
    assert_int_equal(findings(HABIT_NONE, 17, false, false, kill), 0);
}

/** States below one whose recovery changes nothing are looked at, and are no crashes of a recovery:
it had nothing to lose. */
static void test_second_crash_of_what_changes(void **state)
{
    (void)state;
    uint64_t counted[2];
    for (uint32_t changes = 0; changes < 2; changes++) {
        toy_t *toy = create(changes ? HABIT_NONE : HABIT_READS, true, MODELS_ALL);
        run(toy, false);
        const counts_t *counts = &toy->f.shared->counts;
        counted[changes] = atomic_load(&counts->second_crash);
        assert_true(atomic_load(&counts->states) > toy->f.plan.total);
        assert_true(counted[changes] < atomic_load(&counts->distinct));
        assert_int_equal(atomic_load(&toy->f.shared->n_records), 0);
        destroy(toy);
    }
    assert_int_equal(counted[0], 0);
    assert_true(counted[1] > 0);
}

/** Where commits need not be durable, a recovery may lose by a second crash what it has not synced,
and nothing by a crash that loses nothing. */
static void test_not_durable(void **state)
{
    (void)state;
    assert_int_equal(findings(HABIT_MOVES, 17, true, true, MODELS_ALL), 0);
    assert_true(findings(HABIT_FORGETS, 17, true, true, MODELS_ALL) > 0);
}

/** What a recovery tells of statements is not heard: it has none. */
static void test_statements_of_a_recovery(void **state)
{
    (void)state;
    assert_int_equal(findings(HABIT_ISSUES, 17, true, false, MODELS_ALL), 0);
}

/** Whatever the second crash has lost of the recovery's own writes. */
static void test_some_lost(void **state)
{
    const uint32_t models = 1U << MODEL_NONE_PERSISTED | 1U << MODEL_ONE_DROPPED;
    (void)state;
    assert_true(findings(HABIT_TEARS, 17, true, false, models) > 0);
    assert_int_equal(findings(HABIT_NONE, 17, true, false, models), 0);
}

/** The same image, below a recovery that had come to less: right there, and wrong here. */
static void test_shown_tells_images_apart(void **state)
{
    const uint32_t models = 1U << MODEL_NONE_PERSISTED | 1U << MODEL_ONE_PERSISTED;
    (void)state;
    assert_true(findings(HABIT_CUTS, 17, true, false, models) > 0);
}

/** What was acknowledged must be there, in a recovery that nobody disturbs. */
static void test_acknowledged(void **state)
{
    const uint32_t all = 1U << MODEL_ALL_PERSISTED;
    (void)state;
    assert_true(findings(HABIT_LOSES, 1, true, false, all) > 0);
    assert_int_equal(findings(HABIT_LOSES, 1, true, true, all), 0);
}

/** A verifier whose answers cannot be told apart is no reason for a finding: there is no
verdict. */
static void test_no_verdict(void **state)
{
    static const habit_t HABITS[] = {HABIT_BABBLES, HABIT_BABBLES_LAST};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        toy_t *toy = create(HABITS[i], true, MODELS_ALL);
        run(toy, false);
        assert_int_equal(atomic_load(&toy->f.shared->machine_failures), 1);
        assert_int_equal(atomic_load(&toy->f.shared->n_records), 0);
        destroy(toy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shown_then_lost),
        cmocka_unit_test(test_below_a_kill),
        cmocka_unit_test(test_not_durable),
        cmocka_unit_test(test_statements_of_a_recovery),
        cmocka_unit_test(test_some_lost),
        cmocka_unit_test(test_shown_tells_images_apart),
        cmocka_unit_test(test_acknowledged),
        cmocka_unit_test(test_no_verdict),
        cmocka_unit_test(test_second_crash_of_what_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
