/** Private to ddl/: catalogue rows as the statements of one transaction, and steps shared by
statements and recovery. */
#ifndef DDL_DDL_INT_H
#define DDL_DDL_INT_H

#include "ddl/ddl.h"

/** Intermediate names, followed by the table's id, have a character that ddl_name_check()
refuses. */
#define COPY_PREFIX "#sql-"      /**< a table that is being copied */
#define REBUILD_PREFIX "#sql-ib" /**< one that is being built */
#define REPLACED_PREFIX "#sql2-" /**< the one whose place it has taken */

env_t *ddl_env(const trx_sys_t *sys);

/** Letters, digits and underscores, 1 to NAME_LEN_MAX of them: a table's name is part of a file's
name. */
WARN_UNUSED dberr_t ddl_name_check(err_sink_t *err, const char *what, const char *name);

/** The table for a statement: DB_NOT_FOUND, or DB_TABLE_LOCKED if an open transaction has changed
it or an index of it is being built. */
WARN_UNUSED dberr_t ddl_table_lock(trx_sys_t *sys, const char *name, dict_table_t **out);

/** DB_TABLE_LOCKED: open transactions have changed it. */
WARN_UNUSED dberr_t ddl_table_is_changed(trx_sys_t *sys, const dict_table_t *table);
/** DB_DUPLICATE_KEY: two of its rows have the same key of a unique index. */
WARN_UNUSED dberr_t ddl_table_refuse_duplicate(trx_sys_t *sys, const dict_table_t *table,
                                               const char *index);

/** DB_ALREADY_EXISTS if the catalogue (any status) or the directory has a table of this name. */
WARN_UNUSED dberr_t ddl_table_name_free(trx_sys_t *sys, const char *name);

/** Changes the definition of a table as the statement wants it; new indexes are without id, root
and layout. */
WARN_UNUSED dberr_t ddl_alter_define(const ddl_alter_t *alter, dict_table_t *table,
                                     err_sink_t *err);
/** How many indexes it adds. They are the last ones of a table that ddl_alter_define() has
changed. */
uint32_t ddl_alter_new_indexes(const ddl_alter_t *alter);
/** The clauses of a statement; one that has none is its own. */
static inline const ddl_alter_t *ddl_alter_clauses(const ddl_alter_t *alter, uint32_t *n)
{
    bool several = alter->kind == ALTER_CLAUSES;
    *n = several ? alter->n_clauses : 1;
    return several ? alter->clauses : alter;
}
/** DB_UNSUPPORTED: they do not go together. */
WARN_UNUSED dberr_t ddl_clauses_check(const ddl_alter_t *alter, err_sink_t *err);
/** Of each column of `to`, a copy of `from` that ddl_alter_define() has changed: its position in
`from`, n_cols of that: it is new. */
void ddl_alter_map(const ddl_alter_t *alter, const dict_table_t *from, const dict_table_t *to,
                   uint32_t *cols);
/** The column that MODIFY is about, if it can become what is asked for. */
WARN_UNUSED dberr_t ddl_modify_find(const ddl_alter_t *alter, const dict_table_t *table,
                                    err_sink_t *err, uint32_t *col);

/** DB_NOT_FOUND */
WARN_UNUSED dberr_t ddl_find_col(const dict_table_t *table, const char *name, err_sink_t *err,
                                 uint32_t *out);
/** A READY index that is not the primary key; DB_NOT_FOUND, DB_ERROR */
WARN_UNUSED dberr_t ddl_find_secondary(dict_table_t *table, const char *name, err_sink_t *err,
                                       dict_index_t **out);
/** DB_ALREADY_EXISTS; INCOMPLETE and DROPPING indexes count, and the primary key. */
WARN_UNUSED dberr_t ddl_index_name_free(const dict_table_t *table, const char *name,
                                        err_sink_t *err);

/** Why a column cannot come by ALGORITHM=INSTANT; NULL: it can. */
const char *ddl_instant_why(const ddl_alter_t *alter, const dict_table_t *table);
WARN_UNUSED dberr_t ddl_add_column_instant(trx_sys_t *sys, const ddl_alter_t *alter);

/** DB_UNSUPPORTED: the statement is about a file that this table does not have. */
WARN_UNUSED dberr_t ddl_refuse_in_system(trx_sys_t *sys, const dict_table_t *table);

/* ---- catalogue rows, inside the caller's transaction ---- */

/** A change of catalogue rows: of which kind, and of what. */
typedef struct ddl_change ddl_change_t;
typedef WARN_UNUSED dberr_t ddl_rows_fn(trx_t *trx, dict_t *dict, const ddl_change_t *change);
struct ddl_change {
    ddl_rows_fn *rows; /**< a function of ddl_rows.c */
    const dict_table_t *table;
    const dict_index_t *indexes;
    uint32_t n;      /**< of indexes */
    uint32_t col;    /**< its position in table */
    const byte *row; /**< of the metadata record */
};

/** Makes n changes in a transaction of its own: durable when it returns DB_SUCCESS, rolled back
otherwise. */
WARN_UNUSED dberr_t ddl_commit(trx_sys_t *sys, const ddl_change_t *changes, uint32_t n);
/** The same of one; then table, which belongs to the caller until here, is in the cache, or gone
after an error. */
WARN_UNUSED dberr_t ddl_commit_put(trx_sys_t *sys, const ddl_change_t *change, dict_table_t *table);

typedef dberr_t (*ddl_undo_fn)(trx_sys_t *sys, void *ctx);

/** Takes back what a statement has made that fails with err, unless nothing can be written any
more: then recovery does. Returns err, or what kept it from being taken back. */
WARN_UNUSED dberr_t ddl_undo(trx_sys_t *sys, dberr_t err, ddl_undo_fn undo, void *ctx);

/** Of a table, with its columns and indexes. */
ddl_rows_fn ddl_rows_insert_table;
ddl_rows_fn ddl_rows_delete_table;
/** Name and status as they are in table. */
ddl_rows_fn ddl_rows_update_table;
ddl_rows_fn ddl_rows_insert_indexes;
ddl_rows_fn ddl_rows_delete_indexes;
/** Names and status as they are in indexes. */
ddl_rows_fn ddl_rows_update_indexes;
/** The last column of table, and the metadata record if it is an instant one. */
ddl_rows_fn ddl_rows_add_column;
/** Name and length of one column as they are in table. */
ddl_rows_fn ddl_rows_update_column;
/** Names of columns, names and status of indexes, where they are not as in the cached object. */
ddl_rows_fn ddl_rows_update_parts;

/** New ids for a table and its indexes, which are INCOMPLETE and without trees. */
WARN_UNUSED dberr_t ddl_table_identify(trx_sys_t *sys, dict_table_t *table);
/** FILE_CREATE2, file, page 0, an empty tree for each index; or, where size_pages is not 0, a file
of that many zero pages. In the system space: the trees. */
WARN_UNUSED dberr_t ddl_table_create_file(trx_sys_t *sys, dict_table_t *table, uint32_t size_pages);

/* ---- steps shared with recovery ---- */

/** Renames a table's file, with room in the log for that. */
WARN_UNUSED dberr_t ddl_file_rename(trx_sys_t *sys, fil_space_t *space, const char *path);

/** Finishes a drop, or undoes a creation: pages forgotten and file gone, or, in the system space,
trees freed; rows removed. Failing, it can be called again. table may be an object of the catalogue
(gone afterwards). */
WARN_UNUSED dberr_t ddl_table_remove(trx_sys_t *sys, dict_table_t *table);
/** ddl_undo() by that; err: what the creation failed with. */
WARN_UNUSED dberr_t ddl_table_undo(trx_sys_t *sys, dict_table_t *table, dberr_t err);

/** The same for some secondary indexes of one table: trees freed through their segments, rows
removed. Failing, it can be called again. They may be the catalogue's (gone afterwards). */
WARN_UNUSED dberr_t ddl_indexes_remove(trx_sys_t *sys, dict_index_t *indexes, uint32_t n);

/** Gives indexes whose rows are INCOMPLETE their empty trees, before any page is loaded: the
segments tell recovery what to free. */
WARN_UNUSED dberr_t ddl_trees_create(trx_sys_t *sys, dict_index_t *indexes, uint32_t n);

#endif
