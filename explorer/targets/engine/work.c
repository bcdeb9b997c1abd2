/* New work after a recovery.

Place: above work_stmt.c; judge.c calls it between opening and closing.

    index, or later
      A: delete, insert, update ----------------------------- commits, rolls back, or stays open
           B: insert two, delete, update some, commit
                C: is refused what A has changed and what B has inserted
                     page cleaner or checkpoint   index; inserts; purge; drop; a copy by export and
                                                  import, or the table anew; a new table

An index at once is loaded among pages as the recovery has left them: none is home, and the crash
may have torn them. */
#include "explorer/targets/engine/work_int.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VICTIMS 10U /**< rows that are changed: two by A, the others by B */
#define INSERTS_MAX 12U
#define CLEAN_PAGES 4U
#define BACKUPS 16U /**< two of so many works take one */
#define NEW_TABLES 2U
#define WHOLES 16U     /**< one of so many exports its table and imports it, one builds it anew; */
#define WHOLES_TORN 4U /**< of a torn table */
#define PREFIX_LEN 20U /**< of a VARCHAR that is longer, in a new index */

/** Rows that are there, each another; NULL where there are no more. */
static void draw_victims(work_t *work, work_row_t *victims[VICTIMS])
{
    uint32_t n = work->n_rows;
    uint32_t first = n > 0 ? (uint32_t)stream_below(&work->stream, n) : 0;
    uint32_t step = n < VICTIMS ? 1 : n / VICTIMS;
    for (uint32_t i = 0; i < VICTIMS; i++) {
        work_row_t *row = i < n ? work->rows[(first + i * step) % n] : NULL;
        victims[i] = row != NULL && row->live ? row : NULL;
    }
}

/** A transaction that may not touch what another, still open, has changed, nor insert what is
there. */
static void conflicts(work_t *work, const work_row_t *locked, const work_row_t *inserted)
{
    work_trx_t trx;
    const char *table = work->table->name;
    work_begin(work, &trx);
    if (work->right && locked != NULL) {
        (void)work_refused(
            work, engine_delete(work->engine, trx.trx, table, work_primary_key(work, locked)),
            DB_LOCK_CONFLICT, "delete of a row that an open transaction has changed");
    }
    if (work->right && inserted != NULL) {
        (void)work_refused(work, engine_insert(work->engine, trx.trx, table, inserted->bytes),
                           DB_DUPLICATE_KEY, "insert of a primary key that is there");
    }
    if (work->right) {
        (void)work_done(work, engine_rollback(work->engine, trx.trx), "rollback");
    }
}

static void write_pages(work_t *work)
{
    uint64_t drawn = stream_below(&work->stream, 4);
    if (!work->right || drawn == 0) {
        return;
    }
    dberr_t err = drawn == 1 ? engine_clean_pages(work->engine, CLEAN_PAGES)
                             : engine_checkpoint(work->engine, drawn == 2);
    (void)work_done(work, err, "checkpoint or page cleaner");
}

/** @return the name of a new index of the table; "": none was made. name: NAME_LEN_MAX + 1 bytes */
static void add_index(work_t *work, char *name)
{
    const dict_table_t *table = work_definition(work);
    check_table_t *sum = work->table;
    name[0] = '\0';
    if (!work->right || table->n_indexes == INDEXES_MAX) {
        return;
    }
    const dict_col_t *col = &table->cols[stream_below(&work->stream, table->n_cols)];
    ddl_index_def_t def = {.n_fields = 1};
    (void)snprintf(name, NAME_LEN_MAX + 1, "w_%08" PRIx32, (uint32_t)stream_next(&work->stream));
    memcpy(def.name, name, NAME_LEN_MAX + 1);
    memcpy(def.fields[0].col, col->name, sizeof(col->name));
    def.fields[0].prefix_len = col->type == DICT_VARCHAR && col->len > PREFIX_LEN ? PREFIX_LEN : 0;
    const ddl_alter_t alter = {
        .kind = ALTER_ADD_INDEX, .table = sum->name, .defs = &def, .n_defs = 1};
    work_issue(work);
    if (!work_done(work, engine_alter(work->engine, &alter), "add index")) {
        return;
    }
    sum->indexes[sum->n_indexes] = (check_index_t){.entries = 0};
    memcpy(sum->indexes[sum->n_indexes++].name, name, NAME_LEN_MAX + 1);
    table = work_definition(work);
    for (uint32_t i = 0; i < work->n_rows; i++) {
        if (work->rows[i]->live) {
            work_sum_index(sum, &table->indexes[table->n_indexes - 1], work->rows[i]->bytes, true);
        }
    }
    work_acknowledge(work);
}

static void drop_index(work_t *work, const char *name)
{
    if (!work->right || name[0] == '\0') {
        return;
    }
    const ddl_alter_t alter = {.kind = ALTER_DROP_INDEX, .table = work->table->name, .name = name};
    work_issue(work);
    if (work_done(work, engine_alter(work->engine, &alter), "drop index")) {
        work->table->n_indexes--;
        work_acknowledge(work);
    }
}

/** The table is built anew, or emptied: what recovery has left of another such build is in its way.
*/
static void build_anew(work_t *work)
{
    bool truncate = stream_below(&work->stream, 2) == 0;
    const ddl_alter_t alter = {.kind = truncate ? ALTER_TRUNCATE : ALTER_REBUILD,
                               .table = work->table->name};
    if (!work->right) {
        return;
    }
    work_issue(work);
    if (!truncate) {
        (void)work_made(work, engine_alter(work->engine, &alter), "rebuild");
    } else if (work_done(work, engine_alter(work->engine, &alter), "truncate")) {
        work_sum_nothing(work, work->table);
        for (uint32_t i = 0; i < work->n_rows; i++) {
            work->rows[i]->live = false;
        }
        work_acknowledge(work);
    }
}

/** A table of its own becomes the one that is worked on. */
static void create_table(work_t *work)
{
    dict_table_t made = {.n_cols = 2,
                         .cols = {{.name = "a", .type = DICT_BIGINT, .len = 8},
                                  {.name = "b", .type = DICT_CHAR, .len = 40}},
                         .n_indexes = 1};
    made.indexes[0].n_fields = 1;
    made.indexes[0].fields[0] = (dict_field_t){.col = 0, .prefix_len = 8};
    (void)snprintf(made.name, sizeof(made.name), "w_%08" PRIx32,
                   (uint32_t)stream_next(&work->stream));
    if (!work->right) {
        return;
    }
    work_forget_rows(work);
    work_issue(work);
    if (work_done(work, engine_create_table(work->engine, &made), "create table")) {
        work->table = &work->tables[work->n_tables++];
        *work->table = (check_table_t){.hash = XXH64("a,b,", 4, 0)}; /* the names of its columns */
        memcpy(work->table->name, made.name, sizeof(made.name));
        work_acknowledge(work);
    }
}

/** Three transactions at once; the first may stay open. @return the table has no open
transaction */
static bool transactions(work_t *work)
{
    work_row_t *victims[VICTIMS];
    draw_victims(work, victims);
    work_trx_t a;
    work_begin(work, &a);
    work_delete(work, &a, victims[0]);
    (void)work_insert(work, &a);
    bool locked = work_update(work, &a, victims[1]);
    work_trx_t b;
    work_begin(work, &b);
    work_row_t *inserted = work_insert(work, &b);
    (void)work_insert(work, &b);
    work_delete(work, &b, victims[2]);
    for (uint32_t i = 3; i < VICTIMS; i++) {
        (void)work_update(work, &b, victims[i]);
    }
    work_commit(work, &b);
    conflicts(work, locked ? victims[1] : NULL, inserted);
    write_pages(work);
    uint64_t end = stream_below(&work->stream, 4);
    if (end == 1) {
        work_commit(work, &a);
    } else if (end > 1 && work->right) {
        (void)work_done(work, engine_rollback(work->engine, a.trx), "rollback");
    }
    return end > 0;
}

static void purge(work_t *work)
{
    bool all;
    if (work->right) {
        (void)work_done(work, engine_purge(work->engine, UINT32_MAX, &all), "purge");
    }
}

/** Enough that a page is split now and then. */
static void insert_some(work_t *work)
{
    work_trx_t trx;
    uint64_t n = 1 + stream_below(&work->stream, INSERTS_MAX);
    work_begin(work, &trx);
    for (uint64_t i = 0; i < n; i++) {
        (void)work_insert(work, &trx);
    }
    work_commit(work, &trx);
}

/** The torn one, or any. */
static check_table_t *draw_table(work_t *work, const char *torn)
{
    check_table_t *drawn = &work->tables[stream_below(&work->stream, work->n_tables)];
    for (uint32_t i = 0; i < work->n_tables; i++) {
        if (strcmp(work->tables[i].name, torn) == 0) {
            drawn = &work->tables[i];
        }
    }
    return drawn;
}

static void work_on_table(work_t *work, const char *torn)
{
    work->table = draw_table(work, torn);
    if (!work_read_rows(work)) {
        return;
    }
    bool is_torn = torn[0] != '\0';
    char index[NAME_LEN_MAX + 1] = "";
    bool at_once = stream_below(&work->stream, 4) < (is_torn ? 3 : 2);
    if (at_once) {
        add_index(work, index);
    }
    if (at_once && is_torn && stream_below(&work->stream, 2) == 0) {
        return; /* before anything writes the torn page */
    }
    insert_some(work);
    bool unused = transactions(work);
    if (!at_once && unused && stream_below(&work->stream, 2) == 0) {
        add_index(work, index);
    }
    insert_some(work);
    purge(work);
    if (unused && stream_below(&work->stream, 2) == 0) {
        drop_index(work, index);
    }
    uint64_t whole = unused ? stream_below(&work->stream, is_torn ? WHOLES_TORN : WHOLES) : WHOLES;
    if (whole == 0) {
        work_copy_table(work);
        insert_some(work);
    } else if (whole == 1) {
        build_anew(work);
        insert_some(work);
    }
}

bool work_run(engine_t *engine, image_t *image, const check_report_t *found,
              const work_draw_t *draw, allowed_t *allowed, verdict_t *verdict)
{
    work_t work = {.engine = engine,
                   .image = image,
                   .allowed = allowed,
                   .verdict = verdict,
                   .stream = {.state = draw->seed},
                   .n_tables = found->n_tables,
                   .exported = "",
                   .right = true};
    work.tables = mem_alloc((found->n_tables + NEW_TABLES) * sizeof(*work.tables));
    work.pk = mem_alloc(PAGE_SIZE_MAX);
    if (found->n_tables > 0) {
        memcpy(work.tables, found->tables, found->n_tables * sizeof(*work.tables));
    }
    uint64_t backups = stream_below(&work.stream, BACKUPS); /* at the beginning, at the end, none */
    if (backups == 0) {
        work_backup(&work, draw);
    }
    if (found->n_tables > 0) {
        work_on_table(&work, draw->torn);
    }
    if (found->n_tables == 0 || stream_below(&work.stream, 4) == 0) {
        create_table(&work);
        insert_some(&work);
    }
    if (backups == 1 && work.right) {
        work_backup(&work, draw);
    }
    work_forget_rows(&work);
    free((void *)work.rows);
    free(work.tables);
    free(work.pk);
    return work.right;
}
