/* Recovery's part of data definition: finish or undo what a crash interrupted.

Place: ddl/; called by recv_finish() after the catalogue's own transactions were rolled back and the
catalogue was loaded, before anything else changes it.

    catalogue says       file or pages                              done here
    table INCOMPLETE     none, empty, with a page 0, or more        file deleted, rows removed
    table DROPPING       whole, or gone already, perhaps under      file deleted, rows removed
                         the name that it had before a rebuild
    index not READY      some pages, perhaps never written          pages freed, rows removed
    table READY          under another name (RENAME, rebuild)       file renamed to the table's name
    table READY          none                                       refused (I30)

A table of the system tablespace has no file: its trees are freed, and names are rows only.

Rules
1. Every step is repeatable: a crash in it leaves one of the states above (I17).
2. No file is deleted but those of a table that the catalogue calls INCOMPLETE or DROPPING, and
   temporary files of sorts and metadata of exported tables, which belong to nobody after a
   restart. */
#include <inttypes.h>
#include <string.h>

#include "ddl/ddl_cfg.h"
#include "ddl/ddl_int.h"
#include "ddl/merge_sort.h"

/** Registers the file of an unfinished table that recovery of the log did not meet: its page 0 may
never have been written. A file of that name with another space id is left alone. */
static dberr_t ddl_recover_open_file(trx_sys_t *sys, const dict_table_t *table)
{
    fil_t *fil = buf_fil(trx_sys_pool(sys));
    env_t *env = ddl_env(sys);
    char path[PATH_LEN_MAX + 1];
    fil_path_of_table(table->name, path);
    if (table->in_system || fil_space_get(fil, table->space) != NULL
        || fil_space_by_path(fil, path) != NULL) {
        return DB_SUCCESS;
    }
    bool exists = false;
    dberr_t err = env_exists(env, path, &exists);
    if (err != DB_SUCCESS || !exists) {
        return err;
    }
    os_file_t *file = NULL;
    TRY(env_open(env, path, OS_OPEN, &file));
    byte head[FIL_PAGE_DATA];
    size_t n_read = 0;
    err = env_read(env, file, 0, head, sizeof(head), &n_read);
    env_close(env, file);
    TRY(err);
    bool ours = true;
    for (size_t i = 0; i < n_read; i++) {
        ours = ours && head[i] == 0;
    }
    if (!ours && n_read == sizeof(head)) {
        ours = fil_page_get_id(head).space == table->space;
    }
    fil_space_t *space = NULL;
    return ours ? fil_space_open(fil, table->space, path, 0, &space) : DB_SUCCESS;
}

/** One table or the indexes of one table that are not READY, if any; *found = there was one. */
static dberr_t ddl_recover_one_table(trx_sys_t *sys, const ddl_cleanup_hooks_t *hooks, bool *found)
{
    dict_table_t *table = dict_first(trx_sys_dict(sys));
    while (table != NULL && table->status == DICT_READY) {
        table = table->next;
    }
    *found = table != NULL;
    if (table == NULL) {
        return DB_SUCCESS;
    }
    TRY(ddl_recover_open_file(sys, table));
    if (hooks != NULL && hooks->drop_table != NULL) {
        hooks->drop_table(hooks->ctx, table->id);
    }
    return ddl_table_remove(sys, table);
}

static dict_index_t *ddl_first_unfinished_index(trx_sys_t *sys)
{
    for (dict_table_t *t = dict_first(trx_sys_dict(sys)); t != NULL; t = t->next) {
        for (uint32_t i = 1; i < t->n_indexes; i++) {
            if (t->indexes[i].status != DICT_READY) {
                return &t->indexes[i];
            }
        }
    }
    return NULL;
}

static dberr_t ddl_recover_one_index(trx_sys_t *sys, const ddl_cleanup_hooks_t *hooks, bool *found)
{
    dict_index_t *index = ddl_first_unfinished_index(sys);
    *found = index != NULL;
    if (index == NULL) {
        return DB_SUCCESS;
    }
    if (hooks != NULL && hooks->drop_index != NULL) {
        hooks->drop_index(hooks->ctx, index->table->space, index->id);
    }
    return ddl_indexes_remove(sys, index, 1);
}

/** Gives a table's file the name that the catalogue has for it. */
static dberr_t ddl_recover_name(trx_sys_t *sys, const ddl_cleanup_hooks_t *hooks,
                                const dict_table_t *table, fil_space_t *space, const char *path)
{
    env_t *env = ddl_env(sys);
    bool exists = false;
    TRY(env_exists(env, path, &exists));
    if (exists) {
        return err_refuse(&env->err, DB_UNRECOVERABLE, REFUSAL_FILE_CONFLICT,
                          "table '%s': its file is %s, and another file has the name %s",
                          table->name, space->path, path);
    }
    bool swap = strncmp(space->path, COPY_PREFIX, sizeof(COPY_PREFIX) - 1) == 0;
    if (swap && hooks != NULL && hooks->finish_swap != NULL) {
        hooks->finish_swap(hooks->ctx, table->id);
    }
    return ddl_file_rename(sys, space, path);
}

static dberr_t ddl_recover_names(trx_sys_t *sys, const ddl_cleanup_hooks_t *hooks)
{
    fil_t *fil = buf_fil(trx_sys_pool(sys));
    for (dict_table_t *t = dict_first(trx_sys_dict(sys)); t != NULL; t = t->next) {
        if (t->in_system) {
            continue;
        }
        char path[PATH_LEN_MAX + 1];
        fil_path_of_table(t->name, path);
        fil_space_t *space = fil_space_get(fil, t->space);
        if (space == NULL) {
            return err_refuse(&ddl_env(sys)->err, DB_UNRECOVERABLE, REFUSAL_FILE_MISSING,
                              "table '%s': its file %s (space %" PRIu32 ") is missing", t->name,
                              path, t->space);
        }
        if (strcmp(space->path, path) != 0) {
            TRY(ddl_recover_name(sys, hooks, t, space, path));
        }
    }
    return DB_SUCCESS;
}

typedef struct ddl_tmp_search {
    trx_sys_t *sys;
    char name[PATH_LEN_MAX + 1]; /**< the last one found; the next comes behind it */
    bool found;
} ddl_tmp_search_t;

/** The metadata of a table's export? */
static bool ddl_is_cfg(trx_sys_t *sys, const char *name)
{
    for (const dict_table_t *t = dict_first(trx_sys_dict(sys)); t != NULL; t = t->next) {
        char path[PATH_LEN_MAX + 1];
        ddl_cfg_path(t->name, path);
        if (strcmp(name, path) == 0) {
            return true;
        }
    }
    return false;
}

static dberr_t ddl_find_tmp(void *ctx, const char *name)
{
    ddl_tmp_search_t *search = ctx;
    size_t len = strlen(name);
    if (search->found || len > PATH_LEN_MAX || strcmp(name, search->name) <= 0
        || (strncmp(name, MERGE_TMP_PREFIX, sizeof(MERGE_TMP_PREFIX) - 1) != 0
            && !ddl_is_cfg(search->sys, name))) {
        return DB_SUCCESS;
    }
    memcpy(search->name, name, len + 1);
    search->found = true;
    return DB_SUCCESS;
}

static dberr_t ddl_recover_tmp_files(trx_sys_t *sys)
{
    env_t *env = ddl_env(sys);
    ddl_tmp_search_t search = {.sys = sys, .name = ""};
    for (bool exported = false;;) {
        search.found = false;
        TRY(env_list(env, ddl_find_tmp, &search));
        if (!search.found) {
            /* Before the table changes (ddl_cfg_remove()). */
            return exported ? env_sync_dir(env) : DB_SUCCESS;
        }
        if (ddl_is_cfg(sys, search.name)) {
            exported = true;
            TRY(env_unlink(env, search.name));
        } else {
            env_tmp_remove(env, search.name);
        }
    }
}

dberr_t ddl_recover(trx_sys_t *sys, const ddl_cleanup_hooks_t *hooks)
{
    TRY(ddl_recover_tmp_files(sys));
    for (bool found = true; found;) {
        TRY(ddl_recover_one_table(sys, hooks, &found));
    }
    /* Before the indexes: their pages are freed in files that must be there. */
    TRY(ddl_recover_names(sys, hooks));
    for (bool found = true; found;) {
        TRY(ddl_recover_one_index(sys, hooks, &found));
    }
    return DB_SUCCESS;
}
