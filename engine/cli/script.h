/** The script language of `engine run`: one statement per line, parsed completely before anything
runs. `engine run --help` shows the statements. Parsing needs no database: whether a table or a
column exists is known at run time only. */
#ifndef CLI_SCRIPT_H
#define CLI_SCRIPT_H

#include "api/engine.h"

typedef enum stmt_kind {
    STMT_CREATE_TABLE,
    STMT_DROP_TABLE,
    STMT_RENAME_TABLE,
    STMT_ALTER,
    STMT_START_ALTER,
    STMT_STEP_ALTER,
    STMT_FINISH_ALTER,
    STMT_ABORT_ALTER,
    STMT_START_BACKUP,
    STMT_STEP_BACKUP,
    STMT_FINISH_BACKUP,
    STMT_ABORT_BACKUP,
    STMT_BEGIN,
    STMT_COMMIT,
    STMT_ROLLBACK,
    STMT_INSERT,
    STMT_INSERT_SEQ,
    STMT_UPDATE,
    STMT_DELETE,
    STMT_SELECT,
    STMT_SCAN,
    STMT_PURGE,
    STMT_AT,
    STMT_CLEAN,
    STMT_CHECKPOINT,
    STMT_FLUSH_TABLE,
    STMT_FLUSH_LOG,
    STMT_SET_OPTIMIZE,
    STMT_SET_DEFRAGMENT,
    STMT_RESTART,
    STMT_STATUS
} stmt_kind_t;

typedef enum value_kind { VALUE_NULL, VALUE_NUMBER, VALUE_TEXT } value_kind_t;

/** COL=VALUE. */
typedef struct stmt_assign {
    const char *col;
    value_kind_t kind;
    int64_t number;
    const byte *text; /**< len bytes, any value */
    uint32_t len;
} stmt_assign_t;

/** NAME=VALUE of a restart; options_parse() has taken it. */
typedef struct stmt_option {
    const char *name;
    const char *value;
} stmt_option_t;

typedef struct stmt {
    uint32_t line;
    stmt_kind_t kind;
    const char *trx;        /**< "-" = autocommit; NULL: the statement has no transaction */
    const char *table;      /**< or NULL */
    const char *name;       /**< index of a SCAN, new name of a table, or of a backup; NULL */
    stmt_assign_t *assigns; /**< values, or the primary key */
    uint32_t n_assigns;
    stmt_assign_t *sets; /**< UPDATE: what comes after `set` */
    uint32_t n_sets;
    int64_t first, last;    /**< INSERT_SEQ */
    uint32_t count;         /**< PURGE, CLEAN, STEP ALTER, STEP BACKUP; PURGE: 0 = all; AT */
    buf_act_t act;          /**< AT */
    uint32_t rows;          /**< STEP ALTER: of one step */
    bool flag;              /**< CHECKPOINT: full; SET: on; START BACKUP: lock; RESTART: clean */
    stmt_option_t *options; /**< RESTART */
    uint32_t n_options;
    dict_table_t *definition; /**< CREATE TABLE; ADD COLUMN, a clause too: that column */
    ddl_alter_t alter;        /**< ALTER, START ALTER */
    stmt_assign_t *preset;    /**< ADD COLUMN: the value that it has in each row; NULL */
} stmt_t;

typedef struct script script_t;

/** Parses len bytes of text. DB_ERROR and "script line N: ..." for the first line that is wrong.
text is not needed afterwards. Caller: script_free(). */
WARN_UNUSED dberr_t script_parse(const char *text, size_t len, script_t **out, err_sink_t *err);
void script_free(script_t *script); /**< NULL is fine */

uint32_t script_n_stmts(const script_t *script);
const stmt_t *script_stmt(const script_t *script, uint32_t i);

#endif
