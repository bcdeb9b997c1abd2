/** Tells which functions a program enters and leaves, in their order. Linked into a program that is
compiled with -finstrument-functions (calls.cmake); it has one thread.

TORNPAGE_CALLS names a table: u16 by offset in the program, the number of the function that begins
there, 0: nobody asks for it. TORNPAGE_CALLS_STOP, if it is set, is the number of an event.

Without it, each event is an u16 on standard output: the number, with the top bit if the function is
left; what the program prints goes nowhere. With it, the program prints, and right before that event
(the first is 0) it ends with a line "calls NUMBER...": who is under way, the innermost first.
Without a table nothing happens. What is not as it must be ends the program with status 97. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNTRACED __attribute__((no_instrument_function))
#define EXIT_BROKEN 97
#define LEFT 0x8000u
#define EVENTS (1u << 15)
#define DEPTH_MAX (1u << 12)
#define BASE_10 10

static struct {
    const uint16_t *numbers; /* NULL: nobody asks */
    size_t n_numbers;
    int out;
    bool stops;
    uint64_t stop;
    uint64_t seen;
    size_t n_events;
    uint16_t events[EVENTS];
    size_t depth;
    uint16_t stack[DEPTH_MAX];
} calls;

/** Where the program is in memory: the linker's. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

void __cyg_profile_func_enter(void *function, void *caller) UNTRACED;
void __cyg_profile_func_exit(void *function, void *caller) UNTRACED;

UNTRACED static void calls_flush(void)
{
    const char *from = (const char *)calls.events;
    size_t left = calls.n_events * sizeof(calls.events[0]);

    calls.n_events = 0;
    while (left > 0) {
        ssize_t n = write(calls.out, from, left);
        if (n < 0) {
            _exit(EXIT_BROKEN);
        }
        from += n;
        left -= (size_t)n;
    }
}

/** The program dies of the signal once this has returned. */
UNTRACED static void calls_at_signal(int number)
{
    (void)number;
    calls_flush();
}

UNTRACED static void calls_stop(void)
{
    (void)dprintf(STDOUT_FILENO, "\ncalls");
    while (calls.depth > 0) {
        (void)dprintf(STDOUT_FILENO, " %u", (unsigned)calls.stack[--calls.depth]);
    }
    (void)dprintf(STDOUT_FILENO, "\n");
    _exit(0);
}

UNTRACED static void calls_note(const void *function, unsigned left)
{
    size_t offset = (size_t)((uintptr_t)function - (uintptr_t)__ehdr_start);
    uint16_t number = offset < calls.n_numbers ? calls.numbers[offset] : 0;

    if (number == 0) {
        return;
    }
    if (!calls.stops) {
        calls.events[calls.n_events++] = (uint16_t)(number | left);
        if (calls.n_events == EVENTS) {
            calls_flush();
        }
        return;
    }
    if (calls.seen++ == calls.stop) {
        calls_stop();
    }
    if (left != 0) {
        calls.depth--;
    } else if (calls.depth < DEPTH_MAX) {
        calls.stack[calls.depth++] = number;
    } else {
        _exit(EXIT_BROKEN);
    }
}

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    calls_note(function, 0);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)caller;
    calls_note(function, LEFT);
}

UNTRACED static void calls_map(const char *path)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &found) != 0) {
        _exit(EXIT_BROKEN);
    }
    void *table = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (table == MAP_FAILED) {
        _exit(EXIT_BROKEN);
    }
    (void)close(fd);
    calls.numbers = table;
    calls.n_numbers = (size_t)found.st_size / sizeof(uint16_t);
}

/** The events get standard output, which is a pipe, and signals that end the program leave none
behind. */
UNTRACED static void calls_take_output(void)
{
    static const int DEADLY[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const struct sigaction flush = {.sa_handler = calls_at_signal, .sa_flags = SA_RESETHAND};
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    calls.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (calls.out < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) {
        _exit(EXIT_BROKEN);
    }
    for (size_t i = 0; i < sizeof(DEADLY) / sizeof(DEADLY[0]); i++) {
        (void)sigaction(DEADLY[i], &flush, NULL);
    }
}

UNTRACED __attribute__((constructor)) static void calls_begin(void)
{
    const char *path = getenv("TORNPAGE_CALLS");
    const char *stop = getenv("TORNPAGE_CALLS_STOP");

    if (path == NULL) {
        return;
    }
    if (stop != NULL) {
        calls.stops = true;
        calls.stop = strtoull(stop, NULL, BASE_10);
    } else {
        calls_take_output();
    }
    calls_map(path);
}

UNTRACED __attribute__((destructor)) static void calls_end(void)
{
    calls_flush();
}
