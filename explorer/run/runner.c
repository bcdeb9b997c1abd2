/* Processes: coordinator, workers, children.

Place: above state.c and plan_states.c, below main.c.

    coordinator --fork--> worker: takes batches in ascending order, plays the trace up to each
                            --fork--> child: runs the states of one batch, exits
Rules
1. A child that dies, or makes no progress until the deadline, is a finding about the state it was
   at; the batch goes on behind that state in a new child. Nothing a state does can end the
   campaign.
2. Only children of this process tree are killed, by the pid that fork returned; they die with their
   parent.
3. A process that was ended from outside (by a person, or by the kernel for want of memory) says
   nothing of its state: the machine failed, and no verdict is given.
4. With a budget, batches are taken in rounds that each spread over the whole trace: whenever the
   time ends, all parts of the trace have had their share. */
#include "explorer/run/runner.h"

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
#include <time.h>
#include <unistd.h>

#ifdef TORNPAGE_COVERAGE
#include <gcov.h>
#endif

#include "base/check.h"

#define POLL_MS 200
#define ROUND_BATCHES_PER_JOB 24U
#define EXIT_NO_STATE 9

typedef struct runner {
    explorer_t *explorer;
    const state_plan_t *plan;
    const run_limits_t *limits;
    const uint32_t *order; /**< batches of this round */
    uint32_t n_order;
    struct timespec start;
    int log_fd; /**< what children print */
} runner_t;

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

static _Noreturn void child_exit(int code)
{
#ifdef TORNPAGE_COVERAGE
    __gcov_dump(); /* _exit() would lose what this child counted */
#endif
    _exit(code);
}

static pid_t fork_child(void)
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

/* ---- the child ---- */

typedef struct child {
    explorer_t *explorer;
    uint64_t from; /**< states with smaller numbers have been run */
} child_t;

static void child_state(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    const child_t *child = ctx;
    if (number >= child->from) {
        child->explorer->progress->position = number;
        explorer_visit(child->explorer, model, k);
    }
}

static void child_point(const runner_t *runner, uint32_t point, uint64_t from)
{
    explorer_t *explorer = runner->explorer;
    if (plan_number(runner->plan, point) == plan_number(runner->plan, point + 1)) {
        return;
    }
    persist_advance(&explorer->persist, point);
    child_t child = {.explorer = explorer, .from = from};
    plan_each(runner->plan, &explorer->campaign->models, &explorer->persist, child_state, &child);
}

static _Noreturn void child_batch(const runner_t *runner, const batch_t *batch, uint64_t from)
{
    for (uint32_t point = batch->first; point < batch->end; point++) {
        child_point(runner, point, from);
    }
    target_free(&runner->explorer->target);
    child_exit(EXIT_SUCCESS);
}

static _Noreturn void child_only(const runner_t *runner, uint32_t point)
{
    explorer_t *explorer = runner->explorer;
    const state_path_t *only = &explorer->campaign->only;
    model_t model = (model_t)only->level[0].model;
    persist_advance(&explorer->persist, point);
    if (only->level[0].k < model_count(&explorer->campaign->models, model, &explorer->persist)) {
        explorer_visit(explorer, model, only->level[0].k);
    }
    target_free(&explorer->target);
    child_exit(explorer->only_found ? EXIT_SUCCESS : EXIT_NO_STATE);
}

/* ---- the watch over a child ---- */

/** Waits for the end of the child; kills it when it stands still. @return its wait status */
static int watch_child(const runner_t *runner, pid_t pid, bool *hung)
{
    const progress_t *progress = runner->explorer->progress;
    uint64_t seen = atomic_load(&progress->beats);
    struct timespec last;
    int status = 0;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &last);
    *hung = false;
    CHECK(fd >= 0);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, POLL_MS) > 0) {
            break;
        }
        uint64_t beats = atomic_load(&progress->beats);
        if (beats != seen) {
            seen = beats;
            (void)clock_gettime(CLOCK_MONOTONIC, &last);
        } else if (seconds_since(&last) > runner->limits->deadline_s) {
            *hung = true;
            (void)kill(pid, SIGKILL);
            break;
        }
    }
    (void)close(fd);
    while (waitpid(pid, &status, 0) < 0) {
        CHECK(errno == EINTR);
    }
    return status;
}

/** The line of a child's last words that says most. */
static void last_words(const runner_t *runner, char *text, size_t room)
{
    static const char *const TELLING[] = {"CHECK", "check failed", "ERROR:", "runtime error"};
    char words[4096];
    ssize_t n = pread(runner->log_fd, words, sizeof(words) - 1, 0);
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

static void report_death(const runner_t *runner, int status, bool hung)
{
    const progress_t *progress = runner->explorer->progress;
    shared_t *shared = runner->explorer->shared;
    record_t record = {.key = progress->key,
                       .path = progress->path,
                       .low = progress->low,
                       .high = progress->high,
                       .site = progress->site};
    verdict_t verdict = {.n = 0};
    char words[160];
    last_words(runner, words, sizeof(words));
    if (hung) {
        verdict_add(&verdict, SOURCE_RECOVERY, 30,
                    "hung: no end of the recovery within %" PRIu32 " s",
                    runner->limits->deadline_s);
    } else if (WIFSIGNALED(status)) {
        verdict_add(&verdict, SOURCE_RECOVERY, 30, "crashed: signal %d: %s", WTERMSIG(status),
                    words);
    } else {
        verdict_add(&verdict, SOURCE_RECOVERY, 30, "crashed: exit %d: %s", WEXITSTATUS(status),
                    words);
    }
    record.finding = verdict.findings[0];
    shared_record(shared, &record);
    shared_add(hung ? &shared->hung : &shared->crashed, 1);
}

/** No process sends these to itself. */
static bool ended_from_outside(int status)
{
    static const int SENT[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof(SENT) / sizeof(SENT[0]); i++) {
        if (WIFSIGNALED(status) && WTERMSIG(status) == SENT[i]) {
            return true;
        }
    }
    return false;
}

static void machine_failure(const runner_t *runner, const char *why)
{
    (void)fprintf(stderr, "tornpage-explore: no verdict: %s\n", why);
    shared_add(&runner->explorer->shared->machine_failures, 1);
}

/** The state could not even be laid out, or somebody else ended its process: nothing is known of the
target, and the campaign is void. */
static bool machine_failed(const runner_t *runner, int status, bool hung)
{
    char words[160];
    if (!hung && ended_from_outside(status)) {
        (void)snprintf(words, sizeof(words), "a process was ended from outside by signal %d",
                       WTERMSIG(status));
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MACHINE) {
        last_words(runner, words, sizeof(words));
    } else {
        return false;
    }
    machine_failure(runner, words);
    return true;
}

/** Prepares a child's standard error; what the last one left is forgotten. */
static pid_t fork_quiet(const runner_t *runner)
{
    (void)ftruncate(runner->log_fd, 0);
    pid_t pid = fork_child();
    if (pid == 0) {
        (void)dup2(runner->log_fd, STDERR_FILENO);
        (void)lseek(STDERR_FILENO, 0, SEEK_SET);
    }
    return pid;
}

/* ---- the worker ---- */

static void worker_batch(const runner_t *runner, const batch_t *batch)
{
    uint64_t from = plan_number(runner->plan, batch->first);
    uint64_t end = plan_number(runner->plan, batch->end);
    if (from == end) {
        return;
    }
    persist_advance(&runner->explorer->persist, batch->first);
    while (from < end) {
        bool hung = false;
        runner->explorer->progress->position = end;
        pid_t pid = fork_quiet(runner);
        if (pid == 0) {
            child_batch(runner, batch, from);
        }
        int status = watch_child(runner, pid, &hung);
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
            return;
        }
        if (machine_failed(runner, status, hung)) {
            return;
        }
        report_death(runner, status, hung);
        from = runner->explorer->progress->position + 1;
    }
}

static bool time_is_up(const runner_t *runner)
{
    return runner->limits->budget_s > 0 && seconds_since(&runner->start) > runner->limits->budget_s;
}

static _Noreturn void worker_run(const runner_t *runner)
{
    shared_t *shared = runner->explorer->shared;
    while (!time_is_up(runner) && atomic_load(&shared->machine_failures) == 0) {
        uint64_t i = atomic_fetch_add(&shared->next_batch, 1);
        if (i >= runner->n_order) {
            break;
        }
        worker_batch(runner, &runner->plan->batches[runner->order[i]]);
    }
    child_exit(EXIT_SUCCESS);
}

static int log_create(void)
{
    int fd = memfd_create("child", MFD_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void run_round(runner_t *runner)
{
    explorer_t *explorer = runner->explorer;
    pid_t pids[JOBS_MAX];
    atomic_store(&explorer->shared->next_batch, 0);
    for (uint32_t i = 0; i < runner->limits->jobs; i++) {
        pids[i] = fork_child();
        if (pids[i] == 0) {
            runner->log_fd = log_create();
            explorer->progress = &explorer->shared->progress[i];
            worker_run(runner);
        }
    }
    for (uint32_t i = 0; i < runner->limits->jobs; i++) {
        int status = 0;
        while (waitpid(pids[i], &status, 0) < 0) {
            CHECK(errno == EINTR);
        }
        if (ended_from_outside(status)) {
            machine_failure(runner, "a worker was ended from outside");
        } else {
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
        }
    }
}

/* ---- rounds ---- */

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/** An order of n numbers of which every beginning is spread evenly: steps of the golden ratio. */
static void spread(uint32_t *order, uint32_t n)
{
    uint32_t step = (uint32_t)((uint64_t)n * 618034U / 1000000U);
    step = step == 0 ? 1 : step;
    while (gcd(step, n) != 1) {
        step++;
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (uint32_t)((uint64_t)i * step % n);
    }
}

uint32_t runner_run(explorer_t *explorer, const state_plan_t *plan, const run_limits_t *limits,
                    double *seconds)
{
    CHECK(limits->jobs > 0 && limits->jobs <= JOBS_MAX);
    uint32_t n = plan->n_batches;
    uint32_t per_round = n;
    uint32_t done = 0;
    uint32_t *order = mem_alloc(n * sizeof(*order));
    runner_t runner = {.explorer = explorer, .plan = plan, .limits = limits};
    (void)clock_gettime(CLOCK_MONOTONIC, &runner.start);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    if (limits->budget_s > 0) {
        spread(order, n);
        per_round = ROUND_BATCHES_PER_JOB * limits->jobs;
    }
    while (done < n && !time_is_up(&runner)) {
        runner.order = order + done;
        runner.n_order = n - done < per_round ? n - done : per_round;
        qsort(order + done, runner.n_order, sizeof(*order), compare_numbers);
        run_round(&runner);
        uint64_t taken = atomic_load(&explorer->shared->next_batch);
        done += taken < runner.n_order ? (uint32_t)taken : runner.n_order;
        if (taken < runner.n_order) {
            break;
        }
    }
    *seconds = seconds_since(&runner.start);
    free(order);
    return done;
}

bool runner_run_only(explorer_t *explorer, const run_limits_t *limits, double *seconds)
{
    const fs_list_t *list = &explorer->trace->list;
    runner_t runner = {.explorer = explorer, .limits = limits, .log_fd = log_create()};
    uint32_t point = 0;
    bool hung = false;
    (void)clock_gettime(CLOCK_MONOTONIC, &runner.start);
    while (point < list->n && point_seq(list, point) < explorer->campaign->only.level[0].seq) {
        point++;
    }
    if (point_seq(list, point) != explorer->campaign->only.level[0].seq) {
        return false;
    }
    pid_t pid = fork_quiet(&runner);
    if (pid == 0) {
        child_only(&runner, point);
    }
    int status = watch_child(&runner, pid, &hung);
    *seconds = seconds_since(&runner.start);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_STATE) {
        return false;
    }
    if ((!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
        && !machine_failed(&runner, status, hung)) {
        report_death(&runner, status, hung);
    }
    return true;
}
