/* The metadata file of an exported table: what an import must know of the pages (InnoDB's .cfg).

Place: ddl/, below ddl_export.c and ddl_import.c.

    0   4  CRC-32C of all that follows        20  4  size in pages
    4   4  magic                              24  2  columns
    8   4  bytes of the file                  26  2  indexes
    12  4  page size                          column: name 64, type 1, flags 1, length 4; flags:
                                                      1 may be NULL, 2 instant
    16  4  space id                           index:  id 8, root 4, name 64, unique 1, fields 1,
                                                      per field: column 1, prefix 4

Rules
1. Bytes of a user's file are believed in nothing: the checksum, each number and the end are
   checked, and what is wrong fails the statement, not the database. */
#include "ddl/ddl_cfg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mach.h"

#define CFG_MAGIC 0x74704347U
#define CFG_HEAD 28U
#define CFG_NAME (NAME_LEN_MAX + 1U)
#define CFG_COL (CFG_NAME + 6U)
#define CFG_NULLABLE 1U
#define CFG_INSTANT 2U
#define CFG_INDEX (CFG_NAME + 14U)
#define CFG_FIELD 5U
#define CFG_MAX                                                                                    \
    (CFG_HEAD + COLUMNS_MAX * CFG_COL + INDEXES_MAX * (CFG_INDEX + COLUMNS_MAX * CFG_FIELD))

void ddl_cfg_path(const char *table, char path[PATH_LEN_MAX + 1])
{
    (void)snprintf(path, PATH_LEN_MAX + 1, "%s" CFG_SUFFIX, table);
}

/* ---- writing ---- */

static uint32_t cfg_put_index(const dict_index_t *index, byte *to)
{
    mach_write_8(to, index->id);
    mach_write_4(to + 8, index->tree.root);
    memcpy(to + 12, index->name, CFG_NAME);
    to[12 + CFG_NAME] = index->unique ? 1 : 0;
    to[13 + CFG_NAME] = (byte)index->n_fields;
    for (uint32_t i = 0; i < index->n_fields; i++) {
        byte *field = to + CFG_INDEX + (size_t)i * CFG_FIELD;
        field[0] = (byte)index->fields[i].col;
        mach_write_4(field + 1, index->fields[i].prefix_len);
    }
    return CFG_INDEX + index->n_fields * CFG_FIELD;
}

/** @return bytes of the file */
static uint32_t cfg_encode(const ddl_cfg_t *cfg, byte *to)
{
    const dict_table_t *table = cfg->table;
    uint32_t at = CFG_HEAD;
    for (uint32_t i = 0; i < table->n_cols; i++, at += CFG_COL) {
        const dict_col_t *col = &table->cols[i];
        memcpy(to + at, col->name, CFG_NAME);
        to[at + CFG_NAME] = (byte)col->type;
        to[at + CFG_NAME + 1] =
            (byte)((col->nullable ? CFG_NULLABLE : 0) | (col->instant ? CFG_INSTANT : 0));
        mach_write_4(to + at + CFG_NAME + 2, col->len);
    }
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        at += cfg_put_index(&table->indexes[i], to + at);
    }
    mach_write_4(to + 4, CFG_MAGIC);
    mach_write_4(to + 8, at);
    mach_write_4(to + 12, cfg->page_size);
    mach_write_4(to + 16, table->space);
    mach_write_4(to + 20, cfg->size_pages);
    mach_write_2(to + 24, table->n_cols);
    mach_write_2(to + 26, table->n_indexes);
    mach_write_4(to, crc32c(to + 4, at - 4));
    return at;
}

static dberr_t cfg_write_bytes(env_t *env, const char *path, const byte *bytes, uint32_t len)
{
    os_file_t *file = NULL;
    TRY(env_open(env, path, OS_CREATE_TRUNC, &file));
    dberr_t err = env_write(env, file, 0, bytes, len);
    AND_THEN(err, env_sync(env, file));
    env_close(env, file);
    TRY(err);
    return env_sync_dir(env);
}

dberr_t ddl_cfg_write(env_t *env, const ddl_cfg_t *cfg)
{
    byte *bytes = calloc(1, CFG_MAX);
    if (bytes == NULL) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for the export of a table");
    }
    char path[PATH_LEN_MAX + 1];
    ddl_cfg_path(cfg->table->name, path);
    dberr_t err = cfg_write_bytes(env, path, bytes, cfg_encode(cfg, bytes));
    free(bytes);
    return err;
}

dberr_t ddl_cfg_remove(env_t *env, const char *table)
{
    char path[PATH_LEN_MAX + 1];
    ddl_cfg_path(table, path);
    dberr_t err = env_unlink(env, path);
    if (err == DB_NOT_FOUND) {
        return DB_SUCCESS;
    }
    TRY(err);
    return env_sync_dir(env);
}

/* ---- reading ---- */

/** Name of at most NAME_LEN_MAX characters with its end. */
static bool cfg_get_name(const byte *from, char *name)
{
    memcpy(name, from, CFG_NAME);
    return memchr(name, '\0', CFG_NAME) != NULL;
}

static bool cfg_get_col(const byte *from, dict_col_t *col)
{
    col->type = (dict_type_t)from[CFG_NAME];
    col->nullable = (from[CFG_NAME + 1] & CFG_NULLABLE) != 0;
    col->instant = (from[CFG_NAME + 1] & CFG_INSTANT) != 0;
    col->len = mach_read_4(from + CFG_NAME + 2);
    return cfg_get_name(from, col->name);
}

/** @return bytes that it takes of the `left` ones; 0: it is damaged */
static uint32_t cfg_get_index(const byte *from, uint32_t left, uint32_t n_cols, dict_index_t *index)
{
    if (left < CFG_INDEX || !cfg_get_name(from + 12, index->name)) {
        return 0;
    }
    index->id = mach_read_8(from);
    index->tree.root = mach_read_4(from + 8);
    index->unique = from[12 + CFG_NAME] != 0;
    index->n_fields = from[13 + CFG_NAME];
    uint32_t size = CFG_INDEX + index->n_fields * CFG_FIELD;
    if (index->n_fields > COLUMNS_MAX || left < size) {
        return 0;
    }
    for (uint32_t i = 0; i < index->n_fields; i++) {
        const byte *field = from + CFG_INDEX + (size_t)i * CFG_FIELD;
        index->fields[i].col = field[0];
        index->fields[i].prefix_len = mach_read_4(field + 1);
        if (field[0] >= n_cols) {
            return 0;
        }
    }
    return size;
}

static bool cfg_decode(const byte *from, uint32_t len, ddl_cfg_t *cfg)
{
    dict_table_t *table = cfg->table;
    if (len < CFG_HEAD || mach_read_4(from) != crc32c(from + 4, len - 4)
        || mach_read_4(from + 4) != CFG_MAGIC || mach_read_4(from + 8) != len) {
        return false;
    }
    cfg->page_size = mach_read_4(from + 12);
    table->space = mach_read_4(from + 16);
    cfg->size_pages = mach_read_4(from + 20);
    table->n_cols = mach_read_2(from + 24);
    table->n_indexes = mach_read_2(from + 26);
    uint32_t at = CFG_HEAD + table->n_cols * CFG_COL;
    if (table->n_cols > COLUMNS_MAX || table->n_indexes > INDEXES_MAX || at > len) {
        return false;
    }
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (!cfg_get_col(from + CFG_HEAD + (size_t)i * CFG_COL, &table->cols[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        uint32_t size = cfg_get_index(from + at, len - at, table->n_cols, &table->indexes[i]);
        if (size == 0) {
            return false;
        }
        at += size;
    }
    return at == len;
}

static dberr_t cfg_read_bytes(env_t *env, const char *path, byte *bytes, size_t *len)
{
    os_file_t *file = NULL;
    TRY(env_open(env, path, OS_OPEN, &file));
    dberr_t err = env_read(env, file, 0, bytes, CFG_MAX + 1, len);
    env_close(env, file);
    return err;
}

dberr_t ddl_cfg_read(env_t *env, const char *table, ddl_cfg_t *out)
{
    byte *bytes = malloc(CFG_MAX + 1);
    *out = (ddl_cfg_t){.table = calloc(1, sizeof(dict_table_t))};
    dberr_t err = DB_SUCCESS;
    if (bytes == NULL || out->table == NULL) {
        err = err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for the import of a table");
    }
    char path[PATH_LEN_MAX + 1];
    ddl_cfg_path(table, path);
    size_t len = 0;
    AND_THEN(err, cfg_read_bytes(env, path, bytes, &len));
    if (err == DB_SUCCESS && (len > CFG_MAX || !cfg_decode(bytes, (uint32_t)len, out))) {
        err = err_set(&env->err, DB_ERROR, "%s is damaged", path);
    }
    free(bytes);
    if (err != DB_SUCCESS) {
        free(out->table);
        out->table = NULL;
    }
    return err;
}
