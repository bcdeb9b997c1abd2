/* CREATE, DROP and RENAME TABLE; DROP INDEX.

Place: ddl/, above trx/ (catalogue rows) and fil/ (files).

    CREATE   rows INCOMPLETE | file, page 0, tree | rows READY
    DROP     rows DROPPING   | pages forgotten, file gone | rows gone
    RENAME   file            | name in the catalogue

Rules
1. The bars are durable commits: a crash between two of them leaves a status, or a file name that
   the catalogue contradicts, and ddl_recover() needs nothing else to finish or undo the statement
   (I12).
2. A file is created after the row that announces it and deleted before the row that remembers it
   goes, so that no file without a row can be left behind. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ddl/ddl_int.h"

dberr_t ddl_table_is_changed(trx_sys_t *sys, const dict_table_t *table)
{
    return err_set(&ddl_env(sys)->err, DB_TABLE_LOCKED,
                   "table '%s' has changes of %u open transaction(s)", table->name, table->n_trx);
}

dberr_t ddl_table_refuse_duplicate(trx_sys_t *sys, const dict_table_t *table, const char *index)
{
    ddl_env(sys)->stats.builds_duplicate++;
    return err_set(&ddl_env(sys)->err, DB_DUPLICATE_KEY,
                   "table '%s': two rows have the same key of the unique index '%s'", table->name,
                   index);
}

dberr_t ddl_table_lock(trx_sys_t *sys, const char *name, dict_table_t **out)
{
    dict_table_t *table = dict_table_get(trx_sys_dict(sys), name);
    if (table == NULL) {
        return err_set(&ddl_env(sys)->err, DB_NOT_FOUND, "no table '%s'", name);
    }
    if (table->building) {
        return err_set(&ddl_env(sys)->err, DB_TABLE_LOCKED, "table '%s': a build is running", name);
    }
    if (table->n_trx > 0) {
        return ddl_table_is_changed(sys, table);
    }
    *out = table;
    return DB_SUCCESS;
}

dberr_t ddl_table_name_free(trx_sys_t *sys, const char *name)
{
    env_t *env = ddl_env(sys);
    TRY(ddl_name_check(&env->err, "table", name));
    for (dict_table_t *t = dict_first(trx_sys_dict(sys)); t != NULL; t = t->next) {
        if (strcmp(t->name, name) == 0) {
            return err_set(&env->err, DB_ALREADY_EXISTS, "table '%s' exists", name);
        }
    }
    char path[PATH_LEN_MAX + 1];
    fil_path_of_table(name, path);
    bool exists = false;
    dberr_t err = env_exists(env, path, &exists);
    if (err == DB_SUCCESS && exists) {
        return err_set(&env->err, DB_ALREADY_EXISTS,
                       "file '%s' is in the way: no table of the catalogue owns it", path);
    }
    return err;
}

/* ---- removal, shared by DROP, failed statements and recovery ---- */

static dberr_t ddl_file_remove(trx_sys_t *sys, const dict_table_t *table)
{
    buf_pool_t *pool = trx_sys_pool(sys);
    fil_space_t *space = fil_space_get(buf_fil(pool), table->space);
    if (space == NULL) {
        return DB_SUCCESS;
    }
    TRY(buf_log_free_check(pool)); /* while the pages can still be written */
    TRY(buf_discard_space(pool, table->space));
    return fil_space_delete(buf_fil(pool), space);
}

/** Through the segments: an interrupted load has pages that no node pointer leads to. */
static dberr_t ddl_trees_free(trx_sys_t *sys, dict_index_t *indexes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        TRY(dict_index_tree_free(trx_sys_dict(sys), &indexes[i]));
    }
    return DB_SUCCESS;
}

dberr_t ddl_table_remove(trx_sys_t *sys, dict_table_t *table)
{
    const ddl_change_t rows = {ddl_rows_delete_table, .table = table};
    TRY(table->in_system ? ddl_trees_free(sys, table->indexes, table->n_indexes)
                         : ddl_file_remove(sys, table));
    TRY(ddl_commit(sys, &rows, 1));
    PROBE_POINT(ddl_env(sys)->probe, "ddl.committed");
    dict_table_remove(trx_sys_dict(sys), table->id);
    return DB_SUCCESS;
}

static dberr_t ddl_undo_table(trx_sys_t *sys, void *ctx)
{
    return ddl_table_remove(sys, ctx);
}

dberr_t ddl_table_undo(trx_sys_t *sys, dict_table_t *table, dberr_t err)
{
    return ddl_undo(sys, err, ddl_undo_table, table);
}

/** A copy of the cached table without some of its indexes. */
static dberr_t ddl_copy_without(dict_t *dict, const dict_index_t *indexes, uint32_t n,
                                dict_table_t **out)
{
    const dict_table_t *table = dict_table_by_id(dict, indexes[0].table->id);
    CHECK(table != NULL);
    TRY(dict_table_copy(dict, table, out));
    dict_table_t *copy = *out;
    copy->n_indexes = 0;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        bool goes = false;
        for (uint32_t j = 0; j < n; j++) {
            goes = goes || indexes[j].id == table->indexes[i].id;
        }
        if (!goes) {
            copy->indexes[copy->n_indexes] = table->indexes[i];
            copy->indexes[copy->n_indexes++].table = copy;
        }
    }
    return DB_SUCCESS;
}

dberr_t ddl_indexes_remove(trx_sys_t *sys, dict_index_t *indexes, uint32_t n)
{
    const ddl_change_t rows = {ddl_rows_delete_indexes, .indexes = indexes, .n = n};
    dict_t *dict = trx_sys_dict(sys);
    dict_table_t *rest = NULL;
    TRY(ddl_copy_without(dict, indexes, n, &rest));
    dberr_t err = ddl_trees_free(sys, indexes, n);
    if (err != DB_SUCCESS) {
        free(rest);
        return err;
    }
    TRY(ddl_commit_put(sys, &rows, rest));
    PROBE_POINT(ddl_env(sys)->probe, "ddl.committed");
    return DB_SUCCESS;
}

dberr_t ddl_trees_create(trx_sys_t *sys, dict_index_t *indexes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        TRY(dict_index_tree_create(trx_sys_dict(sys), &indexes[i]));
    }
    return DB_SUCCESS;
}

/* ---- CREATE TABLE ---- */

dberr_t ddl_table_identify(trx_sys_t *sys, dict_table_t *table)
{
    dict_t *dict = trx_sys_dict(sys);
    table->status = DICT_INCOMPLETE;
    TRY(dict_new_table_id(dict, &table->id));
    table->space = SPACE_SYSTEM;
    TRY(table->in_system ? DB_SUCCESS : dict_new_space_id(dict, &table->space));
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_index_t *index = &table->indexes[i];
        index->status = DICT_INCOMPLETE;
        TRY(dict_new_index_id(dict, &index->id));
        index->tree.id = index->id;
        index->tree.space = table->space;
        index->tree.root = FIL_NULL;
    }
    return DB_SUCCESS;
}

/** Checks a definition and completes a copy of it: layout, ids, status. */
static dberr_t ddl_create_define(trx_sys_t *sys, const dict_table_t *definition,
                                 dict_table_t *table)
{
    err_sink_t *sink = &ddl_env(sys)->err;
    *table = *definition;
    table->n_indexes = 1;
    table->n_trx = 0;
    table->next = NULL;
    dict_index_t *primary = &table->indexes[0];
    memcpy(primary->name, "PRIMARY", sizeof("PRIMARY"));
    primary->table = table;
    primary->clustered = true;
    for (uint32_t i = 0; i < table->n_cols && i < COLUMNS_MAX; i++) {
        TRY(ddl_name_check(sink, "column", table->cols[i].name));
    }
    TRY(dict_table_layout(table, buf_page_size(trx_sys_pool(sys)), sink));
    return ddl_table_identify(sys, table);
}

dberr_t ddl_table_create_file(trx_sys_t *sys, dict_table_t *table, uint32_t size_pages)
{
    if (table->in_system) {
        return ddl_trees_create(sys, table->indexes, table->n_indexes);
    }
    buf_pool_t *pool = trx_sys_pool(sys);
    char path[PATH_LEN_MAX + 1];
    fil_path_of_table(table->name, path);
    fil_space_t *space = NULL;
    TRY(buf_log_free_check(pool));
    TRY(fil_space_create(buf_fil(pool), table->space, path,
                         size_pages > 0 ? size_pages : FSP_INITIAL_PAGES, &space));
    if (size_pages > 0) {
        return DB_SUCCESS;
    }
    TRY(buf_log_free_check(pool));
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    dberr_t err = fsp_header_init(&mtr, table->space, FSP_INITIAL_PAGES);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    mtr_commit(&mtr);
    return ddl_trees_create(sys, table->indexes, table->n_indexes);
}

static dberr_t ddl_create_steps(trx_sys_t *sys, dict_table_t *table)
{
    dict_index_t *primary = &table->indexes[0];
    const ddl_change_t rows = {ddl_rows_insert_table, .table = table};
    const ddl_change_t ready[] = {{ddl_rows_update_indexes, .indexes = primary, .n = 1},
                                  {ddl_rows_update_table, .table = table}};
    TRY(ddl_commit(sys, &rows, 1));
    PROBE_POINT(ddl_env(sys)->probe, "ddl.create_logged");
    dberr_t err = ddl_table_create_file(sys, table, 0);
    if (err == DB_SUCCESS) {
        table->status = DICT_READY;
        primary->status = DICT_READY;
        err = ddl_commit(sys, ready, 2);
    }
    if (err == DB_SUCCESS) {
        PROBE_POINT(ddl_env(sys)->probe, "ddl.committed");
        ddl_env(sys)->stats.system_tables += table->in_system;
        return DB_SUCCESS;
    }
    return ddl_table_undo(sys, table, err);
}

dberr_t ddl_create_table(trx_sys_t *sys, const dict_table_t *definition)
{
    TRY(ddl_table_name_free(sys, definition->name));
    dict_table_t *table = malloc(sizeof(*table));
    if (table == NULL) {
        return err_set(&ddl_env(sys)->err, DB_OUT_OF_MEMORY, "no memory for a table definition");
    }
    dberr_t err = ddl_create_define(sys, definition, table);
    AND_THEN(err, ddl_create_steps(sys, table));
    if (err != DB_SUCCESS) {
        free(table);
        return err;
    }
    dict_table_put(trx_sys_dict(sys), table);
    return DB_SUCCESS;
}

dberr_t ddl_file_rename(trx_sys_t *sys, fil_space_t *space, const char *path)
{
    buf_pool_t *pool = trx_sys_pool(sys);
    TRY(buf_log_free_check(pool));
    return fil_space_rename(buf_fil(pool), space, path);
}

/* ---- DROP TABLE, RENAME TABLE, DROP INDEX ---- */

dberr_t ddl_drop_table(trx_sys_t *sys, const char *name)
{
    dict_table_t *table = NULL;
    TRY(ddl_table_lock(sys, name, &table));
    dict_table_t *dropping = NULL;
    TRY(dict_table_copy(trx_sys_dict(sys), table, &dropping));
    dropping->status = DICT_DROPPING;
    TRY(ddl_commit_put(sys, &(ddl_change_t){ddl_rows_update_table, .table = dropping}, dropping));
    PROBE_POINT(ddl_env(sys)->probe, "ddl.drop_logged");
    return ddl_table_remove(sys, dropping);
}

dberr_t ddl_refuse_in_system(trx_sys_t *sys, const dict_table_t *table)
{
    return table->in_system
               ? err_set(&ddl_env(sys)->err, DB_UNSUPPORTED,
                         "table '%s' is in the system tablespace: it has no file of its own",
                         table->name)
               : DB_SUCCESS;
}

/** The name that a file had before a rename that fails. */
typedef struct ddl_old_path {
    fil_space_t *space;
    char path[PATH_LEN_MAX + 1];
} ddl_old_path_t;

static dberr_t ddl_undo_rename(trx_sys_t *sys, void *ctx)
{
    const ddl_old_path_t *old = ctx;
    return ddl_file_rename(sys, old->space, old->path);
}

/** Renames the file, then the table in the catalogue; named is a copy with the new name. */
static dberr_t ddl_rename_steps(trx_sys_t *sys, const dict_table_t *table, dict_table_t *named)
{
    if (table->in_system) {
        return ddl_commit_put(sys, &(ddl_change_t){ddl_rows_update_table, .table = named}, named);
    }
    fil_t *fil = buf_fil(trx_sys_pool(sys));
    ddl_old_path_t old = {.space = fil_space_get(fil, table->space)};
    CHECK(old.space != NULL);
    char path[PATH_LEN_MAX + 1];
    fil_path_of_table(table->name, old.path);
    fil_path_of_table(named->name, path);
    dberr_t err = ddl_file_rename(sys, old.space, path);
    if (err != DB_SUCCESS) {
        free(named);
        return err;
    }
    err = ddl_commit_put(sys, &(ddl_change_t){ddl_rows_update_table, .table = named}, named);
    if (err == DB_SUCCESS) {
        PROBE_POINT(ddl_env(sys)->probe, "ddl.committed");
        return DB_SUCCESS;
    }
    return ddl_undo(sys, err, ddl_undo_rename, &old);
}

dberr_t ddl_rename_table(trx_sys_t *sys, const char *from, const char *to)
{
    dict_table_t *table = NULL;
    TRY(ddl_table_lock(sys, from, &table));
    TRY(ddl_table_name_free(sys, to));
    dict_table_t *named = NULL;
    TRY(dict_table_copy(trx_sys_dict(sys), table, &named));
    memcpy(named->name, to, strlen(to) + 1);
    return ddl_rename_steps(sys, table, named);
}

dberr_t ddl_drop_index(trx_sys_t *sys, const char *table_name, const char *name)
{
    dict_table_t *table = NULL;
    TRY(ddl_table_lock(sys, table_name, &table));
    dict_index_t *index = NULL;
    TRY(ddl_find_secondary(table, name, &ddl_env(sys)->err, &index));
    dict_table_t *dropping = NULL;
    TRY(dict_table_copy(trx_sys_dict(sys), table, &dropping));
    index = dict_index_get(dropping, name);
    index->status = DICT_DROPPING;
    TRY(ddl_commit_put(sys, &(ddl_change_t){ddl_rows_update_indexes, .indexes = index, .n = 1},
                       dropping));
    PROBE_POINT(ddl_env(sys)->probe, "ddl.drop_logged");
    ddl_env(sys)->stats.indexes_dropped++;
    return ddl_indexes_remove(sys, index, 1);
}
