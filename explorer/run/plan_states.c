/* The choice of states.

Place: above models.c, below runner.c.

States are numbered per class by crash point, model and k. If fewer are wanted than there are:

1. The basic states come first, as long as they leave a quarter of the wanted number to the others.
2. Where not all of them are run, both kinds are shared out by place, each place by the square root of its number:
   there are hundreds of data pages to one checkpoint or one new name, and a bug may need that one.
3. Within a class the numbers are cut into as many equal stretches as it has states to give, and one of each
   is drawn: the choice covers the whole trace and all models, and depends on the seed and the wanted
   number only. */
#include "explorer/run/plan_states.h"

#include <stdlib.h>

#include "base/check.h"

#define PLACE_NAMES SITE_KINDS

uint32_t plan_place(const fs_list_t *list, uint32_t point)
{
    for (; point > 0; point--) {
        const fs_event_t *event = &list->events[point - 1];
        if (event->kind == FS_WRITE) {
            return (uint32_t)event->site;
        }
        if (fs_changes_name(event)) {
            return PLACE_NAMES;
        }
    }
    return SITE_OTHER;
}

static uint32_t class_of(model_t model, uint32_t place)
{
    return model_is_basic(model) ? place : PLAN_PLACES + place;
}

/** number * times / over without overflow, rounded down. */
static uint64_t scale(uint64_t number, uint64_t times, uint64_t over)
{
    return (uint64_t)((unsigned __int128)number * times / over);
}

/** Is state `number` of a class one of those that are run? */
static bool class_selects(const state_plan_t *plan, uint32_t class, uint64_t number)
{
    uint64_t total = plan->base[plan->n_points].n[class];
    uint64_t wanted = plan->share.n[class];
    if (wanted >= total) {
        return true;
    }
    if (wanted == 0) {
        return false;
    }
    /* Stretch i holds the numbers with number * wanted / total = i. */
    uint64_t i = scale(number, wanted, total);
    uint64_t from = scale(i, total, wanted);
    from += scale(from, wanted, total) != i;
    uint64_t to = scale(i + 1, total, wanted);
    to += scale(to, wanted, total) != i + 1;
    return number == from + stream_mix(plan->seed, i, 2, class) % (to - from);
}

static uint64_t sum(const class_counts_t *counts)
{
    uint64_t n = 0;
    for (uint32_t class = 0; class < PLAN_CLASSES; class ++) {
        n += counts->n[class];
    }
    return n;
}

uint64_t plan_number(const state_plan_t *plan, uint32_t point)
{
    return sum(&plan->base[point]);
}

void plan_each(const state_plan_t *plan, const model_config_t *models, const persist_t *persist,
               plan_state_fn fn, void *ctx)
{
    uint32_t point = persist->next;
    uint32_t place = plan_place(persist->list, point);
    class_counts_t next = plan->base[point];
    uint64_t number = sum(&next);
    for (uint32_t model = 0; model < MODEL_KINDS; model++) {
        uint32_t class = class_of((model_t)model, place);
        uint32_t n = model_count(models, (model_t)model, persist);
        for (uint32_t k = 0; k < n; k++, number++) {
            if (class_selects(plan, class, next.n[class]++)) {
                fn(ctx, (model_t)model, k, number);
            }
        }
    }
}

/** States per state of the first level, itself included. */
static uint64_t states_per_tree(const campaign_t *campaign)
{
    uint64_t n = 1;
    for (uint32_t i = 1; i < campaign->depth; i++) {
        n = 1 + n * campaign->nested;
    }
    return n;
}

static bool is_in_range(const plan_limits_t *limits, uint64_t seq)
{
    bool found = limits->n_at == 0;
    for (uint32_t i = 0; i < limits->n_at && !found; i++) {
        found = limits->at[i] == seq;
    }
    return found && seq >= limits->from_seq && seq <= limits->to_seq;
}

static void plan_count(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                       image_t *image, const plan_limits_t *limits)
{
    persist_t persist;
    image_mark(image);
    image_set_hashing(image, false);
    persist_init(&persist, &trace->list, image, &campaign->disk);
    plan->base[0] = (class_counts_t){.n = {0}};
    for (uint32_t point = 0; point < plan->n_points; point++) {
        uint64_t seq = point_seq(&trace->list, point);
        class_counts_t counts = plan->base[point];
        persist_advance(&persist, point);
        if (is_in_range(limits, seq)) {
            uint32_t place = plan_place(&trace->list, point);
            for (uint32_t model = 0; model < MODEL_KINDS; model++) {
                counts.n[class_of((model_t)model, place)] +=
                    model_count(&campaign->models, (model_t)model, &persist);
            }
        }
        plan->base[point + 1] = counts;
        plan->n_crash_points += sum(&counts) > plan_number(plan, point);
    }
    persist_free(&persist);
    image_undo(image);
    image_set_hashing(image, true);
}

static uint64_t square_root(uint64_t n)
{
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit >>= 1) {
        root += (root + bit) * (root + bit) <= n ? bit : 0;
    }
    return root;
}

/** What rounding has left over, to the first classes that have room. */
static void share_rest(state_plan_t *plan, const class_counts_t *totals)
{
    uint64_t rest = plan->wanted - sum(&plan->share);
    for (uint32_t class = 0; class < PLAN_CLASSES; class ++) {
        uint64_t room = totals->n[class] - plan->share.n[class];
        uint64_t more = room < rest ? room : rest;
        plan->share.n[class] += more;
        rest -= more;
    }
}

/** Rule 2, among the classes from `first` on. A place that has less than its share leaves the rest to the others. */
static void share_among_places(state_plan_t *plan, const class_counts_t *totals, uint32_t first,
                               uint64_t wanted)
{
    bool full[PLAN_CLASSES] = {false};
    uint32_t end = first + PLAN_PLACES;
    for (bool settled = false; !settled;) {
        uint64_t weight = 0;
        settled = true;
        for (uint32_t class = first; class < end; class ++) {
            weight += full[class] ? 0 : square_root(totals->n[class]);
        }
        for (uint32_t class = first; class < end && settled && weight > 0; class ++) {
            if (full[class]) {
                continue;
            }
            uint64_t share = scale(wanted, square_root(totals->n[class]), weight);
            plan->share.n[class] = share < totals->n[class] ? share : totals->n[class];
            if (share >= totals->n[class]) {
                full[class] = true;
                wanted -= totals->n[class];
                settled = false; /* the others share what is left, all over */
            }
        }
    }
}

static void plan_share(state_plan_t *plan)
{
    const class_counts_t *totals = &plan->base[plan->n_points];
    if (plan->wanted == plan->total) {
        plan->share = *totals;
        return;
    }
    uint64_t basic = 0;
    for (uint32_t place = 0; place < PLAN_PLACES; place++) {
        basic += totals->n[place];
    }
    uint64_t others = plan->total - basic;
    uint64_t reserved = others < plan->wanted / 4 ? others : plan->wanted / 4;
    basic = basic < plan->wanted - reserved ? basic : plan->wanted - reserved; /* rule 1 */
    share_among_places(plan, totals, 0, basic);
    share_among_places(plan, totals, PLAN_PLACES, plan->wanted - basic);
    share_rest(plan, totals);
}

static void plan_cut(state_plan_t *plan, uint32_t batch_states)
{
    uint32_t capacity = 0;
    uint32_t first = 0;
    for (uint32_t point = 0; point < plan->n_points; point++) {
        uint64_t n = plan_number(plan, point + 1) - plan_number(plan, first);
        n = scale(n, plan->wanted, plan->total == 0 ? 1 : plan->total);
        if (n < batch_states && point + 1 < plan->n_points) {
            continue;
        }
        if (plan->n_batches == capacity) {
            capacity = capacity == 0 ? 64 : capacity * 2;
            plan->batches = mem_grow(plan->batches, capacity * sizeof(*plan->batches));
        }
        plan->batches[plan->n_batches++] = (batch_t){.first = first, .end = point + 1};
        first = point + 1;
    }
}

void plan_create(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                 image_t *image, const plan_limits_t *limits)
{
    CHECK(limits->batch_states > 0);
    *plan = (state_plan_t){.n_points = trace->list.n + 1, .seed = campaign->models.seed};
    plan->base = mem_alloc((plan->n_points + 1U) * sizeof(*plan->base));
    plan_count(plan, campaign, trace, image, limits);
    plan->total = plan_number(plan, plan->n_points);
    uint64_t per_tree = states_per_tree(campaign);
    plan->wanted = limits->states == 0 ? plan->total : (limits->states + per_tree - 1) / per_tree;
    plan->wanted = plan->wanted < plan->total ? plan->wanted : plan->total;
    if (limits->trees_max > 0 && plan->wanted > limits->trees_max) {
        plan->wanted = limits->trees_max;
    }
    plan_share(plan);
    uint64_t trees = limits->batch_states / per_tree;
    plan_cut(plan, trees == 0 ? 1 : (uint32_t)trees);
}

void plan_free(state_plan_t *plan)
{
    free(plan->base);
    free(plan->batches);
    *plan = (state_plan_t){.n_points = 0};
}
