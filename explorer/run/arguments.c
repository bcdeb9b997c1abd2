/* The command line. Place: below main.c, above runner.c. */
#include "explorer/run/arguments.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explorer/run/slice.h"

#define ENGINE_NAME "engine"
#define ENGINE_IGNORED "engine.lock" /**< only the lock on it means something */
#define WATCH_EXTRA_S 10U

const char ARGUMENTS_HELP[] =
    "usage: tornpage-explore --trace FILE --allowed FILE [options]\n"
    "Every power loss that one recorded run could have suffered, recovered and judged.\n"
    "\n"
    "  --trace FILE       recorded by libtornpage_preload.so with TORNPAGE_PAYLOAD=full\n"
    "  --allowed FILE     the oracle's commit prefixes, one JSON object per line\n"
    "  --kinds FILE       a word per line of the script, the kind of its statement; rare kinds\n"
    "                     get more than their proportion of --states\n"
    "  --target NAME      engine (default), recovered in memory, or command: what --recover says, "
    "in\n"
    "                     files below --scratch\n"
    "  --scratch DIR      default /dev/shm\n"
    "  --recover ARG      program and arguments, one each time: gets a folder per line, answers "
    "with a\n"
    "                     JSON line; --long-lived: one process for many states, not one for each;\n"
    "                     --scanned: the line has the scanner's object, not a state\n"
    "  --preload FILE     records what another target's recovery writes: for --depth above 1\n"
    "  --recorder-fs FILE a program that records it instead: tornpage-fs\n"
    "  --fs NAME          of --list-fs, default posix: what the file system promises\n"
    "  --list-fs          the file systems, and what each promises\n"
    "  --base DIR         the files that the recorded run found\n"
    "  --recover-at DIR   recover images under this path, which the run has written into its "
    "files\n"
    "  --ignore PATTERN   files that are no part of an image; repeatable\n"
    "  --site SITE=PATTERN   what the writes of these files are for; repeatable; PATTERN@N: those "
    "that\n"
    "                     begin in their first N bytes\n"
    "  --write-sites FILE    the same of single writes, ahead of it: lines SEQ SITE, ascending;\n"
    "                     each SITE in it has a --site, if only with an empty pattern\n"
    "  --promise NAME     durable (default); consistent: any older prefix; start: any state\n"
    "  --option NAME=VALUE  of the recovering engine\n"
    "  --model NAME       of --list-models; repeatable, default all (kill: with --depth)\n"
    "  --list-models      of what was not fsynced, what each model keeps\n"
    "  --sector BYTES     512 (default) or 4096\n"
    "  --seed N           of all choices; default 1\n"
    "  --states N         about as many, spread over the trace; default all\n"
    "  --whole            all states of the basic models, however few --states allows\n"
    "  --budget TIME      end after 90, 60s, 5m, 2h: states in an order whose every beginning is "
    "the best\n"
    "                     sample\n"
    "  --progress FILE    tells states and findings so far, on one line that is written over\n"
    "  --depth N          1 (default) to 3: crash the recovery again\n"
    "  --nested N         states inside each recovery; default 8\n"
    "  --jobs N           worker processes; default 1\n"
    "  --slice I/N        of the states the I-th of N parts; --slice-file FILE: what it comes to\n"
    "  --merge FILE       no state: what N such files, one behind the other, come to together\n"
    "  --from-seq N, --to-seq N   crash points after these events only\n"
    "  --at-seq N         crash points after this event only; repeatable\n"
    "  --suspect N        this event broke a rule: many of the states come right after it; "
    "repeatable\n"
    "  --accused INODE:OFFSET     this page broke one: states that tear or lose it; repeatable\n"
    "  --ignore-fsync PATTERN     fsyncs of matching paths do nothing: a lying disk\n"
    "  --only STATE_ID    one state; --dump-state DIR writes its files, --way FILE appends, per "
    "level,\n"
    "                     the last operations before the crash and what became of each\n"
    "  --chosen FILE      states of the model chosen: --only SEQ.chosen.K is line K of the file, "
    "from 0;\n"
    "                     \"lose SEQ[=KEPT] ...\" or \"keep SEQ[=KEPT] ...\": these operations, a "
    "0 or 1\n"
    "                     of KEPT per sector that is kept of one\n"
    "  --sample N         with --only: what is looked at besides its recovery is drawn by this "
    "number,\n"
    "                     as --way tells it of another state, not by its image\n"
    "  --in-full N        of N images one is scanned anew as well, to the same report; default 64\n"
    "  --batch N          states per process; --deadline SECONDS until a state hangs (default 20;\n"
    "                     behind the first one that did, a tenth and a second)\n"
    "  --canaries         at last states that must be condemned: where one is not, there is no "
    "verdict\n"
    "  --json             JSON lines: violations, last a summary\n"
    "exit codes: 0 right, 1 violations, 2 usage, 3 no state was run, 10 no verdict: the machine "
    "failed, 11 no verdict: the judge is deaf\n";

int arguments_usage(const char *what, const char *value)
{
    (void)fprintf(stderr, "tornpage-explore: %s%s%s\n", what, value[0] != '\0' ? ": " : "", value);
    return EXIT_USAGE;
}

static bool parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    if (*text < '0' || *text > '9') {
        return false;
    }
    char *end;
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

/** "2/3". */
/** Copies what is in front of the separator. @return what is behind it; NULL: there is none, or no
room */
static const char *first_part(const char *text, char separator, char *first, size_t room)
{
    const char *end = strchr(text, separator);
    if (end == NULL || (size_t)(end - text) >= room) {
        return NULL;
    }
    memcpy(first, text, (size_t)(end - text));
    first[end - text] = '\0';
    return end + 1;
}

static bool parse_slice(const char *text, arguments_t *args)
{
    char first[16];
    const char *last = first_part(text, '/', first, sizeof(first));
    return last != NULL && parse_u32(last, 1, SLICES_MAX, &args->order.n_slices)
           && parse_u32(first, 1, args->order.n_slices, &args->order.slice);
}

static bool parse_page(const char *text, order_page_t *page)
{
    char inode[16];
    const char *offset = first_part(text, ':', inode, sizeof(inode));
    return offset != NULL && parse_u32(inode, 0, UINT32_MAX, &page->inode)
           && parse_u64(offset, 0, UINT64_MAX, &page->offset);
}

/** A number and s, m, h or d; seconds without. */
static bool parse_duration(const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } UNITS[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    char *end;
    double n = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof(UNITS) / sizeof(UNITS[0]); i++) {
        if (strcmp(end, UNITS[i].name) == 0) {
            *seconds = n * UNITS[i].seconds;
            return *seconds > 0 && *seconds < 1e9;
        }
    }
    return false;
}

static bool parse_engine_option(const char *text, engine_options_t *options, err_sink_t *err)
{
    char name[64];
    const char *equals = strchr(text, '=');
    if (equals == NULL || (size_t)(equals - text) >= sizeof(name)) {
        (void)err_set(err, DB_ERROR, "--option %.100s: NAME=VALUE expected", text);
        return false;
    }
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    return options_parse(options, name, equals + 1, err) == DB_SUCCESS;
}

static bool add_model(uint32_t *enabled, const char *text)
{
    model_t model;
    if (!model_parse(text, strlen(text), &model) || model == MODEL_CHOSEN) {
        return false;
    }
    *enabled |= 1U << model;
    return true;
}

enum {
    OPT_TRACE = 256,
    OPT_ALLOWED,
    OPT_KINDS,
    OPT_OPTION,
    OPT_MODEL,
    OPT_LIST_MODELS,
    OPT_LIST_FS,
    OPT_SECTOR,
    OPT_SEED,
    OPT_STATES,
    OPT_WHOLE,
    OPT_BUDGET,
    OPT_PROGRESS,
    OPT_DEPTH,
    OPT_NESTED,
    OPT_JOBS,
    OPT_SLICE,
    OPT_SLICE_FILE,
    OPT_MERGE,
    OPT_FROM,
    OPT_TO,
    OPT_AT,
    OPT_SUSPECT,
    OPT_ACCUSED,
    OPT_IGNORE,
    OPT_ONLY,
    OPT_CHOSEN,
    OPT_DUMP,
    OPT_WAY,
    OPT_SAMPLE,
    OPT_IN_FULL,
    OPT_BATCH,
    OPT_DEADLINE,
    OPT_TARGET,
    OPT_SCRATCH,
    OPT_RECOVER,
    OPT_LONG_LIVED,
    OPT_SCANNED,
    OPT_PRELOAD,
    OPT_RECORDER_FS,
    OPT_BASE,
    OPT_RECOVER_AT,
    OPT_IGNORED,
    OPT_SITE,
    OPT_WRITE_SITES,
    OPT_PROMISE,
    OPT_FS,
    OPT_CANARIES,
    OPT_JSON,
    OPT_HELP
};

static const struct option LONG_OPTIONS[] = {
    {"trace", required_argument, NULL, OPT_TRACE},
    {"allowed", required_argument, NULL, OPT_ALLOWED},
    {"kinds", required_argument, NULL, OPT_KINDS},
    {"option", required_argument, NULL, OPT_OPTION},
    {"model", required_argument, NULL, OPT_MODEL},
    {"list-models", no_argument, NULL, OPT_LIST_MODELS},
    {"list-fs", no_argument, NULL, OPT_LIST_FS},
    {"sector", required_argument, NULL, OPT_SECTOR},
    {"seed", required_argument, NULL, OPT_SEED},
    {"states", required_argument, NULL, OPT_STATES},
    {"whole", no_argument, NULL, OPT_WHOLE},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"progress", required_argument, NULL, OPT_PROGRESS},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"nested", required_argument, NULL, OPT_NESTED},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"slice", required_argument, NULL, OPT_SLICE},
    {"slice-file", required_argument, NULL, OPT_SLICE_FILE},
    {"merge", required_argument, NULL, OPT_MERGE},
    {"from-seq", required_argument, NULL, OPT_FROM},
    {"to-seq", required_argument, NULL, OPT_TO},
    {"at-seq", required_argument, NULL, OPT_AT},
    {"suspect", required_argument, NULL, OPT_SUSPECT},
    {"accused", required_argument, NULL, OPT_ACCUSED},
    {"ignore-fsync", required_argument, NULL, OPT_IGNORE},
    {"only", required_argument, NULL, OPT_ONLY},
    {"chosen", required_argument, NULL, OPT_CHOSEN},
    {"dump-state", required_argument, NULL, OPT_DUMP},
    {"way", required_argument, NULL, OPT_WAY},
    {"sample", required_argument, NULL, OPT_SAMPLE},
    {"in-full", required_argument, NULL, OPT_IN_FULL},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"deadline", required_argument, NULL, OPT_DEADLINE},
    {"target", required_argument, NULL, OPT_TARGET},
    {"scratch", required_argument, NULL, OPT_SCRATCH},
    {"recover", required_argument, NULL, OPT_RECOVER},
    {"long-lived", no_argument, NULL, OPT_LONG_LIVED},
    {"scanned", no_argument, NULL, OPT_SCANNED},
    {"preload", required_argument, NULL, OPT_PRELOAD},
    {"recorder-fs", required_argument, NULL, OPT_RECORDER_FS},
    {"base", required_argument, NULL, OPT_BASE},
    {"recover-at", required_argument, NULL, OPT_RECOVER_AT},
    {"ignore", required_argument, NULL, OPT_IGNORED},
    {"site", required_argument, NULL, OPT_SITE},
    {"write-sites", required_argument, NULL, OPT_WRITE_SITES},
    {"promise", required_argument, NULL, OPT_PROMISE},
    {"fs", required_argument, NULL, OPT_FS},
    {"canaries", no_argument, NULL, OPT_CANARIES},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static bool parse_sector(const char *text, uint32_t *out)
{
    return parse_u32(text, 512, 4096, out) && (*out == 512 || *out == 4096);
}

static bool parse_target(const char *text, arguments_t *args)
{
    args->external.verifier = NULL;
    args->ignored.n = 0;
    args->verifier = verify_command_verifier(&args->command);
    if (strcmp(text, args->verifier.name) == 0) {
        args->external.verifier = &args->verifier;
        return true;
    }
    return strcmp(text, ENGINE_NAME) == 0 && path_set_add(&args->ignored, ENGINE_IGNORED);
}

static bool add_recover(verify_command_t *command, const char *value)
{
    if (command->n_args == COMMAND_ARGS_MAX) {
        return false;
    }
    command->argv[command->n_args++] = value;
    return true;
}

static bool parse_promise(const char *text, arguments_t *args)
{
    args->campaign.relaxed = strcmp(text, "durable") != 0;
    args->external.any_state = strcmp(text, "start") == 0;
    return !args->campaign.relaxed || args->external.any_state || strcmp(text, "consistent") == 0;
}

/** Those of --target command. False: the value is not one. */
static bool parse_command_option(arguments_t *args, int option, const char *value)
{
    switch (option) {
    case OPT_RECOVER:
        return add_recover(&args->command, value);
    case OPT_LONG_LIVED:
        return args->command.long_lived = true;
    case OPT_SCANNED:
        return args->command.scanned = true;
    case OPT_PRELOAD:
        args->command.preload = value;
        return true;
    case OPT_RECORDER_FS:
        args->command.fs = value;
        return true;
    case OPT_BASE:
        args->base = value;
        return true;
    case OPT_RECOVER_AT:
        args->external.at = value;
        return true;
    case OPT_IGNORED:
        return path_set_add(&args->ignored, value);
    case OPT_SITE:
        return site_map_add(&args->sites, value);
    case OPT_WRITE_SITES:
        args->write_sites = value;
        return true;
    case OPT_FS:
        args->campaign.disk.fs = fs_profile_find(value);
        return args->campaign.disk.fs != NULL;
    case OPT_PROMISE:
        return parse_promise(value, args);
    default:
        return false;
    }
}

static bool keep_text(const char **to, const char *value)
{
    *to = value;
    return true;
}

/** False: the value is not one. */
static bool parse_option(arguments_t *args, int option, const char *value, err_sink_t *err)
{
    switch (option) {
    case OPT_TRACE:
        return keep_text(&args->trace, value);
    case OPT_ALLOWED:
        return keep_text(&args->allowed, value);
    case OPT_KINDS:
        return keep_text(&args->kinds, value);
    case OPT_OPTION:
        return parse_engine_option(value, &args->engine.options, err);
    case OPT_MODEL:
        return add_model(&args->campaign.models.enabled, value);
    case OPT_LIST_MODELS:
        return args->list_models = true;
    case OPT_LIST_FS:
        return args->list_fs = true;
    case OPT_SECTOR:
        return parse_sector(value, &args->campaign.models.sector)
               && parse_sector(value, &args->campaign.disk.sector);
    case OPT_SEED:
        return parse_u64(value, 0, UINT64_MAX, &args->campaign.models.seed);
    case OPT_STATES:
        return parse_u64(value, 1, UINT64_MAX >> 8, &args->order.states);
    case OPT_WHOLE:
        return args->order.whole = true;
    case OPT_BUDGET:
        return parse_duration(value, &args->run.budget_s);
    case OPT_PROGRESS:
        args->run.progress_fd = open(value, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        return args->run.progress_fd >= 0;
    case OPT_DEPTH:
        return parse_u32(value, 1, DEPTH_MAX, &args->campaign.depth);
    case OPT_NESTED:
        return parse_u32(value, 1, 4096, &args->campaign.nested);
    case OPT_JOBS:
        return parse_u32(value, 1, JOBS_MAX, &args->run.jobs);
    case OPT_SLICE:
        return parse_slice(value, args);
    case OPT_SLICE_FILE:
        return keep_text(&args->slice_file, value);
    case OPT_MERGE:
        return keep_text(&args->merge, value);
    case OPT_FROM:
        return parse_u64(value, 0, UINT64_MAX, &args->range.from_seq);
    case OPT_TO:
        return parse_u64(value, 0, UINT64_MAX, &args->range.to_seq);
    case OPT_AT:
        args->range.at = args->at;
        return args->range.n_at < AT_MAX
               && parse_u64(value, 0, UINT64_MAX, &args->at[args->range.n_at++]);
    case OPT_SUSPECT:
        args->order.suspects = args->suspects;
        return args->order.n_suspects < AT_MAX
               && parse_u64(value, 0, UINT64_MAX, &args->suspects[args->order.n_suspects++]);
    case OPT_ACCUSED:
        args->order.accused = args->accused;
        return args->order.n_accused < AT_MAX
               && parse_page(value, &args->accused[args->order.n_accused++]);
    case OPT_IGNORE:
        return path_set_add(&args->campaign.disk.lies, value);
    case OPT_ONLY:
        return state_path_parse(value, &args->campaign.only);
    case OPT_CHOSEN:
        return keep_text(&args->chosen, value);
    case OPT_DUMP:
        return keep_text(&args->campaign.dump_dir, value);
    case OPT_WAY:
        return keep_text(&args->campaign.way_file, value);
    case OPT_SAMPLE:
        args->campaign.is_sampled = true;
        return parse_u64(value, 0, UINT64_MAX, &args->campaign.sample);
    case OPT_IN_FULL:
        return parse_u32(value, 1, 1U << 20, &args->engine.in_full);
    case OPT_BATCH:
        return parse_u32(value, 1, 1U << 20, &args->run.batch_states);
    case OPT_DEADLINE:
        return parse_u32(value, 1, 3600, &args->run.deadline_s);
    case OPT_TARGET:
        return parse_target(value, args);
    case OPT_SCRATCH:
        return keep_text(&args->scratch, value);
    case OPT_CANARIES:
        return args->canaries = true;
    case OPT_JSON:
        return args->json = true;
    case OPT_HELP:
        return args->help = true;
    default:
        return parse_command_option(args, option, value);
    }
}

/** What options together mean. */
static int check_arguments(int argc, char **argv, arguments_t *args)
{
    if (optind < argc) {
        return arguments_usage("unknown argument", argv[optind]);
    }
    if (args->trace == NULL || args->allowed == NULL) {
        return arguments_usage("--trace and --allowed are needed; see --help", "");
    }
    if ((args->campaign.dump_dir != NULL || args->campaign.way_file != NULL)
        && args->campaign.only.depth == 0) {
        return arguments_usage("--dump-state and --way need --only", "");
    }
    if ((args->chosen != NULL || args->campaign.is_sampled) && args->campaign.only.depth == 0) {
        return arguments_usage("--chosen and --sample need --only", "");
    }
    if ((args->order.n_slices > 0) != (args->slice_file != NULL)) {
        return arguments_usage("--slice and --slice-file belong together", "");
    }
    bool one = args->campaign.only.depth > 0;
    if ((args->order.n_slices > 0) + (args->run.budget_s > 0) + one > 1) {
        return arguments_usage("of --slice, --budget and --only one can be given", "");
    }
    bool command = args->external.verifier != NULL;
    if (command != (args->command.n_args > 0)) {
        return arguments_usage("--target command and --recover belong together", "");
    }
    if (command && args->command.preload == NULL
        && (args->campaign.depth > 1 || args->campaign.only.depth > 1)) {
        return arguments_usage("--depth above 1: --preload records another target's recovery", "");
    }
    args->campaign.target =
        command ? external_target(&args->external) : engine_target(&args->engine);
    if (args->campaign.models.enabled == 0) {
        /* Alone, a kill is what all-persisted and log-cut are. */
        args->campaign.models.enabled =
            args->campaign.depth > 1 ? MODELS_ALL : MODELS_ALL & ~(1U << MODEL_KILL);
    }
    if (args->campaign.only.depth > 0) {
        args->campaign.models.enabled = MODELS_ALL;
    }
    args->campaign.relaxed |= args->engine.options.flush_log_at_trx_commit != 1;
    if (command) {
        /* It sees for itself that a state hangs; at each attempt it may be asked twice. */
        uint32_t asked = 2 * EXTERNAL_ATTEMPTS;
        args->command.deadline_s = args->run.deadline_s;
        args->run.deadline_s = asked * args->run.deadline_s + WATCH_EXTRA_S;
    }
    return EXIT_CLEAN;
}

int arguments_parse(int argc, char **argv, arguments_t *args)
{
    *args = (arguments_t){
        .campaign = {.models = {.sector = 512, .log_sites = 1U << SITE_REDO, .seed = 1},
                     .depth = 1,
                     .nested = 8},
        .engine = {.in_full = 64},
        .range = {.to_seq = UINT64_MAX},
        .run = {.jobs = 1, .deadline_s = 20, .batch_states = 1024},
        .scratch = "/dev/shm",
    };
    options_set_defaults(&args->engine.options);
    (void)parse_target(ENGINE_NAME, args);
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
            return err.msg[0] != '\0' ? arguments_usage(err.msg, "")
                                      : arguments_usage(LONG_OPTIONS[index].name, "bad value");
        }
    }
    return args->help || args->list_models || args->list_fs ? EXIT_CLEAN
                                                            : check_arguments(argc, argv, args);
}
