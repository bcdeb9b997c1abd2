/* Every hash that this processor can run gives the same: a recording made on one machine is
compared with those of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults/hash.h"

enum { SIZE_MAX_BYTES = 5000, STARTS = 64 };

typedef uint64_t (*hash_t)(const struct iovec *parts, int count, uint64_t bytes);

static _Alignas(64) uint8_t data[STARTS + SIZE_MAX_BYTES];

/** The functions beside the plain one, which is first; n of them. */
typedef struct hashes {
    hash_t of[4];
    int n;
} hashes_t;

static int setup(void **state)
{
    static hashes_t hashes;
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof(data); i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (uint8_t)(x >> 24);
    }
    hashes = (hashes_t){.of = {hash_buffers_base, hash_buffers}, .n = 2};
#ifdef HASH_HAS_AVX
    if (__builtin_cpu_supports("avx2")) {
        hashes.of[hashes.n++] = hash_buffers_avx2;
    }
    if (__builtin_cpu_supports("avx512f")) {
        hashes.of[hashes.n++] = hash_buffers_avx512;
    }
#endif
    print_message("%d functions beside the plain one and the chosen one\n", hashes.n - 2);
    *state = &hashes;
    return 0;
}

static void assert_same(const hashes_t *hashes, const struct iovec *parts, int count,
                        uint64_t bytes)
{
    uint64_t wanted = hashes->of[0](parts, count, bytes);
    for (int i = 1; i < hashes->n; i++) {
        assert_int_equal(hashes->of[i](parts, count, bytes), wanted);
    }
}

/** The value that xxHash publishes of no bytes, for XXH3_64bits without a seed. */
static void test_published_value(void **state)
{
    const hashes_t *hashes = *state;
    const struct iovec nothing = {.iov_base = data, .iov_len = 0};
    for (int i = 0; i < hashes->n; i++) {
        assert_int_equal(hashes->of[i](&nothing, 1, 0), 0x2D06800538D394C2ULL);
    }
}

/** Of every size, from every place between two cache lines. */
static void test_sizes_and_starts(void **state)
{
    for (size_t start = 0; start < STARTS; start++) {
        for (size_t bytes = 0; bytes <= SIZE_MAX_BYTES; bytes++) {
            const struct iovec one = {.iov_base = data + start, .iov_len = bytes};
            assert_same(*state, &one, 1, bytes);
        }
    }
}

/** Cut in three anywhere it is what it is in one; what is behind its bytes in the last buffer is
not hashed. */
static void test_parts(void **state)
{
    const hashes_t *hashes = *state;
    for (size_t bytes = 0; bytes <= SIZE_MAX_BYTES; bytes++) {
        size_t first = bytes * 7 / 11;
        size_t second = (bytes - first) / 3;
        const struct iovec one = {.iov_base = data + 1, .iov_len = bytes};
        const struct iovec three[] = {
            {.iov_base = data + 1, .iov_len = first},
            {.iov_base = data + 1 + first, .iov_len = second},
            {.iov_base = data + 1 + first + second, .iov_len = SIZE_MAX_BYTES - first - second},
        };
        assert_same(hashes, three, 3, bytes);
        assert_int_equal(hash_buffers(three, 3, bytes), hash_buffers(&one, 1, bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_value),
        cmocka_unit_test(test_sizes_and_starts),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
