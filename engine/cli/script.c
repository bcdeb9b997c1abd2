/* The script parser: lines and statements.

Place: cli/, above script_token.c; knows names and limits of the engine, but no database.

Rules
1. Nothing is executed unless everything was understood: the first wrong line is named and ends it.
2. All memory hangs from the script: one copy of the text, into which names point, and a list of
   blocks, each bounded by the line that it was made for. */
#include <stdlib.h>
#include <string.h>

#include "cli/script_int.h"

static dberr_t parse_primary(parser_t *p, char *list, dict_table_t *table)
{
    dict_index_t *primary = &table->indexes[0];
    for (char *name = list, *comma = list; comma != NULL; name = comma + 1) {
        comma = strchr(name, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        uint32_t col = 0;
        while (col < table->n_cols && strcmp(table->cols[col].name, name) != 0) {
            col++;
        }
        if (col == table->n_cols) {
            return parse_error(p, "primary key names no column '%s'", name);
        }
        for (uint32_t i = 0; i < primary->n_fields; i++) {
            if (primary->fields[i].col == col) {
                return parse_error(p, "primary key names column '%s' twice", name);
            }
        }
        primary->fields[primary->n_fields].col = col;
        primary->fields[primary->n_fields].prefix_len = table->cols[col].len;
        primary->n_fields++;
        if (comma == NULL) {
            break;
        }
    }
    return DB_SUCCESS;
}

static dberr_t parse_create_table(parser_t *p, stmt_t *stmt)
{
    TRY(parse_name(p, "table", &stmt->table));
    TRY(parse_alloc(p, 1, sizeof(dict_table_t), &stmt->definition));
    dict_table_t *table = stmt->definition;
    memcpy(table->name, stmt->table, strlen(stmt->table) + 1);
    while (parse_has_more(p) && !parse_word(p, "primary")) {
        if (table->n_cols == COLUMNS_MAX) {
            return parse_error(p, "more than %u columns", COLUMNS_MAX);
        }
        TRY(parse_column(p, &table->cols[table->n_cols++]));
        for (uint32_t i = 0; i + 1 < table->n_cols; i++) {
            if (strcmp(table->cols[i].name, table->cols[table->n_cols - 1].name) == 0) {
                return parse_error(p, "column '%s' twice", table->cols[i].name);
            }
        }
    }
    char *list = NULL;
    TRY(parse_next(p, "primary COLUMN[,COLUMN...]", &list));
    TRY(parse_primary(p, list, table));
    table->in_system = parse_word(p, "in");
    return !table->in_system || parse_word(p, "system") ? DB_SUCCESS
                                                        : parse_error(p, "`in system` expected");
}

static dberr_t parse_insert_seq(parser_t *p, stmt_t *stmt)
{
    TRY(parse_trx(p, true, &stmt->trx));
    TRY(parse_name(p, "table", &stmt->table));
    TRY(parse_number(p, "first key", INT64_MIN, INT64_MAX, &stmt->first));
    return parse_number(p, "last key", stmt->first, INT64_MAX, &stmt->last);
}

static dberr_t parse_row_stmt(parser_t *p, stmt_t *stmt)
{
    if (stmt->kind != STMT_SELECT) {
        TRY(parse_trx(p, true, &stmt->trx));
    }
    TRY(parse_name(p, "table", &stmt->table));
    TRY(parse_assigns(p, &stmt->assigns, &stmt->n_assigns));
    if (stmt->kind == STMT_UPDATE) {
        TRY(parse_word(p, "set") ? parse_assigns(p, &stmt->sets, &stmt->n_sets)
                                 : parse_error(p, "`set` expected behind the primary key"));
    }
    return DB_SUCCESS;
}

static dberr_t parse_two_names(parser_t *p, stmt_t *stmt, const char *second)
{
    TRY(parse_name(p, "table", &stmt->table));
    return parse_name(p, second, &stmt->name);
}

static dberr_t parse_count(parser_t *p, stmt_t *stmt)
{
    if (stmt->kind == STMT_PURGE && parse_word(p, "all")) {
        return DB_SUCCESS;
    }
    int64_t count = 0;
    dberr_t err = parse_number(p, "count", 1, INT32_MAX, &count);
    stmt->count = (uint32_t)count;
    return err;
}

static dberr_t parse_step_alter(parser_t *p, stmt_t *stmt)
{
    int64_t count = 1;
    dberr_t err = parse_name(p, "table", &stmt->table);
    if (err == DB_SUCCESS && parse_has_more(p)) {
        err = parse_number(p, "number of steps", 1, INT32_MAX, &count);
    }
    int64_t rows = BUILD_STEP_ROWS;
    if (err == DB_SUCCESS && parse_has_more(p)) {
        err = parse_number(p, "rows per step", 1, INT32_MAX, &rows);
    }
    stmt->count = (uint32_t)count;
    stmt->rows = (uint32_t)rows;
    return err;
}

static dberr_t parse_backup(parser_t *p, stmt_t *stmt)
{
    dberr_t err = parse_name(p, "backup", &stmt->name);
    if (err == DB_SUCCESS && stmt->kind == STMT_START_BACKUP) {
        stmt->flag = !parse_word(p, "lock=none");
        (void)(stmt->flag && parse_word(p, "lock=shared"));
    }
    int64_t count = BACKUP_STEP_PAGES;
    if (err == DB_SUCCESS && stmt->kind == STMT_STEP_BACKUP && parse_has_more(p)) {
        err = parse_number(p, "number of pages", 1, INT32_MAX, &count);
    }
    stmt->count = (uint32_t)count;
    return err;
}

static dberr_t parse_at(parser_t *p, stmt_t *stmt)
{
    TRY(parse_count(p, stmt));
    if (parse_word(p, "checkpoint")) {
        stmt->act = parse_word(p, "full") ? BUF_ACT_CHECKPOINT_FULL : BUF_ACT_CHECKPOINT;
    } else if (parse_word(p, "clean")) {
        stmt->act = BUF_ACT_CLEAN;
    } else if (parse_word(p, "evict")) {
        stmt->act = BUF_ACT_EVICT;
    } else if (parse_word(p, "fill")) {
        stmt->act = BUF_ACT_FILL;
    } else {
        return parse_error(p, "checkpoint, clean, evict or fill expected");
    }
    return DB_SUCCESS;
}

static dberr_t parse_switch(parser_t *p, stmt_t *stmt)
{
    stmt->flag = parse_word(p, "on");
    return stmt->flag || parse_word(p, "off") ? DB_SUCCESS : parse_error(p, "on or off expected");
}

static dberr_t parse_scan(parser_t *p, stmt_t *stmt)
{
    TRY(parse_name(p, "table", &stmt->table));
    return parse_has_more(p) ? parse_name(p, "index", &stmt->name) : DB_SUCCESS;
}

static dberr_t parse_arguments(parser_t *p, stmt_t *stmt)
{
    switch (stmt->kind) {
    case STMT_CREATE_TABLE:
        return parse_create_table(p, stmt);
    case STMT_DROP_TABLE:
    case STMT_FLUSH_TABLE:
    case STMT_FINISH_ALTER:
    case STMT_ABORT_ALTER:
        return parse_name(p, "table", &stmt->table);
    case STMT_RENAME_TABLE:
        return parse_two_names(p, stmt, "new table");
    case STMT_ALTER:
    case STMT_START_ALTER:
        return parse_alter(p, stmt);
    case STMT_STEP_ALTER:
        return parse_step_alter(p, stmt);
    case STMT_START_BACKUP:
    case STMT_STEP_BACKUP:
    case STMT_FINISH_BACKUP:
    case STMT_ABORT_BACKUP:
        return parse_backup(p, stmt);
    case STMT_BEGIN:
    case STMT_COMMIT:
    case STMT_ROLLBACK:
        return parse_trx(p, false, &stmt->trx);
    case STMT_INSERT:
    case STMT_UPDATE:
    case STMT_DELETE:
    case STMT_SELECT:
        return parse_row_stmt(p, stmt);
    case STMT_INSERT_SEQ:
        return parse_insert_seq(p, stmt);
    case STMT_SCAN:
        return parse_scan(p, stmt);
    case STMT_PURGE:
    case STMT_CLEAN:
        return parse_count(p, stmt);
    case STMT_AT:
        return parse_at(p, stmt);
    case STMT_CHECKPOINT:
        stmt->flag = parse_word(p, "full");
        return DB_SUCCESS;
    case STMT_SET_OPTIMIZE:
    case STMT_SET_DEFRAGMENT:
        return parse_switch(p, stmt);
    case STMT_RESTART:
        return parse_restart(p, stmt);
    case STMT_FLUSH_LOG:
    case STMT_STATUS:
        return DB_SUCCESS;
    }
    return parse_error(p, "unknown statement");
}

typedef struct verb {
    const char *word;
    const char *second; /**< NULL: one word is enough */
    stmt_kind_t kind;
    alter_kind_t alter; /**< of STMT_ALTER and STMT_START_ALTER */
} verb_t;

static const verb_t VERBS[] = {
    {"create", "table", STMT_CREATE_TABLE, 0},
    {"drop", "table", STMT_DROP_TABLE, 0},
    {"rename", "table", STMT_RENAME_TABLE, 0},
    {"rebuild", "table", STMT_ALTER, ALTER_REBUILD},
    {"start", "rebuild", STMT_START_ALTER, ALTER_REBUILD},
    {"truncate", "table", STMT_ALTER, ALTER_TRUNCATE},
    {"defragment", "table", STMT_ALTER, ALTER_DEFRAGMENT},
    {"start", "defragment", STMT_START_ALTER, ALTER_DEFRAGMENT},
    {"rename", "column", STMT_ALTER, ALTER_RENAME_COLUMN},
    {"rename", "index", STMT_ALTER, ALTER_RENAME_INDEX},
    {"modify", "column", STMT_ALTER, ALTER_MODIFY_COLUMN},
    {"change", "primary", STMT_ALTER, ALTER_PRIMARY_KEY},
    {"start", "primary", STMT_START_ALTER, ALTER_PRIMARY_KEY},
    {"alter", "table", STMT_ALTER, ALTER_CLAUSES},
    {"start", "alter", STMT_START_ALTER, ALTER_CLAUSES},
    {"add", "column", STMT_ALTER, ALTER_ADD_COLUMN},
    {"drop", "column", STMT_ALTER, ALTER_DROP_COLUMN},
    {"start", "add", STMT_START_ALTER, ALTER_ADD_COLUMN},
    {"start", "drop", STMT_START_ALTER, ALTER_DROP_COLUMN},
    {"add", "index", STMT_ALTER, ALTER_ADD_INDEX},
    {"add", "unique", STMT_ALTER, ALTER_ADD_INDEX},
    {"drop", "index", STMT_ALTER, ALTER_DROP_INDEX},
    {"start", "index", STMT_START_ALTER, ALTER_ADD_INDEX},
    {"start", "unique", STMT_START_ALTER, ALTER_ADD_INDEX},
    {"step", "index", STMT_STEP_ALTER, 0},
    {"finish", "index", STMT_FINISH_ALTER, 0},
    {"abort", "index", STMT_ABORT_ALTER, 0},
    {"start", "backup", STMT_START_BACKUP, 0},
    {"step", "backup", STMT_STEP_BACKUP, 0},
    {"finish", "backup", STMT_FINISH_BACKUP, 0},
    {"abort", "backup", STMT_ABORT_BACKUP, 0},
    {"begin", NULL, STMT_BEGIN, 0},
    {"commit", NULL, STMT_COMMIT, 0},
    {"rollback", NULL, STMT_ROLLBACK, 0},
    {"insert", NULL, STMT_INSERT, 0},
    {"insert_seq", NULL, STMT_INSERT_SEQ, 0},
    {"update", NULL, STMT_UPDATE, 0},
    {"delete", NULL, STMT_DELETE, 0},
    {"select", NULL, STMT_SELECT, 0},
    {"scan", NULL, STMT_SCAN, 0},
    {"purge", NULL, STMT_PURGE, 0},
    {"at", NULL, STMT_AT, 0},
    {"clean", NULL, STMT_CLEAN, 0},
    {"checkpoint", NULL, STMT_CHECKPOINT, 0},
    {"flush", "table", STMT_FLUSH_TABLE, 0},
    {"flush", "export", STMT_START_ALTER, ALTER_EXPORT},
    {"unlock", "table", STMT_FINISH_ALTER, 0},
    {"import", "table", STMT_ALTER, ALTER_IMPORT},
    {"flush", "log", STMT_FLUSH_LOG, 0},
    {"set", "log_optimize_ddl", STMT_SET_OPTIMIZE, 0},
    {"set", "defragment", STMT_SET_DEFRAGMENT, 0},
    {"restart", NULL, STMT_RESTART, 0},
    {"status", NULL, STMT_STATUS, 0},
};

static dberr_t parse_verb(parser_t *p, stmt_t *stmt)
{
    const char *second = p->n > 1 ? p->tokens[1] : "";
    for (size_t i = 0; i < sizeof(VERBS) / sizeof(VERBS[0]); i++) {
        if (strcmp(p->tokens[0], VERBS[i].word) != 0
            || (VERBS[i].second != NULL && strcmp(second, VERBS[i].second) != 0)) {
            continue;
        }
        stmt->kind = VERBS[i].kind;
        stmt->alter.kind = VERBS[i].alter;
        p->pos = VERBS[i].second == NULL ? 1 : 2;
        return DB_SUCCESS;
    }
    return parse_error(p, "unknown statement '%s'", p->tokens[0]);
}

static dberr_t parse_line(parser_t *p, char *line)
{
    script_t *script = p->script;
    dberr_t err = parse_tokens(p, line);
    if (err != DB_SUCCESS || p->n == 0) {
        return err;
    }
    if (script->n == script->capacity) {
        uint32_t capacity = script->capacity == 0 ? 64 : 2 * script->capacity;
        stmt_t *stmts = realloc(script->stmts, capacity * sizeof(stmt_t));
        if (stmts == NULL) {
            return err_set(p->err, DB_OUT_OF_MEMORY, "no memory for the script");
        }
        script->stmts = stmts;
        script->capacity = capacity;
    }
    stmt_t *stmt = &script->stmts[script->n];
    *stmt = (stmt_t){.line = p->line};
    err = parse_verb(p, stmt);
    AND_THEN(err, parse_arguments(p, stmt));
    if (err == DB_SUCCESS && parse_has_more(p)) {
        err = parse_error(p, "'%s' is too much", p->tokens[p->pos]);
    }
    script->n += err == DB_SUCCESS;
    return err;
}

dberr_t script_parse(const char *text, size_t len, script_t **out, err_sink_t *err)
{
    script_t *script = calloc(1, sizeof(*script));
    if (script == NULL || (script->text = malloc(len + 1)) == NULL) {
        script_free(script);
        return err_set(err, DB_OUT_OF_MEMORY, "no memory for the script");
    }
    memcpy(script->text, text, len);
    script->text[len] = '\0';
    parser_t p = {.script = script, .err = err};
    dberr_t e = DB_SUCCESS;
    char *end = script->text + len;
    for (char *line = script->text; e == DB_SUCCESS && line < end;) {
        p.line++;
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *line_end = newline != NULL ? newline : end;
        bool zero = memchr(line, '\0', (size_t)(line_end - line)) != NULL;
        *line_end = '\0';
        if (line_end > line && line_end[-1] == '\r') {
            line_end[-1] = '\0';
        }
        if (zero) {
            e = parse_error(&p, "a zero byte");
        } else if (line[strspn(line, " \t")] != '#') {
            e = parse_line(&p, line);
        }
        line = line_end + 1;
    }
    if (e != DB_SUCCESS) {
        script_free(script);
        return e;
    }
    *out = script;
    return DB_SUCCESS;
}

void script_free(script_t *script)
{
    if (script == NULL) {
        return;
    }
    while (script->blocks != NULL) {
        block_t *next = script->blocks->next;
        free(script->blocks);
        script->blocks = next;
    }
    free(script->stmts);
    free(script->text);
    free(script);
}

uint32_t script_n_stmts(const script_t *script)
{
    return script->n;
}

const stmt_t *script_stmt(const script_t *script, uint32_t i)
{
    return &script->stmts[i];
}
