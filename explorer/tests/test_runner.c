/* Processes: a state that kills or stalls its process is one finding, and all others are still run.
A process that somebody else ended is none. The trace is the creation of a database, recorded in
memory. */
#include "runner_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void run(fixture_t *f, uint32_t jobs)
{
    run_limits_t limits = {.jobs = jobs, .batch_states = 64, .deadline_s = 1};
    double seconds;
    assert_true(runner_run(&f->explorer, &f->plan, &f->order, &limits, &seconds));
}

/** Nothing is wrong with any power loss during creation and a clean close. */
static void test_clean(void **state)
{
    fixture_t *f = *state;
    run(f, 2);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
    assert_int_equal(atomic_load(&f->shared->counts.states), f->plan.total);
    assert_true(f->plan.total > 500);
    assert_true(atomic_load(&f->shared->counts.distinct) > 50);
    assert_true(atomic_load(&f->shared->counts.recovered_twice) > 0);
    assert_true(atomic_load(&f->shared->counts.of_target[ENGINE_IN_BATCHES]) > 0);
    assert_true(atomic_load(&f->shared->counts.of_target[ENGINE_PURGED]) > 0);
    assert_true(atomic_load(&f->shared->counts.of_target[ENGINE_WORKED]) > 0);
}

/** The same one level deeper, where recoveries are crashed again. */
static void test_clean_nested(void **state)
{
    fixture_t *f = *state;
    f->campaign.depth = 2;
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
    assert_true(atomic_load(&f->shared->counts.second_crash) > 50);
}

/** An image that was found wrong is judged under every way that leads to it. */
static void test_wrong_images_are_seen_again(void **state)
{
    fixture_t *f = *state;
    f->prefix.digest ^= 1; /* no recovered state is the one that may be */
    run(f, 1);
    uint64_t states = atomic_load(&f->shared->counts.states);
    assert_true(states > atomic_load(&f->shared->counts.distinct));
    assert_true(atomic_load(&f->shared->n_records) >= states);
}

/** Ends the process in the recovery of one state: the one with this number. */
static uint64_t victim;

static void die_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    if (explorer->progress->position == victim) {
        abort();
    }
}

/** As somebody else would, or the kernel. */
static void end_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    if (explorer->progress->position == victim) {
        (void)kill(getpid(), SIGTERM);
    }
}

static void end_worker_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    if (explorer->progress->position == victim) {
        (void)kill(getppid(), SIGKILL);
        (void)pause();
    }
}

static void stall_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    while (explorer->progress->position == victim) {
        (void)pause();
    }
}

/** Of the first state of all: what follows is run as if nothing had been. */
static void check_one_death(fixture_t *f)
{
    assert_int_equal(atomic_load(&f->shared->n_records), 1);
    assert_int_equal(f->shared->records[0].finding.invariant, 30);
    assert_int_equal(f->shared->records[0].path.level[0].seq, 0);
    assert_int_equal(atomic_load(&f->shared->counts.states), f->plan.total);
}

/** Every recovery passes the engine's named points. */
static void listen(fixture_t *f, void (*point)(void *ctx, const char *name))
{
    probe_t *probe = &engine_target_judge(&f->explorer.target)->probe;
    probe->point = point;
    probe->ctx = &f->explorer;
    atomic_store(&probe->armed, true);
}

static void test_crash(void **state)
{
    fixture_t *f = *state;
    victim = 0;
    listen(f, die_at_victim);
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->counts.crashed), 1);
    check_one_death(f);
    assert_non_null(strstr(f->shared->records[0].finding.what, "signal 6"));
}

/** The first state of all, and the first one behind statement 2, end with other words: a line that
says more than the one before it, and another one. */
static void die_with_words(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    uint64_t n_dead = atomic_load(&explorer->shared->counts.crashed);
    (void)name;
    if (n_dead == 0 || (n_dead == 1 && explorer->progress->high == 2)) {
        (void)fputs(n_dead == 0 ? "it is open\nrecv: ERROR: the first one\n" : "last\n", stderr);
        abort();
    }
}

/** What is told of a death is of its own state: words, prefixes, site, place. */
static void test_each_death(void **state)
{
    fixture_t *f = *state;
    allowed_prefix_t prefixes[] = {f->prefix, f->prefix, f->prefix};
    uint32_t n = f->trace.list.n;
    prefixes[1].line = 1;
    prefixes[2].line = 2;
    f->allowed = (allowed_t){.prefixes = prefixes, .n = 3};
    f->trace.list.events[n - 2].acked_line = f->trace.list.events[n - 1].acked_line = 1;
    f->trace.list.events[n - 1].issued_line = 2;
    uint32_t write = n - 1;
    while (f->trace.list.events[write].kind != FS_WRITE) {
        write--;
    }
    f->trace.list.events[write].site = 4;
    listen(f, die_with_words);
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->counts.crashed), 2);
    assert_int_equal(atomic_load(&f->shared->n_records), 2);
    const record_t *first = &f->shared->records[0];
    const record_t *last = &f->shared->records[1];
    assert_string_equal(first->finding.what, "crashed: signal 6: recv: ERROR: the first one");
    assert_string_equal(last->finding.what, "crashed: signal 6: last");
    assert_int_equal(first->path.level[0].seq, 0);
    assert_int_equal(last->path.level[0].seq, f->trace.list.events[n - 1].seq);
    assert_int_equal(first->site, SITE_OTHER);
    assert_int_equal(last->site, 4);
    assert_int_equal(first->low, 0);
    assert_int_equal(first->high, 0);
    assert_int_equal(last->low, 1);
    assert_int_equal(last->high, 2);
    assert_true(first->key != last->key && last->key != 0);
}

/** A recovery that exits, with whatever code, has crashed; the code is told. */
static void exit_at_victim(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    if (explorer->progress->position == victim) {
        _exit(3);
    }
}

static void test_exit(void **state)
{
    fixture_t *f = *state;
    victim = 0;
    listen(f, exit_at_victim);
    run(f, 1);
    check_one_death(f);
    assert_non_null(strstr(f->shared->records[0].finding.what, "exit 3"));
}

static void test_hang(void **state)
{
    fixture_t *f = *state;
    victim = 0;
    listen(f, stall_at_victim);
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->counts.hung), 1);
    check_one_death(f);
    assert_non_null(strstr(f->shared->records[0].finding.what, "hung"));
}

/** Its watch is stopped for longer than the deadline. */
static void freeze_at_victim(void *ctx, const char *name)
{
    static const struct timespec LONG = {.tv_sec = 2, .tv_nsec = 400000000};
    static const struct timespec SHORT = {.tv_nsec = 300000000};
    const explorer_t *explorer = ctx;
    (void)name;
    if (explorer->progress->position == victim) {
        victim = UINT64_MAX;           /* once */
        (void)nanosleep(&SHORT, NULL); /* it has seen that this state goes on */
        (void)kill(getppid(), SIGSTOP);
        (void)nanosleep(&LONG, NULL);
        (void)kill(getppid(), SIGCONT);
        (void)nanosleep(&SHORT, NULL);
    }
}

/** Time that the watch stood still is not the state's. */
static void test_frozen(void **state)
{
    fixture_t *f = *state;
    victim = 0;
    listen(f, freeze_at_victim);
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->counts.hung), 0);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
}

static void stall_twice(void *ctx, const char *name)
{
    const explorer_t *explorer = ctx;
    (void)name;
    while (atomic_load(&explorer->shared->counts.hung) < 2) {
        (void)pause();
    }
}

/** Two states hang. told: how long each was waited for. */
static void check_hangs(fixture_t *f, uint32_t deadline_s, const char *const told[2])
{
    run_limits_t limits = {.jobs = 1, .batch_states = 64, .deadline_s = deadline_s};
    listen(f, stall_twice);
    double seconds;
    assert_true(runner_run(&f->explorer, &f->plan, &f->order, &limits, &seconds));
    assert_int_equal(atomic_load(&f->shared->n_records), 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_non_null(strstr(f->shared->records[i].finding.what, told[i]));
    }
}

/** Behind one that has hung for the whole deadline, others are not waited for as long. */
static void test_hangs(void **state)
{
    check_hangs(*state, 4, (const char *const[]){"within 4 s", "within 1 s"});
}

/** Others are waited for as long where the target ends a recovery that takes too long by itself. */
static void test_hangs_of_a_target_with_a_deadline(void **state)
{
    fixture_t *f = *state;
    f->campaign.target.has_deadline = true;
    check_hangs(f, 2, (const char *const[]){"within 2 s", "within 2 s"});
}

/** The first few states, each once. */
static void be_slow(void *ctx, const char *name)
{
    static const struct timespec A_WHILE = {.tv_nsec = 400000000};
    const explorer_t *explorer = ctx;
    (void)name;
    if (atomic_load(&explorer->shared->counts.distinct) <= 4
        && explorer->progress->position != victim) {
        victim = explorer->progress->position;
        (void)nanosleep(&A_WHILE, NULL);
    }
}

/** States that take a while each are no hang, though all of a process take longer than one may. */
static void test_slow_states(void **state)
{
    fixture_t *f = *state;
    victim = UINT64_MAX;
    listen(f, be_slow);
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->counts.hung), 0);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
}

int __real_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal);

/** A child that is to be killed is told so, and ends by itself. */
static bool ends_by_itself;

int __wrap_kill(pid_t pid, int signal)
{
    return __real_kill(pid, ends_by_itself && signal == SIGKILL ? SIGUSR1 : signal);
}

static void exit_machine(int signal)
{
    (void)signal;
    _exit(EXIT_MACHINE);
}

static void stall_until_told(void *ctx, const char *name)
{
    (void)signal(SIGUSR1, exit_machine);
    stall_at_victim(ctx, name);
}

/** The machine fails between the last look at a child and the kill: that is no hang. */
static void test_machine_fails_before_the_kill(void **state)
{
    fixture_t *f = *state;
    run_limits_t limits = {.jobs = 1, .batch_states = 64, .deadline_s = 1};
    victim = 0;
    ends_by_itself = true;
    listen(f, stall_until_told);
    double seconds;
    assert_false(runner_run(&f->explorer, &f->plan, &f->order, &limits, &seconds));
    ends_by_itself = false;
    assert_int_equal(atomic_load(&f->shared->machine_failures), 1);
    assert_int_equal(atomic_load(&f->shared->counts.hung), 0);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
}

/** No finding, and the campaign has no verdict. */
static void check_ended(fixture_t *f, void (*point)(void *ctx, const char *name))
{
    run_limits_t limits = {.jobs = 1, .batch_states = 64, .deadline_s = 60};
    victim = 0;
    listen(f, point);
    double seconds;
    (void)runner_run(&f->explorer, &f->plan, &f->order, &limits, &seconds);
    assert_int_equal(atomic_load(&f->shared->machine_failures), 1);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
}

static void test_ended_from_outside(void **state)
{
    check_ended(*state, end_at_victim);
}

static void test_worker_ended_from_outside(void **state)
{
    check_ended(*state, end_worker_at_victim);
}

/** A crash before the acknowledgement of an export, and one behind it that leaves the same image,
where commits may be lost: the second one is looked at by itself, for the .cfg must be there. */
static void test_acknowledged_export(void **state)
{
    fixture_t *f = *state;
    fs_event_t *last = fs_list_add(&f->trace.list, FS_SYNC);
    *last = f->trace.list.events[f->trace.list.n - 2];
    last->kind = FS_SYNC;
    last->seq++;
    allowed_prefix_t prefixes[] = {f->prefix, f->prefix};
    prefixes[1].line = 1;
    memcpy(prefixes[1].exported, "t", sizeof("t"));
    f->allowed = (allowed_t){.prefixes = prefixes, .n = 2};
    f->trace.list.events[f->trace.list.n - 2].issued_line = 1;
    last->issued_line = last->acked_line = 1;
    f->campaign.relaxed = true;
    f->campaign.models.enabled = 1U << MODEL_ALL_PERSISTED;
    fixture_plan(f);
    run(f, 1);
    assert_int_equal(atomic_load(&f->shared->n_records), 1);
    assert_int_equal(f->shared->records[0].finding.invariant, 28);
    assert_int_equal(f->shared->records[0].path.level[0].seq, last->seq);
}

/** A recovery that has not ended when the time is up: nobody knows whether it would, and so it is
told. */
static void test_cut_short(void **state)
{
    fixture_t *f = *state;
    run_limits_t limits = {.jobs = 1, .batch_states = 64, .deadline_s = 60, .budget_s = 0.2};
    victim = 0;
    listen(f, stall_at_victim);
    double seconds;
    assert_false(runner_run(&f->explorer, &f->plan, &f->order, &limits, &seconds));
    assert_int_equal(atomic_load(&f->shared->counts.unfinished), 1);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
    assert_true(seconds < 10);
}

/** With time enough a budget runs the same states as without one. */
static void test_budget_runs_all(void **state)
{
    fixture_t *f = *state;
    run_limits_t limits = {.jobs = 2, .batch_states = 64, .deadline_s = 10, .budget_s = 1000};
    double seconds;
    assert_true(runner_run(&f->explorer, &f->plan, &f->order, &limits, &seconds));
    assert_int_equal(atomic_load(&f->shared->counts.states), f->plan.total);
    assert_int_equal(atomic_load(&f->shared->n_records), 0);
    assert_int_equal(atomic_load(&f->shared->counts.unfinished), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clean, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clean_nested, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_images_are_seen_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_death, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hang, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hangs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hangs_of_a_target_with_a_deadline, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_states, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended_from_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_machine_fails_before_the_kill, setup, teardown),
        cmocka_unit_test_setup_teardown(test_frozen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_worker_ended_from_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_acknowledged_export, setup, teardown),
        cmocka_unit_test_setup_teardown(test_budget_runs_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_short, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
