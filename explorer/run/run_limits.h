/** How states are run: by how many processes, and for how long. */
#ifndef EXPLORER_RUN_LIMITS_H
#define EXPLORER_RUN_LIMITS_H

#include <stdint.h>

typedef struct run_limits {
    uint32_t jobs;         /**< 1 ... JOBS_MAX */
    double budget_s;       /**< end after this time; 0: no limit */
    uint32_t deadline_s;   /**< a state that takes longer hangs; see patience() */
    int progress_fd;       /**< a file that tells how far it is; 0: none */
    uint32_t batch_states; /**< about as many in one process, all depths together */
} run_limits_t;

#endif
