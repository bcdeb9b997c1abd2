/** The order of states when time is short: every beginning of it is the best sample.

A class is a place (plan_states.h), a model and, of a model that tears, the mask. The classes take turns. Within a class one state
of each statement comes first, the statements spread over the run, then a second one of each. */
#ifndef EXPLORER_ORDER_H
#define EXPLORER_ORDER_H

#include "explorer/run/plan_states.h"

#define ORDER_STATES_MAX 1000000U /**< of more, so many are ordered, chosen as for --states */

typedef struct order_state {
    uint64_t number; /**< plan_number() counts it so */
    uint32_t point;
} order_state_t;

typedef struct order {
    order_state_t *states;
    uint32_t n;
} order_t;

/** Of the states that the plan selects. image is as before the first event, and is left so. */
void order_create(order_t *order, const state_plan_t *plan, const campaign_t *campaign,
                  const trace_t *trace, image_t *image);
void order_free(order_t *order);

/** The n states from `from` on, ascending as the trace has them. */
void order_by_trace(const order_t *order, uint32_t from, uint32_t n);

#endif
