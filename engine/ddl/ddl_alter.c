/* ALTER TABLE: which way a statement can be carried out, and the statements that are done at once.

Place: top of ddl/: it names all statements. How those go that are carried out in steps is told by
their tables.

    RENAME COLUMN, RENAME INDEX   INSTANT   one row of the catalogue, one durable commit
    ADD COLUMN, as the last one   INSTANT   on demand: the catalogue and a metadata record
                                            (ddl_instant.c)
    MODIFY COLUMN                 INSTANT   the same, for a longer VARCHAR that no index has as a
                                            whole
                                  COPY      another length otherwise
    DROP INDEX                    NOCOPY    pages of the index are freed
    ADD INDEX                     NOCOPY    pages of the index are loaded
    DEFRAGMENT                    NOCOPY    leaves are packed in place
    EXPORT                        NOCOPY    the file is brought up to date
    IMPORT                        INPLACE   pages are copied
    FORCE, ADD COLUMN, DROP COLUMN, PRIMARY KEY
                                  INPLACE   the table is built anew, with its rows
    TRUNCATE                      INPLACE   the same without rows
    several clauses               as that one of them that can promise least

Rules
1. A statement whose options cannot be kept is refused before anything is looked at:
   ALGORITHM=NOCOPY and INSTANT are promises, and a build that turns out to be something else would
   break them.
2. A name or a length changes by one commit. The object in the cache is replaced, as after every
   DDL, and no page but the catalogue's is touched.
3. A VARCHAR can become longer under its values, unless entries of an index would change
   (ddl_define.c). A shorter one may have values that are too long. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ddl/ddl_build.h"

static const char *const ALGORITHM_NAMES[] = {
    [ALGORITHM_COPY] = "COPY",
    [ALGORITHM_INPLACE] = "INPLACE",
    [ALGORITHM_NOCOPY] = "NOCOPY",
    [ALGORITHM_INSTANT] = "INSTANT",
};

/** What the statement says, and the best that can be promised of it. */
typedef struct alter_class {
    const char *name;
    ddl_algorithm_t best;
    const char *why;                  /**< there is no better one */
    const ddl_statement_t *statement; /**< its steps; NULL: it is done at once */
} alter_class_t;

static const alter_class_t CLASSES[] = {
    [ALTER_REBUILD] = {"FORCE", ALGORITHM_INPLACE, "the table is built anew", &DDL_REBUILD},
    [ALTER_TRUNCATE] = {"TRUNCATE", ALGORITHM_INPLACE, "the table is built anew", &DDL_TRUNCATE},
    [ALTER_DEFRAGMENT] = {"DEFRAGMENT", ALGORITHM_NOCOPY, "pages are packed", &DDL_DEFRAGMENT},
    [ALTER_EXPORT] = {"EXPORT", ALGORITHM_NOCOPY, "pages are written", &DDL_EXPORT},
    [ALTER_IMPORT] = {"IMPORT", ALGORITHM_INPLACE, "pages are copied", &DDL_IMPORT},
    [ALTER_ADD_INDEX] = {"ADD INDEX", ALGORITHM_NOCOPY, "an index is loaded", &DDL_IN_PLACE},
    [ALTER_DROP_INDEX] = {"DROP INDEX", ALGORITHM_NOCOPY, "the pages of an index are freed", NULL},
    [ALTER_RENAME_COLUMN] = {"RENAME COLUMN", ALGORITHM_INSTANT, "", NULL},
    [ALTER_RENAME_INDEX] = {"RENAME INDEX", ALGORITHM_INSTANT, "", NULL},
    [ALTER_MODIFY_COLUMN] = {"MODIFY COLUMN", ALGORITHM_INSTANT, "", NULL}, /* ddl_alter_choose() */
    [ALTER_ADD_COLUMN] = {"ADD COLUMN", ALGORITHM_INPLACE, "the table is built anew", &DDL_REBUILD},
    [ALTER_DROP_COLUMN] = {"DROP COLUMN", ALGORITHM_INPLACE, "the table is built anew",
                           &DDL_REBUILD},
    [ALTER_PRIMARY_KEY] = {"PRIMARY KEY", ALGORITHM_INPLACE, "the table is built anew",
                           &DDL_REBUILD},
};

/** ADD COLUMN that promises not to copy the table. */
static const alter_class_t INSTANT_COLUMN = {"ADD COLUMN", ALGORITHM_INSTANT, "", NULL};

static bool ddl_is_instant_column(const ddl_alter_t *alter)
{
    return alter->kind == ALTER_ADD_COLUMN && alter->algorithm >= ALGORITHM_NOCOPY;
}

/** Its class; of several clauses that of the one that can promise least. */
static const alter_class_t *ddl_alter_class(const ddl_alter_t *alter)
{
    if (ddl_is_instant_column(alter)) {
        return &INSTANT_COLUMN;
    }
    uint32_t n = 0;
    const ddl_alter_t *clauses = ddl_alter_clauses(alter, &n);
    const alter_class_t *class = &CLASSES[clauses[0].kind];
    for (uint32_t i = 1; i < n; i++) {
        const alter_class_t *other = &CLASSES[clauses[i].kind];
        class = other->best < class->best ? other : class;
    }
    return class;
}

static const ddl_statement_t *ddl_alter_statement(const ddl_alter_t *alter)
{
    if (alter->algorithm == ALGORITHM_COPY) {
        return &DDL_COPY;
    }
    const ddl_statement_t *statement = ddl_alter_class(alter)->statement;
    return statement == NULL && alter->kind == ALTER_CLAUSES ? &DDL_IN_PLACE : statement;
}

bool ddl_alter_is_build(const ddl_alter_t *alter)
{
    return ddl_alter_statement(alter) != NULL;
}

bool ddl_alter_is_background(const ddl_alter_t *alter)
{
    return ddl_alter_is_build(alter) && ddl_alter_statement(alter)->background;
}

dberr_t ddl_build_begin(trx_sys_t *sys, const ddl_alter_t *alter, const engine_options_t *options,
                        ddl_build_t **out)
{
    return ddl_build_start(sys, ddl_alter_statement(alter), alter, options, out);
}

/** DB_UNSUPPORTED: it would take more than what the statement promises. */
static dberr_t ddl_alter_refuse(const ddl_alter_t *alter, const char *why, ddl_algorithm_t best,
                                err_sink_t *err)
{
    return err_set(err, DB_UNSUPPORTED,
                   "%s with ALGORITHM=%s is not supported: %s. Try ALGORITHM=%s",
                   ddl_alter_class(alter)->name, ALGORITHM_NAMES[alter->algorithm], why,
                   ALGORITHM_NAMES[best]);
}

dberr_t ddl_alter_check(const ddl_alter_t *alter, err_sink_t *err)
{
    TRY(ddl_clauses_check(alter, err));
    const alter_class_t *class = ddl_alter_class(alter);
    if (alter->algorithm > class->best) {
        return ddl_alter_refuse(alter, class->why, class->best, err);
    }
    if (alter->lock == LOCK_NONE && alter->algorithm == ALGORITHM_COPY) {
        return err_set(err, DB_UNSUPPORTED,
                       "%s with ALGORITHM=COPY and LOCK=NONE is not supported: rows are copied, "
                       "changes of them are not logged. Try LOCK=SHARED",
                       class->name);
    }
    if (alter->lock == LOCK_NONE && alter->kind == ALTER_PRIMARY_KEY) {
        return err_set(err, DB_UNSUPPORTED,
                       "PRIMARY KEY with LOCK=NONE is not supported: changes of rows are logged "
                       "by their old key. Try LOCK=SHARED");
    }
    return DB_SUCCESS;
}

/** Why the catalogue is not enough for it (rule 3); NULL: it is. */
static const char *ddl_modify_why(const ddl_alter_t *alter, const dict_table_t *table, uint32_t col)
{
    uint32_t len = table->cols[col].len;
    if (alter->len < len) {
        return "a value may be longer";
    }
    return alter->len > len && dict_col_prefix(table, col) == len ? "an index has all of the column"
                                                                  : NULL;
}

dberr_t ddl_alter_choose(trx_sys_t *sys, ddl_alter_t *alter)
{
    err_sink_t *sink = &ddl_env(sys)->err;
    if (alter->kind != ALTER_MODIFY_COLUMN && !ddl_is_instant_column(alter)) {
        return DB_SUCCESS;
    }
    dict_table_t *table = NULL;
    dberr_t err = ddl_table_lock(sys, alter->table, &table);
    if (alter->kind == ALTER_ADD_COLUMN) {
        TRY(err);
        const char *reason = ddl_instant_why(alter, table);
        return reason != NULL ? ddl_alter_refuse(alter, reason, ALGORITHM_INPLACE, sink) : err;
    }
    uint32_t col = 0;
    AND_THEN(err, ddl_modify_find(alter, table, sink, &col));
    const char *why = err == DB_SUCCESS ? ddl_modify_why(alter, table, col) : NULL;
    if (why == NULL || alter->algorithm == ALGORITHM_COPY) {
        return err;
    }
    if (alter->algorithm != ALGORITHM_DEFAULT) {
        return ddl_alter_refuse(alter, why, ALGORITHM_COPY, sink);
    }
    alter->algorithm = ALGORITHM_COPY;
    return ddl_alter_check(alter, sink);
}

/** The rows that say what has changed in a copy of the cached table. */
static dberr_t ddl_change_of(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *sink,
                             ddl_change_t *out)
{
    const char *name = alter->new_name != NULL ? alter->new_name : alter->name;
    *out = (ddl_change_t){ddl_rows_update_column, .table = table};
    if (alter->kind != ALTER_RENAME_INDEX) {
        return ddl_find_col(table, name, sink, &out->col);
    }
    *out = (ddl_change_t){ddl_rows_update_indexes, .indexes = dict_index_get(table, name), .n = 1};
    return DB_SUCCESS;
}

/** What changes in the catalogue only: a name or a length. */
static dberr_t ddl_change_part(trx_sys_t *sys, const ddl_alter_t *alter)
{
    env_t *env = ddl_env(sys);
    dict_table_t *table = NULL;
    TRY(ddl_table_lock(sys, alter->table, &table));
    dict_table_t *changed = NULL;
    TRY(dict_table_copy(trx_sys_dict(sys), table, &changed));
    dberr_t err = ddl_alter_define(alter, changed, &env->err);
    ddl_change_t change;
    AND_THEN(err, ddl_change_of(alter, changed, &env->err, &change));
    AND_THEN(err, dict_table_layout(changed, buf_page_size(trx_sys_pool(sys)), &env->err));
    if (err != DB_SUCCESS) {
        free(changed);
        return err;
    }
    TRY(ddl_commit_put(sys, &change, changed));
    PROBE_POINT(env->probe, "ddl.committed");
    env->stats.alters_instant++;
    env->stats.varchars_extended += alter->kind == ALTER_MODIFY_COLUMN;
    return DB_SUCCESS;
}

dberr_t ddl_alter_at_once(trx_sys_t *sys, const ddl_alter_t *alter)
{
    CHECK(!ddl_alter_is_build(alter));
    return alter->kind == ALTER_DROP_INDEX   ? ddl_drop_index(sys, alter->table, alter->name)
           : alter->kind == ALTER_ADD_COLUMN ? ddl_add_column_instant(sys, alter)
                                             : ddl_change_part(sys, alter);
}
