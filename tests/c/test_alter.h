/** ALTER statements for tests. */
#ifndef TEST_ALTER_H
#define TEST_ALTER_H

#include "api/engine.h"

/** ADD INDEX, as an address that lives as long as the block. */
#define ADD_INDEXES(table_, defs_, n_)                                                             \
    (&(ddl_alter_t){.kind = ALTER_ADD_INDEX, .table = (table_), .defs = (defs_), .n_defs = (n_)})

static inline dberr_t add_indexes(engine_t *engine, const char *table, const ddl_index_def_t *defs,
                                  uint32_t n_defs)
{
    return engine_alter(engine, ADD_INDEXES(table, defs, n_defs));
}

static inline dberr_t start_indexes(engine_t *engine, const char *table,
                                    const ddl_index_def_t *defs, uint32_t n_defs)
{
    return engine_start_alter(engine, ADD_INDEXES(table, defs, n_defs));
}

static inline dberr_t drop_index(engine_t *engine, const char *table, const char *index)
{
    const ddl_alter_t alter = {.kind = ALTER_DROP_INDEX, .table = table, .name = index};
    return engine_alter(engine, &alter);
}

/** FORCE, as an address that lives as long as the block. */
#define REBUILD(table_) (&(ddl_alter_t){.kind = ALTER_REBUILD, .table = (table_)})

static inline dberr_t rebuild_table(engine_t *engine, const char *table)
{
    return engine_alter(engine, REBUILD(table));
}

/** The same by ALGORITHM=COPY. */
#define COPY(table_)                                                                               \
    (&(ddl_alter_t){.kind = ALTER_REBUILD, .table = (table_), .algorithm = ALGORITHM_COPY})

/** Several clauses, as an address that lives as long as the block. */
#define CLAUSES(table_, clauses_)                                                                  \
    (&(ddl_alter_t){.kind = ALTER_CLAUSES,                                                         \
                    .table = (table_),                                                             \
                    .clauses = (clauses_),                                                         \
                    .n_clauses = sizeof(clauses_) / sizeof((clauses_)[0])})

/** RENAME COLUMN or RENAME INDEX. */
static inline dberr_t rename_part(engine_t *engine, alter_kind_t kind, const char *table,
                                  const char *name, const char *new_name)
{
    const ddl_alter_t alter = {.kind = kind, .table = table, .name = name, .new_name = new_name};
    return engine_alter(engine, &alter);
}

#endif
