/* The choice of states.

Place: above models.c, below runner.c.

States are numbered per class by crash point, model and k. If fewer are wanted than there are:

0. A quarter of the wanted number lies right after the operations by which the run broke a rule on bytes, if there
   are any: what the rule complains of shows there, if anywhere.
1. The basic states come first, as long as they leave a quarter of the rest to the others, a half where recoveries are crashed
   again: what a torn or lost write leaves behind is what the next crash meets. A quarter of the others tear the write that
   happened last: where many wait, it is one of them in few states, and yet the one that a power failure tears.
2. Where not all of them are run, each part is shared out by place, each place by the square root of its number:
   there are hundreds of data pages to one checkpoint, one hole or one new name, and a bug may need that one. Half of
   each part is shared out evenly: a place of few writes, as the file that says that a backup is whole, has too few states
   to tell. Within a place it is by the square root again, by the kind of statement: there are thousands of inserts to
   one defragmentation.
3. Within a class the numbers are cut into as many equal stretches as it has states to give, and one of each
   is drawn: the choice covers the whole trace and all models, and depends on the seed and the wanted
   number only. */
#include "explorer/run/plan_states.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define PLACE_NAMES SITE_KINDS
#define PLACE_HOLES (SITE_KINDS + 1U)

static bool is_sync(const fs_event_t *event)
{
    return event->kind == FS_SYNC || event->kind == FS_SYNC_DIR;
}

/** Is a name the next thing that changes? Then what happened last is what its change relies on. */
static bool name_comes_next(const fs_list_t *list, uint32_t point)
{
    while (point < list->n && is_sync(&list->events[point])) {
        point++;
    }
    return point < list->n && fs_changes_name(&list->events[point]);
}

uint32_t plan_place(const fs_list_t *list, uint32_t point)
{
    if (name_comes_next(list, point)) {
        return PLACE_NAMES;
    }
    for (; point > 0; point--) {
        const fs_event_t *event = &list->events[point - 1];
        if (event->kind == FS_WRITE) {
            return (uint32_t)event->site;
        }
        if (event->kind == FS_ZERO) {
            return PLACE_HOLES;
        }
        if (fs_changes_name(event)) {
            return PLACE_NAMES;
        }
    }
    return SITE_OTHER;
}

static uint32_t part_of(const plan_point_t *point, const model_config_t *models, model_t model,
                        uint32_t k, const persist_t *persist)
{
    return point->suspect                                  ? PLAN_SUSPECT
           : model_is_basic(models->enabled, model)        ? PLAN_BASIC
           : model_tears_newest(models, model, k, persist) ? PLAN_NEWEST
                                                           : PLAN_OTHER;
}

static uint32_t group_of(const kinds_t *kinds, const fs_list_t *list, uint32_t point)
{
    uint32_t line = point == 0 ? 0 : list->events[point - 1].issued_line;
    return plan_place(list, point) * kinds->n + kinds_of(kinds, line);
}

/** number * times / over without overflow, rounded down. */
static uint64_t scale(uint64_t number, uint64_t times, uint64_t over)
{
    return (uint64_t)((unsigned __int128)number * times / over);
}

/** Is state `number` of a class one of those that are run? */
static bool class_selects(const state_plan_t *plan, uint32_t part, uint32_t group, uint64_t number)
{
    uint64_t total = plan->totals[part][group];
    uint64_t wanted = plan->shares[part][group];
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
    return number
           == from + stream_mix(plan->seed, i, 2, part * plan->n_groups + group) % (to - from);
}

uint64_t plan_number(const state_plan_t *plan, uint32_t point)
{
    return plan->points[point].number;
}

void plan_each(const state_plan_t *plan, const model_config_t *models, const persist_t *persist,
               plan_state_fn fn, void *ctx)
{
    plan_point_t next = plan->points[persist->next];
    for (uint32_t model = 0; model < MODEL_KINDS; model++) {
        uint32_t n = model_count(models, (model_t)model, persist);
        for (uint32_t k = 0; k < n; k++, next.number++) {
            uint32_t part = part_of(&next, models, (model_t)model, k, persist);
            if (class_selects(plan, part, next.group, next.before[part]++)) {
                fn(ctx, (model_t)model, k, next.number);
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

static bool is_among(const uint64_t *seqs, uint32_t n, uint64_t seq)
{
    bool found = false;
    for (uint32_t i = 0; i < n && !found; i++) {
        found = seqs[i] == seq;
    }
    return found;
}

static bool is_in_range(const plan_limits_t *limits, uint64_t seq)
{
    return (limits->n_at == 0 || is_among(limits->at, limits->n_at, seq)) && seq >= limits->from_seq
           && seq <= limits->to_seq;
}

static void plan_count_point(state_plan_t *plan, const campaign_t *campaign, uint32_t point,
                             const persist_t *persist)
{
    const plan_point_t *at = &plan->points[point];
    for (uint32_t model = 0; model < MODEL_KINDS; model++) {
        uint32_t n = model_count(&campaign->models, (model_t)model, persist);
        for (uint32_t k = 0; k < n; k++) {
            plan->totals[part_of(at, &campaign->models, (model_t)model, k, persist)][at->group]++;
        }
        plan->total += n;
    }
}

static void plan_count(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                       image_t *image, const plan_limits_t *limits)
{
    persist_t persist;
    image_mark(image);
    image_set_hashing(image, false);
    persist_init(&persist, &trace->list, image, &campaign->disk);
    for (uint32_t point = 0; point < plan->n_points; point++) {
        uint64_t seq = point_seq(&trace->list, point);
        uint32_t group = group_of(limits->kinds, &trace->list, point);
        plan->points[point] =
            (plan_point_t){.group = group,
                           .suspect = is_among(limits->suspects, limits->n_suspects, seq),
                           .number = plan->total};
        for (uint32_t part = 0; part < PLAN_PARTS; part++) {
            plan->points[point].before[part] = plan->totals[part][group];
        }
        persist_advance(&persist, point);
        if (is_in_range(limits, seq)) {
            plan_count_point(plan, campaign, point, &persist);
        }
        plan->n_crash_points += plan->total > plan->points[point].number;
    }
    plan->points[plan->n_points] = (plan_point_t){.number = plan->total};
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

static uint64_t sum(const uint64_t *numbers, uint32_t n)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        total += numbers[i];
    }
    return total;
}

/** Weights of n classes: the square roots of what they have; even: each that has any gets the average on top. */
static uint64_t *weigh(const uint64_t *totals, uint32_t n, bool even)
{
    uint64_t *weights = mem_alloc(n * sizeof(*weights));
    uint64_t all = 0;
    uint32_t n_any = 0;
    for (uint32_t i = 0; i < n; i++) {
        weights[i] = square_root(totals[i]);
        all += weights[i];
        n_any += totals[i] > 0;
    }
    for (uint32_t i = 0; even && i < n; i++) {
        weights[i] += totals[i] > 0 ? all / n_any : 0;
    }
    return weights;
}

/** Shares `wanted`, no more than there is, out among n classes by weight, and gives none more than it has: what it has no
use for goes to the others. */
static void share_by_weight(const uint64_t *totals, const uint64_t *weights, uint32_t n,
                            uint64_t wanted, uint64_t *shares)
{
    bool settled = false;
    memset(shares, 0, n * sizeof(*shares));
    while (!settled) {
        uint64_t all = 0;
        uint64_t before = 0;
        settled = true;
        for (uint32_t i = 0; i < n; i++) {
            all += shares[i] < totals[i] ? weights[i] : 0;
        }
        for (uint32_t i = 0; i < n && settled; i++) {
            if (shares[i] == totals[i]) {
                continue;
            }
            /* What rounding takes from one it gives to the next. */
            uint64_t share = scale(wanted, before + weights[i], all) - scale(wanted, before, all);
            before += weights[i];
            shares[i] = share < totals[i] ? share : totals[i];
            if (share >= totals[i]) {
                wanted -= totals[i];
                settled = false; /* the others share what is left, all over */
            }
        }
    }
}

/** Rule 2, of one part. */
static void plan_share_part(state_plan_t *plan, uint32_t part, uint64_t wanted)
{
    uint64_t totals[PLAN_PLACES];
    uint64_t shares[PLAN_PLACES];
    uint32_t n_kinds = plan->n_groups / PLAN_PLACES;
    for (uint32_t place = 0; place < PLAN_PLACES; place++) {
        totals[place] = sum(plan->totals[part] + (size_t)place * n_kinds, n_kinds);
    }
    uint64_t *weights = weigh(totals, PLAN_PLACES, true);
    share_by_weight(totals, weights, PLAN_PLACES, wanted, shares);
    free(weights);
    for (uint32_t place = 0; place < PLAN_PLACES; place++) {
        const uint64_t *of_kinds = plan->totals[part] + (size_t)place * n_kinds;
        weights = weigh(of_kinds, n_kinds, false);
        share_by_weight(of_kinds, weights, n_kinds, shares[place],
                        plan->shares[part] + (size_t)place * n_kinds);
        free(weights);
    }
}

/** One of so many parts of what is wanted, as far as there is so much; more, where the rest of `total` has too little. */
static uint64_t part_for(uint64_t wanted, uint64_t parts, uint64_t there, uint64_t total)
{
    uint64_t share = there < wanted / parts ? there : wanted / parts;
    uint64_t rest = total - there;
    return wanted - share > rest ? wanted - rest : share;
}

static void plan_share(state_plan_t *plan, bool deeper)
{
    uint64_t wanted[PLAN_PARTS];
    uint64_t suspect = sum(plan->totals[PLAN_SUSPECT], plan->n_groups);
    uint64_t basic = sum(plan->totals[PLAN_BASIC], plan->n_groups);
    uint64_t newest = sum(plan->totals[PLAN_NEWEST], plan->n_groups);
    uint64_t others = plan->total - suspect - basic;
    uint64_t shared = 0;
    wanted[PLAN_SUSPECT] = part_for(plan->wanted, 4, suspect, plan->total); /* rule 0 */
    uint64_t rest = plan->wanted - wanted[PLAN_SUSPECT];
    uint64_t reserved = part_for(rest, deeper ? 2 : 4, others, basic + others); /* rule 1 */
    wanted[PLAN_BASIC] = basic < rest - reserved ? basic : rest - reserved;
    rest -= wanted[PLAN_BASIC];
    wanted[PLAN_NEWEST] = part_for(rest, 4, newest, others);
    wanted[PLAN_OTHER] = rest - wanted[PLAN_NEWEST];
    for (uint32_t part = 0; part < PLAN_PARTS; part++) {
        plan_share_part(plan, part, wanted[part]);
        shared += sum(plan->shares[part], plan->n_groups);
    }
    CHECK(shared == plan->wanted);
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

/** Leaves the batches of the slice. */
static void plan_slice(state_plan_t *plan, const plan_limits_t *limits)
{
    CHECK(limits->slice >= 1 && limits->slice <= limits->n_slices);
    uint32_t from = (uint32_t)scale(plan->n_batches, limits->slice - 1, limits->n_slices);
    uint32_t end = (uint32_t)scale(plan->n_batches, limits->slice, limits->n_slices);
    memmove(plan->batches, plan->batches + from, (end - from) * sizeof(*plan->batches));
    plan->n_batches = end - from;
}

static uint64_t *zeros(uint32_t n)
{
    uint64_t *numbers = mem_alloc(n * sizeof(*numbers));
    memset(numbers, 0, n * sizeof(*numbers));
    return numbers;
}

void plan_create(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                 image_t *image, const plan_limits_t *limits)
{
    CHECK(limits->batch_states > 0);
    *plan = (state_plan_t){.n_points = trace->list.n + 1,
                           .n_groups = PLAN_PLACES * limits->kinds->n,
                           .seed = campaign->models.seed};
    plan->points = mem_alloc((plan->n_points + 1U) * sizeof(*plan->points));
    for (uint32_t part = 0; part < PLAN_PARTS; part++) {
        plan->totals[part] = zeros(plan->n_groups);
        plan->shares[part] = zeros(plan->n_groups);
    }
    plan_count(plan, campaign, trace, image, limits);
    uint64_t per_tree = states_per_tree(campaign);
    plan->wanted = limits->states == 0 ? plan->total : (limits->states + per_tree - 1) / per_tree;
    plan->wanted = plan->wanted < plan->total ? plan->wanted : plan->total;
    if (limits->trees_max > 0 && plan->wanted > limits->trees_max) {
        plan->wanted = limits->trees_max;
    }
    plan_share(plan, models_go_deeper(campaign->models.enabled));
    uint64_t trees = limits->batch_states / per_tree;
    if (limits->n_slices > 0 && trees > plan->wanted / limits->n_slices) {
        trees = plan->wanted / limits->n_slices;
    }
    plan_cut(plan, trees == 0 ? 1 : (uint32_t)trees);
    if (limits->n_slices > 0) {
        plan_slice(plan, limits);
    }
}

void plan_free(state_plan_t *plan)
{
    free(plan->points);
    for (uint32_t part = 0; part < PLAN_PARTS; part++) {
        free(plan->totals[part]);
        free(plan->shares[part]);
    }
    free(plan->batches);
    *plan = (state_plan_t){.n_points = 0};
}
