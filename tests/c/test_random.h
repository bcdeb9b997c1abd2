/** The random numbers of the tests: a seed decides everything. A test keeps the generator it has,
because with another one its seed would be another test. */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>

/** xorshift64; the seed must not be 0. */
static inline uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/** xorshift64*; the seed must not be 0. */
static inline uint64_t random_star(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 0x2545F4914F6CDD1DULL;
}

/** A linear congruential step: the high bits are the random ones. Any seed will do. */
static inline uint64_t random_step(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed;
}

/** splitmix64. Any seed will do. */
static inline uint64_t random_split(uint64_t *seed)
{
    uint64_t z = *seed += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

#endif
