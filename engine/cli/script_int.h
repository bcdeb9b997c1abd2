/** Private to the script parser: a line cut into words, and what words can be. */
#ifndef CLI_SCRIPT_INT_H
#define CLI_SCRIPT_INT_H

#include "cli/script.h"

#define TOKENS_MAX 128U /**< of one line: more columns than any table has */

typedef struct block {
    struct block *next;
    max_align_t data[];
} block_t;

struct script {
    char *text;
    stmt_t *stmts;
    uint32_t n;
    uint32_t capacity;
    block_t *blocks; /**< memory of statements, freed with the script */
};

/** The line being parsed. */
typedef struct parser {
    script_t *script;
    err_sink_t *err;
    uint32_t line;
    char *tokens[TOKENS_MAX]; /**< 0-terminated, quotes and escapes still in place */
    uint32_t n;
    uint32_t pos;
} parser_t;

/** Sets "script line N: ..." and returns DB_ERROR. */
__attribute__((format(printf, 2, 3))) dberr_t parse_error(parser_t *p, const char *format, ...);

/** Zeroed memory that lives as long as the script; out is the address of a pointer. */
WARN_UNUSED dberr_t parse_alloc(parser_t *p, size_t n, size_t size, void *out);

/** Cuts a line, in place, into tokens; blanks inside quotes do not end one. */
WARN_UNUSED dberr_t parse_tokens(parser_t *p, char *line);
bool parse_has_more(const parser_t *p);
WARN_UNUSED dberr_t parse_next(parser_t *p, const char *what, char **out);
bool parse_word(parser_t *p, const char *word); /**< takes the next token if it is this word */

WARN_UNUSED dberr_t parse_name_check(parser_t *p, const char *what, const char *name);
WARN_UNUSED dberr_t parse_name(parser_t *p, const char *what, const char **out);
WARN_UNUSED dberr_t parse_trx(parser_t *p, bool autocommit, const char **out);
/** Is the whole of s a decimal integer of [min, max]? */
bool parse_integer(const char *s, int64_t min, int64_t max, int64_t *out);
WARN_UNUSED dberr_t parse_number(parser_t *p, const char *what, int64_t min, int64_t max,
                                 int64_t *out);
/** bigint, char(N) or varchar(N). */
WARN_UNUSED dberr_t parse_type(parser_t *p, const char *text, dict_type_t *type, uint32_t *len);
/** COLUMN:TYPE [null|not null], the next words. */
WARN_UNUSED dberr_t parse_column(parser_t *p, dict_col_t *col);
/** COLUMN=VALUE, the next word. */
WARN_UNUSED dberr_t parse_assign(parser_t *p, stmt_assign_t *out);
/** ALTER statements, options included (script_alter.c). */
WARN_UNUSED dberr_t parse_alter(parser_t *p, stmt_t *stmt);
/** What a restart does before it, and the options behind that (script_restart.c). */
WARN_UNUSED dberr_t parse_restart(parser_t *p, stmt_t *stmt);
/** COL=VALUE ... up to `set` or the end of the line; at least one, no column twice. */
WARN_UNUSED dberr_t parse_assigns(parser_t *p, stmt_assign_t **out, uint32_t *n);

#endif
