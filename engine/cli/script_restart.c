/* The script parser: `restart [clean|crash] [OPTION=VALUE ...]`.

Place: cli/, above script_token.c; knows the engine's options.

Rules
1. A restart sets what an operator may set between two starts. It leaves alone what is fixed for the
   life of a database, and what its judges go by: whether pages are doublewritten, what the storage
   promises, and when a commit is durable. */
#include <string.h>

#include "cli/script_int.h"

static const char *const FIXED[] = {"page_size",         "extent_pages",
                                    "log_file_size",     "doublewrite",
                                    "atomic_write_unit", "flush_log_at_trx_commit",
                                    "undo_tablespaces"};

static dberr_t parse_option(parser_t *p, stmt_t *stmt, char *token)
{
    err_sink_t why = {.msg = ""};
    char *equals = strchr(token, '=');
    if (equals == NULL) {
        return parse_error(p, "OPTION=VALUE expected, not '%s'", token);
    }
    *equals = '\0';
    for (size_t i = 0; i < sizeof(FIXED) / sizeof(FIXED[0]); i++) {
        if (strcmp(token, FIXED[i]) == 0) {
            return parse_error(p, "a restart cannot set %s", token);
        }
    }
    if (!stmt->flag && strcmp(token, "log_format") == 0) {
        return parse_error(p, "a log is converted after a clean close only");
    }
    engine_options_t options;
    for (uint32_t i = 0; i < stmt->n_options; i++) {
        if (strcmp(stmt->options[i].name, token) == 0) {
            return parse_error(p, "option '%s' twice", token);
        }
    }
    options_set_defaults(&options);
    if (options_parse(&options, token, equals + 1, &why) != DB_SUCCESS) {
        return parse_error(p, "%s", why.msg);
    }
    stmt->options[stmt->n_options++] = (stmt_option_t){token, equals + 1};
    return DB_SUCCESS;
}

dberr_t parse_restart(parser_t *p, stmt_t *stmt)
{
    bool crash = parse_word(p, "crash");
    stmt->flag = !crash;
    if (!crash) {
        (void)parse_word(p, "clean");
    }
    TRY(parse_alloc(p, p->n, sizeof(stmt_option_t), &stmt->options));
    while (parse_has_more(p)) {
        char *token = NULL;
        TRY(parse_next(p, "an option", &token));
        TRY(parse_option(p, stmt, token));
    }
    return DB_SUCCESS;
}
