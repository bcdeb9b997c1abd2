/* Processes: coordinator, workers, children.

Place: above state.c, plan_states.c and watch.c, below main.c.

    coordinator --fork--> worker: takes batches in ascending order, plays the trace up to each
                            --fork--> child: runs the states of one batch, exits
Rules
1. A child that dies, or makes no progress until the deadline (watch.c), is a finding about the
   state it was at; the batch goes on behind that state in a new child. Nothing a state does can end
   the campaign.
2. States are taken in rounds, which are beginnings of what is left of the order: with a budget of
   about a second, else of all. Within a round they are run as the trace has them. Whenever the time
   ends, the best sample of so many states has been run, but for the last second.
3. The time ends between two states, or a second later within one: that one has no verdict. */
#include "explorer/run/runner.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/check.h"
#include "explorer/run/watch.h"

#define ROUND_S 1.0
#define ROUND_STATES_PER_JOB 4U /**< at least */
#define BATCHES_PER_JOB 4U      /**< of a round, at least, where there are several jobs */
#define EXIT_NO_STATE 9

typedef struct runner {
    watch_t watch;
    const state_plan_t *plan;
    const order_state_t *states; /**< of this round, ascending */
    uint64_t n_states;
    uint64_t n_batches; /**< that they are cut into */
} runner_t;

/** A batch: the states that one child runs, ascending. */
typedef struct work {
    const order_state_t *states;
    uint64_t n_states;
} work_t;

/* ---- the child ---- */

typedef struct child {
    const runner_t *runner;
    const work_t *work;
    uint64_t from;    /**< states with smaller numbers have been run */
    uint64_t n_taken; /**< of the batch */
} child_t;

/** Is it one of the batch? They come ascending. */
static bool child_wants(child_t *child, uint64_t number)
{
    const work_t *work = child->work;
    while (child->n_taken < work->n_states && work->states[child->n_taken].number < number) {
        child->n_taken++;
    }
    return child->n_taken < work->n_states && work->states[child->n_taken].number == number;
}

static void child_state(void *ctx, model_t model, uint32_t k, uint64_t number)
{
    child_t *child = ctx;
    explorer_t *explorer = child->runner->watch.explorer;
    if (number >= child->from && child_wants(child, number)
        && watch_time_left(&child->runner->watch) > 0) {
        explorer->progress->position = number;
        explorer_visit(explorer, model, k);
    }
}

static _Noreturn void child_work(const runner_t *runner, const work_t *work, uint64_t from)
{
    child_t child = {.runner = runner, .work = work, .from = from};
    explorer_t *explorer = runner->watch.explorer;
    (void)child_wants(&child, from);
    while (child.n_taken < work->n_states) {
        uint32_t point = work->states[child.n_taken].point;
        persist_advance(&explorer->persist, point);
        plan_each(runner->plan, &explorer->campaign->models, &explorer->persist, child_state,
                  &child);
        (void)child_wants(&child, plan_number(runner->plan, point + 1));
    }
    target_close(&runner->watch.explorer->target);
    watch_exit(EXIT_SUCCESS);
}

static _Noreturn void child_only(explorer_t *explorer, uint32_t point)
{
    const state_path_t *only = &explorer->campaign->only;
    model_t model = (model_t)only->level[0].model;
    persist_advance(&explorer->persist, point);
    if (only->level[0].k < model_count(&explorer->campaign->models, model, &explorer->persist)) {
        explorer_visit(explorer, model, only->level[0].k);
    }
    target_close(&explorer->target);
    watch_exit(explorer->only_found ? EXIT_SUCCESS : EXIT_NO_STATE);
}

/* ---- the worker ---- */

static void worker_work(const runner_t *runner, const work_t *work)
{
    uint64_t from = work->states[0].number;
    uint64_t end = work->states[work->n_states - 1].number + 1;
    persist_advance(&runner->watch.explorer->persist, work->states[0].point);
    while (from < end) {
        runner->watch.explorer->progress->position = end;
        pid_t pid = watch_fork_child(&runner->watch);
        if (pid == 0) {
            child_work(runner, work, from);
        }
        int status;
        child_end_t how = watch_child(&runner->watch, pid, &status);
        if (how == CHILD_LATE) {
            shared_count(runner->watch.explorer->shared, TALLY_STATE, COUNT_OF(unfinished), 1);
        }
        if (how != CHILD_DIED && how != CHILD_HUNG) {
            return;
        }
        watch_report(&runner->watch, how, status);
        from = runner->watch.explorer->progress->position + 1;
    }
}

/** So many that workers end at about the same time, and that none has more states than it may. One
worker has as few as it may: each is a process, which touches all of its memory anew. */
static uint64_t batch_count(const runner_t *runner)
{
    const run_limits_t *limits = runner->watch.limits;
    uint64_t trees = limits->batch_states / order_states_per_tree(runner->watch.explorer->campaign);
    trees = trees == 0 ? 1 : trees;
    uint64_t full = (runner->n_states + trees - 1) / trees;
    uint64_t least = limits->jobs > 1 ? (uint64_t)BATCHES_PER_JOB * limits->jobs : 1;
    least = least < runner->n_states ? least : runner->n_states;
    return full > least ? full : least;
}

static work_t work_get(const runner_t *runner, uint64_t i)
{
    uint64_t from = runner->n_states * i / runner->n_batches;
    uint64_t to = runner->n_states * (i + 1) / runner->n_batches;
    return (work_t){.states = runner->states + from, .n_states = to - from};
}

static _Noreturn void worker_run(const runner_t *runner)
{
    shared_t *shared = runner->watch.explorer->shared;
    while (watch_time_left(&runner->watch) > 0 && atomic_load(&shared->machine_failures) == 0) {
        uint64_t i = atomic_fetch_add(&shared->next_batch, 1);
        if (i >= runner->n_batches) {
            break;
        }
        work_t work = work_get(runner, i);
        worker_work(runner, &work);
    }
    watch_exit(EXIT_SUCCESS);
}

static void run_workers(runner_t *runner)
{
    explorer_t *explorer = runner->watch.explorer;
    atomic_store(&explorer->shared->next_batch, 0);
    pid_t pids[JOBS_MAX];
    for (uint32_t i = 0; i < runner->watch.limits->jobs; i++) {
        pids[i] = watch_fork();
        if (pids[i] == 0) {
            runner->watch.log_fd = watch_log();
            explorer->progress = &explorer->shared->progress[i];
            worker_run(runner);
        }
    }
    for (uint32_t i = 0; i < runner->watch.limits->jobs; i++) {
        watch_worker(&runner->watch, pids[i]);
    }
}

/* ---- rounds ---- */

/** As many states as a round needs, by what the last one took. */
static uint64_t round_states(const runner_t *runner, uint64_t last, double seconds)
{
    const run_limits_t *limits = runner->watch.limits;
    uint64_t n = (uint64_t)ROUND_STATES_PER_JOB * limits->jobs;
    double wanted = seconds > 0 ? (double)last / seconds * ROUND_S : 0;
    if (limits->budget_s == 0 || wanted > ORDER_STATES_MAX) {
        return UINT64_MAX;
    }
    return wanted > (double)n ? (uint64_t)wanted : n;
}

/** @return the states that were run */
static uint64_t run_rounds(runner_t *runner, order_t *order)
{
    explorer_t *explorer = runner->watch.explorer;
    uint64_t done = 0;
    uint64_t n = round_states(runner, 0, 0);
    while (done < order->n && watch_time_left(&runner->watch) > 0
           && atomic_load(&explorer->shared->machine_failures) == 0) {
        double began = watch_seconds(&runner->watch);
        n = n < order->n - done ? n : order->n - done;
        order_by_trace(order, done, n);
        runner->states = order->states + done;
        runner->n_states = n;
        runner->n_batches = batch_count(runner);
        run_workers(runner);
        done += n;
        n = round_states(runner, n, watch_seconds(&runner->watch) - began);
    }
    return done;
}

bool runner_run(explorer_t *explorer, const state_plan_t *plan, order_t *order,
                const run_limits_t *limits, double *seconds)
{
    CHECK(limits->jobs > 0 && limits->jobs <= JOBS_MAX && limits->batch_states > 0);
    runner_t runner = {.watch = watch_create(explorer, limits), .plan = plan};
    bool all = run_rounds(&runner, order) == order->n && watch_time_left(&runner.watch) > 0
               && atomic_load(&explorer->shared->machine_failures) == 0;
    *seconds = watch_seconds(&runner.watch);
    return all;
}

/* ---- canaries ---- */

/** Is the state that a canary is made of broken without it? It is run as what it is, a state of the
recording: then it is a finding, and of the judge nothing is said. */
static bool is_broken_by_itself(const watch_t *watch)
{
    explorer_t *explorer = watch->explorer;
    uint64_t before = atomic_load(&explorer->shared->n_records);
    pid_t pid = watch_fork_child(watch);
    if (pid == 0) {
        explorer_visit(explorer, MODEL_ALL_PERSISTED, 0);
        target_close(&explorer->target);
        watch_exit(EXIT_SUCCESS);
    }
    int status;
    child_end_t how = watch_child(watch, pid, &status);
    if (how == CHILD_DIED || how == CHILD_HUNG) {
        watch_report(watch, how, status);
    }
    return atomic_load(&explorer->shared->n_records) > before;
}

/** One after the other, along the trace. told: shared memory. */
static _Noreturn void canary_worker(const watch_t *watch, uint64_t from_seq, canaries_t *told)
{
    explorer_t *explorer = watch->explorer;
    uint32_t from_point = told->n > 0 ? canary_point(explorer, 0, from_seq) : 0;
    child_end_t how = CHILD_DONE;
    for (uint32_t i = 0; i < told->n && how != CHILD_MACHINE; i++) {
        canary_t *canary = &told->list[i];
        persist_advance(&explorer->persist, canary_point(explorer, i, from_seq));
        pid_t pid = watch_fork_child(watch);
        if (pid == 0) {
            canary_try(explorer, i, from_point, canary);
            target_close(&explorer->target);
            watch_exit(EXIT_SUCCESS);
        }
        int status;
        how = watch_child(watch, pid, &status);
        bool is_dead = how == CHILD_DIED || how == CHILD_HUNG;
        if (is_dead) {
            char words[160];
            watch_last_words(watch, words, sizeof(words));
            canary_tell(canary, canary->fate == CANARY_JUDGED ? CANARY_CONDEMNED : CANARY_DEAF,
                        "recovery, which %s: %s", how == CHILD_HUNG ? "hung" : "died", words);
        }
        bool is_heard = canary->fate == CANARY_UNTRIED || canary->fate == CANARY_CONDEMNED;
        if ((is_dead || !is_heard) && how != CHILD_MACHINE && is_broken_by_itself(watch)) {
            canary_tell(canary, CANARY_UNTRIED, "its state is broken without it, see the findings");
        }
    }
    watch_exit(EXIT_SUCCESS);
}

void runner_run_canaries(explorer_t *explorer, const run_limits_t *limits, uint64_t from_seq,
                         canaries_t *out)
{
    run_limits_t patient = *limits;
    patient.budget_s = 0;
    patient.progress_fd = 0;
    watch_t watch = watch_create(explorer, &patient);
    canaries_t *told =
        mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(told != MAP_FAILED);
    canaries_list(explorer->campaign, told);
    pid_t pid = watch_fork();
    if (pid == 0) {
        watch.log_fd = watch_log();
        explorer->progress = &explorer->shared->progress[0];
        canary_worker(&watch, from_seq, told);
    }
    watch_worker(&watch, pid);
    canaries_append(out, told);
    (void)munmap(told, sizeof(*told));
}

bool runner_run_only(explorer_t *explorer, const run_limits_t *limits, double *seconds)
{
    const fs_list_t *list = &explorer->trace->list;
    watch_t watch = watch_create(explorer, limits);
    uint64_t seq = explorer->campaign->only.level[0].seq;
    uint32_t point = 0;
    while (point < list->n && point_seq(list, point) < seq) {
        point++;
    }
    if (point_seq(list, point) != seq) {
        return false;
    }
    watch.log_fd = watch_log();
    pid_t pid = watch_fork_child(&watch);
    if (pid == 0) {
        child_only(explorer, point);
    }
    int status;
    child_end_t how = watch_child(&watch, pid, &status);
    CHECK(how != CHILD_LATE);
    *seconds = watch_seconds(&watch);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_STATE) {
        return false;
    }
    if (how == CHILD_DIED || how == CHILD_HUNG) {
        watch_report(&watch, how, status);
    }
    return true;
}
