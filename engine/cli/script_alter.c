/* The script parser: statements that ALTER a table, and their options.

Place: cli/, beside script.c, above script_token.c.

Rules
1. Options come last, each at most once: algorithm=WORD, lock=WORD. Whether the statement can be
   carried out that way is not the parser's business: the engine refuses it.
2. A clause of `alter table` is the statement of its own without the table. */
#include <string.h>

#include "cli/script_int.h"

/** COL or COL:PREFIX, cut out of the list. */
static dberr_t parse_index_field(parser_t *p, char *text, ddl_index_def_t *def)
{
    if (def->n_fields == COLUMNS_MAX) {
        return parse_error(p, "index '%s' has more than %u columns", def->name, COLUMNS_MAX);
    }
    char *colon = strchr(text, ':');
    int64_t prefix = 0;
    if (colon != NULL) {
        *colon = '\0';
        if (!parse_integer(colon + 1, 1, BTR_KEY_LEN_MAX, &prefix)) {
            return parse_error(p, "prefix of column '%s' must be 1 to %u, not '%s'", text,
                               BTR_KEY_LEN_MAX, colon + 1);
        }
    }
    TRY(parse_name_check(p, "column", text));
    memcpy(def->fields[def->n_fields].col, text, strlen(text) + 1);
    def->fields[def->n_fields].prefix_len = (uint32_t)prefix;
    def->n_fields++;
    return DB_SUCCESS;
}

static dberr_t parse_index(parser_t *p, char *token, ddl_index_def_t *def)
{
    char *open = strchr(token, '(');
    size_t len = strlen(token);
    if (open == NULL || token[len - 1] != ')') {
        return parse_error(p, "INDEX(COLUMN[:PREFIX],...) without blanks expected, not '%s'",
                           token);
    }
    *open = '\0';
    token[len - 1] = '\0';
    TRY(parse_name_check(p, "index", token));
    memcpy(def->name, token, strlen(token) + 1);
    for (char *field = open + 1; field != NULL;) {
        char *comma = strchr(field, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        TRY(parse_index_field(p, field, def));
        field = comma != NULL ? comma + 1 : NULL;
    }
    return DB_SUCCESS;
}

/** The value of an option, if the next word is that option. */
static const char *parse_option_word(const parser_t *p, const char *name)
{
    size_t len = strlen(name);
    const char *token = parse_has_more(p) ? p->tokens[p->pos] : "";
    return strncmp(token, name, len) == 0 && token[len] == '=' ? token + len + 1 : NULL;
}

static bool parse_at_option(const parser_t *p)
{
    return parse_option_word(p, "algorithm") != NULL || parse_option_word(p, "lock") != NULL;
}

/** Is another clause next? */
static bool parse_at_and(const parser_t *p)
{
    return parse_has_more(p) && strcmp(p->tokens[p->pos], "and") == 0;
}

static dberr_t parse_choice(parser_t *p, const char *what, const char *word,
                            const char *const *words, uint32_t n, uint32_t *out)
{
    p->pos++;
    if (*out != 0) {
        return parse_error(p, "%s is said twice", what);
    }
    for (uint32_t i = 1; i < n; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = i;
            return DB_SUCCESS;
        }
    }
    return parse_error(p, "unknown %s '%s'", what, word);
}

static dberr_t parse_options(parser_t *p, ddl_alter_t *alter)
{
    static const char *const ALGORITHMS[] = {
        [ALGORITHM_COPY] = "copy",
        [ALGORITHM_INPLACE] = "inplace",
        [ALGORITHM_NOCOPY] = "nocopy",
        [ALGORITHM_INSTANT] = "instant",
    };
    static const char *const LOCKS[] = {
        [LOCK_NONE] = "none", [LOCK_SHARED] = "shared", [LOCK_EXCLUSIVE] = "exclusive"};
    uint32_t algorithm = ALGORITHM_DEFAULT;
    uint32_t lock = LOCK_DEFAULT;
    dberr_t err = DB_SUCCESS;
    while (err == DB_SUCCESS && parse_at_option(p)) {
        const char *word = parse_option_word(p, "algorithm");
        if (word != NULL) {
            err = parse_choice(p, "algorithm", word, ALGORITHMS,
                               sizeof(ALGORITHMS) / sizeof(ALGORITHMS[0]), &algorithm);
        } else {
            err = parse_choice(p, "lock", parse_option_word(p, "lock"), LOCKS,
                               sizeof(LOCKS) / sizeof(LOCKS[0]), &lock);
        }
    }
    alter->algorithm = (ddl_algorithm_t)algorithm;
    alter->lock = (ddl_lock_t)lock;
    return err;
}

static dberr_t parse_indexes(parser_t *p, bool unique, ddl_alter_t *alter)
{
    ddl_index_def_t *defs = NULL;
    dberr_t err = parse_alloc(p, p->n - p->pos + 1, sizeof(*defs), &defs);
    while (err == DB_SUCCESS && parse_has_more(p) && !parse_at_option(p) && !parse_at_and(p)) {
        defs[alter->n_defs].unique = unique;
        err = parse_index(p, p->tokens[p->pos++], &defs[alter->n_defs++]);
    }
    if (err == DB_SUCCESS && (alter->n_defs == 0 || alter->n_defs >= INDEXES_MAX)) {
        err = parse_error(p, "1 to %u indexes expected", INDEXES_MAX - 1);
    }
    alter->defs = defs;
    return err;
}

/** COL[,COL...]. */
static dberr_t parse_key(parser_t *p, ddl_alter_t *alter)
{
    ddl_index_def_t *def = NULL;
    char *list = NULL;
    TRY(parse_alloc(p, 1, sizeof(*def), &def));
    TRY(parse_next(p, "COLUMN[,COLUMN...]", &list));
    memcpy(def->name, "PRIMARY", sizeof("PRIMARY"));
    alter->defs = def;
    alter->n_defs = 1;
    while (list != NULL) {
        char *comma = strchr(list, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        TRY(parse_name_check(p, "column", list));
        TRY(parse_index_field(p, list, def));
        list = comma != NULL ? comma + 1 : NULL;
    }
    return DB_SUCCESS;
}

/** NAME, and NEW if there is room for one. */
static dberr_t parse_names(parser_t *p, const char *what, const char **name, const char **new_name)
{
    TRY(parse_name(p, what, name));
    return new_name != NULL ? parse_name(p, what, new_name) : DB_SUCCESS;
}

/** COL TYPE. */
static dberr_t parse_modify(parser_t *p, ddl_alter_t *alter)
{
    TRY(parse_name(p, "column", &alter->name));
    char *type = NULL;
    TRY(parse_next(p, "type", &type));
    return parse_type(p, type, &alter->type, &alter->len);
}

/** first, or after=COL. */
static dberr_t parse_position(parser_t *p, ddl_alter_t *alter)
{
    const char *after = parse_option_word(p, "after");
    if (after != NULL) {
        p->pos++;
        alter->after = after;
        return parse_name_check(p, "column", after);
    }
    alter->after = parse_word(p, "first") ? "" : NULL;
    return DB_SUCCESS;
}

/** COL:TYPE [null|not null] [default=VALUE] [first|after=COL]. */
static dberr_t parse_new_column(parser_t *p, stmt_t *stmt, ddl_alter_t *alter)
{
    if (stmt->definition != NULL) {
        return parse_error(p, "a statement adds one column");
    }
    TRY(parse_alloc(p, 1, sizeof(dict_table_t), &stmt->definition));
    dict_table_t *table = stmt->definition;
    dict_col_t *col = &table->cols[0];
    table->n_cols = 1;
    TRY(parse_column(p, col));
    col->row_offset = 1; /* behind the NULL bits */
    table->row_size = col->row_offset + dict_col_row_len(col);
    alter->name = col->name;
    alter->col = col;
    stmt->alter.col = col;
    if (parse_option_word(p, "default") != NULL) {
        TRY(parse_alloc(p, 1, sizeof(stmt_assign_t), &stmt->preset));
        TRY(parse_assign(p, stmt->preset));
        stmt->preset->col = col->name;
    }
    return parse_position(p, alter);
}

/** The words of a statement that has three of them: its last one. */
static dberr_t parse_third_word(parser_t *p)
{
    const char *second = p->tokens[p->pos - 1];
    bool start = strcmp(p->tokens[0], "start") == 0;
    bool column = start && (strcmp(second, "add") == 0 || strcmp(second, "drop") == 0);
    const char *third = column ? "column" : strcmp(second, "unique") == 0 ? "index" : NULL;
    return third == NULL || parse_word(p, third)
               ? DB_SUCCESS
               : parse_error(p, "`%s` expected behind `%s`", third, second);
}

/** What the statement says behind its table, or a clause behind its first words. */
static dberr_t parse_clause(parser_t *p, bool unique, stmt_t *stmt, ddl_alter_t *alter)
{
    switch (alter->kind) {
    case ALTER_ADD_INDEX:
        return parse_indexes(p, unique, alter);
    case ALTER_DROP_INDEX:
        return parse_names(p, "index", &alter->name, NULL);
    case ALTER_RENAME_INDEX:
        return parse_names(p, "index", &alter->name, &alter->new_name);
    case ALTER_MODIFY_COLUMN:
        return parse_modify(p, alter);
    case ALTER_PRIMARY_KEY:
        return parse_key(p, alter);
    case ALTER_ADD_COLUMN:
        return parse_new_column(p, stmt, alter);
    case ALTER_DROP_COLUMN:
        return parse_names(p, "column", &alter->name, NULL);
    case ALTER_RENAME_COLUMN:
        return parse_names(p, "column", &alter->name, &alter->new_name);
    default:
        return DB_SUCCESS; /* FORCE */
    }
}

/** The first words of a clause: `force`, `add index`, `add unique index` ... */
static dberr_t parse_clause_kind(parser_t *p, alter_kind_t *kind, bool *unique)
{
    static const struct {
        const char *word;
        const char *second;
        alter_kind_t kind;
    } KINDS[] = {
        {"add", "index", ALTER_ADD_INDEX},       {"add", "column", ALTER_ADD_COLUMN},
        {"drop", "index", ALTER_DROP_INDEX},     {"drop", "column", ALTER_DROP_COLUMN},
        {"rename", "index", ALTER_RENAME_INDEX}, {"rename", "column", ALTER_RENAME_COLUMN},
    };
    char *word = NULL;
    TRY(parse_next(p, "clause", &word));
    *kind = ALTER_REBUILD;
    if (strcmp(word, "force") == 0) {
        return DB_SUCCESS;
    }
    *unique = strcmp(word, "add") == 0 && parse_word(p, "unique");
    const char *second = parse_has_more(p) ? p->tokens[p->pos++] : "";
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
        if (strcmp(word, KINDS[i].word) == 0 && strcmp(second, KINDS[i].second) == 0
            && (!*unique || KINDS[i].kind == ALTER_ADD_INDEX)) {
            *kind = KINDS[i].kind;
            return DB_SUCCESS;
        }
    }
    return parse_error(p, "unknown clause '%s %s%s'", word, *unique ? "unique " : "", second);
}

/** CLAUSE [and CLAUSE]... */
static dberr_t parse_clauses(parser_t *p, stmt_t *stmt)
{
    ddl_alter_t *clauses = NULL;
    ddl_alter_t *alter = &stmt->alter;
    TRY(parse_alloc(p, p->n - p->pos + 1, sizeof(*clauses), &clauses));
    alter->clauses = clauses;
    do {
        bool unique = false;
        ddl_alter_t *clause = &clauses[alter->n_clauses++];
        TRY(parse_clause_kind(p, &clause->kind, &unique));
        TRY(parse_clause(p, unique, stmt, clause));
    } while (parse_word(p, "and"));
    return DB_SUCCESS;
}

dberr_t parse_alter(parser_t *p, stmt_t *stmt)
{
    ddl_alter_t *alter = &stmt->alter;
    bool unique = strcmp(p->tokens[p->pos - 1], "unique") == 0;
    TRY(parse_third_word(p));
    dberr_t err = parse_name(p, "table", &stmt->table);
    alter->table = stmt->table;
    TRY(err);
    switch (alter->kind) {
    case ALTER_TRUNCATE:
    case ALTER_EXPORT:
        return DB_SUCCESS; /* there is one way to do it */
    case ALTER_IMPORT:
        return parse_name(p, "exported table", &alter->name);
    case ALTER_DEFRAGMENT:
        return parse_has_more(p) ? parse_name(p, "index", &alter->name) : DB_SUCCESS;
    case ALTER_CLAUSES:
        err = parse_clauses(p, stmt);
        break;
    default:
        err = parse_clause(p, unique, stmt, alter);
    }
    TRY(err);
    return parse_options(p, alter);
}
