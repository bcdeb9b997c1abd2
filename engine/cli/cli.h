/** Private to the `engine` program: arguments, exit codes, output. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <jansson.h>

#include "api/engine.h"
#include "check/check.h"

typedef enum cli_exit {
    EXIT_OK = 0,
    EXIT_FINDINGS = 1,    /**< check found violations; page is damaged */
    EXIT_USAGE = 2,       /**< usage, option or script error */
    EXIT_REFUSED = 3,     /**< unrecoverable or corrupt */
    EXIT_IO = 4,          /**< a file operation failed: poisoned handle */
    EXIT_LOCKED = 5,      /**< another process has the data directory open */
    EXIT_NO_DATABASE = 6, /**< not a data directory */
    EXIT_NEEDS_RECOVERY = 7
} cli_exit_t;

typedef struct cli_args {
    const char *command;
    const char *path;   /**< directory or file */
    const char *script; /**< run */
    const char *target; /**< backup: the other directory */
    uint32_t page_no;   /**< page */
    uint32_t page_size; /**< page: 0 = as page 0 of the file says */
    uint64_t from;      /**< log: 0 = the checkpoint */
    engine_options_t options;
    bool sets_log_optimize_ddl; /**< it is among the options given */
    bool json;
    bool acks;
    bool crash;
    bool check;
    bool backups;
    bool offline;
} cli_args_t;

/* Each prints its result and returns an exit code. */
int cli_run(const cli_args_t *args);
int cli_recover(const cli_args_t *args);
int cli_check(const cli_args_t *args);
int cli_backup(const cli_args_t *args);
int cli_prepare(const cli_args_t *args);
int cli_page(const cli_args_t *args);
int cli_log(const cli_args_t *args);
int cli_status(const cli_args_t *args);
int cli_options(const cli_args_t *args);

/* ---- cli_json.c ---- */

int cli_exit_code(dberr_t err);

/** One line on stderr, with error[REFUSAL] in front if it is one, and, with --json,
{"ok":false,...} on stdout. Returns the exit code. */
int cli_fail(const cli_args_t *args, dberr_t err, const err_sink_t *why);

/** The option was given to a database that ignores it: says so, in one line on stderr. */
void cli_warn_ignored(const engine_t *engine);

/** Prints an object as one line on stdout, and releases it. */
void cli_print_json(json_t *object);
/** Writes out stdout; EXIT_IO instead of code if that fails. */
int cli_finish(int code);

json_t *cli_u64(uint64_t value);
/** Text as printable ASCII, escaped as in scripts (\" \\ \xNN). Caller: free(); NULL if out of
memory. */
char *cli_escape(const byte *text, size_t len);
json_t *cli_escaped(const byte *text, size_t len); /**< the same as a JSON string */
char *cli_hex(const byte *bytes, size_t len);      /**< lower case; caller: free() */

json_t *cli_status_json(const engine_status_t *status);
void cli_print_status(const engine_status_t *status);
json_t *cli_check_json(const check_report_t *report);
void cli_print_check(const check_report_t *report);

/* ---- cli_backup.c ---- */

typedef struct cli_probe cli_probe_t;

/** Prepares and scans the finished backups in the folders of the closed database in os: a list of
{"name", "ok", "state", ...}, "check" where ok, else "refusal" and "message". *n_wrong: of them,
those that are not right. */
json_t *cli_backups_json(const cli_args_t *args, os_t *os, cli_probe_t *probe, uint32_t *n_wrong);

/* ---- cli_probe.c ---- */

struct cli_probe {
    probe_t base;
    void (*trace_mark)(const char *text, size_t len); /**< of the preload library, or NULL */
    bool (*stack_note)(const char *text, size_t len); /**< likewise */
    const char *control;                              /**< socket of a recorder, or NULL */
};

/** Arms the probe if somebody listens: a recorder, or libfiu's environment. It must stay where it
is. */
void cli_probe_init(cli_probe_t *probe);

/* ---- cli_log.c ---- */

/** A data directory opened for reading only, locked if it has a lock file. */
typedef struct cli_dir {
    os_t *os;
    env_t env;
    cli_probe_t probe; /**< never armed */
} cli_dir_t;

/** Refuses what is no database. Caller: cli_dir_close() in every case. */
WARN_UNUSED dberr_t cli_dir_open(cli_dir_t *dir, const char *path);
void cli_dir_close(cli_dir_t *dir);

#endif
