/* The generator behind the schedule: splitmix64. Lowest layer. */
#include "base/sched.h"

uint64_t sched_next(sched_t *sched)
{
    uint64_t z = sched->state += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

uint32_t sched_draw(sched_t *sched, uint32_t n)
{
    return (uint32_t)(sched_next(sched) % n);
}
