/** Runs batches of states in worker processes. */
#ifndef EXPLORER_RUNNER_H
#define EXPLORER_RUNNER_H

#include "explorer/run/canary.h"
#include "explorer/run/order.h"
#include "explorer/run/run_limits.h"

/** The states of the order. @return all were run; not if the budget ended, or the machine failed */
bool runner_run(explorer_t *explorer, const state_plan_t *plan, order_t *order,
                const run_limits_t *limits, double *seconds);

/** Makes and judges the canaries, each in a child like those of states. from_seq: as plan_range_t.
A child that dies, or stands still, has condemned its state. Counts machine failures, as the others
do. */
void runner_run_canaries(explorer_t *explorer, const run_limits_t *limits, uint64_t from_seq,
                         canaries_t *out);

/** The one state that campaign->only asks for, in a child like any other; without a budget.
False: there is no such state. */
bool runner_run_only(explorer_t *explorer, const run_limits_t *limits, double *seconds);

#endif
