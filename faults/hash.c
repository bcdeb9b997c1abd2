/** Chooses the hash function for this processor. Leaf of the preload.

Most of what recording a write costs is its hash, and wider registers make that less. */
#include "faults/hash.h"

uint64_t hash_buffers(const struct iovec *parts, int count, uint64_t bytes)
{
#ifdef HASH_HAS_AVX
    if (__builtin_cpu_supports("avx512f")) {
        return hash_buffers_avx512(parts, count, bytes);
    }
    if (__builtin_cpu_supports("avx2")) {
        return hash_buffers_avx2(parts, count, bytes);
    }
#endif
    return hash_buffers_base(parts, count, bytes);
}
