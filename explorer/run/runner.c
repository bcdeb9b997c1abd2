/* Processes: coordinator, workers, children.

Place: above state.c and plan_states.c, below main.c.

    coordinator --fork--> worker: takes batches in ascending order, plays the trace up to each
                            --fork--> child: runs the states of one batch, exits
Rules
1. A child that dies, or makes no progress until the deadline (patience()), is a finding about the state it was
   at; the batch goes on behind that state in a new child. Nothing a state does can end the
   campaign.
2. Only children of this process tree are killed, by the pid that fork returned; they die with their
   parent.
3. A process that was ended from outside (by a person, or by the kernel for want of memory) says
   nothing of its state: the machine failed, and no verdict is given.
4. With a budget, states are taken in the order of order.h, in rounds of about a second. Within a round they are run as the
   trace has them. Whenever the time ends, the best sample of so many states has been run, but for the last second.
5. The time ends between two states, or a second later within one: that one has no verdict. */
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

#define PATIENCE_PARTS 10U
#define POLL_MS 200
#define STILL_S 1.2 /**< between two looks: more says that the watch was held up */
#define ROUND_S 1.0
#define ROUND_STATES_PER_JOB 4U /**< at least */
#define ROUND_BATCHES_PER_JOB 4U
#define GRACE_S 0.8 /**< of a state when the time is up */
#define EXIT_NO_STATE 9

typedef struct runner {
    explorer_t *explorer;
    const state_plan_t *plan;
    const run_limits_t *limits;
    const order_state_t
        *states; /**< of this round, ascending; NULL: all that the plan selects, in its batches */
    uint32_t n_states;
    struct timespec start;
    int log_fd; /**< what children print */
} runner_t;

/** What one child runs: crash points, and of a round its states. */
typedef struct work {
    batch_t points;
    const order_state_t *states; /**< as in runner_t */
    uint32_t n_states;
} work_t;

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

static double time_left(const runner_t *runner)
{
    return runner->limits->budget_s > 0 ? runner->limits->budget_s - seconds_since(&runner->start)
                                        : 1e9;
}

/* ---- the child ---- */

typedef struct child {
    const runner_t *runner;
    const work_t *work;
    uint64_t from;    /**< states with smaller numbers have been run */
    uint32_t n_taken; /**< of the states of the round */
} child_t;

/** Is it one of the round? They come ascending. */
static bool child_wants(child_t *child, uint64_t number)
{
    const work_t *work = child->work;
    if (work->states == NULL) {
        return true;
    }
    while (child->n_taken < work->n_states && work->states[child->n_taken].number < number) {
        child->n_taken++;
    }
    return child->n_taken < work->n_states && work->states[child->n_taken].number == number;
}

static void child_state(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    child_t *child = ctx;
    explorer_t *explorer = child->runner->explorer;
    if (number >= child->from && child_wants(child, number) && time_left(child->runner) > 0) {
        explorer->progress->position = number;
        explorer_visit(explorer, model, k);
    }
}

static void child_point(child_t *child, uint32_t point)
{
    const runner_t *runner = child->runner;
    explorer_t *explorer = runner->explorer;
    uint64_t end = plan_number(runner->plan, point + 1);
    const work_t *work = child->work;
    bool skipped =
        work->states != NULL
        && (child->n_taken == work->n_states || work->states[child->n_taken].number >= end);
    if (plan_number(runner->plan, point) == end || skipped) {
        return;
    }
    persist_advance(&explorer->persist, point);
    plan_each(runner->plan, &explorer->campaign->models, &explorer->persist, child_state, child);
}

static _Noreturn void child_work(const runner_t *runner, const work_t *work, uint64_t from)
{
    child_t child = {.runner = runner, .work = work, .from = from};
    (void)child_wants(&child, from);
    for (uint32_t point = work->points.first; point < work->points.end; point++) {
        child_point(&child, point);
    }
    target_close(&runner->explorer->target);
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
    target_close(&explorer->target);
    child_exit(explorer->only_found ? EXIT_SUCCESS : EXIT_NO_STATE);
}

/* ---- the watch over a child ---- */

typedef enum watch { WATCH_ENDED, WATCH_HUNG, WATCH_LATE } watch_t;

/** Seconds without progress until a state hangs. Where one has for the whole deadline, others will, and a tenth is
enough: the exploration has more to do than wait for them. A verifier of files has a deadline of its own. */
static uint32_t patience(const runner_t *runner)
{
    const explorer_t *explorer = runner->explorer;
    uint32_t whole = runner->limits->deadline_s;
    bool waited = atomic_load(&explorer->shared->counts.hung) > 0;
    return waited && !explorer->campaign->target.has_deadline ? whole / PATIENCE_PARTS + 1 : whole;
}

/** Waits for the end of the child; kills it when it stands still, or the time is up. @return its wait status */
static int watch_child(const runner_t *runner, pid_t pid, watch_t *how)
{
    const progress_t *progress = runner->explorer->progress;
    uint64_t seen = atomic_load(&progress->beats);
    struct timespec last;
    int status = 0;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &last);
    struct timespec looked = last;
    *how = WATCH_ENDED;
    CHECK(fd >= 0);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, POLL_MS) > 0) {
            break;
        }
        uint64_t beats = atomic_load(&progress->beats);
        /* A look that comes late: this process stood still, as on a frozen machine, and so did the child. */
        if (beats != seen || seconds_since(&looked) > STILL_S) {
            seen = beats;
            (void)clock_gettime(CLOCK_MONOTONIC, &last);
        } else if (seconds_since(&last) > patience(runner)) {
            *how = WATCH_HUNG;
        }
        (void)clock_gettime(CLOCK_MONOTONIC, &looked);
        *how = time_left(runner) < -GRACE_S ? WATCH_LATE : *how;
        if (*how != WATCH_ENDED) {
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
                    "hung: no end of the recovery within %" PRIu32 " s", patience(runner));
    } else if (WIFSIGNALED(status)) {
        verdict_add(&verdict, SOURCE_RECOVERY, 30, "crashed: signal %d: %s", WTERMSIG(status),
                    words);
    } else {
        verdict_add(&verdict, SOURCE_RECOVERY, 30, "crashed: exit %d: %s", WEXITSTATUS(status),
                    words);
    }
    record.finding = verdict.findings[0];
    shared_record(shared, &record);
    shared_count(shared, TALLY_STATE, hung ? COUNT_OF(hung) : COUNT_OF(crashed), 1);
}

/** No process sends these to itself: the last two are the kernel's, by a limit. */
static bool ended_from_outside(int status)
{
    static const int SENT[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGXCPU, SIGXFSZ};
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
    atomic_fetch_add(&runner->explorer->shared->machine_failures, 1);
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

static void worker_work(const runner_t *runner, const work_t *work)
{
    uint64_t from = plan_number(runner->plan, work->points.first);
    uint64_t end = plan_number(runner->plan, work->points.end);
    if (from == end) {
        return;
    }
    persist_advance(&runner->explorer->persist, work->points.first);
    while (from < end) {
        watch_t how;
        runner->explorer->progress->position = end;
        pid_t pid = fork_quiet(runner);
        if (pid == 0) {
            child_work(runner, work, from);
        }
        int status = watch_child(runner, pid, &how);
        if (how == WATCH_LATE) {
            shared_count(runner->explorer->shared, TALLY_STATE, COUNT_OF(unfinished), 1);
            return;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
            return;
        }
        if (machine_failed(runner, status, how == WATCH_HUNG)) {
            return;
        }
        report_death(runner, status, how == WATCH_HUNG);
        from = runner->explorer->progress->position + 1;
    }
}

static uint32_t work_count(const runner_t *runner)
{
    uint32_t pieces = ROUND_BATCHES_PER_JOB * runner->limits->jobs;
    uint32_t of_round = runner->n_states < pieces ? runner->n_states : pieces;
    return runner->states == NULL ? runner->plan->n_batches : of_round;
}

/** Part i of what there is to do. */
static work_t work_get(const runner_t *runner, uint32_t i)
{
    if (runner->states == NULL) {
        return (work_t){.points = runner->plan->batches[i]};
    }
    uint32_t n = work_count(runner);
    uint32_t from = (uint32_t)((uint64_t)runner->n_states * i / n);
    uint32_t to = (uint32_t)((uint64_t)runner->n_states * (i + 1) / n);
    return (work_t){
        .points = {.first = runner->states[from].point, .end = runner->states[to - 1].point + 1},
        .states = runner->states + from,
        .n_states = to - from};
}

static _Noreturn void worker_run(const runner_t *runner)
{
    shared_t *shared = runner->explorer->shared;
    while (time_left(runner) > 0 && atomic_load(&shared->machine_failures) == 0) {
        uint64_t i = atomic_fetch_add(&shared->next_batch, 1);
        if (i >= work_count(runner)) {
            break;
        }
        work_t work = work_get(runner, (uint32_t)i);
        worker_work(runner, &work);
    }
    child_exit(EXIT_SUCCESS);
}

/** One line of fixed width: states so far, findings so far. */
static void tell_progress(const runner_t *runner)
{
    const shared_t *shared = runner->explorer->shared;
    char line[64];
    int len = snprintf(line, sizeof(line), "%20" PRIu64 " %20" PRIu64 "\n",
                       atomic_load(&shared->counts.states), atomic_load(&shared->n_records));
    if (runner->limits->progress_fd > 0) {
        (void)!pwrite(runner->limits->progress_fd, line, (size_t)len, 0);
    }
}

static int log_create(void)
{
    int fd = memfd_create("child", MFD_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

/** Waits for a worker; meanwhile the progress file tells how far all are. */
static int wait_worker(const runner_t *runner, pid_t pid)
{
    int status = 0;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK(fd >= 0);
    do {
        tell_progress(runner);
    } while (poll(&p, 1, POLL_MS) <= 0);
    (void)close(fd);
    while (waitpid(pid, &status, 0) < 0) {
        CHECK(errno == EINTR);
    }
    return status;
}

static void run_workers(runner_t *runner)
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
        int status = wait_worker(runner, pids[i]);
        if (ended_from_outside(status)) {
            machine_failure(runner, "a worker was ended from outside");
        } else {
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
        }
    }
}

/* ---- rounds ---- */

/** As many states as a round of this length needs, by what the last one took. */
static uint32_t round_states(const runner_t *runner, uint32_t last, double seconds)
{
    uint32_t n = ROUND_STATES_PER_JOB * runner->limits->jobs;
    double wanted = seconds > 0 ? last / seconds * ROUND_S : 0;
    return wanted > ORDER_STATES_MAX ? ORDER_STATES_MAX : wanted > n ? (uint32_t)wanted : n;
}

/** @return the states that were run */
static uint32_t run_rounds(runner_t *runner)
{
    explorer_t *explorer = runner->explorer;
    order_t order;
    uint32_t done = 0;
    uint32_t n = round_states(runner, 0, 0);
    order_create(&order, runner->plan, explorer->campaign, explorer->trace, explorer->image);
    while (done < order.n && time_left(runner) > 0
           && atomic_load(&explorer->shared->machine_failures) == 0) {
        double began = seconds_since(&runner->start);
        n = n < order.n - done ? n : order.n - done;
        order_by_trace(&order, done, n);
        runner->states = order.states + done;
        runner->n_states = n;
        run_workers(runner);
        done += n;
        n = round_states(runner, n, seconds_since(&runner->start) - began);
    }
    order_free(&order);
    return done;
}

bool runner_run(explorer_t *explorer, const state_plan_t *plan, const run_limits_t *limits,
                double *seconds)
{
    CHECK(limits->jobs > 0 && limits->jobs <= JOBS_MAX);
    runner_t runner = {.explorer = explorer, .plan = plan, .limits = limits};
    (void)clock_gettime(CLOCK_MONOTONIC, &runner.start);
    bool all = true;
    if (limits->budget_s > 0) {
        all = run_rounds(&runner) == plan->wanted && time_left(&runner) > 0;
    } else {
        run_workers(&runner);
        all = atomic_load(&explorer->shared->machine_failures) == 0;
    }
    *seconds = seconds_since(&runner.start);
    return all;
}

/* ---- canaries ---- */

static _Noreturn void canary_child(const runner_t *runner, uint32_t i, uint32_t from_point,
                                   canary_t *canary)
{
    canary_try(runner->explorer, i, from_point, canary);
    target_close(&runner->explorer->target);
    child_exit(EXIT_SUCCESS);
}

/** One after the other, along the trace. told: shared memory. */
static _Noreturn void canary_worker(const runner_t *runner, uint64_t from_seq, canaries_t *told)
{
    explorer_t *explorer = runner->explorer;
    uint32_t from_point = told->n > 0 ? canary_point(explorer, 0, from_seq) : 0;
    for (uint32_t i = 0; i < told->n; i++) {
        watch_t how;
        canary_t *canary = &told->list[i];
        persist_advance(&explorer->persist, canary_point(explorer, i, from_seq));
        pid_t pid = fork_quiet(runner);
        if (pid == 0) {
            canary_child(runner, i, from_point, canary);
        }
        int status = watch_child(runner, pid, &how);
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
            continue;
        }
        char words[160];
        last_words(runner, words, sizeof(words));
        if (machine_failed(runner, status, how == WATCH_HUNG)) {
            break;
        }
        canary_tell(canary, canary->fate == CANARY_JUDGED ? CANARY_CONDEMNED : CANARY_DEAF,
                    "recovery, which %s: %s", how == WATCH_HUNG ? "hung" : "died", words);
    }
    child_exit(EXIT_SUCCESS);
}

void runner_run_canaries(explorer_t *explorer, const run_limits_t *limits, uint64_t from_seq,
                         canaries_t *out)
{
    run_limits_t patient = *limits;
    patient.budget_s = 0;
    patient.progress_fd = 0;
    runner_t runner = {.explorer = explorer, .limits = &patient, .log_fd = -1};
    canaries_t *told =
        mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(told != MAP_FAILED);
    canaries_list(explorer->campaign, told);
    pid_t pid = fork_child();
    if (pid == 0) {
        runner.log_fd = log_create();
        explorer->progress = &explorer->shared->progress[0];
        canary_worker(&runner, from_seq, told);
    }
    int status = wait_worker(&runner, pid);
    if (ended_from_outside(status)) {
        machine_failure(&runner, "a worker was ended from outside");
    } else {
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    }
    canaries_append(out, told);
    (void)munmap(told, sizeof(*told));
}

bool runner_run_only(explorer_t *explorer, const run_limits_t *limits, double *seconds)
{
    const fs_list_t *list = &explorer->trace->list;
    runner_t runner = {.explorer = explorer, .limits = limits, .log_fd = log_create()};
    uint32_t point = 0;
    watch_t how;
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
    int status = watch_child(&runner, pid, &how);
    *seconds = seconds_since(&runner.start);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_STATE) {
        return false;
    }
    if ((!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
        && !machine_failed(&runner, status, how == WATCH_HUNG)) {
        report_death(&runner, status, how == WATCH_HUNG);
    }
    return true;
}
