/* CRC-32C. Lowest layer; the only user of isa-l.

Rules
1. The value is the common one (reflected, register preset to all ones, result inverted): isa-l's
   crc32_iscsi leaves both steps to its caller.
2. isa-l leaves the upper halves of vector registers in use, where every SSE instruction that
   follows waits for them: they are cleared. glibc tells whether there are any: the compiler's
   own question runs cpuid before each main(), which a virtual machine answers in tens of
   microseconds. */
#include "base/crc32c.h"

#include <isa-l/crc.h>

#ifdef __x86_64__
#include <immintrin.h>
#if __has_include(<sys/platform/x86.h>) /* glibc 2.33 */
#include <sys/platform/x86.h>
#define HAS_AVX() CPU_FEATURE_ACTIVE(AVX)
#else
#define HAS_AVX() __builtin_cpu_supports("avx")
#endif
#endif

#define CHUNK_BYTES_MAX ((size_t)1 << 30) /* isa-l takes an int */

#ifdef __x86_64__
__attribute__((target("avx"))) static void zero_upper(void)
{
    _mm256_zeroupper();
}

static void leave_vectors(void)
{
    if (HAS_AVX()) {
        zero_upper();
    }
}
#else
static void leave_vectors(void)
{
}
#endif

uint32_t crc32c(const byte *buf, size_t len_bytes)
{
    uint32_t crc = 0xFFFFFFFFU;

    while (len_bytes != 0) {
        size_t n = len_bytes < CHUNK_BYTES_MAX ? len_bytes : CHUNK_BYTES_MAX;

        /* isa-l only reads, but its prototype lacks the const. */
        crc = crc32_iscsi((byte *)(uintptr_t)buf, (int)n, crc);
        buf += n;
        len_bytes -= n;
    }
    leave_vectors();
    return ~crc;
}
