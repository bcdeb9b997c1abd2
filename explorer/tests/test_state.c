/* One state, asked for by hand: what the target is told of it, which images are judged again, and
what lies below. The target is a script: it notes what it is asked, and answers as it was told. */
#include "disk/tests/fixture.h"

#include "explorer/run/state.h"

#define ASKED_MAX 64U
#define PREFIXES 6U
#define LOG "log"

/** What the target was asked. */
typedef struct asked {
    expected_t expected;
    uint64_t sample;
    bool killed;
    bool recorded; /**< its recovery may be crashed */
} asked_t;

typedef struct world {
    image_t *image;
    trace_t trace;
    allowed_t allowed;
    campaign_t campaign;
    shared_t *shared;
    explorer_t explorer;
    uint32_t inode;
    uint32_t n_asked;
    asked_t asked[ASKED_MAX];
    /** Told of each image ... */
    uint32_t wrong;     /**< invariant that it breaks; 0: none ... */
    uint32_t source;    /**< ... and who says so */
    uint32_t n_worked;  /**< prefixes of new work behind those that were expected */
    uint32_t prepared;  /**< as of outcome_t, of the first backup */
    fs_list_t recovery; /**< ... and what its recovery does */
} world_t;

static world_t world;

/* ---- the target ---- */

static void *target_open_script(const void *config, image_t *image, const rules_t *history)
{
    (void)config;
    (void)image;
    (void)history;
    return &world;
}

static dberr_t target_judge_script(void *self, const target_case_t *c, outcome_t *outcome,
                                   err_sink_t *err)
{
    world_t *w = self;
    (void)err;
    assert_true(w->n_asked < ASKED_MAX);
    w->asked[w->n_asked++] = (asked_t){.expected = *c->expected,
                                       .sample = c->sample,
                                       .killed = c->killed,
                                       .recorded = c->record != NULL};
    if (w->wrong != 0) {
        verdict_add(&outcome->verdict, (finding_source_t)w->source, w->wrong, "asked for");
    }
    outcome->found = true;
    outcome->digest = 77;
    outcome->prefix = c->expected->high;
    outcome->prepared[0] = w->prepared;
    if (w->n_worked > 0) {
        allowed_extend(&outcome->worked, c->expected->allowed, c->expected->high, 5);
        for (uint32_t i = 0; i < w->n_worked; i++) {
            check_table_t table = {.name = "new", .rows = i};
            allowed_add(&outcome->worked, &table, 1);
        }
    }
    if (c->record != NULL) {
        fs_list_clear(c->record);
        for (uint32_t i = 0; i < w->recovery.n; i++) {
            *fs_list_add(c->record, w->recovery.events[i].kind) = w->recovery.events[i];
        }
    }
    return DB_SUCCESS;
}

static dberr_t target_close_script(void *self, err_sink_t *err)
{
    (void)self;
    (void)err;
    return DB_SUCCESS;
}

/* ---- the run ---- */

/** A write that is durable by itself, of line `line`, which it acknowledges when it has ended. */
static void add_durable(fs_list_t *list, uint32_t inode, uint64_t at, const char *text,
                        uint32_t line)
{
    uint32_t acked = list->n > 0 ? list->events[list->n - 1].acked_line : 0;
    add_write(list, inode, at, text);
    fs_event_t *event = &list->events[list->n - 1];
    event->durable = true;
    event->acked_line = line > acked ? line : acked;
    event->issued_line = line;
    event->seq = list->n;
}

static int setup(void **state)
{
    world_t *w = &world;
    *w = (world_t){.image = image_create()};
    w->inode = image_inode_create(w->image);
    add_entry(&w->trace.list, w->image, FS_LINK, w->inode, LOG, NULL);
    add_sync_dir(&w->trace.list, w->image, ".");
    for (uint32_t i = 0; i < w->trace.list.n; i++) {
        w->trace.list.events[i].seq = i + 1;
        w->trace.list.events[i].issued_line = 1;
    }
    for (uint32_t i = 0; i < PREFIXES; i++) {
        check_table_t table = {.name = "t", .rows = i};
        allowed_add(&w->allowed, &table, 1);
        w->allowed.prefixes[i].line = i;
    }
    w->campaign = (campaign_t){.models = {.enabled = MODELS_ALL, .sector = 512, .seed = 1},
                               .depth = 1,
                               .nested = 4,
                               .target = {.name = "script",
                                          .open = target_open_script,
                                          .judge = target_judge_script,
                                          .close = target_close_script}};
    w->shared = shared_create(1U << 10, false);
    assert_non_null(w->shared);
    *state = w;
    return 0;
}

/** After the run has been written down. */
static void start(world_t *w)
{
    explorer_init(&w->explorer, &w->campaign, &w->trace, w->image, &w->allowed, w->shared);
}

static int teardown(void **state)
{
    world_t *w = *state;
    explorer_free(&w->explorer);
    shared_destroy(w->shared);
    allowed_free(&w->allowed);
    fs_list_free(&w->recovery);
    fs_list_free(&w->trace.list);
    image_destroy(w->image);
    return 0;
}

/** The state there, and the first thing that the target was asked of it; NULL: nothing. */
static const asked_t *visit(world_t *w, uint32_t point, model_t model)
{
    uint32_t before = w->n_asked;
    persist_advance(&w->explorer.persist, point);
    explorer_visit(&w->explorer, model, 0);
    return w->n_asked > before ? &w->asked[before] : NULL;
}

/** Nothing has been visited. */
static void forget(world_t *w)
{
    shared_destroy(w->shared);
    w->shared = shared_create(1U << 10, false);
    assert_non_null(w->shared);
    w->explorer.shared = w->shared;
    w->explorer.progress = &w->shared->progress[0];
}

static void check_range(const asked_t *asked, uint32_t low, uint32_t high)
{
    assert_non_null(asked);
    assert_int_equal(asked->expected.low, low);
    assert_int_equal(asked->expected.high, high);
}

/* ---- what is told of a state ---- */

/** Behind a write that is durable by itself it has not ended: nobody was told, and it may be lost.
One event later it was acknowledged. */
static void test_under_way(void **state)
{
    world_t *w = *state;
    add_durable(&w->trace.list, w->inode, 0, "2", 2);
    add_sync_dir(&w->trace.list, w->image, ".");
    fs_event_t *last = &w->trace.list.events[w->trace.list.n - 1];
    last->acked_line = last->issued_line = 2;
    start(w);
    check_range(visit(w, 3, MODEL_NONE_PERSISTED), 0, 2);
    check_range(visit(w, 4, MODEL_ALL_PERSISTED), 2, 2);
    assert_int_equal(w->asked[1].expected.script_low, 2);
}

/** What was acknowledged before the recording began holds at its first crash point. */
static void test_acknowledged_before(void **state)
{
    world_t *w = *state;
    w->trace.first_acked_line = 1;
    w->trace.list.events[0].acked_line = w->trace.list.events[1].acked_line = 1;
    start(w);
    check_range(visit(w, 0, MODEL_ALL_PERSISTED), 1, 1);
}

/** Where commits need not be durable, none is, nor a backup. */
static void test_relaxed(void **state)
{
    world_t *w = *state;
    add_durable(&w->trace.list, w->inode, 0, "2", 2);
    add_sync_dir(&w->trace.list, w->image, ".");
    w->trace.list.events[3].acked_line = w->trace.list.events[3].issued_line = 2;
    w->campaign.relaxed = true;
    start(w);
    check_range(visit(w, 4, MODEL_ALL_PERSISTED), 0, 2);
    assert_int_equal(w->asked[0].expected.script_low, 0);
}

/** Only after a kill may what recovery finds lie in the page cache alone. */
static void test_killed(void **state)
{
    world_t *w = *state;
    w->campaign.depth = 2;
    add_write(&w->trace.list, w->inode, 0, "2");
    start(w);
    const asked_t *lost = visit(w, 3, MODEL_ALL_PERSISTED);
    assert_non_null(lost);
    assert_false(lost->killed);
    forget(w);
    const asked_t *killed = visit(w, 3, MODEL_KILL);
    assert_non_null(killed);
    assert_true(killed->killed);
}

/** The site of a crash point is that of the last write before it. */
static void test_site(void **state)
{
    world_t *w = *state;
    fs_list_t list = {.n = 0};
    add_write(&list, w->inode, 0, "x");
    list.events[0].site = 3;
    add_sync(&list, w->image, w->inode, LOG);
    start(w);
    assert_int_equal(point_site(&list, 0), SITE_OTHER);
    assert_int_equal(point_site(&list, 1), 3);
    assert_int_equal(point_site(&list, 2), 3);
    assert_int_equal(point_site(&w->trace.list, 2), SITE_OTHER);
    fs_list_free(&list);
}

/* ---- which images are judged ---- */

/** The same image with the same expectations is judged once if it is right, else each time. */
static void test_right_once(void **state)
{
    world_t *w = *state;
    start(w);
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    assert_null(visit(w, 2, MODEL_ALL_PERSISTED));
    w->wrong = 6;
    w->trace.list.events[1].issued_line = 2;
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    assert_int_equal(shared_records(w->shared, &(uint64_t){0}), 2);
}

/** The same image is another state where more was issued, or acknowledged, or another prefix of new
work may be there. */
static void test_other_expectations(void **state)
{
    world_t *w = *state;
    start(w);
    check_range(visit(w, 2, MODEL_ALL_PERSISTED), 0, 1);
    w->trace.list.events[1].issued_line = 2;
    check_range(visit(w, 2, MODEL_ALL_PERSISTED), 0, 2);
    w->trace.list.events[1].acked_line = 1;
    check_range(visit(w, 2, MODEL_ALL_PERSISTED), 1, 2);
    w->allowed.id = 9;
    check_range(visit(w, 2, MODEL_ALL_PERSISTED), 1, 2);
    assert_true(w->asked[2].sample != w->asked[3].sample);
}

/** Both states were judged, though their image is the same. */
static void check_same_image(const asked_t *one, const asked_t *other)
{
    assert_non_null(one);
    assert_non_null(other);
    assert_int_equal(one->sample, other->sample);
}

/** A file with a byte in it, which is durable. */
static void add_file(world_t *w)
{
    add_write(&w->trace.list, w->inode, 0, "w");
    add_sync(&w->trace.list, w->image, w->inode, LOG);
}

/** An image that is crashed again is another state after other losses, which say where to look: a
write of what was there is lost, and the image is the same. */
static void test_other_losses(void **state)
{
    world_t *w = *state;
    w->campaign.depth = 2;
    add_file(w);
    add_write(&w->trace.list, w->inode, 0, "w");
    start(w);
    const asked_t *kept = visit(w, 5, MODEL_ALL_PERSISTED);
    check_same_image(kept, visit(w, 5, MODEL_NONE_PERSISTED));
}

/** Below a kill it matters what waits, and what is durable without it, though the image is the
same: "x" not synced, synced, and written again. */
static void test_other_writes_wait(void **state)
{
    world_t *w = *state;
    w->campaign.depth = 2;
    add_file(w);
    add_write(&w->trace.list, w->inode, 0, "x");
    add_sync(&w->trace.list, w->image, w->inode, LOG);
    add_write(&w->trace.list, w->inode, 0, "x");
    start(w);
    const asked_t *first = visit(w, 5, MODEL_KILL);
    check_same_image(first, visit(w, 6, MODEL_KILL));
    check_same_image(first, visit(w, 7, MODEL_KILL));
}

/** What was found right with nothing below it is judged again where its recovery is crashed. */
static void test_found_right_deeper(void **state)
{
    world_t *w = *state;
    start(w);
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    w->campaign.depth = 2;
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    assert_true(w->asked[1].recorded);
}

/* ---- below a state ---- */

/** The crash of a recovery behind so many of its events, which are kept. */
static const asked_t *visit_below(world_t *w, uint32_t of_recovery)
{
    forget(w);
    w->campaign.only = (state_path_t){.depth = 2};
    w->campaign.only.level[0].seq = 2;
    w->campaign.only.level[0].model = MODEL_ALL_PERSISTED;
    w->campaign.only.level[1].seq = of_recovery;
    w->campaign.only.level[1].model = MODEL_ALL_PERSISTED;
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    assert_true(w->explorer.only_found);
    return &w->asked[w->n_asked - 1];
}

/** A recovery that does new work: two statements, each acknowledged by a write that is durable by
itself. */
static void work(world_t *w)
{
    w->campaign.depth = 2;
    w->n_worked = 2;
    add_durable(&w->recovery, w->inode, 0, "1", 1);
    add_durable(&w->recovery, w->inode, 1, "2", 2);
}

/** The work of a recovery is there as far as it was acknowledged: not while its last write is under
way, but what was issued may be. */
static void test_work_under_way(void **state)
{
    world_t *w = *state;
    work(w);
    start(w);
    check_range(visit_below(w, 1), 0, 2);
    check_range(visit_below(w, 2), 2, 3);
    w->campaign.relaxed = true;
    check_range(visit_below(w, 2), 0, 3);
}

/** A backup is prepared when that was acknowledged: not while its last write is under way, and
nowhere that promises no durability. */
static void test_prepared_under_way(void **state)
{
    world_t *w = *state;
    work(w);
    w->prepared = 2; /* behind the first operation */
    start(w);
    assert_int_equal(visit_below(w, 1)->expected.prepared, 0);
    assert_int_equal(visit_below(w, 2)->expected.prepared, 1);
    w->campaign.relaxed = true;
    assert_int_equal(visit_below(w, 2)->expected.prepared, 0);
}

/** The same image is another state behind that. The recovery writes the same three times. */
static void test_prepared_is_another_state(void **state)
{
    world_t *w = *state;
    w->campaign.depth = 2;
    w->campaign.nested = 16;
    w->campaign.models.enabled = 1U << MODEL_ALL_PERSISTED;
    w->prepared = 3; /* behind the second operation */
    for (uint32_t i = 0; i < 3; i++) {
        add_durable(&w->recovery, w->inode, 0, "1", 0);
    }
    start(w);
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    uint32_t n_prepared = 0;
    for (uint32_t i = 1; i < w->n_asked; i++) {
        n_prepared += w->asked[i].expected.prepared;
    }
    assert_int_equal(n_prepared, 1);
    check_same_image(&w->asked[w->n_asked - 1], &w->asked[w->n_asked - 2]);
}

/** Where one state is asked for, the one above it names nothing. */
static void test_above_is_silent(void **state)
{
    world_t *w = *state;
    work(w);
    w->wrong = 19;
    w->source = SOURCE_RULE;
    start(w);
    (void)visit_below(w, 1);
    assert_int_equal(shared_records(w->shared, &(uint64_t){0}), 1);
    assert_int_equal(w->shared->records[0].path.depth, 2);
}

/** Nothing lies below a state that is broken; below one whose recovery broke a rule, there does. */
static void test_broken_ends_the_way(void **state)
{
    world_t *w = *state;
    work(w);
    w->wrong = 6;
    start(w);
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    assert_int_equal(w->n_asked, 1);
    w->source = SOURCE_RULE;
    assert_non_null(visit(w, 2, MODEL_ALL_PERSISTED));
    assert_true(w->n_asked > 3);
    assert_true(w->asked[1].recorded && !w->asked[w->n_asked - 1].recorded);
}

int main(void)
{
#define A_STATE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        A_STATE(test_under_way),
        A_STATE(test_acknowledged_before),
        A_STATE(test_relaxed),
        A_STATE(test_killed),
        A_STATE(test_site),
        A_STATE(test_right_once),
        A_STATE(test_other_expectations),
        A_STATE(test_other_losses),
        A_STATE(test_other_writes_wait),
        A_STATE(test_work_under_way),
        A_STATE(test_prepared_under_way),
        A_STATE(test_prepared_is_another_state),
        A_STATE(test_found_right_deeper),
        A_STATE(test_above_is_silent),
        A_STATE(test_broken_ends_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
