/** XXH3_64bits (seed 0) over a list of buffers, as if they were one. */
#ifndef FAULTS_HASH_H
#define FAULTS_HASH_H

#include <stdint.h>
#include <sys/uio.h>

/** Hashes the first `bytes` bytes of the buffers, which hold that many. */
uint64_t hash_buffers(const struct iovec *parts, int count, uint64_t bytes);

/* One per instruction set, all with the same result; hash_buffers chooses. */
uint64_t hash_buffers_base(const struct iovec *parts, int count, uint64_t bytes);
uint64_t hash_buffers_avx2(const struct iovec *parts, int count, uint64_t bytes);
uint64_t hash_buffers_avx512(const struct iovec *parts, int count, uint64_t bytes);

#endif
