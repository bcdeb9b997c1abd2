/* The numbers of states, and their order: which are run when there is a limit. */
#include "runner_fixture.h"

#include <stdlib.h>
#include <unistd.h>

#define FLAT (MODELS_ALL & ~(1U << MODEL_KILL)) /**< no recovery is crashed again */

/** What a state is. */
typedef struct known {
    model_t model;
    bool basic;
    bool newest;
    const fs_event_t *single;
    uint32_t point;
} known_t;

typedef struct lookup {
    const model_config_t *models;
    const persist_t *persist;
    known_t *known; /**< by number */
    uint32_t point;
} lookup_t;

static void know_state(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    const lookup_t *lookup = ctx;
    lookup->known[number] =
        (known_t){.model = model,
                  .basic = model_is_basic(lookup->models->enabled, model),
                  .newest = model_tears_newest(lookup->models, model, k, lookup->persist),
                  .single = model_single(lookup->models, model, k, lookup->point, lookup->persist),
                  .point = lookup->point};
}

/** All states by number; the caller frees them. */
static known_t *know_all(fixture_t *f)
{
    persist_t persist;
    lookup_t lookup = {.models = &f->campaign.models,
                       .persist = &persist,
                       .known = mem_alloc(f->plan.total * sizeof(*lookup.known))};
    image_mark(f->image);
    persist_init(&persist, &f->trace.list, f->image, NULL);
    for (uint32_t point = 0; point < f->plan.n_points; point++) {
        persist_advance(&persist, point);
        lookup.point = point;
        plan_each(&f->plan, lookup.models, &persist, know_state, &lookup);
    }
    persist_free(&persist);
    image_undo(f->image);
    return lookup.known;
}

/** The first states of the order of all. */
static order_t draw(fixture_t *f, order_limits_t limits)
{
    limits.kinds = limits.kinds != NULL ? limits.kinds : &ALIKE;
    order_t order;
    order_create(&order, &f->plan, &f->campaign, &f->trace, f->image, &limits);
    return order;
}

static uint32_t count(const order_t *order, const known_t *known, bool (*is)(const known_t *one))
{
    uint32_t n = 0;
    for (uint64_t i = 0; i < order->n; i++) {
        n += is(&known[order->states[i].number]);
    }
    return n;
}

static bool is_basic(const known_t *one)
{
    return one->basic;
}

static bool is_newest(const known_t *one)
{
    return one->newest && !one->basic;
}

static order_page_t accused;

static bool is_accused(const known_t *one)
{
    const fs_event_t *event = one->single;
    return event != NULL && event->kind == FS_WRITE && event->inode == accused.inode
           && event->offset <= accused.offset && accused.offset < event->offset + event->length;
}

static fs_list_t *events;
static fs_site_t wanted_site;
static fs_kind_t wanted_kind;
static uint32_t wanted_line;

static bool is_at_site(const known_t *one)
{
    return point_site(events, one->point) == wanted_site;
}

static bool is_behind_kind(const known_t *one)
{
    return one->point > 0 && events->events[one->point - 1].kind == wanted_kind;
}

static bool is_in_line(const known_t *one)
{
    return one->point > 0 && events->events[one->point - 1].issued_line == wanted_line;
}

/** --kinds: a line per statement, and what it says is its kind; of before the first it is none. */
static void test_kinds(void **state)
{
    static const uint32_t OF_LINE[] = {0, 1, 2, 1, 3, 0};
    (void)state;
    char path[] = "/tmp/test_kinds_XXXXXX";
    put_text(path, "add index\nadd column\r\nadd index\nadd\n");
    kinds_t kinds;
    err_sink_t err = {.msg = ""};
    assert_int_equal(kinds_load(path, &kinds, &err), DB_SUCCESS);
    assert_int_equal(kinds.n, 4);
    for (uint32_t line = 0; line < 6; line++) {
        assert_int_equal(kinds_of(&kinds, line), OF_LINE[line]);
    }
    kinds_free(&kinds);
    (void)unlink(path);
}

/** --at-seq: after these events, and nowhere else. */
static void test_chosen_points(void **state)
{
    fixture_t *f = *state;
    const uint64_t at[] = {point_seq(&f->trace.list, 3), point_seq(&f->trace.list, 7)};
    const plan_range_t range = {.to_seq = UINT64_MAX, .at = at, .n_at = 2};
    state_plan_t plan;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &range);
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
    const plan_range_t range = {.from_seq = point_seq(&f->trace.list, 3),
                                .to_seq = point_seq(&f->trace.list, 7)};
    state_plan_t plan;
    plan_create(&plan, &f->campaign, &f->trace, f->image, &range);
    for (uint32_t point = 0; point < plan.n_points; point++) {
        uint64_t there = plan_number(&f->plan, point + 1) - plan_number(&f->plan, point);
        uint64_t planned = plan_number(&plan, point + 1) - plan_number(&plan, point);
        assert_int_equal(planned, point >= 3 && point <= 7 ? there : 0);
    }
    assert_true(plan.n_crash_points > 2);
    plan_free(&plan);
}

/** Of each model as many as are numbered: whoever has run so many has run them all. */
static void test_states_by_model(void **state)
{
    fixture_t *f = *state;
    uint64_t counted[MODEL_KINDS] = {0};
    known_t *known = know_all(f);
    for (uint64_t number = 0; number < f->plan.total; number++) {
        counted[known[number].model]++;
    }
    free(known);
    assert_memory_equal(f->plan.of_model, counted, sizeof(counted));
    assert_true(counted[MODEL_ALL_PERSISTED] > 0 && counted[MODEL_ONE_TORN] > 0);
}

/** Every state has one position in the order, at its own crash point; and the first N are those of
any longer order. */
static void test_beginnings(void **state)
{
    fixture_t *f = *state;
    order_t all = draw(f, (order_limits_t){.hurried = true});
    bool *seen = mem_alloc(f->plan.total * sizeof(*seen));
    assert_int_equal(all.n, f->plan.total);
    for (uint64_t i = 0; i < all.n; i++) {
        const order_state_t *one = &all.states[i];
        assert_in_range(one->number, plan_number(&f->plan, one->point),
                        plan_number(&f->plan, one->point + 1) - 1);
        assert_false(seen[one->number]);
        seen[one->number] = true;
    }
    for (uint64_t n = 1; n < all.n; n = 3 * n + 1) {
        order_t some = draw(f, (order_limits_t){.states = n, .hurried = true});
        assert_int_equal(some.n, n);
        for (uint64_t i = 0; i < n; i++) {
            assert_int_equal(some.states[i].number, all.states[i].number);
        }
        order_free(&some);
    }
    free(seen);
    order_free(&all);
}

static void assert_same(const order_t *one, const order_t *other)
{
    assert_int_equal(one->n, other->n);
    for (uint64_t i = 0; i < one->n; i++) {
        assert_int_equal(one->states[i].number, other->states[i].number);
        assert_int_equal(one->states[i].point, other->states[i].point);
    }
}

/** Without a budget they are the same states, as the trace has them. */
static void test_order_of_the_trace(void **state)
{
    fixture_t *f = *state;
    for (uint64_t n = 0; n <= 100; n += 100) {
        order_t drawn = draw(f, (order_limits_t){.states = n, .hurried = true});
        order_t sorted = draw(f, (order_limits_t){.states = n});
        order_by_trace(&drawn, 0, drawn.n);
        assert_same(&sorted, &drawn);
        order_free(&sorted);
        order_free(&drawn);
    }
}

/** With crashes of recoveries a state stands for all below it: as many as are asked for, or the
rest of a tree more. */
static void test_states_below(void **state)
{
    static const struct {
        uint32_t depth;
        uint64_t states;
        uint64_t per_tree;
        uint64_t n;
    } CASES[] = {{1, 7, 1, 7}, {2, 1, 5, 1}, {2, 5, 5, 1}, {2, 6, 5, 2}, {3, 22, 21, 2}};
    fixture_t *f = *state;
    for (uint32_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        f->campaign.depth = CASES[i].depth;
        assert_int_equal(order_states_per_tree(&f->campaign), CASES[i].per_tree);
        order_t order = draw(f, (order_limits_t){.states = CASES[i].states});
        assert_int_equal(order.n, CASES[i].n);
        order_free(&order);
    }
}

/** --slice: every state is in one slice, and they follow one another along the trace. */
static void check_slices(fixture_t *f, uint64_t states)
{
    order_t whole = draw(f, (order_limits_t){.states = states});
    order_t parts = {.states = mem_alloc(whole.n * sizeof(*parts.states))};
    for (uint32_t slice = 1; slice <= 3; slice++) {
        order_t part = draw(f, (order_limits_t){.states = states, .slice = slice, .n_slices = 3});
        assert_in_range(part.n, whole.n / 3, whole.n / 3 + 1);
        assert_true(parts.n + part.n <= whole.n);
        memcpy(parts.states + parts.n, part.states, part.n * sizeof(*part.states));
        parts.n += part.n;
        order_free(&part);
    }
    assert_same(&parts, &whole);
    order_free(&parts);
    order_free(&whole);
}

static void test_slices(void **state)
{
    check_slices(*state, 100);
    check_slices(*state, 0);
}

/** Those right after the event of this crash point, of the first N; where one event, by its number,
is a suspect. */
static uint32_t count_after(fixture_t *f, uint32_t point, uint64_t n)
{
    const uint64_t suspect = point_seq(&f->trace.list, point);
    order_t order = draw(f, (order_limits_t){.states = n, .suspects = &suspect, .n_suspects = 1});
    assert_int_equal(order.n, n);
    uint32_t after = 0;
    for (uint64_t i = 0; i < n; i++) {
        after += order.states[i].point == point;
    }
    order_free(&order);
    return after;
}

/** --suspect: a quarter of the states come right after such an event, however many there are, or
all, if they are fewer; a suspect is the number of an event, which is no place in the list. */
static void test_suspects(void **state)
{
    fixture_t *f = *state;
    const uint32_t point = f->trace.list.n / 2;
    uint64_t there = plan_number(&f->plan, point + 1) - plan_number(&f->plan, point);
    for (uint32_t i = 0; i < f->trace.list.n; i++) {
        f->trace.list.events[i].seq += 1000;
    }
    assert_true(there > 10);
    assert_in_range(count_after(f, point, 40), 9, 11);
    assert_true(8 * there < f->plan.total);
    assert_int_equal(count_after(f, point, 8 * there), there);
}

/** --accused: a seventh of the states tear, lose or keep one write of such a page, wherever it
waits; bytes that nobody writes take no turns. */
static void test_accused(void **state)
{
    fixture_t *f = *state;
    known_t *known = know_all(f);
    const fs_event_t *event = &f->trace.list.events[f->trace.list.n / 2];
    while (event->kind != FS_WRITE || event->length < 1024) {
        event++;
    }
    accused = (order_page_t){.inode = event->inode, .offset = event->offset + event->length - 1};
    const order_limits_t some = {.states = 100, .accused = &accused, .n_accused = 1};
    order_t aimed = draw(f, some);
    order_t plain = draw(f, (order_limits_t){.states = 100});
    assert_in_range(count(&aimed, known, is_accused), 13, 16);
    assert_in_range(count(&plain, known, is_accused), 0, 10);
    order_free(&aimed);
    accused.inode = IMAGE_NONE;
    aimed = draw(f, some);
    assert_same(&aimed, &plain);
    order_free(&aimed);
    order_free(&plain);
    free(known);
}

static bool tears_head(const known_t *one)
{
    const fs_event_t *event = one->point > 0 ? &events->events[one->point - 1] : NULL;
    return event != NULL && event->kind == FS_WRITE && event->offset < 4096
           && one->model == MODEL_ONE_TORN && one->newest;
}

/** How a state of the model tears its write. */
static uint32_t tear_of(const known_t *known, uint64_t number)
{
    uint32_t k = 0;
    while (number > 0 && known[number - 1].model == known[number].model
           && known[number - 1].point == known[number].point) {
        number--;
        k++;
    }
    return k % TEAR_PARTS;
}

/** heads: each write of the first bytes of a file is torn once, early, and none of them in several
ways before all have been. */
static void test_heads(void **state)
{
    fixture_t *f = *state;
    known_t *known = know_all(f);
    events = &f->trace.list;
    order_t all = draw(f, (order_limits_t){.states = 0});
    uint32_t n_heads = count(&all, known, tears_head) / TEAR_PARTS;
    assert_in_range(n_heads, 4, f->plan.total / 10);
    order_t early = draw(f, (order_limits_t){.states = (uint64_t)n_heads * 3, .heads = true});
    order_t plain = draw(f, (order_limits_t){.states = (uint64_t)n_heads * 3});
    bool *torn = mem_alloc(f->plan.n_points * sizeof(*torn));
    uint32_t n_torn = 0;
    uint32_t tears = 0;
    for (uint64_t i = 0; i < early.n; i++) {
        const order_state_t *one = &early.states[i];
        tears |= tears_head(&known[one->number]) ? 1U << tear_of(known, one->number) : 0;
        n_torn += tears_head(&known[one->number]) && !torn[one->point];
        torn[one->point] |= tears_head(&known[one->number]);
    }
    assert_int_equal(n_torn, n_heads);
    assert_int_equal(tears, (1U << TEAR_PARTS) - 1);
    assert_true(count(&plain, known, tears_head) < n_heads);
    free(torn);
    order_free(&plain);
    order_free(&early);
    order_free(&all);
    free(known);
}

/** whole: every basic state, and room for others, with suspects among them too. */
static void test_whole(void **state)
{
    fixture_t *f = *state;
    known_t *known = know_all(f);
    const uint64_t suspect = point_seq(&f->trace.list, f->plan.n_points / 2);
    order_limits_t limits = {.states = 0, .suspects = &suspect, .n_suspects = 1, .whole = true};
    order_t all = draw(f, limits);
    limits.states = 40;
    order_t some = draw(f, limits);
    uint32_t n = count(&all, known, is_basic);
    assert_in_range(n, 60, all.n / 2);
    assert_int_equal(count(&some, known, is_basic), n);
    assert_int_equal(some.n, n + 20);
    order_free(&some);
    order_free(&all);
    free(known);
}

static void check_choice(fixture_t *f, uint32_t n, uint32_t n_basic)
{
    known_t *known = know_all(f);
    order_t order = draw(f, (order_limits_t){.states = n});
    assert_in_range(count(&order, known, is_basic), n_basic - 2, n_basic + 2);
    uint32_t in_part[4] = {0};
    for (uint64_t i = 0; i < n; i++) {
        in_part[order.states[i].point * 4 / f->plan.n_points]++;
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(in_part[i] > n / 10);
    }
    order_free(&order);
    free(known);
}

/** --states: exactly as many, from all parts of the trace; three quarters of them are basic, and a
half where recoveries are crashed again. */
static void test_choice(void **state)
{
    fixture_t *f = *state;
    check_choice(f, 80, 40);
    f->campaign.models.enabled = FLAT;
    plan_free(&f->plan);
    plan_create(&f->plan, &f->campaign, &f->trace, f->image, &(plan_range_t){.to_seq = UINT64_MAX});
    check_choice(f, 80, 60);
}

/** A quarter of the other states lie in the middle of a write, however many more there are that do
not. */
static void test_newest(void **state)
{
    fixture_t *f = *state;
    known_t *known = know_all(f);
    uint32_t all = count(&f->order, known, is_newest);
    uint32_t others = (uint32_t)f->plan.total - count(&f->order, known, is_basic);
    assert_true(all > 0 && all < others / 8);
    order_t some = draw(f, (order_limits_t){.states = 2 * (uint64_t)all});
    uint32_t some_others = (uint32_t)some.n - count(&some, known, is_basic);
    assert_in_range(count(&some, known, is_newest), some_others / 4 - 1, some_others / 4 + 1);
    order_free(&some);
    free(known);
}

/** Of the first states there are more that are so than in proportion to all, by so many
quarters. */
static void check_stands_out(fixture_t *f, const kinds_t *kinds, bool (*is)(const known_t *one),
                             uint32_t quarters)
{
    known_t *known = know_all(f);
    order_t some = draw(f, (order_limits_t){.states = f->plan.total / 4, .kinds = kinds});
    uint64_t of_all = count(&f->order, known, is);
    uint64_t of_some = count(&some, known, is);
    assert_true(of_all > 0 && 4 * of_some * f->plan.total > quarters * of_all * some.n);
    order_free(&some);
    free(known);
}

/** A site with few states, what follows a change of names, although its site is that of the write
before, and a kind of statements with few crash points have more than their proportion. */
static void test_rare_ones_stand_out(void **state)
{
    fixture_t *f = *state;
    uint8_t of_line[] = {0, 1, 2};
    const kinds_t kinds = {.of_line = of_line, .n_lines = 3, .n = 3};
    const uint32_t rare = f->trace.list.n / 2;
    events = &f->trace.list;
    wanted_kind = FS_LINK;
    check_stands_out(f, NULL, is_behind_kind, 4);
    uint32_t n_writes = 0;
    for (uint32_t i = 0; i < events->n; i++) {
        n_writes += events->events[i].kind == FS_WRITE;
        events->events[i].site = n_writes % 8 == 0 ? SITE_CHECKPOINT_HEADER : SITE_DATA_PAGE;
    }
    wanted_site = SITE_CHECKPOINT_HEADER;
    check_stands_out(f, NULL, is_at_site, 6);
    for (uint32_t i = 0; i < events->n; i++) {
        events->events[i].site = SITE_DATA_PAGE;
        events->events[i].issued_line = i >= rare && i < rare + events->n / 16 ? 2 : 1;
    }
    wanted_line = 2;
    check_stands_out(f, &kinds, is_in_line, 5);
}

/** Of a site with few crash points: half of what there is places share evenly. By the square roots
of their numbers alone it would have half of its states in a quarter of all. */
static void test_places_share_half_evenly(void **state)
{
    fixture_t *f = *state;
    known_t *known = know_all(f);
    events = &f->trace.list;
    bool there = false;
    for (uint32_t i = 0; i < events->n; i++) {
        bool rare = !there && events->events[i].kind == FS_WRITE && i > events->n / 2;
        there = there || rare;
        events->events[i].site = rare ? SITE_CHECKPOINT_HEADER : SITE_DATA_PAGE;
    }
    wanted_site = SITE_CHECKPOINT_HEADER;
    order_t some = draw(f, (order_limits_t){.states = f->plan.total / 4});
    uint64_t of_all = count(&f->order, known, is_at_site);
    assert_true(of_all > 0 && 16 * of_all < f->plan.total);
    assert_true(3 * count(&some, known, is_at_site) > 2 * of_all);
    order_free(&some);
    free(known);
}

static bool is_other(const known_t *one)
{
    return !one->basic && !one->newest;
}

static bool is_of_rare_model(const known_t *one)
{
    bool rare = one->model == MODEL_ALL_PERSISTED || one->model == MODEL_NONE_PERSISTED
                || one->model == MODEL_BY_FILE;
    return rare && is_other(one);
}

/** Of the states that are neither basic nor tear the newest write, models with few have more of a
beginning than in proportion to all. */
static void test_models_take_turns(void **state)
{
    fixture_t *f = *state;
    known_t *known = know_all(f);
    order_t some = draw(f, (order_limits_t){.states = f->plan.total / 2});
    uint64_t rare = count(&f->order, known, is_of_rare_model);
    uint64_t others = count(&f->order, known, is_other);
    uint64_t some_rare = count(&some, known, is_of_rare_model);
    assert_true(rare > 0 && rare < others / 4);
    assert_true(4 * some_rare * others > 5 * rare * count(&some, known, is_other));
    order_free(&some);
    free(known);
}

/** What a change of a name relies on belongs to it, over any fsync; a hole is no part of the write
before it. */
static void test_places(void **state)
{
    static const fs_kind_t KINDS[] = {FS_WRITE, FS_SYNC, FS_UNLINK, FS_SYNC_DIR,
                                      FS_WRITE, FS_ZERO, FS_SYNC,   FS_WRITE};
    const uint32_t names = SITE_KINDS;
    const uint32_t holes = SITE_KINDS + 1U;
    const uint32_t data = SITE_DATA_PAGE;
    const uint32_t expected[] = {SITE_OTHER, names, names, names, names, data, holes, holes, data};
    (void)state;
    fs_list_t list = {.events = NULL};
    for (uint32_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
        fs_list_add(&list, KINDS[i])->site = SITE_DATA_PAGE;
    }
    for (uint32_t point = 0; point <= list.n; point++) {
        assert_int_equal(order_place(&list, point), expected[point]);
    }
    fs_list_free(&list);
}

/** The words of a file become numbers; what there is no line for is of kind 0. */
static void test_kinds_are_read(void **state)
{
    err_sink_t err = {.msg = ""};
    (void)state;
    kinds_t kinds;
    char path[] = "/tmp/kinds-XXXXXX";
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
    err_sink_t err = {.msg = ""};
    (void)state;
    kinds_t kinds;
    assert_int_equal(kinds_load("/tmp", &kinds, &err), DB_ERROR);
    assert_string_equal(err.msg, "/tmp: cannot be read");
    kinds_free(&kinds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_chosen_points, setup, teardown),
        cmocka_unit_test_setup_teardown(test_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_states_by_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_beginnings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order_of_the_trace, setup, teardown),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test_setup_teardown(test_states_below, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_suspects, setup, teardown),
        cmocka_unit_test_setup_teardown(test_accused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_heads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_newest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rare_ones_stand_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_places_share_half_evenly, setup, teardown),
        cmocka_unit_test_setup_teardown(test_models_take_turns, setup, teardown),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_kinds_are_read),
        cmocka_unit_test(test_kinds_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
