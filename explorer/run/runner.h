/** Runs batches of states in worker processes. */
#ifndef EXPLORER_RUNNER_H
#define EXPLORER_RUNNER_H

#include "explorer/run/canary.h"
#include "explorer/run/order.h"

typedef struct run_limits {
    uint32_t jobs;         /**< 1 ... JOBS_MAX */
    double budget_s;       /**< end after this time; 0: no limit */
    uint32_t deadline_s;   /**< a state that takes longer hangs; see patience() */
    int progress_fd;       /**< a file that tells how far it is; 0: none */
    uint32_t batch_states; /**< about as many in one process, all depths together */
} run_limits_t;

/** The states of the order, which it sorts. @return all were run; not if the budget ended, or the
machine failed */
bool runner_run(explorer_t *explorer, const state_plan_t *plan, const order_t *order,
                const run_limits_t *limits, double *seconds);

/** Makes and judges the canaries, each in a child like those of states. from_seq: as plan_range_t.
A child that dies, or stands still, has condemned its state. Counts machine failures, as the others
do. */
void runner_run_canaries(explorer_t *explorer, const run_limits_t *limits, uint64_t from_seq,
                         canaries_t *out);

/** The one state that campaign->only asks for, in a child like any other.
False: there is no such state. */
bool runner_run_only(explorer_t *explorer, const run_limits_t *limits, double *seconds);

#endif
