/** Private to ddl/: the metadata file of an exported table (FORMAT.md, "Exported tables"). */
#ifndef DDL_DDL_CFG_H
#define DDL_DDL_CFG_H

#include "ddl/ddl_int.h"

#define CFG_SUFFIX ".cfg"

/** What it says. table: names, columns and indexes with their old ids and roots, and the old space;
nothing else. */
typedef struct ddl_cfg {
    uint32_t page_size;
    uint32_t size_pages;
    dict_table_t *table;
} ddl_cfg_t;

/** "t1" -> "t1.cfg" */
void ddl_cfg_path(const char *table, char path[PATH_LEN_MAX + 1]);

/** Writes the file, or replaces it; durable on return. */
WARN_UNUSED dberr_t ddl_cfg_write(env_t *env, const ddl_cfg_t *cfg);
/** Removes it, durably; there need be none. */
WARN_UNUSED dberr_t ddl_cfg_remove(env_t *env, const char *table);

/** Reads that of a table. DB_NOT_FOUND: there is none. DB_ERROR: damaged bytes. Caller:
free(out->table). */
WARN_UNUSED dberr_t ddl_cfg_read(env_t *env, const char *table, ddl_cfg_t *out);

#endif
