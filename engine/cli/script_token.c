/* Words of a script line: tokens, names, numbers, types, values.

Place: below script.c, which knows the statements.

Rules
1. Tokens stay where they are in the script's text; a quoted text is decoded in place, since it only
   gets shorter.
2. Any bytes are fine as input: no token is trusted to be short, printable or complete, and nothing
   of it can break the one line of an error message. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/script_int.h"

dberr_t parse_error(parser_t *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char what[256];
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    /* Names come from the script: nothing of it may break the one line. */
    for (char *c = what; *c != '\0'; c++) {
        if (*c < 0x20 || *c > 0x7E) {
            *c = '?';
        }
    }
    return err_set(p->err, DB_ERROR, "script line %" PRIu32 ": %s", p->line, what);
}

dberr_t parse_alloc(parser_t *p, size_t n, size_t size, void *out)
{
    block_t *block = calloc(1, sizeof(block_t) + n * size);
    if (block == NULL) {
        return err_set(p->err, DB_OUT_OF_MEMORY, "script line %" PRIu32 ": out of memory", p->line);
    }
    block->next = p->script->blocks;
    p->script->blocks = block;
    void *data = block->data;
    memcpy(out, &data, sizeof(data));
    return DB_SUCCESS;
}

/* ---- tokens ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

dberr_t parse_tokens(parser_t *p, char *line)
{
    p->n = 0;
    p->pos = 0;
    for (char *c = line; *c != '\0';) {
        if (is_blank(*c)) {
            *c++ = '\0';
            continue;
        }
        if (p->n == TOKENS_MAX) {
            return parse_error(p, "more than %u words", TOKENS_MAX);
        }
        p->tokens[p->n++] = c;
        for (bool quoted = false; *c != '\0' && (quoted || !is_blank(*c)); c++) {
            if (*c == '"') {
                quoted = !quoted;
            } else if (quoted && *c == '\\' && c[1] != '\0') {
                c++;
            }
        }
    }
    return DB_SUCCESS;
}

bool parse_has_more(const parser_t *p)
{
    return p->pos < p->n;
}

dberr_t parse_next(parser_t *p, const char *what, char **out)
{
    if (!parse_has_more(p)) {
        return parse_error(p, "%s expected at the end", what);
    }
    *out = p->tokens[p->pos++];
    return DB_SUCCESS;
}

bool parse_word(parser_t *p, const char *word)
{
    if (parse_has_more(p) && strcmp(p->tokens[p->pos], word) == 0) {
        p->pos++;
        return true;
    }
    return false;
}

static bool is_name(const char *s, size_t len, bool underscore)
{
    for (size_t i = 0; i < len; i++) {
        char c = s[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')
            && !(underscore && c == '_')) {
            return false;
        }
    }
    return len > 0 && len <= NAME_LEN_MAX;
}

dberr_t parse_name_check(parser_t *p, const char *what, const char *name)
{
    size_t len = strlen(name);
    if (len > NAME_LEN_MAX) {
        return parse_error(p, "%s name is too long: %zu bytes, at most %u", what, len,
                           NAME_LEN_MAX);
    }
    return is_name(name, len, true) ? DB_SUCCESS : parse_error(p, "bad %s name '%s'", what, name);
}

dberr_t parse_name(parser_t *p, const char *what, const char **out)
{
    char *token = NULL;
    dberr_t err = parse_next(p, what, &token);
    AND_THEN(err, parse_name_check(p, what, token));
    *out = token;
    return err;
}

dberr_t parse_trx(parser_t *p, bool autocommit, const char **out)
{
    char *token = NULL;
    TRY(parse_next(p, "transaction", &token));
    if (!(autocommit && strcmp(token, "-") == 0) && !is_name(token, strlen(token), false)) {
        return parse_error(p, "bad transaction name '%s'", token);
    }
    *out = token;
    return DB_SUCCESS;
}

bool parse_integer(const char *s, int64_t min, int64_t max, int64_t *out)
{
    const char *digits = *s == '-' ? s + 1 : s;
    if (*digits < '0' || *digits > '9') {
        return false;
    }
    errno = 0;
    char *end = NULL;
    long long v = strtoll(s, &end, 10);
    if (errno != 0 || *end != '\0' || v < min || v > max) {
        return false;
    }
    *out = v;
    return true;
}

dberr_t parse_number(parser_t *p, const char *what, int64_t min, int64_t max, int64_t *out)
{
    char *token = NULL;
    TRY(parse_next(p, what, &token));
    if (!parse_integer(token, min, max, out)) {
        return parse_error(p, "%s must be an integer from %" PRId64 " to %" PRId64 ", not '%s'",
                           what, min, max, token);
    }
    return DB_SUCCESS;
}

/* ---- values ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/** One character of a quoted text; *c is advanced. -1 if it cannot be. */
static int text_char(const char **c)
{
    const char *s = *c;
    if (*s != '\\') {
        *c = s + 1;
        return *s >= 0x20 && *s <= 0x7E ? *s : -1;
    }
    if (s[1] == '"' || s[1] == '\\') {
        *c = s + 2;
        return s[1];
    }
    if (s[1] == 'x' && hex_digit(s[2]) >= 0 && hex_digit(s[3]) >= 0) {
        *c = s + 4;
        return hex_digit(s[2]) * 16 + hex_digit(s[3]);
    }
    return -1;
}

/** "..."*N: the text again and again, N bytes together. */
static dberr_t parse_repeat(parser_t *p, const char *number, stmt_assign_t *out)
{
    byte *to = NULL;
    int64_t n = 0;
    if (out->len == 0 || !parse_integer(number, 1, VARCHAR_LEN_MAX, &n)) {
        return parse_error(p, "text of column '%s' cannot be repeated to '%s' bytes: 1 to %u",
                           out->col, number, VARCHAR_LEN_MAX);
    }
    TRY(parse_alloc(p, (size_t)n, 1, &to));
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        to[i] = out->text[i % out->len];
    }
    out->text = to;
    out->len = (uint32_t)n;
    return DB_SUCCESS;
}

/** Decodes "..." in place, behind its opening quote. */
static dberr_t parse_text(parser_t *p, char *quoted, stmt_assign_t *out)
{
    byte *to = (byte *)quoted;
    const char *c = quoted + 1;
    uint32_t len = 0;
    while (*c != '"') {
        int value = *c == '\0' ? -1 : text_char(&c);
        if (value < 0) {
            return parse_error(
                p, "text of column '%s' is not closed, or has a bad character or escape", out->col);
        }
        if (len == VARCHAR_LEN_MAX) {
            return parse_error(p, "value of column '%s' is longer than %u bytes", out->col,
                               VARCHAR_LEN_MAX);
        }
        to[len++] = (byte)value;
    }
    out->kind = VALUE_TEXT;
    out->text = to;
    out->len = len;
    if (c[1] == '*') {
        return parse_repeat(p, c + 2, out);
    }
    return c[1] == '\0' ? DB_SUCCESS
                        : parse_error(p, "blank expected after the text of column '%s'", out->col);
}

dberr_t parse_assign(parser_t *p, stmt_assign_t *out)
{
    char *token = NULL;
    TRY(parse_next(p, "COLUMN=VALUE", &token));
    char *equals = strchr(token, '=');
    if (equals == NULL) {
        return parse_error(p, "COLUMN=VALUE expected, not '%s'", token);
    }
    *equals = '\0';
    out->col = token;
    TRY(parse_name_check(p, "column", token));
    if (equals[1] == '"') {
        return parse_text(p, equals + 1, out);
    }
    if (strcmp(equals + 1, "null") == 0) {
        out->kind = VALUE_NULL;
        return DB_SUCCESS;
    }
    out->kind = VALUE_NUMBER;
    if (!parse_integer(equals + 1, INT64_MIN, INT64_MAX, &out->number)) {
        return parse_error(p,
                           "value of column '%s' must be a 64-bit integer, \"text\" or null, not "
                           "'%s'",
                           out->col, equals + 1);
    }
    return DB_SUCCESS;
}

dberr_t parse_assigns(parser_t *p, stmt_assign_t **out, uint32_t *n)
{
    uint32_t max = p->n - p->pos;
    dberr_t err = parse_alloc(p, max > 0 ? max : 1, sizeof(stmt_assign_t), out);
    *n = 0;
    TRY(err);
    while (*n == 0 || (parse_has_more(p) && strcmp(p->tokens[p->pos], "set") != 0)) {
        err = parse_assign(p, &(*out)[*n]);
        for (uint32_t i = 0; err == DB_SUCCESS && i < *n; i++) {
            if (strcmp((*out)[i].col, (*out)[*n].col) == 0) {
                err = parse_error(p, "column '%s' twice", (*out)[i].col);
            }
        }
        (*n)++;
        TRY(err);
    }
    return err;
}

/** Is the type TYPE(N), N from 1 to max? */
static bool parse_sized_type(const char *text, const char *type, uint32_t max, uint32_t *len)
{
    size_t name_len = strlen(type);
    size_t text_len = strlen(text);
    char number[16] = "";
    if (strncmp(text, type, name_len) != 0 || text[name_len] != '(' || text[text_len - 1] != ')'
        || text_len - name_len - 2 >= sizeof(number)) {
        return false;
    }
    memcpy(number, text + name_len + 1, text_len - name_len - 2);
    int64_t n = 0;
    if (!parse_integer(number, 1, max, &n)) {
        return false;
    }
    *len = (uint32_t)n;
    return true;
}

dberr_t parse_type(parser_t *p, const char *text, dict_type_t *type, uint32_t *len)
{
    if (strcmp(text, "bigint") == 0) {
        *type = DICT_BIGINT;
        *len = DICT_BIGINT_LEN;
    } else if (parse_sized_type(text, "char", CHAR_LEN_MAX, len)) {
        *type = DICT_CHAR;
    } else if (parse_sized_type(text, "varchar", VARCHAR_LEN_MAX, len)) {
        *type = DICT_VARCHAR;
    } else {
        return parse_error(p,
                           "type must be bigint, char(1) to char(%u) or varchar(1) to varchar(%u), "
                           "not '%s'",
                           CHAR_LEN_MAX, VARCHAR_LEN_MAX, text);
    }
    return DB_SUCCESS;
}

/** `null` or `not null` behind a type; neither: not null. */
static dberr_t parse_null(parser_t *p, dict_col_t *col)
{
    bool not_null = parse_word(p, "not");
    bool null = parse_word(p, "null");
    col->nullable = null && !not_null;
    return not_null && !null ? parse_error(p, "`null` expected behind `not`") : DB_SUCCESS;
}

dberr_t parse_column(parser_t *p, dict_col_t *col)
{
    char *token = NULL;
    TRY(parse_next(p, "COLUMN:TYPE", &token));
    char *colon = strchr(token, ':');
    if (colon == NULL) {
        return parse_error(p, "COLUMN:TYPE expected, not '%s'", token);
    }
    *colon = '\0';
    TRY(parse_name_check(p, "column", token));
    memcpy(col->name, token, strlen(token) + 1);
    TRY(parse_type(p, colon + 1, &col->type, &col->len));
    return parse_null(p, col);
}
