/* The numbers of states. Place: above models.c, below order.c. */
#include "explorer/run/plan_states.h"

#include <stdlib.h>

uint64_t plan_number(const state_plan_t *plan, uint32_t point)
{
    return plan->numbers[point];
}

void plan_each(const state_plan_t *plan, const model_config_t *models, const persist_t *persist,
               plan_state_fn fn, void *ctx)
{
    uint64_t number = plan_number(plan, persist->next);
    for (uint32_t model = 0; model < MODEL_KINDS; model++) {
        uint32_t n = model_count(models, (model_t)model, persist);
        for (uint32_t k = 0; k < n; k++) {
            fn(ctx, (model_t)model, k, number++);
        }
    }
}

void plan_each_point(const state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                     image_t *image, plan_point_fn fn, void *ctx)
{
    image_mark(image);
    image_set_hashing(image, false);
    persist_t persist;
    persist_init(&persist, &trace->list, image, &campaign->disk);
    for (uint32_t point = 0; point < plan->n_points; point++) {
        if (plan_number(plan, point) < plan_number(plan, point + 1)) {
            persist_advance(&persist, point);
            fn(ctx, point, &persist);
        }
    }
    persist_free(&persist);
    image_undo(image);
    image_set_hashing(image, true);
}

bool plan_is_among(const uint64_t *seqs, uint32_t n, uint64_t seq)
{
    bool found = false;
    for (uint32_t i = 0; i < n && !found; i++) {
        found = seqs[i] == seq;
    }
    return found;
}

static bool is_in_range(const plan_range_t *range, uint64_t seq)
{
    return (range->n_at == 0 || plan_is_among(range->at, range->n_at, seq))
           && seq >= range->from_seq && seq <= range->to_seq;
}

typedef struct counting {
    const model_config_t *models;
    uint64_t *of_point;
    uint64_t *of_model;
} counting_t;

static void count_point(void *ctx, uint32_t point, persist_t *persist)
{
    const counting_t *counting = ctx;
    for (uint32_t model = 0; model < MODEL_KINDS; model++) {
        uint32_t n = model_count(counting->models, (model_t)model, persist);
        counting->of_point[point] += n;
        counting->of_model[model] += n;
    }
}

void plan_create(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                 image_t *image, const plan_range_t *range)
{
    *plan = (state_plan_t){.n_points = trace->list.n + 1};
    plan->numbers = mem_alloc((plan->n_points + 1U) * sizeof(*plan->numbers));
    counting_t counting = {.models = &campaign->models,
                           .of_point = mem_alloc(plan->n_points * sizeof(*counting.of_point)),
                           .of_model = plan->of_model};
    for (uint32_t point = 0; point < plan->n_points;
         point++) { /* as if each in the range had one */
        bool in_range = is_in_range(range, point_seq(&trace->list, point));
        plan->numbers[point + 1] = plan->numbers[point] + in_range;
    }
    plan_each_point(plan, campaign, trace, image, count_point, &counting);
    for (uint32_t point = 0; point < plan->n_points; point++) {
        plan->total += counting.of_point[point];
        plan->n_crash_points += counting.of_point[point] > 0;
        plan->numbers[point + 1] = plan->total;
    }
    free(counting.of_point);
}

void plan_free(state_plan_t *plan)
{
    free(plan->numbers);
    *plan = (state_plan_t){.n_points = 0};
}
