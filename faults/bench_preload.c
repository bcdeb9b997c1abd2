/** What a write costs: pwrite of blocks, with or without fsync, by one thread or several, each of
which has a file of its own.

Usage: bench_preload FILE SIZE FSYNC THREADS, FSYNC 0 or 1. Run it with and without the preload on
one file below the root, and compare. Prints one JSON object: nanoseconds that a thread waits for an
operation, and of processor time; medians of the rounds. Depends on libc only. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 11
#define SIZE_MAX_BYTES 65536
#define THREADS_MAX 32
#define PATH_MAX_BYTES 4096
#define SPAN_BYTES ((off_t)4 << 20)

/** What all threads of a round share. */
typedef struct {
    const char *block;
    size_t size;
    int with_fsync;
    int operations;
    int failed;
    pthread_barrier_t begin;
} bench_t;

typedef struct {
    bench_t *bench;
    int fd;
    pthread_t thread;
} writer_t;

static double bench_now_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void *bench_write(void *argument)
{
    const writer_t *writer = argument;
    bench_t *bench = writer->bench;
    (void)pthread_barrier_wait(&bench->begin);
    off_t offset = 0;
    for (int i = 0; i < bench->operations; i++) {
        if (pwrite(writer->fd, bench->block, bench->size, offset) != (ssize_t)bench->size
            || (bench->with_fsync && fsync(writer->fd) != 0)) {
            perror("bench_preload");
            __atomic_store_n(&bench->failed, 1, __ATOMIC_RELAXED);
            break;
        }
        offset = (offset + (off_t)bench->size) % SPAN_BYTES;
    }
    return NULL;
}

/** One round of all writers. Returns 0, or -1 if a thread or a write failed. */
static int bench_round(bench_t *bench, writer_t *writers, int n, double *wall_ns, double *cpu_ns)
{
    if (pthread_barrier_init(&bench->begin, NULL, (unsigned)n + 1) != 0) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (pthread_create(&writers[i].thread, NULL, bench_write, &writers[i]) != 0) {
            perror("bench_preload");
            exit(1); /* the threads before it wait for ever */
        }
    }
    double cpu = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    double wall = bench_now_ns(CLOCK_MONOTONIC);
    (void)pthread_barrier_wait(&bench->begin);
    for (int i = 0; i < n; i++) {
        (void)pthread_join(writers[i].thread, NULL);
    }
    *wall_ns = (bench_now_ns(CLOCK_MONOTONIC) - wall) / bench->operations;
    *cpu_ns = (bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / bench->operations / n;
    (void)pthread_barrier_destroy(&bench->begin);
    return bench->failed ? -1 : 0;
}

/** All rounds; the first pass allocates the files. */
static int bench_rounds(bench_t *bench, writer_t *writers, int n)
{
    bench->operations = (int)(SPAN_BYTES / (off_t)bench->size);
    double wall_ns[ROUNDS];
    double cpu_ns[ROUNDS];
    if (bench_round(bench, writers, n, &wall_ns[0], &cpu_ns[0]) != 0) {
        return 1;
    }
    bench->operations = bench->with_fsync ? 64 : 512;
    for (int i = 0; i < ROUNDS; i++) {
        if (bench_round(bench, writers, n, &wall_ns[i], &cpu_ns[i]) != 0) {
            return 1;
        }
    }
    qsort(wall_ns, ROUNDS, sizeof(wall_ns[0]), bench_compare);
    qsort(cpu_ns, ROUNDS, sizeof(cpu_ns[0]), bench_compare);
    printf("{\"size\": %zu, \"fsync\": %s, \"threads\": %d, \"ns_per_op\": %.1f, "
           "\"cpu_ns_per_op\": %.1f}\n",
           bench->size, bench->with_fsync ? "true" : "false", n, wall_ns[ROUNDS / 2],
           cpu_ns[ROUNDS / 2]);
    return 0;
}

static int bench_open(const char *path, writer_t *writers, int n, bench_t *bench)
{
    for (int i = 0; i < n; i++) {
        char name[PATH_MAX_BYTES];

        (void)snprintf(name, sizeof(name), "%s.%d", path, i);
        writers[i] = (writer_t){.bench = bench, .fd = open(name, O_RDWR | O_CREAT, 0644)};
        if (writers[i].fd < 0) {
            perror(name);
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static char block[SIZE_MAX_BYTES];
    static writer_t writers[THREADS_MAX];
    bench_t bench = {.block = block};
    long n = 0;

    if (argc == 5) {
        bench.size = strtoul(argv[2], NULL, 10);
        bench.with_fsync = strcmp(argv[3], "0") != 0;
        n = strtol(argv[4], NULL, 10);
    }
    if (n < 1 || n > THREADS_MAX || bench.size == 0 || bench.size > sizeof(block)) {
        fprintf(stderr, "usage: bench_preload FILE SIZE FSYNC THREADS\n");
        return 2;
    }
    memset(block, 0x5a, sizeof(block));
    if (bench_open(argv[1], writers, (int)n, &bench) != 0) {
        return 1;
    }
    return bench_rounds(&bench, writers, (int)n);
}
