/** What a write costs: pwrite of 4k or 16k blocks, with or without fsync.

Usage: bench_preload FILE [SIZE FSYNC], FSYNC 0 or 1; all four cases without them. Run it with and
without the preload on one file below the root, and compare. Prints one JSON object per case; its
number is the median of the rounds. Depends on libc only. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 11
#define SIZE_MAX_BYTES 65536
#define SPAN_BYTES ((off_t)4 << 20)

static uint64_t bench_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double bench_round(int fd, const char *block, size_t size, int with_fsync, int operations)
{
    off_t offset = 0;
    uint64_t start = bench_now_ns();

    for (int i = 0; i < operations; i++) {
        if (pwrite(fd, block, size, offset) != (ssize_t)size || (with_fsync && fsync(fd) != 0)) {
            perror("bench_preload");
            exit(1);
        }
        offset = (offset + (off_t)size) % SPAN_BYTES;
    }
    return (double)(bench_now_ns() - start) / operations;
}

static void bench_case(int fd, const char *block, size_t size, int with_fsync)
{
    double results[ROUNDS];

    (void)bench_round(fd, block, size, with_fsync, 256); /* the first pass allocates the file */
    for (int i = 0; i < ROUNDS; i++) {
        results[i] = bench_round(fd, block, size, with_fsync, with_fsync ? 64 : 2048);
    }
    qsort(results, ROUNDS, sizeof(results[0]), bench_compare);
    printf("{\"size\": %zu, \"fsync\": %s, \"ns_per_op\": %.1f}\n", size,
           with_fsync ? "true" : "false", results[ROUNDS / 2]);
}

int main(int argc, char **argv)
{
    static char block[SIZE_MAX_BYTES];
    size_t size = argc == 4 ? strtoul(argv[2], NULL, 10) : 4096;
    int fd;

    if ((argc != 2 && argc != 4) || size == 0 || size > sizeof(block)) {
        fprintf(stderr, "usage: bench_preload FILE [SIZE FSYNC]\n");
        return 2;
    }
    fd = open(argv[1], O_RDWR | O_CREAT, 0644);
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    memset(block, 0x5a, sizeof(block));
    if (argc == 4) {
        bench_case(fd, block, size, strcmp(argv[3], "0") != 0);
    } else {
        for (size = 4096; size <= 16384; size *= 4) {
            bench_case(fd, block, size, 0);
            bench_case(fd, block, size, 1);
        }
    }
    return close(fd) == 0 ? 0 : 1;
}
