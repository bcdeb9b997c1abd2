/* The processes of the runner.

Place: below runner.c, above shared.h.

Rules
1. Only children of this process tree are killed, by the pid that fork returned; they die with their
   parent.
2. A process that was ended from outside (by a person, or by the kernel for want of memory) says
   nothing of its state: the machine failed, and no verdict is given. */
#include "explorer/run/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef TORNPAGE_COVERAGE
#include <gcov.h>
#endif

#include "base/check.h"
#include "faults/children.h"

#define PATIENCE_PARTS 10U
#define POLL_MS 200
#define STILL_S 1.2 /**< between two looks: more says that the watch was held up */
#define GRACE_S 0.8 /**< of a state when the time is up */

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

watch_t watch_create(explorer_t *explorer, const run_limits_t *limits)
{
    watch_t watch = {.explorer = explorer, .limits = limits, .log_fd = -1};
    (void)clock_gettime(CLOCK_MONOTONIC, &watch.start);
    return watch;
}

double watch_seconds(const watch_t *watch)
{
    return seconds_since(&watch->start);
}

double watch_time_left(const watch_t *watch)
{
    return watch->limits->budget_s > 0 ? watch->limits->budget_s - watch_seconds(watch) : 1e9;
}

int watch_log(void)
{
    int fd = memfd_create("child", MFD_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

_Noreturn void watch_exit(int code)
{
#ifdef TORNPAGE_COVERAGE
    __gcov_dump(); /* _exit() would lose what this child counted */
#endif
    _exit(code);
}

pid_t watch_fork(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
    }
    CHECK(pid >= 0);
    return pid;
}

pid_t watch_fork_child(const watch_t *watch)
{
    (void)ftruncate(watch->log_fd, 0);
    pid_t pid = watch_fork();
    if (pid == 0) {
        (void)dup2(watch->log_fd, STDERR_FILENO);
        (void)lseek(STDERR_FILENO, 0, SEEK_SET);
    }
    return pid;
}

/** Waits for the end of a process. look: is called again and again meanwhile; false: it is to be
killed.
@return its wait status */
static int wait_for(pid_t pid, bool (*look)(void *ctx), void *ctx)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK(fd >= 0);
    while (poll(&p, 1, POLL_MS) <= 0) {
        if (!look(ctx)) {
            (void)kill(pid, SIGKILL);
            break;
        }
    }
    (void)close(fd);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        CHECK(errno == EINTR);
    }
    return status;
}

/* ---- why a process ended ---- */

/** The line of a child's last words that says most. */
void watch_last_words(const watch_t *watch, char *text, size_t room)
{
    static const char *const TELLING[] = {"CHECK", "check failed", "ERROR:", "runtime error"};
    char words[4096];
    ssize_t n = pread(watch->log_fd, words, sizeof(words) - 1, 0);
    words[n > 0 ? n : 0] = '\0';
    const char *at = words;
    for (size_t i = 0; i < sizeof(TELLING) / sizeof(TELLING[0]); i++) {
        char *found = strstr(words, TELLING[i]);
        if (found != NULL) {
            while (found > words && found[-1] != '\n') {
                found--;
            }
            at = found;
            break;
        }
    }
    (void)snprintf(text, room, "%.*s", (int)strcspn(at, "\n"), at);
}

static void machine_failure(const watch_t *watch, const char *why)
{
    (void)fprintf(stderr, "tornpage-explore: no verdict: %s\n", why);
    atomic_fetch_add(&watch->explorer->shared->machine_failures, 1);
}

/** The state could not even be laid out, or somebody else ended its process: nothing is known of
the target, and the campaign is void. */
static bool machine_failed(const watch_t *watch, int status)
{
    char words[160];
    if (children_ended_from_outside(status)) {
        (void)snprintf(words, sizeof(words), "a process was ended from outside by signal %d",
                       WTERMSIG(status));
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MACHINE) {
        watch_last_words(watch, words, sizeof(words));
    } else {
        return false;
    }
    machine_failure(watch, words);
    return true;
}

/* ---- a child ---- */

/** Seconds without progress until a state hangs. Where one has for the whole deadline, others will,
and a tenth is enough: the exploration has more to do than wait for them. A verifier of files has a
deadline of its own. */
static uint32_t patience(const watch_t *watch)
{
    const explorer_t *explorer = watch->explorer;
    uint32_t whole = watch->limits->deadline_s;
    bool waited = atomic_load(&explorer->shared->counts.hung) > 0;
    return waited && !explorer->campaign->target.has_deadline ? whole / PATIENCE_PARTS + 1 : whole;
}

typedef struct look {
    const watch_t *watch;
    uint64_t beats;         /**< of its progress, when they were looked at last ... */
    struct timespec beaten; /**< ... and when there was one last */
    struct timespec looked;
    child_end_t end; /**< as far as that is known */
} look_t;

static bool look_at_child(void *ctx)
{
    look_t *look = ctx;
    const watch_t *watch = look->watch;
    uint64_t beats = atomic_load(&watch->explorer->progress->beats);
    /* A look that comes late: this process stood still, as on a frozen machine, and so did the
       child. */
    if (beats != look->beats || seconds_since(&look->looked) > STILL_S) {
        look->beats = beats;
        (void)clock_gettime(CLOCK_MONOTONIC, &look->beaten);
    } else if (seconds_since(&look->beaten) > patience(watch)) {
        look->end = CHILD_HUNG;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &look->looked);
    look->end = watch_time_left(watch) < -GRACE_S ? CHILD_LATE : look->end;
    return look->end == CHILD_DONE;
}

child_end_t watch_child(const watch_t *watch, pid_t pid, int *status)
{
    look_t look = {.watch = watch, .beats = atomic_load(&watch->explorer->progress->beats)};
    (void)clock_gettime(CLOCK_MONOTONIC, &look.beaten);
    look.looked = look.beaten;
    *status = wait_for(pid, look_at_child, &look);
    /* One that was to be killed may have ended by itself before. */
    bool killed = WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL;
    if (look.end == CHILD_LATE || (look.end == CHILD_HUNG && killed)) {
        return look.end;
    }
    if (WIFEXITED(*status) && WEXITSTATUS(*status) == EXIT_SUCCESS) {
        return CHILD_DONE;
    }
    return machine_failed(watch, *status) ? CHILD_MACHINE : CHILD_DIED;
}

void watch_report(const watch_t *watch, child_end_t end, int status)
{
    const progress_t *progress = watch->explorer->progress;
    shared_t *shared = watch->explorer->shared;
    record_t record = {.key = progress->key,
                       .path = progress->path,
                       .low = progress->low,
                       .high = progress->high,
                       .site = progress->site};
    bool hung = end == CHILD_HUNG;
    char words[160];
    watch_last_words(watch, words, sizeof(words));
    verdict_t verdict = {.n = 0};
    if (hung) {
        verdict_add(&verdict, SOURCE_RECOVERY, 30,
                    "hung: no end of the recovery within %" PRIu32 " s", patience(watch));
    } else {
        bool by_signal = WIFSIGNALED(status);
        verdict_add(&verdict, SOURCE_RECOVERY, 30, "crashed: %s %d: %s",
                    by_signal ? "signal" : "exit",
                    by_signal ? WTERMSIG(status) : WEXITSTATUS(status), words);
    }
    record.finding = verdict.findings[0];
    shared_record(shared, &record);
    shared_count(shared, TALLY_STATE, hung ? COUNT_OF(hung) : COUNT_OF(crashed), 1);
}

/* ---- a worker ---- */

/** One line of fixed width: states so far, findings so far. */
static bool look_at_all(void *ctx)
{
    const watch_t *watch = ctx;
    const shared_t *shared = watch->explorer->shared;
    char line[64];
    int len = snprintf(line, sizeof(line), "%20" PRIu64 " %20" PRIu64 "\n",
                       atomic_load(&shared->counts.states), atomic_load(&shared->n_records));
    if (watch->limits->progress_fd > 0) {
        (void)!pwrite(watch->limits->progress_fd, line, (size_t)len, 0);
    }
    return true;
}

void watch_worker(const watch_t *watch, pid_t pid)
{
    watch_t seen = *watch;
    (void)look_at_all(&seen);
    int status = wait_for(pid, look_at_all, &seen);
    if (children_ended_from_outside(status)) {
        machine_failure(watch, "a worker was ended from outside");
    } else {
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    }
}
