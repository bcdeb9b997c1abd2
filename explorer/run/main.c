/* The program tornpage-explore.

Place: top of the explorer.

Exit codes: 0 all states right, 1 violations, 2 usage or unusable input, 3 no state was run, 10 the
machine failed: no verdict, 11 a canary was not condemned: no verdict. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explorer/judge/trace_canary.h"
#include "explorer/run/arguments.h"
#include "explorer/run/base.h"
#include "explorer/run/slice.h"

#define VISITED_MAX ((uint64_t)1 << 23)
#define VISITED_MIN ((uint64_t)1 << 12)

/** Found by the address sanitizer, if there is one: each state frees a whole buffer pool, and a
quarantine that holds hundreds of them costs more page faults than the recovery. Sixteen megabytes
outlive several states. Who allocated is told by eight calls, not thirty: each allocation walks
them. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=16:malloc_context_size=8";
}

/** Of a command's files nothing is known but what was said. */
static const site_map_t *site_map(const arguments_t *args)
{
    return args->command.n_args > 0 ? &args->sites : NULL;
}

static uint64_t visited_slots(const order_t *order, const campaign_t *campaign)
{
    uint64_t states = order->n;
    for (uint32_t i = 1; i < campaign->depth; i++) {
        states = states < VISITED_MAX ? states * (1U + campaign->nested) : states;
    }
    uint64_t slots = VISITED_MIN;
    while (slots < 2 * states && slots < VISITED_MAX) {
        slots *= 2;
    }
    return slots;
}

static int exit_code(uint32_t printed, const counts_t *counts)
{
    return printed > 0                         ? EXIT_VIOLATION
           : atomic_load(&counts->states) == 0 ? EXIT_NOTHING
                                               : EXIT_CLEAN;
}

/** code, unless the judge is deaf. */
static int heard(const summary_t *summary, int code)
{
    const canary_t *canary = canaries_deaf(&summary->canaries);
    if (canary == NULL) {
        return code;
    }
    (void)fprintf(stderr,
                  "tornpage-explore: the judge is deaf: %s (I%" PRIu32 ") is condemned by %s\n",
                  canary->name, canary->invariant, canary->by);
    return EXIT_DEAF;
}

/** Prints what was found. */
static int tell(const arguments_t *args, shared_t *shared, summary_t *summary)
{
    uint64_t n = shared_records(shared, &summary->records_lost);
    n = report_reduce(shared->records, n);
    int code = exit_code(report_print(&shared->counts, shared->records, n, summary, args->json),
                         &shared->counts);
    return heard(summary, code);
}

/** Writes what a slice has found. */
static int hand_over(const arguments_t *args, shared_t *shared, const summary_t *summary)
{
    if (atomic_load(&shared->n_tallies) > TALLIES_MAX) {
        return arguments_usage("--slice: too large to be told; make more of them", "");
    }
    if (!slice_write(args->slice_file, shared, summary, args->order.slice, args->order.n_slices)) {
        (void)fprintf(stderr, "tornpage-explore: --slice-file: %s cannot be written\n",
                      args->slice_file);
        return EXIT_MACHINE;
    }
    return heard(summary, EXIT_CLEAN);
}

static const char *fs_name(const arguments_t *args)
{
    const fs_profile_t *fs = args->campaign.disk.fs;
    return (fs != NULL ? fs : fs_profile_default())->name;
}

/** Prints what all slices have found. */
static int merge(const arguments_t *args)
{
    merged_t merged;
    err_sink_t err = {.msg = ""};
    summary_t summary = {
        .target = &args->campaign.target, .fs = fs_name(args), .sites = site_map(args)};
    int code;
    if (slice_merge(args->merge, &merged, &summary, &err) == DB_SUCCESS) {
        code = exit_code(
            report_print(&merged.counts, merged.records, merged.n_records, &summary, args->json),
            &merged.counts);
    } else {
        code = arguments_usage(err.msg, "");
    }
    merged_free(&merged);
    return code;
}

/** What is known of the recording besides its stream. */
typedef struct inputs {
    allowed_t allowed;
    kinds_t kinds;
    chosen_t chosen;
    write_sites_t write_sites;
    canaries_t of_rules; /**< n = 0: nobody asked for them, or no rules are held against it */
} inputs_t;

/** Runs the campaign on what was loaded. */
static int explore_all(const arguments_t *args, const trace_t *trace, image_t *image,
                       const inputs_t *inputs)
{
    order_t order = {.n = 0};
    bool one = args->campaign.only.depth > 0;
    bool sliced = args->order.n_slices > 0;
    order_limits_t limits = args->order;
    limits.kinds = &inputs->kinds;
    limits.hurried = args->run.budget_s > 0;
    limits.heads = args->external.verifier != NULL;
    state_plan_t plan = {.total = 0};
    if (!one) {
        plan_create(&plan, &args->campaign, trace, image, &args->range);
        order_create(&order, &plan, &args->campaign, trace, image, &limits);
    }
    shared_t *shared = shared_create(visited_slots(&order, &args->campaign), sliced);
    if (shared == NULL) {
        order_free(&order);
        plan_free(&plan);
        return arguments_usage("no shared memory", "");
    }
    summary_t summary = {
        .depth = one ? args->campaign.only.depth : args->campaign.depth,
        .jobs = args->run.jobs,
        .crash_points = one ? 1 : plan.n_crash_points,
        .events = trace->list.n,
        .target = &args->campaign.target,
        .fs = fs_name(args),
        .sites = site_map(args),
    };
    memcpy(summary.possible, plan.of_model, sizeof(summary.possible));
    explorer_t explorer;
    explorer_init(&explorer, &args->campaign, trace, image, &inputs->allowed, shared);
    int code = EXIT_CLEAN;
    if (!one) {
        summary.complete = runner_run(&explorer, &plan, &order, &args->run, &summary.seconds);
    } else if (!runner_run_only(&explorer, &args->run, &summary.seconds)) {
        code = arguments_usage("--only: there is no such state", "");
    }
    if (args->canaries && !one && atomic_load(&shared->machine_failures) == 0) {
        summary.canaries = inputs->of_rules;
        runner_run_canaries(&explorer, &args->run, args->range.from_seq, &summary.canaries);
    }
    if (atomic_load(&shared->machine_failures) > 0) {
        code = EXIT_MACHINE;
    }
    if (code == EXIT_CLEAN) {
        code = sliced ? hand_over(args, shared, &summary) : tell(args, shared, &summary);
    }
    explorer_free(&explorer);
    shared_destroy(shared);
    order_free(&order);
    plan_free(&plan);
    return code;
}

/** The folder for the images of another target. */
static bool scratch_create(arguments_t *args, char *base, size_t room)
{
    int len = snprintf(base, room, "%s/tornpage-explore-XXXXXX", args->scratch);
    if (len < 0 || (size_t)len >= room || mkdtemp(base) == NULL || chmod(base, 0711) != 0) {
        return false;
    }
    args->external.base = base;
    args->external.ignored = &args->ignored;
    args->external.sites = site_map(args);
    return true;
}

/** DB_ERROR and a message: nothing is left to free. */
static dberr_t inputs_load(const arguments_t *args, inputs_t *inputs, err_sink_t *err)
{
    if (allowed_load(args->allowed, &inputs->allowed, err) != DB_SUCCESS) {
        return DB_ERROR;
    }
    if (kinds_load(args->kinds, &inputs->kinds, err) != DB_SUCCESS) {
        allowed_free(&inputs->allowed);
        return DB_ERROR;
    }
    if (args->chosen != NULL && chosen_load(args->chosen, &inputs->chosen, err) != DB_SUCCESS) {
        chosen_free(&inputs->chosen);
        kinds_free(&inputs->kinds);
        allowed_free(&inputs->allowed);
        return DB_ERROR;
    }
    if (write_sites_load(args->write_sites, &inputs->write_sites, err) != DB_SUCCESS) {
        chosen_free(&inputs->chosen);
        kinds_free(&inputs->kinds);
        allowed_free(&inputs->allowed);
        return DB_ERROR;
    }
    return DB_SUCCESS;
}

/** The recording: its stream, and what the rules make of damaged copies of it. */
static dberr_t recording_load(const arguments_t *args, image_t *image, trace_t *trace,
                              inputs_t *inputs, err_sink_t *err)
{
    const trace_config_t config = {.rules = {.doublewrite = args->engine.options.doublewrite,
                                             .atomic_unit = args->engine.options.atomic_write_unit,
                                             .keep_history = true},
                                   .ignored = &args->ignored,
                                   .sites = site_map(args),
                                   .write_sites = &inputs->write_sites};
    bool ruled = args->external.verifier == NULL;
    if (args->canaries && ruled && args->campaign.only.depth == 0
        && trace_canaries(args->trace, image, &config, &inputs->of_rules, err) != DB_SUCCESS) {
        return DB_ERROR;
    }
    return trace_load(args->trace, image, &config, trace, err);
}

static void inputs_free(inputs_t *inputs)
{
    write_sites_free(&inputs->write_sites);
    chosen_free(&inputs->chosen);
    kinds_free(&inputs->kinds);
    allowed_free(&inputs->allowed);
}

int main(int argc, char **argv)
{
    arguments_t args;
    inputs_t inputs = {.of_rules = {.n = 0}};
    char base[PATH_LEN_MAX - 40]; /* and the name of a worker's folder in it */
    err_sink_t err = {.msg = ""};
    int code = arguments_parse(argc, argv, &args);
    if (code != EXIT_CLEAN) {
        return code;
    }
    if (args.help) {
        (void)fputs(ARGUMENTS_HELP, stdout);
        return EXIT_CLEAN;
    }
    if (args.list_models) {
        report_models(args.json);
        return EXIT_CLEAN;
    }
    if (args.list_fs) {
        report_file_systems(args.json);
        return EXIT_CLEAN;
    }
    if (args.merge != NULL) {
        return merge(&args);
    }
    /* The engine's buffer pool comes and goes with each state: its memory stays with the process.
    */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    if (inputs_load(&args, &inputs, &err) != DB_SUCCESS) {
        return arguments_usage(err.msg, "");
    }
    args.campaign.models.chosen = &inputs.chosen;
    if (args.external.verifier != NULL && !scratch_create(&args, base, sizeof(base))) {
        inputs_free(&inputs);
        return arguments_usage("no folder for images can be made in --scratch", args.scratch);
    }
    image_t *image = image_create();
    trace_t trace;
    if (args.base != NULL && !base_load(image, args.base)) {
        code = arguments_usage("--base: cannot be read", args.base);
    } else if (recording_load(&args, image, &trace, &inputs, &err) == DB_SUCCESS) {
        image_keep(image, &trace.list);
        code = explore_all(&args, &trace, image, &inputs);
        trace_free(&trace);
    } else {
        code = arguments_usage(err.msg, "");
    }
    if (args.external.verifier != NULL) {
        external_remove(args.external.base);
    }
    image_destroy(image);
    inputs_free(&inputs);
    return code;
}
