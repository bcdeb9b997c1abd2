/* Which states are run, and in which order: the plan of an exploration with limits. */
#include "runner_fixture.h"

#include <stdlib.h>
#include <unistd.h>

#define FLAT (MODELS_ALL & ~(1U << MODEL_KILL)) /**< no recovery is crashed again */

typedef struct chosen {
    const state_plan_t *plan;
    const model_config_t *models;
    const persist_t *persist;
    uint32_t n_newest;   /**< of other states, those that tear the write that happened last */
    uint32_t n[2];       /**< other states, basic ones */
    uint32_t in_part[4]; /**< of the crash points */
    uint32_t at_site[2][SITE_KINDS];
    uint32_t point;
    fs_site_t site;
} chosen_t;

static void count_chosen(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    chosen_t *chosen = ctx;
    assert_in_range(number, plan_number(chosen->plan, chosen->point),
                    plan_number(chosen->plan, chosen->point + 1) - 1);
    chosen->n[model_is_basic(chosen->models->enabled, model)]++;
    chosen->n_newest += model_tears_newest(chosen->models, model, k, chosen->persist);
    chosen->in_part[chosen->point * 4 / chosen->plan->n_points]++;
    chosen->at_site[model_is_basic(chosen->models->enabled, model)][chosen->site]++;
}

static chosen_t choose(fixture_t *f, uint64_t states, state_plan_t *plan)
{
    plan_limits_t limits = {
        .states = states, .to_seq = UINT64_MAX, .batch_states = 16, .kinds = &ALIKE};
    persist_t persist;
    plan_create(plan, &f->campaign, &f->trace, f->image, &limits);
    chosen_t chosen = {.plan = plan, .models = &f->campaign.models, .persist = &persist};
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

/** --from-seq and --to-seq: both ends belong to the range. */
static void test_range(void **state)
{
    fixture_t *f = *state;
    plan_limits_t limits = {.to_seq = UINT64_MAX, .batch_states = 16, .kinds = &ALIKE};
    state_plan_t all;
    state_plan_t plan;
    plan_create(&all, &f->campaign, &f->trace, f->image, &limits);
    limits.from_seq = point_seq(&f->trace.list, 3);
    limits.to_seq = point_seq(&f->trace.list, 7);
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    for (uint32_t point = 0; point < plan.n_points; point++) {
        uint64_t there = plan_number(&all, point + 1) - plan_number(&all, point);
        uint64_t planned = plan_number(&plan, point + 1) - plan_number(&plan, point);
        assert_int_equal(planned, point >= 3 && point <= 7 ? there : 0);
    }
    assert_true(plan.n_crash_points > 2);
    plan_free(&all);
    plan_free(&plan);
}

/** Every crash point is in one slice. */
static void test_slices(void **state)
{
    fixture_t *f = *state;
    uint32_t next = 0;
    for (uint32_t slice = 1; slice <= 3; slice++) {
        plan_limits_t limits = {.to_seq = UINT64_MAX,
                                .batch_states = 16,
                                .kinds = &ALIKE,
                                .slice = slice,
                                .n_slices = 3};
        state_plan_t plan;
        plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
        assert_true(plan.n_batches > 1);
        for (uint32_t i = 0; i < plan.n_batches; i++) {
            assert_int_equal(plan.batches[i].first, next);
            next = plan.batches[i].end;
        }
        plan_free(&plan);
    }
    assert_int_equal(next, f->trace.list.n + 1);
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

/** So many states, and one event that broke a rule. */
static plan_limits_t limits_with(const uint64_t *suspect, uint64_t states)
{
    return (plan_limits_t){.states = states,
                           .to_seq = UINT64_MAX,
                           .suspects = suspect,
                           .n_suspects = 1,
                           .batch_states = 16,
                           .kinds = &ALIKE};
}

/** --suspect: a quarter of the states come right after such an event, however many there are; the others are chosen as ever,
by class the same as where nothing lies after that event. */
static void test_suspects(void **state)
{
    fixture_t *f = *state;
    const uint32_t wanted = 40;
    const uint32_t point = f->trace.list.n / 2;
    const uint64_t suspect = point_seq(&f->trace.list, point);
    plan_limits_t limits = limits_with(&suspect, wanted);
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

/** A suspect is the number of an event, which is no place in the list. */
static void test_suspects_by_number(void **state)
{
    fixture_t *f = *state;
    const uint32_t point = f->trace.list.n / 2;
    for (uint32_t i = 0; i < f->trace.list.n; i++) {
        f->trace.list.events[i].seq += 1000;
    }
    const uint64_t suspect = point_seq(&f->trace.list, point);
    plan_limits_t limits = limits_with(&suspect, 40);
    state_plan_t plan;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    for (uint32_t i = 0; i < plan.n_points; i++) {
        assert_int_equal(plan.points[i].suspect, i == point);
    }
    plan_free(&plan);
}

/** --suspect: where there are fewer states after such events than a quarter, all of them are run. */
static void test_few_suspects(void **state)
{
    fixture_t *f = *state;
    const uint32_t point = f->trace.list.n / 2;
    const uint64_t suspect = point_seq(&f->trace.list, point);
    uint64_t there = plan_number(&f->plan, point + 1) - plan_number(&f->plan, point);
    plan_limits_t limits = limits_with(&suspect, 4 * (there + 1));
    state_plan_t plan;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &limits);
    assert_true(there > 0 && plan.wanted > 4 * there && plan.wanted < plan.total);
    assert_int_equal(sum_of_shares(&plan, PLAN_SUSPECT), there);
    plan_free(&plan);
}

/** Of so many wanted, so many others. */
static void check_choice(fixture_t *f, uint32_t wanted, uint32_t n_others)
{
    state_plan_t plan;
    chosen_t chosen = choose(f, wanted, &plan);
    assert_int_equal(chosen.n[0] + chosen.n[1], wanted);
    assert_in_range(chosen.n[0], n_others - SITE_KINDS, n_others);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(chosen.in_part[i] > wanted / 10);
    }
    assert_int_equal(plan.batches[0].first, 0);
    assert_int_equal(plan.batches[plan.n_batches - 1].end, plan.n_points);
    plan_free(&plan);
}

/** --states: exactly as many, from all parts of the trace, and of every site; a quarter of them is not basic, and a half where
recoveries are crashed again. */
static void test_choice(void **state)
{
    fixture_t *f = *state;
    f->campaign.models.enabled = FLAT;
    check_choice(f, 80, 20);
    f->campaign.models.enabled = MODELS_ALL;
    check_choice(f, 80, 40);
}

/** A quarter of the other states lie in the middle of a write, however many more there are that do not. */
static void test_newest(void **state)
{
    fixture_t *f = *state;
    state_plan_t plan;
    chosen_t all = choose(f, 0, &plan);
    plan_free(&plan);
    assert_true(all.n_newest > 0 && all.n_newest < all.n[0] / 8);
    chosen_t some = choose(f, all.n[1] + all.n_newest, &plan);
    assert_in_range(some.n_newest, some.n[0] / 4, some.n[0] / 4 + 1);
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
    for (uint32_t part = 0; part <= PLAN_OTHER; part++) {
        uint32_t usual = SITE_DATA_PAGE * kinds.n + 1;
        const uint64_t *totals = plan.totals[part];
        const uint64_t *shares = plan.shares[part];
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
    kinds_t kinds;
    err_sink_t err = {.msg = ""};
    (void)state;
    put_text(path, "insert\npurge\ninsert\n\n");
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
    const model_config_t *models;
    const persist_t *persist;
    uint64_t number;
    uint32_t class;
} lookup_t;

static void look_up(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    lookup_t *lookup = ctx;
    bool tears = model == MODEL_ONE_TORN || model == MODEL_ONE_PART;
    uint32_t mask = tears                                                 ? k % TEAR_PARTS
                    : model == MODEL_ORDERED || model == MODEL_SIZE_FIRST ? k % 2
                                                                          : 0;
    if (number == lookup->number) {
        lookup->class = 2 * ((uint32_t)model * TEAR_PARTS + mask)
                        + model_tears_newest(lookup->models, model, k, lookup->persist);
    }
}

#define CLASSES_OF_PLACE (2 * MODEL_KINDS * TEAR_PARTS)
#define CLASSES (PLAN_PLACES * CLASSES_OF_PLACE)

/** The class of a state; the plan selects it. */
static uint32_t class_of_state(fixture_t *f, const order_state_t *state)
{
    persist_t persist;
    lookup_t lookup = {.models = &f->campaign.models,
                       .persist = &persist,
                       .number = state->number,
                       .class = CLASSES};
    image_mark(f->image);
    persist_init(&persist, &f->trace.list, f->image, NULL);
    persist_advance(&persist, state->point);
    plan_each(&f->plan, &f->campaign.models, &persist, look_up, &lookup);
    persist_free(&persist);
    image_undo(f->image);
    assert_true(lookup.class < CLASSES);
    return plan_place(&f->trace.list, state->point) * CLASSES_OF_PLACE + lookup.class;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chosen_points, setup, teardown),
        cmocka_unit_test_setup_teardown(test_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_suspects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_suspects_by_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_few_suspects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_basic_states_come_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_are_a_place, setup, teardown),
        cmocka_unit_test(test_places),
        cmocka_unit_test_setup_teardown(test_rare_kinds, setup, teardown),
        cmocka_unit_test(test_kinds_are_read),
        cmocka_unit_test(test_kinds_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
