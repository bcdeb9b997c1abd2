/* Processes: a state that kills or stalls its process is one finding, and all others are still run. A
process that somebody else ended is none.
The trace is the creation of a database, recorded in memory. */
#include "fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "explorer/run/runner.h"

/** Nothing is known of the statements. */
static const kinds_t ALIKE = {.n = 1};

typedef struct fixture {
    image_t *image;
    trace_t trace;
    allowed_t allowed;
    allowed_prefix_t prefix;
    engine_options_t options;
    campaign_t campaign;
    state_plan_t plan;
    shared_t *shared;
    explorer_t explorer;
} fixture_t;

static uint32_t count_inodes(const fs_list_t *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        n += list->events[i].kind == FS_LINK;
    }
    return n;
}

static int setup(void **state)
{
    static fixture_t f;
    probe_t probe = {.point = NULL};
    engine_t *engine = NULL;
    err_sink_t err = {.msg = ""};
    plan_limits_t limits = {.to_seq = UINT64_MAX, .batch_states = 64, .kinds = &ALIKE};
    f = (fixture_t){.image = image_create()};
    options_set_defaults(&f.options);
    f.options.buffer_pool_pages = 32;
    f.options.dblwr_pages = 8;
    image_mark(f.image);
    image_os_record(f.image, &f.trace.list);
    assert_int_equal(engine_open(image_os(f.image), &probe, &f.options, true, &engine, &err),
                     DB_SUCCESS);
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    image_os_record(f.image, NULL);
    image_undo(f.image);
    for (uint32_t n = count_inodes(&f.trace.list); n > 0; n--) {
        (void)image_inode_create(f.image);
    }
    f.prefix = (allowed_prefix_t){.digest = allowed_digest(NULL, 0)};
    f.allowed = (allowed_t){.prefixes = &f.prefix, .n = 1};
    f.campaign = (campaign_t){.models = {.enabled = MODELS_ALL, .sector = 512, .seed = 1},
                              .depth = 1,
                              .nested = 4,
                              .in_full = 1};
    plan_create(&f.plan, &f.campaign, &f.trace, f.image, &limits);
    f.shared = shared_create(1U << 14, false);
    assert_non_null(f.shared);
    explorer_init(&f.explorer, &f.campaign, &f.trace, f.image, &f.allowed, &f.options, f.shared);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    explorer_free(&f->explorer);
    shared_destroy(f->shared);
    plan_free(&f->plan);
    fs_list_free(&f->trace.list);
    image_destroy(f->image);
    return 0;
}

static void run(fixture_t *f, uint32_t jobs)
{
    run_limits_t limits = {.jobs = jobs, .deadline_s = 1};
    double seconds;
    assert_true(runner_run(&f->explorer, &f->plan, &limits, &seconds));
}

/** Nothing is wrong with any power loss during creation and a clean close. */
static void test_clean(void **state)
{
    fixture_t *f = *state;
    run(f, 2);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
    assert_int_equal(atomic_load(&f->shared->counts.states), f->plan.total);
    assert_true(f->plan.total > 500);
    assert_true(atomic_load(&f->shared->counts.distinct) > 50);
}

/** The same one level deeper, where recoveries are crashed again. */
static void test_clean_nested(void **state)
{
    fixture_t *f = *state;
    f->campaign.depth = 2;
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
    assert_true(atomic_load(&f->shared->counts.second_crash) > 50);
}

/** Ends the process in the recovery of one state: the one with this number. */
static uint64_t victim;

static void die_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    if (explorer->progress->position == victim) {
        abort();
    }
}

/** As somebody else would, or the kernel. */
static void end_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    if (explorer->progress->position == victim) {
        (void)kill(getpid(), SIGTERM);
    }
}

static void end_worker_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    if (explorer->progress->position == victim) {
        (void)kill(getppid(), SIGKILL);
        (void)pause();
    }
}

static void stall_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    while (explorer->progress->position == victim) {
        (void)pause();
    }
}

/** Of the first state of all: what follows is run as if nothing had been. */
static void check_one_death(fixture_t *f)
{
    assert_int_equal(atomic_load(&f->shared->n_records), 1);
    assert_int_equal(f->shared->records[0].finding.invariant, 30);
    assert_int_equal(f->shared->records[0].path.level[0].seq, 0);
    assert_int_equal(atomic_load(&f->shared->counts.states), f->plan.total);
}

/** Every recovery passes the engine's named points. */
static void listen(fixture_t *f, void (*point)(void *ctx, const char *name))
{
    probe_t *probe = &f->explorer.target.judge.probe;
    probe->point = point;
    probe->ctx = &f->explorer;
    atomic_store(&probe->armed, true);
}

static void test_crash(void **state)
{
    fixture_t *f = *state;
    victim = 0;
    listen(f, die_at_victim);
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->counts.crashed), 1);
    check_one_death(f);
    assert_non_null(strstr(f->shared->records[0].finding.what, "signal 6"));
}

static void test_hang(void **state)
{
    fixture_t *f = *state;
    victim = 0;
    listen(f, stall_at_victim);
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->counts.hung), 1);
    check_one_death(f);
    assert_non_null(strstr(f->shared->records[0].finding.what, "hung"));
}

/** No finding, and the campaign has no verdict. */
static void check_ended(fixture_t *f, void (*point)(void *ctx, const char *name))
{
    run_limits_t limits = {.jobs = 1, .deadline_s = 60};
    double seconds;
    victim = 0;
    listen(f, point);
    (void)runner_run(&f->explorer, &f->plan, &limits, &seconds);
    assert_int_equal(atomic_load(&f->shared->machine_failures), 1);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
}

static void test_ended_from_outside(void **state)
{
    check_ended(*state, end_at_victim);
}

static void test_worker_ended_from_outside(void **state)
{
    check_ended(*state, end_worker_at_victim);
}

typedef struct chosen {
    const state_plan_t *plan;
    uint32_t n[2];       /**< other states, basic ones */
    uint32_t in_part[4]; /**< of the crash points */
    uint32_t at_site[2][SITE_KINDS];
    uint32_t point;
    fs_site_t site;
} chosen_t;

static void count_chosen(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    chosen_t *chosen = ctx;
    (void)k;
    assert_in_range(number, plan_number(chosen->plan, chosen->point),
                    plan_number(chosen->plan, chosen->point + 1) - 1);
    chosen->n[model_is_basic(model)]++;
    chosen->in_part[chosen->point * 4 / chosen->plan->n_points]++;
    chosen->at_site[model_is_basic(model)][chosen->site]++;
}

static chosen_t choose(fixture_t *f, uint64_t states, state_plan_t *plan)
{
    plan_limits_t limits = {
        .states = states, .to_seq = UINT64_MAX, .batch_states = 16, .kinds = &ALIKE};
    persist_t persist;
    plan_create(plan, &f->campaign, &f->trace, f->image, &limits);
    chosen_t chosen = {.plan = plan};
    image_mark(f->image);
    persist_init(&persist, &f->trace.list, f->image, NULL);
    for (uint32_t point = 0; point < plan->n_points; point++) {
        persist_advance(&persist, point);
        chosen.point = point;
        chosen.site = point_site(&f->trace.list, point);
        plan_each(plan, &f->campaign.models, &persist, count_chosen, &chosen);
    }
    persist_free(&persist);
    image_undo(f->image);
    return chosen;
}

/** --at-seq: after these events, and nowhere else. */
static void test_chosen_points(void **state)
{
    fixture_t *f = *state;
    const uint64_t at[] = {point_seq(&f->trace.list, 3), point_seq(&f->trace.list, 7)};
    plan_limits_t limits = {
        .to_seq = UINT64_MAX, .at = at, .n_at = 2, .batch_states = 16, .kinds = &ALIKE};
    state_plan_t plan;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    assert_int_equal(plan.n_crash_points, 2);
    for (uint32_t point = 0; point < plan.n_points; point++) {
        bool has = plan_number(&plan, point + 1) > plan_number(&plan, point);
        assert_int_equal(has, point == 3 || point == 7);
    }
    plan_free(&plan);
}

/** A plan of as many states as are wanted besides those of the suspect, where its crash point has none. */
static void plan_of_others(fixture_t *f, uint32_t suspect, plan_limits_t limits, state_plan_t *plan)
{
    uint64_t *at = mem_alloc((f->trace.list.n + 1U) * sizeof(*at));
    uint32_t n = 0;
    for (uint32_t point = 0; point <= f->trace.list.n; point++) {
        if (point != suspect) {
            at[n++] = point_seq(&f->trace.list, point);
        }
    }
    limits.at = at;
    limits.n_at = n;
    limits.n_suspects = 0;
    plan_create(plan, &f->campaign, &f->trace, f->image, &limits);
    free(at);
}

static uint64_t sum_of_shares(const state_plan_t *plan, uint32_t part)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->n_groups; i++) {
        sum += plan->shares[part][i];
    }
    return sum;
}

/** --suspect: a quarter of the states come right after such an event, however many there are; the others are chosen as ever,
by class the same as where nothing lies after that event. */
static void test_suspects(void **state)
{
    fixture_t *f = *state;
    const uint32_t wanted = 40;
    const uint32_t point = f->trace.list.n / 2;
    const uint64_t suspects[] = {point_seq(&f->trace.list, point)};
    plan_limits_t limits = {.states = wanted,
                            .to_seq = UINT64_MAX,
                            .suspects = suspects,
                            .n_suspects = 1,
                            .batch_states = 16,
                            .kinds = &ALIKE};
    state_plan_t plan;
    state_plan_t others;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    uint64_t there = plan_number(&plan, point + 1) - plan_number(&plan, point);
    assert_true(there > wanted / 4);
    for (uint32_t i = 0; i < plan.n_points; i++) {
        assert_int_equal(plan.points[i].suspect, i == point);
    }
    assert_int_equal(sum_of_shares(&plan, PLAN_SUSPECT), wanted / 4);
    limits.states = wanted - wanted / 4;
    plan_of_others(f, point, limits, &others);
    assert_int_equal(others.total, plan.total - there);
    assert_int_equal(others.wanted, wanted - wanted / 4);
    for (uint32_t part = PLAN_BASIC; part <= PLAN_OTHER; part++) {
        assert_true(sum_of_shares(&plan, part) > 0);
        assert_memory_equal(plan.totals[part], others.totals[part],
                            plan.n_groups * sizeof(*plan.totals[part]));
        assert_memory_equal(plan.shares[part], others.shares[part],
                            plan.n_groups * sizeof(*plan.shares[part]));
    }
    plan_free(&others);
    plan_free(&plan);
    limits.states = 0;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    assert_int_equal(plan.wanted, plan.total);
    plan_free(&plan);
}

/** --suspect: where there are fewer states after such events than a quarter, all of them are run. */
static void test_few_suspects(void **state)
{
    fixture_t *f = *state;
    const uint32_t point = f->trace.list.n / 2;
    const uint64_t suspects[] = {point_seq(&f->trace.list, point)};
    uint64_t there = plan_number(&f->plan, point + 1) - plan_number(&f->plan, point);
    plan_limits_t limits = {.states = 4 * (there + 1),
                            .to_seq = UINT64_MAX,
                            .suspects = suspects,
                            .n_suspects = 1,
                            .batch_states = 16,
                            .kinds = &ALIKE};
    state_plan_t plan;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    assert_true(there > 0 && plan.wanted > 4 * there && plan.wanted < plan.total);
    assert_int_equal(sum_of_shares(&plan, PLAN_SUSPECT), there);
    plan_free(&plan);
}

/** --states: exactly as many, from all parts of the trace, and of every site. */
static void test_choice(void **state)
{
    fixture_t *f = *state;
    state_plan_t plan;
    chosen_t chosen = choose(f, 100, &plan);
    assert_int_equal(chosen.n[0] + chosen.n[1], 100);
    assert_in_range(chosen.n[0], 25 - SITE_KINDS, 25);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(chosen.in_part[i] > 10);
    }
    assert_int_equal(plan.batches[0].first, 0);
    assert_int_equal(plan.batches[plan.n_batches - 1].end, plan.n_points);
    plan_free(&plan);
}

/** Are there more states of the checkpoint among those that were chosen than in proportion? */
static bool checkpoint_stands_out(const chosen_t *some, const chosen_t *all, uint32_t basic)
{
    return (uint64_t)some->at_site[basic][SITE_CHECKPOINT_HEADER] * all->n[basic]
           > (uint64_t)all->at_site[basic][SITE_CHECKPOINT_HEADER] * some->n[basic];
}

/** As soon as there is room, every basic state is run before any other is sampled; and a site with few
states has more than its proportion of what is sampled, basic or not. */
static void test_basic_states_come_first(void **state)
{
    fixture_t *f = *state;
    state_plan_t plan;
    uint32_t n_writes = 0;
    for (uint32_t i = 0; i < f->trace.list.n; i++) {
        n_writes += f->trace.list.events[i].kind == FS_WRITE;
        f->trace.list.events[i].site = n_writes % 8 == 0 ? SITE_CHECKPOINT_HEADER : SITE_DATA_PAGE;
    }
    chosen_t all = choose(f, 0, &plan);
    assert_int_equal(all.n[0] + all.n[1], plan.total);
    plan_free(&plan);
    chosen_t some = choose(f, all.n[1] + all.n[0] / 2, &plan);
    assert_int_equal(some.n[1], all.n[1]);
    assert_true(some.n[0] > all.n[0] / 3 && some.n[0] <= all.n[0] / 2);
    assert_true(checkpoint_stands_out(&some, &all, 0));
    plan_free(&plan);
    chosen_t few = choose(f, all.n[1] / 2, &plan);
    assert_true(few.n[1] < all.n[1] && checkpoint_stands_out(&few, &all, 1));
    plan_free(&plan);
}

/** The states right after a name was made. */
static void count_named(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    (void)model;
    (void)k;
    (void)number;
    ++*(uint32_t *)ctx;
}

static uint32_t choose_named(fixture_t *f, uint64_t states, uint64_t *n)
{
    state_plan_t plan;
    plan_limits_t limits = {
        .states = states, .to_seq = UINT64_MAX, .batch_states = 16, .kinds = &ALIKE};
    persist_t persist;
    uint32_t named = 0;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    image_mark(f->image);
    persist_init(&persist, &f->trace.list, f->image, NULL);
    for (uint32_t point = 1; point < plan.n_points; point++) {
        persist_advance(&persist, point);
        if (f->trace.list.events[point - 1].kind == FS_LINK) {
            plan_each(&plan, &f->campaign.models, &persist, count_named, &named);
        }
    }
    *n = plan.wanted;
    persist_free(&persist);
    image_undo(f->image);
    plan_free(&plan);
    return named;
}

/** What follows a change of names is a place of its own, although its site is that of the write before. */
static void test_names_are_a_place(void **state)
{
    fixture_t *f = *state;
    uint64_t n_all = 0;
    uint64_t n_some = 0;
    uint32_t all = choose_named(f, 0, &n_all);
    uint32_t some = choose_named(f, n_all / 4, &n_some);
    assert_true(all > 0 && n_some == n_all / 4);
    assert_true((uint64_t)some * n_all > (uint64_t)all * n_some);
}

/** What a change of a name relies on belongs to it, over any fsync; a hole is no part of the write before it. */
static void test_places(void **state)
{
    static const fs_kind_t KINDS[] = {FS_WRITE, FS_SYNC, FS_UNLINK, FS_SYNC_DIR,
                                      FS_WRITE, FS_ZERO, FS_SYNC,   FS_WRITE};
    const uint32_t names = SITE_KINDS;
    const uint32_t holes = SITE_KINDS + 1U;
    const uint32_t data = SITE_DATA_PAGE;
    const uint32_t expected[] = {SITE_OTHER, names, names, names, names, data, holes, holes, data};
    fs_list_t list = {.events = NULL};
    (void)state;
    for (uint32_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
        fs_list_add(&list, KINDS[i])->site = SITE_DATA_PAGE;
    }
    for (uint32_t point = 0; point <= list.n; point++) {
        assert_int_equal(plan_place(&list, point), expected[point]);
    }
    fs_list_free(&list);
}

/** Statements of a kind that has few crash points get more than their proportion, and the numbers of states stay. */
static void test_rare_kinds(void **state)
{
    fixture_t *f = *state;
    uint8_t of_line[] = {0, 1, 2};
    const kinds_t kinds = {.of_line = of_line, .n_lines = 3, .n = 3};
    plan_limits_t limits = {.to_seq = UINT64_MAX, .batch_states = 16, .kinds = &kinds};
    state_plan_t plan;
    uint32_t rare = f->trace.list.n / 2;
    for (uint32_t i = 0; i < f->trace.list.n; i++) {
        f->trace.list.events[i].site = SITE_DATA_PAGE;
        f->trace.list.events[i].issued_line = i >= rare && i < rare + f->trace.list.n / 16 ? 2 : 1;
    }
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    assert_int_equal(plan.total, f->plan.total);
    assert_int_equal(plan_number(&plan, rare), plan_number(&f->plan, rare));
    limits.states = plan.total / 16;
    plan_free(&plan);
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    for (uint32_t half = 0; half <= PLAN_OTHER; half++) {
        uint32_t usual = SITE_DATA_PAGE * kinds.n + 1;
        const uint64_t *totals = plan.totals[half];
        const uint64_t *shares = plan.shares[half];
        assert_true(shares[usual] > 0 && totals[usual + 1] > 0);
        assert_true(shares[usual + 1] * totals[usual] > shares[usual] * totals[usual + 1]
                    || shares[usual] == totals[usual]);
    }
    plan_free(&plan);
}

/** The words of a file become numbers; what there is no line for is of kind 0. */
static void test_kinds_are_read(void **state)
{
    char path[] = "/tmp/kinds-XXXXXX";
    int fd = mkstemp(path);
    kinds_t kinds;
    err_sink_t err = {.msg = ""};
    (void)state;
    assert_int_equal(write(fd, "insert\npurge\ninsert\n\n", 21), 21);
    assert_int_equal(close(fd), 0);
    assert_int_equal(kinds_load(path, &kinds, &err), DB_SUCCESS);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(kinds.n, 4);
    assert_int_equal(kinds_of(&kinds, 0), 0);
    assert_int_equal(kinds_of(&kinds, 1), kinds_of(&kinds, 3));
    assert_int_not_equal(kinds_of(&kinds, 1), kinds_of(&kinds, 2));
    assert_int_equal(kinds_of(&kinds, 5), 0);
    kinds_free(&kinds);
    assert_int_equal(kinds_load(path, &kinds, &err), DB_ERROR);
}

/** A folder can be opened like a file: what cannot be read is not taken for an empty one. */
static void test_kinds_that_cannot_be_read(void **state)
{
    kinds_t kinds;
    err_sink_t err = {.msg = ""};
    (void)state;
    assert_int_equal(kinds_load("/tmp", &kinds, &err), DB_ERROR);
    assert_string_equal(err.msg, "/tmp: cannot be read");
    kinds_free(&kinds);
}

#define STATEMENTS 4U

/** States of a class by statement. */
typedef struct by_statement {
    uint32_t n[STATEMENTS];
} by_statement_t;

typedef struct lookup {
    uint64_t number;
    uint32_t class;
} lookup_t;

static void look_up(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    lookup_t *lookup = ctx;
    bool tears = model == MODEL_ONE_TORN || model == MODEL_ONE_PART;
    uint32_t mask = tears ? k % TEAR_PARTS : model == MODEL_ORDERED ? k % 2 : 0;
    if (number == lookup->number) {
        lookup->class = (uint32_t)model * TEAR_PARTS + mask;
    }
}

#define CLASSES (PLAN_PLACES * MODEL_KINDS * TEAR_PARTS)

/** The class of a state; the plan selects it. */
static uint32_t class_of_state(fixture_t *f, const order_state_t *state)
{
    persist_t persist;
    lookup_t lookup = {.number = state->number, .class = CLASSES};
    image_mark(f->image);
    persist_init(&persist, &f->trace.list, f->image, NULL);
    persist_advance(&persist, state->point);
    plan_each(&f->plan, &f->campaign.models, &persist, look_up, &lookup);
    persist_free(&persist);
    image_undo(f->image);
    assert_true(lookup.class < CLASSES);
    return plan_place(&f->trace.list, state->point) * MODEL_KINDS * TEAR_PARTS + lookup.class;
}

static uint32_t statement_of(const fixture_t *f, const order_state_t *state)
{
    return state->point == 0 ? 0 : f->trace.list.events[state->point - 1].issued_line;
}

static uint32_t sum_of(const by_statement_t *states)
{
    return states->n[0] + states->n[1] + states->n[2] + states->n[3];
}

/** The classes take turns as long as they have states; in a class a statement has its next one when no other that has any
left has had fewer. */
static void test_order(void **state)
{
    static by_statement_t total[CLASSES];
    static by_statement_t seen[CLASSES];
    fixture_t *f = *state;
    order_t order;
    uint32_t turn = 0;
    memset(total, 0, sizeof(total));
    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < f->trace.list.n; i++) {
        f->trace.list.events[i].issued_line = i * STATEMENTS / f->trace.list.n;
    }
    order_create(&order, &f->plan, &f->campaign, &f->trace, f->image);
    assert_int_equal(order.n, f->plan.wanted);
    uint32_t *class = mem_alloc(order.n * sizeof(*class));
    for (uint32_t i = 0; i < order.n; i++) {
        class[i] = class_of_state(f, &order.states[i]);
        total[class[i]].n[statement_of(f, &order.states[i])]++;
    }
    for (uint32_t i = 0; i < order.n; i++) {
        by_statement_t *mine = &seen[class[i]];
        uint32_t statement = statement_of(f, &order.states[i]);
        assert_in_range(sum_of(mine), turn, turn + 1);
        turn = sum_of(mine);
        for (uint32_t other = 0; other < STATEMENTS; other++) {
            assert_true(mine->n[other] == total[class[i]].n[other]
                        || mine->n[other] >= mine->n[statement]);
        }
        mine->n[statement]++;
    }
    assert_memory_equal(total, seen, sizeof(seen));
    order_by_trace(&order, 100, 50);
    for (uint32_t i = 101; i < 150; i++) {
        assert_true(order.states[i - 1].number < order.states[i].number);
    }
    free(class);
    order_free(&order);
}

/** With time enough a budget runs the same states as without one. */
static void test_budget_runs_all(void **state)
{
    fixture_t *f = *state;
    run_limits_t limits = {.jobs = 2, .deadline_s = 10, .budget_s = 1000};
    double seconds;
    assert_true(runner_run(&f->explorer, &f->plan, &limits, &seconds));
    assert_int_equal(atomic_load(&f->shared->counts.states), f->plan.total);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
    assert_int_equal(atomic_load(&f->shared->counts.unfinished), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clean, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clean_nested, setup, teardown),
        cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hang, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended_from_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_worker_ended_from_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chosen_points, setup, teardown),
        cmocka_unit_test_setup_teardown(test_suspects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_few_suspects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_budget_runs_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_basic_states_come_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_are_a_place, setup, teardown),
        cmocka_unit_test(test_places),
        cmocka_unit_test_setup_teardown(test_rare_kinds, setup, teardown),
        cmocka_unit_test(test_kinds_are_read),
        cmocka_unit_test(test_kinds_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
