/** Threads whose descriptor numbers are given away by one another.

Usage: race_program WAY ROUNDS. WAY is how the number of the file "f" is given away: close, fclose,
close_range, dup2, dup3 (a socket is put in the file's place), or what the number does: dup, dupfd
(a further one, closed at once), closefrom.
- With rounds: a store opens, writes and gives away, while other threads' pipes take the numbers
  that it leaves.
- With 0 rounds: once, and what has the number next is used before the call has returned
  (slow_close.c).
The store writes eight bytes of 'f', the others 'p' only. Ends with 0 if every call did what it
should.

Depends on libc only. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIPERS 3
#define CLEAR_OF 64 /* closefrom takes all from there on: no pipe gets so high */
#define BEGAN 200
#define FINISH 201

static const char file_bytes[] = "ffffffff";
static const char other_bytes[] = "pppppppp";
static atomic_bool ended;

static void must(int good)
{
    if (!good) {
        perror("race_program");
        exit(4);
    }
}

/* The lowest free numbers, over and over: those that the store has just left. */
static void *pipe_on(void *argument)
{
    char got[sizeof(other_bytes)];

    while (!atomic_load(&ended)) {
        int ends[2];
        must(pipe(ends) == 0);
        must(write(ends[1], other_bytes, 8) == 8);
        must(read(ends[0], got, 8) == 8 && memcmp(got, other_bytes, 8) == 0);
        must(close(ends[1]) == 0 && close(ends[0]) == 0);
    }
    return argument;
}

/* Another thing than the file takes the number: what is written through it is the other's. */
static void put_over(int fd, int other, const char *way)
{
    must((strcmp(way, "dup3") == 0 ? dup3(other, fd, O_CLOEXEC) : dup2(other, fd)) == fd);
}

static void give_away(const char *way, int fd)
{
    if (strcmp(way, "fclose") == 0) {
        FILE *stream = fdopen(fd, "r");
        must(stream != NULL && fclose(stream) == 0);
    } else if (strcmp(way, "close_range") == 0) {
        must(close_range((unsigned)fd, (unsigned)fd, 0) == 0);
    } else if (strcmp(way, "closefrom") == 0) {
        int high = fcntl(fd, F_DUPFD, CLEAR_OF);
        must(high >= CLEAR_OF && close(fd) == 0);
        closefrom(CLEAR_OF);
    } else {
        must(close(fd) == 0);
    }
}

static bool puts_over(const char *way)
{
    return strcmp(way, "dup2") == 0 || strcmp(way, "dup3") == 0;
}

static int store_write(void)
{
    int fd = open("f", O_RDWR | O_CREAT, 0644);

    must(fd >= 0 && pwrite(fd, file_bytes, 8, 0) == 8);
    return fd;
}

static void store_once(const char *way)
{
    int fd = store_write();
    char got[8];
    int ends[2];

    if (strcmp(way, "dup") == 0 || strcmp(way, "dupfd") == 0) {
        int copy = strcmp(way, "dup") == 0 ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 0);
        must(copy >= 0 && pwrite(copy, file_bytes, 8, 0) == 8 && close(copy) == 0);
    } else if (puts_over(way)) {
        must(pipe(ends) == 0);
        put_over(fd, ends[1], way);
        must(write(fd, other_bytes, 8) == 8 && read(ends[0], got, 8) == 8);
        must(close(ends[0]) == 0 && close(ends[1]) == 0);
    }
    give_away(way, fd);
}

typedef struct handover {
    const char *way;
    int fd;
    int other;
} handover_t;

static void *hand_over(void *argument)
{
    handover_t *handover = argument;

    if (puts_over(handover->way)) {
        put_over(handover->fd, handover->other, handover->way);
    } else {
        give_away(handover->way, handover->fd);
    }
    return argument;
}

/* The number has its next owner while the call that gave it away has not returned. */
static void hand_over_once(const char *way)
{
    handover_t handover = {way, store_write(), -1};
    int began[2];
    int finish[2];
    must(pipe(began) == 0 && pipe(finish) == 0);
    must(fcntl(began[1], F_DUPFD, BEGAN) == BEGAN && fcntl(finish[0], F_DUPFD, FINISH) == FINISH);
    int ends[2];
    if (puts_over(way)) {
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        handover.other = ends[0];
    }
    pthread_t thread;
    char got[8];
    must(pthread_create(&thread, NULL, hand_over, &handover) == 0 && read(began[0], got, 1) == 1);
    if (!puts_over(way)) {
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && ends[0] == handover.fd);
    }
    must(write(handover.fd, other_bytes, 8) == 8 && read(ends[1], got, 8) == 8);
    must(write(finish[1], got, 1) == 1 && pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    long rounds = argc == 3 ? strtol(argv[2], NULL, 10) : -1;

    must(rounds >= 0);
    if (rounds == 0) {
        hand_over_once(argv[1]);
        _exit(0);
    }
    pthread_t pipers[PIPERS];
    for (int i = 0; i < PIPERS; i++) {
        must(pthread_create(&pipers[i], NULL, pipe_on, NULL) == 0);
    }
    for (long i = 0; i < rounds; i++) {
        store_once(argv[1]);
    }
    atomic_store(&ended, true);
    for (int i = 0; i < PIPERS; i++) {
        must(pthread_join(pipers[i], NULL) == 0);
    }
    return 0;
}
