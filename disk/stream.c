/* Numbers that follow from seeds. Leaf of disk/. */
#include "disk/stream.h"

#include "base/check.h"

uint64_t stream_below(stream_t *stream, uint64_t bound)
{
    CHECK(bound > 0);
    return stream_next(stream) % bound;
}

uint64_t stream_mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    stream_t s = {.state = a};
    s.state = stream_next(&s) ^ b;
    s.state = stream_next(&s) ^ c;
    s.state = stream_next(&s) ^ d;
    return stream_next(&s);
}
