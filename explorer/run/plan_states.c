/* The choice of states.

Place: above models.c, below runner.c.

All states of the trace are numbered by crash point, model and k. If fewer are wanted, the numbers
are cut into as many equal stretches, and one of each is drawn: the choice covers the whole trace
and all models, and depends on the seed and the wanted number only. */
#include "explorer/run/plan_states.h"

#include <stdlib.h>

#include "base/check.h"

/** number * wanted / total without overflow, rounded down. */
static uint64_t scale(uint64_t number, uint64_t times, uint64_t over)
{
    return (uint64_t)((unsigned __int128)number * times / over);
}

bool plan_selects(const state_plan_t *plan, uint64_t number)
{
    if (plan->wanted >= plan->total) {
        return true;
    }
    /* Stretch i holds the numbers with number * wanted / total = i. */
    uint64_t i = scale(number, plan->wanted, plan->total);
    uint64_t from = scale(i, plan->total, plan->wanted);
    from += scale(from, plan->wanted, plan->total) != i;
    uint64_t to = scale(i + 1, plan->total, plan->wanted);
    to += scale(to, plan->wanted, plan->total) != i + 1;
    return number == from + stream_mix(plan->seed, i, 2, 0) % (to - from);
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

static void plan_count(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                       image_t *image, const plan_limits_t *limits)
{
    persist_t persist;
    image_mark(image);
    image_set_hashing(image, false);
    persist_init(&persist, &trace->list, image, &campaign->ignore);
    for (uint32_t point = 0; point < plan->n_points; point++) {
        uint64_t seq = point_seq(&trace->list, point);
        uint32_t n = 0;
        persist_advance(&persist, point);
        if (seq >= limits->from_seq && seq <= limits->to_seq) {
            n = model_count_all(&campaign->models, &persist);
        }
        plan->base[point + 1] = plan->base[point] + n;
        plan->n_crash_points += n > 0;
    }
    persist_free(&persist);
    image_undo(image);
    image_set_hashing(image, true);
}

static void plan_cut(state_plan_t *plan, uint32_t batch_states)
{
    uint32_t capacity = 0;
    uint32_t first = 0;
    for (uint32_t point = 0; point < plan->n_points; point++) {
        uint64_t n = plan->base[point + 1] - plan->base[first];
        if (plan->wanted < plan->total) {
            n = scale(plan->base[point + 1], plan->wanted, plan->total)
                - scale(plan->base[first], plan->wanted, plan->total);
        }
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
    plan->total = plan->base[plan->n_points];
    uint64_t per_tree = states_per_tree(campaign);
    plan->wanted = limits->states == 0 ? plan->total : (limits->states + per_tree - 1) / per_tree;
    plan->wanted = plan->wanted < plan->total ? plan->wanted : plan->total;
    uint64_t trees = limits->batch_states / per_tree;
    plan_cut(plan, trees == 0 ? 1 : (uint32_t)trees);
}

void plan_free(state_plan_t *plan)
{
    free(plan->base);
    free(plan->batches);
    *plan = (state_plan_t){.n_points = 0};
}
