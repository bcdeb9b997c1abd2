/** Which states are run, and in which batches. */
#ifndef EXPLORER_PLAN_STATES_H
#define EXPLORER_PLAN_STATES_H

#include "explorer/run/state.h"

/** A run of crash points. */
typedef struct batch {
    uint32_t first; /**< crash point */
    uint32_t end;   /**< one past the last */
} batch_t;

typedef struct state_plan {
    uint64_t *base;    /**< number of states before each crash point; one more at the end */
    uint32_t n_points; /**< crash points of the trace */
    uint64_t total;    /**< states in the range */
    uint64_t wanted;   /**< how many of them are run at the first level */
    uint64_t seed;
    batch_t *batches;
    uint32_t n_batches;
    uint32_t n_crash_points; /**< with at least one state in the range */
} state_plan_t;

typedef struct plan_limits {
    uint64_t states; /**< at most, all depths together; 0: all */
    uint64_t from_seq;
    uint64_t to_seq;
    uint32_t batch_states; /**< about as many in one batch */
} plan_limits_t;

/** image is as before the first event, and is left so. */
void plan_create(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                 image_t *image, const plan_limits_t *limits);
void plan_free(state_plan_t *plan);

/** Is the state with this number (over all crash points, models and k) one that is run? */
bool plan_selects(const state_plan_t *plan, uint64_t number);

#endif
