/** XXH3_64bits of written data. Leaf of the preload; xxHash is compiled in, so that the library
links to nothing for it. Compiled once per instruction set, with HASH_FUNCTION as the name. */
#include "faults/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t hash_parts(const struct iovec *parts, int count, uint64_t bytes)
{
    if (count == 1) {
        return XXH3_64bits(parts[0].iov_base, bytes);
    }
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset(&state);
    for (int i = 0; i < count && bytes > 0; i++) {
        uint64_t part = parts[i].iov_len < bytes ? parts[i].iov_len : bytes;
        (void)XXH3_64bits_update(&state, parts[i].iov_base, part);
        bytes -= part;
    }
    return XXH3_64bits_digest(&state);
}

uint64_t HASH_FUNCTION(const struct iovec *parts, int count, uint64_t bytes)
{
    uint64_t hash = hash_parts(parts, count, bytes);

#ifdef __AVX__
    /* gcc leaves the upper halves behind a loop that is not inlined: the next SSE instruction then
       waits for them. */
    _mm256_zeroupper();
#endif
    return hash;
}
