/* The `engine` program: arguments in, one command, an exit code out.

Place: above everything. What the commands do is in cli_*.c. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

typedef struct command {
    const char *name;
    int (*run)(const cli_args_t *args);
    int n_args;          /**< positional ones */
    const char *options; /**< the long options that it takes */
    const char *help;
} command_t;

#define SCRIPT_HELP                                                                                \
    "The script has one statement per line; lines that start with # are comments:\n"               \
    "  create table T COL:TYPE [null] ... primary COL[,COL...] [in system]\n"                      \
    "                                                      TYPE: bigint, char(N), varchar(N)\n"    \
    "  drop table T           rename table T NEW              truncate table T\n"                  \
    "  add [unique] index T NAME(COL[:PREFIX],...) ... [OPTIONS]\n"                                \
    "  drop index T NAME [OPTIONS]                         rename index T NAME NEW [OPTIONS]\n"    \
    "  rebuild table T [OPTIONS]                           start rebuild T [OPTIONS]\n"            \
    "  rename column T COL NEW [OPTIONS]                   modify column T COL TYPE [OPTIONS]\n"   \
    "  [start] add column T COL:TYPE [null] [default=VALUE] [first|after=COL] [OPTIONS]\n"         \
    "  [start] drop column T COL [OPTIONS]\n"                                                      \
    "  change primary T COL[,COL...] [OPTIONS]           start primary T COL[,COL...] [OPTIONS]\n" \
    "  start [unique] index T NAME(COL[:PREFIX],...) ... [OPTIONS]\n"                              \
    "  alter table T CLAUSE [and CLAUSE]... [OPTIONS]      start alter T CLAUSE ... [OPTIONS]\n"   \
    "  CLAUSE: force, or one of add, drop, rename index or column without its table\n"             \
    "  step index T [STEPS [ROWS]]                         finish index T    abort index T\n"      \
    "  OPTIONS: algorithm=copy|inplace|nocopy|instant lock=none|shared|exclusive\n"                \
    "  start backup B [lock=none|shared]                   step backup B [PAGES]\n"                \
    "  finish backup B        abort backup B               into the folder B.backup\n"             \
    "  defragment table T [INDEX]                          start defragment T [INDEX]\n"           \
    "  flush export T         unlock table T               import table T EXPORTED\n"              \
    "  begin TRX              commit TRX              rollback TRX\n"                              \
    "  insert TRX T COL=VALUE ...                          TRX \"-\": autocommit\n"                \
    "  insert_seq TRX T FIRST LAST\n"                                                              \
    "  update TRX T PKCOL=VALUE ... set COL=VALUE ...\n"                                           \
    "  delete TRX T PKCOL=VALUE ...\n"                                                             \
    "  select T PKCOL=VALUE ...                            scan T [INDEX]\n"                       \
    "  purge N|all    clean N    checkpoint [full]    flush table T    flush log\n"                \
    "  at N checkpoint [full]|clean|evict|fill    (at the N-th yield point of what follows)\n"     \
    "  set log_optimize_ddl on|off                         set defragment on|off    status\n"      \
    "  restart [clean|crash] [OPTION=VALUE ...]            closes or lets go, and starts again\n"  \
    "VALUE is an integer or \"text\" with the escapes \\\" \\\\ \\xNN.\n"

static const command_t COMMANDS[] = {
    {"run", cli_run, 2, "option json help acks crash create",
     "engine run DIR SCRIPT: executes a script (SCRIPT -: standard input), creating the database "
     "if\n"
     "DIR is empty or missing.\n"
     "  --option NAME=VALUE  of the engine, repeatable    --json   results as JSON\n"
     "  --acks            a line \"ack N\" per statement    --crash  no clean close at the end\n"
     "  --create          the default: create if empty\n"
     "A script has at most 64 MiB.\n" SCRIPT_HELP "Examples:\n"
     "  printf 'create table t a:bigint primary a\\ninsert - t a=1\\n' | engine run /tmp/db -\n"
     "  engine run /tmp/db load.txt --option page_size=8k --option log_optimize_ddl=off --json\n"},
    {"recover", cli_recover, 1, "option json help check backups",
     "engine recover DIR: opens the database, which recovers it, and closes it cleanly.\n"
     "  --option NAME=VALUE  of the engine, repeatable    --json   status as JSON\n"
     "  --check           then scans every page\n"
     "  --backups         then prepares and scans the finished backups that lie in its folders, "
     "too\n"
     "Example:\n"
     "  engine recover /tmp/db --check --json\n"},
    {"backup", cli_backup, 2, "option json help",
     "engine backup DIR TARGET: opens the database DIR, copies it into the empty or new directory "
     "TARGET, and closes "
     "it.\n"
     "  --option NAME=VALUE  of the engine, repeatable    --json   status as JSON\n"
     "A backup is made a database by `engine prepare`. One of a database that is in use is a "
     "statement of a script:\n"
     "`engine run --help`.\n"
     "Example:\n"
     "  engine backup /tmp/db /tmp/copy && engine prepare /tmp/copy --check\n"},
    {"prepare", cli_prepare, 1, "option json help check",
     "engine prepare TARGET: makes a database of a finished backup; may be repeated.\n"
     "  --option NAME=VALUE  of the engine, repeatable    --json   status as JSON\n"
     "  --check           then scans every page\n"
     "Example:\n"
     "  engine prepare /tmp/copy --check --json\n"},
    {"check", cli_check, 1, "json help",
     "engine check DIR: scans a database that is closed cleanly; changes nothing. Exit code 1: "
     "findings,\n"
     "7: it needs recovery first.\n"
     "  --json  the report as JSON\n"
     "Example:\n"
     "  engine check /tmp/db\n"},
    {"page", cli_page, 2, "json help page-size",
     "engine page FILE N: shows page N of a data file, decoded. Exit code 1: it is damaged.\n"
     "  --page-size SIZE  if page 0 of the file cannot tell    --json  as JSON\n"
     "Examples:\n"
     "  engine page /tmp/db/t.ibd 3\n"
     "  engine page /tmp/db/ibdata1 0 --json\n"},
    {"log", cli_log, 1, "json help from",
     "engine log DIR: lists the redo log's record groups from the checkpoint on; changes nothing.\n"
     "  --from LSN  start of a record group    --json  as JSON\n"
     "Example:\n"
     "  engine log /tmp/db --from 8204\n"},
    {"status", cli_status, 1, "json help offline",
     "engine status DIR: facts of a database that is not open: page size, checkpoints, end of the "
     "log,\n"
     "whether it needs recovery. Changes nothing.\n"
     "  --json  as JSON    --offline  exit code 7 if it needs recovery\n"
     "Example:\n"
     "  engine status /tmp/db --json\n"},
    {"options", cli_options, 0, "option json help",
     "engine options: what --option takes: names, defaults, values, meanings.\n"
     "  --option NAME=VALUE  only checked: exit code 2 if it is none    --json   as JSON\n"
     "Example:\n"
     "  engine options\n"},
};

#define N_COMMANDS (sizeof(COMMANDS) / sizeof(COMMANDS[0]))

static const char USAGE[] =
    "engine run DIR SCRIPT | recover DIR | backup DIR TARGET | prepare TARGET | check DIR | page "
    "FILE N | log DIR | status DIR | "
    "options\n"
    "`engine COMMAND --help` tells more.\n"
    "Exit codes: 0 ok, 1 check found violations, 2 usage or script error, 3 unrecoverable or "
    "corrupt,\n"
    "4 I/O error, 5 directory locked, 6 not a data directory, 7 needs recovery\n";

enum {
    OPT_OPTION = 1,
    OPT_JSON,
    OPT_HELP,
    OPT_ACKS,
    OPT_CRASH,
    OPT_CREATE,
    OPT_CHECK,
    OPT_BACKUPS,
    OPT_OFFLINE,
    OPT_PAGE_SIZE,
    OPT_FROM
};

static const struct option LONG_OPTIONS[] = {
    {"option", required_argument, NULL, OPT_OPTION},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {"acks", no_argument, NULL, OPT_ACKS},
    {"crash", no_argument, NULL, OPT_CRASH},
    {"create", no_argument, NULL, OPT_CREATE},
    {"check", no_argument, NULL, OPT_CHECK},
    {"backups", no_argument, NULL, OPT_BACKUPS},
    {"offline", no_argument, NULL, OPT_OFFLINE},
    {"page-size", required_argument, NULL, OPT_PAGE_SIZE},
    {"from", required_argument, NULL, OPT_FROM},
    {NULL, 0, NULL, 0},
};

__attribute__((format(printf, 2, 3))) static int usage(const command_t *command, const char *format,
                                                       ...)
{
    va_list args;
    va_start(args, format);
    char what[256];
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    (void)fprintf(stderr, "engine: %s; see `engine %s --help`\n", what,
                  command != NULL ? command->name : "COMMAND");
    return EXIT_USAGE;
}

static const command_t *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(COMMANDS[i].name, name) == 0) {
            return &COMMANDS[i];
        }
    }
    return NULL;
}

/** Is name one of the words of the list? */
static bool has_option(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = strstr(list, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool parse_u64(const char *text, uint64_t max, uint64_t *out)
{
    if (*text < '0' || *text > '9' || strlen(text) > 19) {
        return false;
    }
    char *end = NULL;
    uint64_t v = strtoull(text, &end, 10);
    *out = v;
    return *end == '\0' && v <= max;
}

static int parse_engine_option(cli_args_t *args, const command_t *command, char *text)
{
    char *equals = strchr(text, '=');
    err_sink_t err = {.msg = ""};
    if (equals == NULL) {
        return usage(command, "--option takes NAME=VALUE, not '%s'", text);
    }
    *equals = '\0';
    args->sets_log_optimize_ddl |= strcmp(text, "log_optimize_ddl") == 0;
    if (options_parse(&args->options, text, equals + 1, &err) != DB_SUCCESS) {
        (void)fprintf(stderr, "engine: %s\n", err.msg);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static int parse_option(cli_args_t *args, const command_t *command, int option)
{
    engine_options_t sizes;
    err_sink_t err = {.msg = ""};
    switch (option) {
    case OPT_OPTION:
        return parse_engine_option(args, command, optarg);
    case OPT_JSON:
        args->json = true;
        break;
    case OPT_ACKS:
        args->acks = true;
        break;
    case OPT_CRASH:
        args->crash = true;
        break;
    case OPT_CHECK:
        args->check = true;
        break;
    case OPT_BACKUPS:
        args->backups = true;
        break;
    case OPT_OFFLINE:
        args->offline = true;
        break;
    case OPT_PAGE_SIZE:
        options_set_defaults(&sizes);
        if (options_parse(&sizes, "page_size", optarg, &err) != DB_SUCCESS) {
            return usage(command, "%s", err.msg);
        }
        args->page_size = sizes.page_size;
        break;
    case OPT_FROM:
        if (!parse_u64(optarg, INT64_MAX, &args->from)) {
            return usage(command, "--from takes an LSN, not '%s'", optarg);
        }
        break;
    default:
        break;
    }
    return EXIT_OK;
}

static int parse_positional(cli_args_t *args, const command_t *command, char **words, int n)
{
    if (n != command->n_args) {
        return usage(command, "%s takes %d argument(s), not %d", command->name, command->n_args, n);
    }
    args->path = n > 0 ? words[0] : NULL;
    if (command->run == cli_run) {
        args->script = words[1];
    }
    if (command->run == cli_backup) {
        args->target = words[1];
    }
    if (command->run == cli_page) {
        uint64_t page_no = 0;
        if (!parse_u64(words[1], FIL_NULL - 1, &page_no)) {
            return usage(command, "a page number is expected, not '%s'", words[1]);
        }
        args->page_no = (uint32_t)page_no;
    }
    return EXIT_OK;
}

static int run_command(const command_t *command, int argc, char **argv)
{
    cli_args_t args = {.command = command->name};
    options_set_defaults(&args.options);
    opterr = 0;
    for (;;) {
        int index = -1;
        int option = getopt_long(argc, argv, "", LONG_OPTIONS, &index);
        if (option == -1) {
            break;
        }
        if (option == '?' || !has_option(command->options, LONG_OPTIONS[index].name)) {
            return usage(command, "bad option '%s'", argv[optind - 1]);
        }
        if (option == OPT_HELP) {
            (void)fputs(command->help, stdout);
            return cli_finish(EXIT_OK);
        }
        int code = parse_option(&args, command, option);
        if (code != EXIT_OK) {
            return code;
        }
    }
    int code = parse_positional(&args, command, argv + optind, argc - optind);
    return code == EXIT_OK ? command->run(&args) : code;
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails with EFBIG, and says so */
    json_object_seed(1);            /* or the first object reads /dev/urandom */
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        (void)fputs(USAGE, argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : cli_finish(EXIT_OK);
    }
    const command_t *command = find_command(argv[1]);
    if (command == NULL) {
        return usage(NULL, "unknown command '%.100s'", argv[1]);
    }
    return run_command(command, argc - 1, argv + 1);
}
