/** The schedule: draws which of several activities goes on where more than one could. The same
seed and the same sequence of draws give the same schedule, so that a run can be repeated byte
for byte. */
#ifndef BASE_SCHED_H
#define BASE_SCHED_H

#include <stdint.h>

typedef struct sched {
    uint64_t state; /**< of splitmix64; any value will do as a seed */
} sched_t;

/** The next 64 bits. */
uint64_t sched_next(sched_t *sched);
/** A number below n, each as likely as the other. n > 0. */
uint32_t sched_draw(sched_t *sched, uint32_t n);

#endif
