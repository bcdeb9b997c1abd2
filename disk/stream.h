/** A stream of pseudo-random numbers: each follows from its seed. */
#ifndef DISK_STREAM_H
#define DISK_STREAM_H

#include "base/sched.h"

typedef sched_t stream_t;
static inline uint64_t stream_next(stream_t *stream)
{
    return sched_next(stream);
}
uint64_t stream_below(stream_t *stream, uint64_t bound); /**< bound > 0 */
/** A seed from several numbers. */
uint64_t stream_mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

#endif
