/** The numbers of states: by crash point, model and k, over all points in the range.

They are the same whichever of the states are run: order.h says which, and when. */
#ifndef EXPLORER_PLAN_STATES_H
#define EXPLORER_PLAN_STATES_H

#include "explorer/run/state.h"

typedef struct state_plan {
    uint64_t *numbers; /**< states before each crash point of the trace; one more: of all */
    uint32_t n_points; /**< crash points */
    uint64_t total;    /**< states in the range */
    uint64_t of_model[MODEL_KINDS]; /**< of them, by model */
    uint32_t n_crash_points;        /**< with at least one state in the range */
} state_plan_t;

/** Which crash points are in the range, by the event before each. */
typedef struct plan_range {
    uint64_t from_seq;
    uint64_t to_seq;
    const uint64_t *at; /**< the only ones; n_at 0: all */
    uint32_t n_at;
} plan_range_t;

/** image is as before the first event, and is left so. */
void plan_create(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                 image_t *image, const plan_range_t *range);
void plan_free(state_plan_t *plan);

/** The number of the first state at a crash point. */
uint64_t plan_number(const state_plan_t *plan, uint32_t point);

/** Calls fn for each state at this crash point, with its number. persist is there. */
typedef void (*plan_state_fn)(void *ctx, model_t model, uint32_t k, uint64_t number);
void plan_each(const state_plan_t *plan, const model_config_t *models, const persist_t *persist,
               plan_state_fn fn, void *ctx);

/** Calls fn for each crash point that has states, in the order of the trace; persist is there then.
As plan_create(). */
typedef void (*plan_point_fn)(void *ctx, uint32_t point, persist_t *persist);
void plan_each_point(const state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                     image_t *image, plan_point_fn fn, void *ctx);

/** Is the event among them? */
bool plan_is_among(const uint64_t *seqs, uint32_t n, uint64_t seq);

#endif
