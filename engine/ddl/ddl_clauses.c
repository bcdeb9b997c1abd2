/* ALTER TABLE of several clauses: which of them go together, and what becomes of the columns.

Place: ddl/, beside ddl_define.c, which applies them; knows no pages and no rows.

Rules
1. A clause speaks of what goes or changes by the name that it has had, and of what comes by the
   name that it gets. A name can go and come in one statement; twice it can do neither.
2. What a rename gives, no other rename takes: clauses have no order among them. */
#include <string.h>

#include "ddl/ddl_int.h"

static bool ddl_is_of_index(const ddl_alter_t *clause)
{
    return clause->kind == ALTER_ADD_INDEX || clause->kind == ALTER_DROP_INDEX
           || clause->kind == ALTER_RENAME_INDEX;
}

static bool ddl_is_rename(const ddl_alter_t *clause)
{
    return clause->kind == ALTER_RENAME_INDEX || clause->kind == ALTER_RENAME_COLUMN;
}

/** The name that it takes, "" if none. */
static const char *ddl_name_taken(const ddl_alter_t *clause)
{
    bool drop = clause->kind == ALTER_DROP_INDEX || clause->kind == ALTER_DROP_COLUMN;
    return drop || ddl_is_rename(clause) ? clause->name : "";
}

/** The name that it gives, "" if none. The others of ADD INDEX must be free in any case. */
static const char *ddl_name_given(const ddl_alter_t *clause)
{
    if (clause->kind == ALTER_ADD_INDEX && clause->n_defs > 0) {
        return clause->defs[0].name;
    }
    return ddl_is_rename(clause)              ? clause->new_name
           : clause->kind == ALTER_ADD_COLUMN ? clause->name
                                              : "";
}

static bool ddl_same_name(const char *a, const char *b)
{
    return a[0] != '\0' && strcmp(a, b) == 0;
}

/** The name that keeps two clauses from one statement; NULL: none. */
static const char *ddl_clauses_clash(const ddl_alter_t *a, const ddl_alter_t *b)
{
    const char *taken = ddl_name_taken(a);
    const char *given = ddl_name_given(a);
    if (ddl_is_of_index(a) != ddl_is_of_index(b)) {
        return NULL;
    }
    if (ddl_same_name(taken, ddl_name_taken(b))) {
        return taken;
    }
    if (ddl_same_name(given, ddl_name_given(b))) {
        return given;
    }
    bool renames = ddl_is_rename(a) && ddl_is_rename(b);
    return renames && ddl_same_name(given, ddl_name_taken(b))   ? given
           : renames && ddl_same_name(taken, ddl_name_given(b)) ? taken
                                                                : NULL;
}

static bool ddl_can_be_clause(const ddl_alter_t *clause)
{
    return ddl_is_of_index(clause) || ddl_is_rename(clause) || clause->kind == ALTER_REBUILD
           || clause->kind == ALTER_ADD_COLUMN || clause->kind == ALTER_DROP_COLUMN;
}

dberr_t ddl_clauses_check(const ddl_alter_t *alter, err_sink_t *err)
{
    uint32_t n = 0;
    uint32_t n_columns = 0;
    const ddl_alter_t *clauses = ddl_alter_clauses(alter, &n);
    for (uint32_t i = 0; alter->kind == ALTER_CLAUSES && i < n; i++) {
        n_columns += clauses[i].kind == ALTER_ADD_COLUMN;
        if (!ddl_can_be_clause(&clauses[i]) || n_columns > 1) {
            return err_set(err, DB_UNSUPPORTED,
                           "clause %u of the ALTER TABLE is not supported beside others: FORCE, "
                           "ADD, DROP and RENAME of indexes and columns are, and one new column. "
                           "Try a statement of its own",
                           i + 1);
        }
        for (uint32_t j = 0; j < i; j++) {
            const char *name = ddl_clauses_clash(&clauses[j], &clauses[i]);
            if (name != NULL) {
                return err_set(err, DB_UNSUPPORTED,
                               "clauses %u and %u of the ALTER TABLE are both about the name '%s'. "
                               "Try two statements",
                               j + 1, i + 1, name);
            }
        }
    }
    return n > 0 ? DB_SUCCESS : err_set(err, DB_ERROR, "an ALTER TABLE without clauses");
}

/** The name that a column has had before the statement; NULL: there was none. */
static const char *ddl_column_before(const ddl_alter_t *alter, const char *name)
{
    uint32_t n = 0;
    const ddl_alter_t *clauses = ddl_alter_clauses(alter, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (!ddl_is_of_index(&clauses[i]) && ddl_same_name(ddl_name_given(&clauses[i]), name)) {
            return ddl_is_rename(&clauses[i]) ? clauses[i].name : NULL;
        }
    }
    return name;
}

void ddl_alter_map(const ddl_alter_t *alter, const dict_table_t *from, const dict_table_t *to,
                   uint32_t *cols)
{
    for (uint32_t i = 0; i < to->n_cols; i++) {
        const char *name = ddl_column_before(alter, to->cols[i].name);
        cols[i] = name != NULL ? 0 : from->n_cols;
        while (cols[i] < from->n_cols && strcmp(from->cols[cols[i]].name, name) != 0) {
            cols[i]++;
        }
    }
}
