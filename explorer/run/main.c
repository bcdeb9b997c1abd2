/* The program tornpage-explore: command line.

Place: top of the explorer.

Exit codes: 0 all states right, 1 violations, 2 usage or unusable input, 3 no state was run, 10 the machine
failed: no verdict. */
#include <dirent.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explorer/run/report.h"
#include "explorer/run/runner.h"
#include "explorer/targets/sqlite/verify_sqlite.h"

enum { EXIT_CLEAN, EXIT_VIOLATION, EXIT_USAGE, EXIT_NOTHING };

#define VISITED_MAX ((uint64_t)1 << 23)
#define VISITED_MIN ((uint64_t)1 << 12)

static const char HELP[] =
    "usage: tornpage-explore --trace FILE --allowed FILE [options]\n"
    "Every power loss that one recorded run could have suffered, recovered and judged.\n"
    "\n"
    "  --trace FILE       recorded by libtornpage_preload.so with TORNPAGE_PAYLOAD=full\n"
    "  --allowed FILE     the oracle's commit prefixes, one JSON object per line\n"
    "  --target NAME      engine (default), recovered in memory; sqlite, in files below --scratch\n"
    "  --scratch DIR      default /dev/shm\n"
    "  --set NAME=VALUE   option of the recovering engine\n"
    "  --model NAME       of --list-models; repeatable, default all (kill: with --depth)\n"
    "  --list-models      of what was not fsynced, what each model keeps\n"
    "  --sector BYTES     512 (default) or 4096\n"
    "  --seed N           of all choices; default 1\n"
    "  --states N         about as many, spread over the trace; default all\n"
    "  --budget SECONDS   stop after this time\n"
    "  --depth N          1 (default) to 3: crash the recovery again\n"
    "  --nested N         states inside each recovery; default 8\n"
    "  --jobs N           worker processes; default 1\n"
    "  --from-seq N, --to-seq N   crash points after these events only\n"
    "  --ignore-fsync PATTERN     fsyncs of matching paths do nothing: a lying disk\n"
    "  --only STATE_ID    one state; --dump-state DIR writes its files, --way FILE appends, per "
    "level,\n"
    "                     the last operations before the crash and what became of each\n"
    "  --batch N          states per process; --deadline SECONDS until a state hangs (default 20)\n"
    "  --json             JSON lines: violations, last a summary\n"
    "exit codes: 0 right, 1 violations, 2 usage, 3 no state was run, 10 the machine failed: no "
    "verdict\n";

typedef struct arguments {
    const char *trace;
    const char *allowed;
    engine_options_t options;
    campaign_t campaign;
    plan_limits_t plan;
    run_limits_t run;
    const char *scratch;
    external_config_t external; /**< verifier NULL: the engine */
    bool json;
    bool help;
    bool list_models;
} arguments_t;

/** Found by the address sanitizer, if there is one: each state frees a whole buffer pool, and a
quarantine that holds hundreds of them costs more page faults than the recovery. Sixteen megabytes
outlive several states. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=16";
}

static int usage(const char *what, const char *value)
{
    (void)fprintf(stderr, "tornpage-explore: %s%s%s\n", what, value[0] != '\0' ? ": " : "", value);
    return EXIT_USAGE;
}

static bool parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9') {
        return false;
    }
    *out = strtoull(text, &end, 10);
    return *end == '\0' && *out >= min && *out <= max;
}

static bool parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
    uint64_t n;
    if (!parse_u64(text, min, max, &n)) {
        return false;
    }
    *out = (uint32_t)n;
    return true;
}

static bool parse_budget(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && (*end == '\0' || strcmp(end, "s") == 0) && *out > 0 && *out < 1e9;
}

static bool parse_set(const char *text, engine_options_t *options, err_sink_t *err)
{
    char name[64];
    const char *equals = strchr(text, '=');
    if (equals == NULL || (size_t)(equals - text) >= sizeof(name)) {
        (void)err_set(err, DB_ERROR, "--set %.100s: NAME=VALUE expected", text);
        return false;
    }
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    return options_parse(options, name, equals + 1, err) == DB_SUCCESS;
}

static bool add_ignored(ignore_list_t *ignore, const char *pattern)
{
    if (ignore->n == IGNORE_MAX) {
        return false;
    }
    ignore->patterns[ignore->n++] = pattern;
    return true;
}

static bool add_model(uint32_t *enabled, const char *text)
{
    model_t model;
    if (!model_parse(text, strlen(text), &model)) {
        return false;
    }
    *enabled |= 1U << model;
    return true;
}

enum {
    OPT_TRACE = 256,
    OPT_ALLOWED,
    OPT_SET,
    OPT_MODEL,
    OPT_LIST_MODELS,
    OPT_SECTOR,
    OPT_SEED,
    OPT_STATES,
    OPT_BUDGET,
    OPT_DEPTH,
    OPT_NESTED,
    OPT_JOBS,
    OPT_FROM,
    OPT_TO,
    OPT_IGNORE,
    OPT_ONLY,
    OPT_DUMP,
    OPT_WAY,
    OPT_BATCH,
    OPT_DEADLINE,
    OPT_TARGET,
    OPT_SCRATCH,
    OPT_JSON,
    OPT_HELP
};

static const struct option LONG_OPTIONS[] = {
    {"trace", required_argument, NULL, OPT_TRACE},
    {"allowed", required_argument, NULL, OPT_ALLOWED},
    {"set", required_argument, NULL, OPT_SET},
    {"model", required_argument, NULL, OPT_MODEL},
    {"list-models", no_argument, NULL, OPT_LIST_MODELS},
    {"sector", required_argument, NULL, OPT_SECTOR},
    {"seed", required_argument, NULL, OPT_SEED},
    {"states", required_argument, NULL, OPT_STATES},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"nested", required_argument, NULL, OPT_NESTED},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"from-seq", required_argument, NULL, OPT_FROM},
    {"to-seq", required_argument, NULL, OPT_TO},
    {"ignore-fsync", required_argument, NULL, OPT_IGNORE},
    {"only", required_argument, NULL, OPT_ONLY},
    {"dump-state", required_argument, NULL, OPT_DUMP},
    {"way", required_argument, NULL, OPT_WAY},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"deadline", required_argument, NULL, OPT_DEADLINE},
    {"target", required_argument, NULL, OPT_TARGET},
    {"scratch", required_argument, NULL, OPT_SCRATCH},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool parse_sector(const char *text, uint32_t *out)
{
    return parse_u32(text, 512, 4096, out) && (*out == 512 || *out == 4096);
}

static bool parse_target(const char *text, external_config_t *external)
{
    external->verifier = strcmp(text, verify_sqlite.name) == 0 ? &verify_sqlite : NULL;
    return external->verifier != NULL || strcmp(text, "engine") == 0;
}

/** False: the value is not one. */
static bool parse_option(arguments_t *args, int option, const char *value, err_sink_t *err)
{
    switch (option) {
    case OPT_TRACE:
        args->trace = value;
        return true;
    case OPT_ALLOWED:
        args->allowed = value;
        return true;
    case OPT_SET:
        return parse_set(value, &args->options, err);
    case OPT_MODEL:
        return add_model(&args->campaign.models.enabled, value);
    case OPT_LIST_MODELS:
        return args->list_models = true;
    case OPT_SECTOR:
        return parse_sector(value, &args->campaign.models.sector);
    case OPT_SEED:
        return parse_u64(value, 0, UINT64_MAX, &args->campaign.models.seed);
    case OPT_STATES:
        return parse_u64(value, 1, UINT64_MAX >> 8, &args->plan.states);
    case OPT_BUDGET:
        return parse_budget(value, &args->run.budget_s);
    case OPT_DEPTH:
        return parse_u32(value, 1, DEPTH_MAX, &args->campaign.depth);
    case OPT_NESTED:
        return parse_u32(value, 1, 4096, &args->campaign.nested);
    case OPT_JOBS:
        return parse_u32(value, 1, JOBS_MAX, &args->run.jobs);
    case OPT_FROM:
        return parse_u64(value, 0, UINT64_MAX, &args->plan.from_seq);
    case OPT_TO:
        return parse_u64(value, 0, UINT64_MAX, &args->plan.to_seq);
    case OPT_IGNORE:
        return add_ignored(&args->campaign.ignore, value);
    case OPT_ONLY:
        return state_path_parse(value, &args->campaign.only);
    case OPT_DUMP:
        args->campaign.dump_dir = value;
        return true;
    case OPT_WAY:
        args->campaign.way_file = value;
        return true;
    case OPT_BATCH:
        return parse_u32(value, 1, 1U << 20, &args->plan.batch_states);
    case OPT_DEADLINE:
        return parse_u32(value, 1, 3600, &args->run.deadline_s);
    case OPT_TARGET:
        return parse_target(value, &args->external);
    case OPT_SCRATCH:
        args->scratch = value;
        return true;
    case OPT_JSON:
        return args->json = true;
    default:
        return args->help = true;
    }
}

static int parse_arguments(int argc, char **argv, arguments_t *args)
{
    *args = (arguments_t){
        .campaign = {.models = {.sector = 512, .seed = 1}, .depth = 1, .nested = 8},
        .plan = {.to_seq = UINT64_MAX, .batch_states = 256},
        .run = {.jobs = 1, .deadline_s = 20},
        .scratch = "/dev/shm",
    };
    options_set_defaults(&args->options);
    for (;;) {
        int index = 0;
        err_sink_t err = {.msg = ""};
        int option = getopt_long(argc, argv, "", LONG_OPTIONS, &index);
        if (option == -1) {
            break;
        }
        if (option == '?') {
            return EXIT_USAGE;
        }
        if (!parse_option(args, option, optarg, &err)) {
            return err.msg[0] != '\0' ? usage(err.msg, "")
                                      : usage(LONG_OPTIONS[index].name, "bad value");
        }
    }
    if (args->help || args->list_models) {
        return EXIT_CLEAN;
    }
    if (optind < argc) {
        return usage("unknown argument", argv[optind]);
    }
    if (args->trace == NULL || args->allowed == NULL) {
        return usage("--trace and --allowed are needed; see --help", "");
    }
    if ((args->campaign.dump_dir != NULL || args->campaign.way_file != NULL)
        && args->campaign.only.depth == 0) {
        return usage("--dump-state and --way need --only", "");
    }
    if (args->external.verifier != NULL
        && (args->campaign.depth > 1 || args->campaign.only.depth > 1)) {
        return usage("--depth above 1: what another target's recovery writes is not seen", "");
    }
    if (args->campaign.models.enabled == 0) {
        /* Alone, a kill is what all-persisted and log-cut are. */
        args->campaign.models.enabled =
            args->campaign.depth > 1 ? MODELS_ALL : MODELS_ALL & ~(1U << MODEL_KILL);
    }
    if (args->campaign.only.depth > 0) {
        args->campaign.models.enabled = MODELS_ALL;
    }
    args->campaign.relaxed = args->options.flush_log_at_trx_commit != 1;
    return EXIT_CLEAN;
}

static uint64_t visited_slots(const state_plan_t *plan, const campaign_t *campaign)
{
    uint64_t states = plan->wanted;
    uint64_t slots = VISITED_MIN;
    for (uint32_t i = 1; i < campaign->depth; i++) {
        states = states < VISITED_MAX ? states * (1U + campaign->nested) : states;
    }
    while (slots < 2 * states && slots < VISITED_MAX) {
        slots *= 2;
    }
    return slots;
}

/** Runs the campaign on what was loaded. */
static int explore_all(const arguments_t *args, const trace_t *trace, image_t *image,
                       const allowed_t *allowed)
{
    state_plan_t plan;
    explorer_t explorer;
    bool one = args->campaign.only.depth > 0;
    plan_create(&plan, &args->campaign, trace, image, &args->plan);
    shared_t *shared = shared_create(visited_slots(&plan, &args->campaign));
    if (shared == NULL) {
        plan_free(&plan);
        return usage("no shared memory", "");
    }
    summary_t summary = {
        .depth = one ? args->campaign.only.depth : args->campaign.depth,
        .jobs = args->run.jobs,
        .crash_points = one ? 1 : plan.n_crash_points,
        .batches = plan.n_batches,
        .events = trace->list.n,
        .engine = args->campaign.external == NULL,
    };
    int code = EXIT_CLEAN;
    explorer_init(&explorer, &args->campaign, trace, image, allowed, &args->options, shared);
    if (!one) {
        summary.batches_run = runner_run(&explorer, &plan, &args->run, &summary.seconds);
    } else if (!runner_run_only(&explorer, &args->run, &summary.seconds)) {
        code = usage("--only: there is no such state", "");
    }
    if (atomic_load(&shared->machine_failures) > 0) {
        code = EXIT_MACHINE;
    }
    if (code == EXIT_CLEAN) {
        uint32_t printed = report_print(shared, &summary, args->json);
        code = printed > 0                         ? EXIT_VIOLATION
               : atomic_load(&shared->states) == 0 ? EXIT_NOTHING
                                                   : EXIT_CLEAN;
    }
    explorer_free(&explorer);
    shared_destroy(shared);
    plan_free(&plan);
    return code;
}

/** The run itself is judged by tornpage-judge; here it tells what its states have in common. */
static void judged_elsewhere(void *ctx, uint32_t invariant, const char *rule, const char *what)
{
    (void)ctx;
    (void)invariant;
    (void)rule;
    (void)what;
}

/** The folder for the images of another target. */
static bool scratch_create(arguments_t *args, char *base, size_t room)
{
    int len = snprintf(base, room, "%s/tornpage-explore-XXXXXX", args->scratch);
    if (len < 0 || (size_t)len >= room || mkdtemp(base) == NULL) {
        return false;
    }
    args->external.base = base;
    args->campaign.external = &args->external;
    return true;
}

/** Each process had a directory of its own in it. */
static void scratch_remove(const arguments_t *args)
{
    DIR *dir = opendir(args->external.base);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[PATH_LEN_MAX + 1];
        external_t external;
        err_sink_t ignored = {.msg = ""};
        int len = snprintf(path, sizeof(path), "%s/%s", args->external.base, entry->d_name);
        if (entry->d_name[0] != '.' && len > 0 && (size_t)len < sizeof(path)
            && external_open(&external, args->external.verifier, path, &ignored) == DB_SUCCESS) {
            external_close(&external);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    (void)rmdir(args->external.base);
}

int main(int argc, char **argv)
{
    arguments_t args;
    trace_t trace;
    allowed_t allowed;
    char base[PATH_LEN_MAX / 2];
    err_sink_t err = {.msg = ""};
    int code = parse_arguments(argc, argv, &args);
    if (code != EXIT_CLEAN) {
        return code;
    }
    if (args.help) {
        (void)fputs(HELP, stdout);
        return EXIT_CLEAN;
    }
    if (args.list_models) {
        report_models(args.json);
        return EXIT_CLEAN;
    }
    /* The engine's buffer pool comes and goes with each state: its memory stays with the process.
    */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    if (allowed_load(args.allowed, &allowed, &err) != DB_SUCCESS) {
        return usage(err.msg, "");
    }
    if (args.external.verifier != NULL && !scratch_create(&args, base, sizeof(base))) {
        allowed_free(&allowed);
        return usage("no folder for images can be made in --scratch", args.scratch);
    }
    image_t *image = image_create();
    const trace_config_t config = {.rules = {.doublewrite = args.options.doublewrite,
                                             .keep_history = true,
                                             .found = judged_elsewhere}};
    if (trace_load(args.trace, image, &config, &trace, &err) == DB_SUCCESS) {
        code = explore_all(&args, &trace, image, &allowed);
        trace_free(&trace);
    } else {
        code = usage(err.msg, "");
    }
    if (args.external.verifier != NULL) {
        scratch_remove(&args);
    }
    image_destroy(image);
    allowed_free(&allowed);
    return code;
}
