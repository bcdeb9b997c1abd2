/* New work after a recovery.

Place: above allowed.c; judge.c calls it between opening and closing.

    A: delete, insert, update ------------------------------------------ commits, rolls back, or stays open
         B: insert two, delete, update some, commit
              C: is refused what A has changed and what B has inserted
                   page cleaner or checkpoint        new index; inserts; purge; drop; a new table with rows

Rules
1. What must be there is computed from the rows as they were read at the start and from what was changed, by the
   definition of the digest (check/check.h); that the rows are those of a commit prefix is judged before.
2. Values are new: of no row that was ever in the table, in no unique index. So nothing may be refused. */
#include "explorer/judge/work.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "explorer/judge/work_row.h"

#define VICTIMS 10U /**< rows that are changed: two by A, the others by B */
#define TRIES 64U   /**< for a row whose keys nobody has */
#define CHANGES_MAX 24U
#define INSERTS_MAX 12U
#define CLEAN_PAGES 4U
#define PREFIX_LEN 20U /**< of a VARCHAR that is longer, in a new index */

typedef struct work_row {
    bool live; /**< after the last commit */
    byte bytes[];
} work_row_t;

/** A row that comes or goes with a commit. */
typedef struct change {
    work_row_t *row;
    bool comes;
} change_t;

typedef struct work_trx {
    trx_t *trx;
    uint32_t n;
    change_t changes[CHANGES_MAX];
} work_trx_t;

typedef struct work {
    engine_t *engine;
    image_t *image;
    allowed_t *allowed;
    verdict_t *verdict;
    stream_t stream;
    check_table_t *tables; /**< as they must be after the last commit; room for one more */
    uint32_t n_tables;
    check_table_t *table; /**< the one that is worked on */
    uint32_t acked;
    work_row_t **rows; /**< every row that was in it, or wanted to be */
    uint32_t n_rows;
    uint32_t capacity;
    byte *pk; /**< room for two primary keys */
    bool right;
} work_t;

/* ---- what went wrong ---- */

static void work_found(work_t *work, const char *what, const char *why)
{
    work->right = false;
    verdict_add(work->verdict, SOURCE_RECOVERY, 30, "new work after the recovery: %s: %.180s", what,
                why);
}

/** Must this be done? It is not: a finding. */
static bool done(work_t *work, dberr_t err, const char *what)
{
    if (err != DB_SUCCESS) {
        char why[VERDICT_WHAT_MAX];
        (void)snprintf(why, sizeof(why), "%s: %.150s", err_name(err), engine_error(work->engine));
        work_found(work, what, why);
    }
    return err == DB_SUCCESS;
}

static bool refused(work_t *work, dberr_t err, dberr_t wanted, const char *what)
{
    if (err != wanted) {
        char why[VERDICT_WHAT_MAX];
        (void)snprintf(why, sizeof(why), "%s, not %s", err_name(err), err_name(wanted));
        work_found(work, what, why);
    }
    return err == wanted;
}

/* ---- rows ---- */

static const dict_table_t *definition(const work_t *work)
{
    const dict_table_t *table = engine_table(work->engine, work->table->name);
    CHECK(table != NULL);
    return table;
}

/** Takes the row, which was allocated. */
static work_row_t *keep_row(work_t *work, work_row_t *row)
{
    if (work->n_rows == work->capacity) {
        work->capacity = work->capacity == 0 ? 64 : 2 * work->capacity;
        work->rows = mem_grow(work->rows, work->capacity * sizeof(*work->rows));
    }
    work->rows[work->n_rows++] = row;
    return row;
}

static void forget_rows(work_t *work)
{
    for (uint32_t i = 0; i < work->n_rows; i++) {
        free(work->rows[i]);
    }
    work->n_rows = 0;
}

/** bytes: NULL: they are filled in by the caller. */
static work_row_t *make_row(const dict_table_t *table, const byte *bytes)
{
    work_row_t *row = mem_alloc(sizeof(*row) + table->row_size);
    row->live = false;
    if (bytes != NULL) {
        memcpy(row->bytes, bytes, table->row_size);
    }
    return row;
}

typedef struct reading {
    work_t *work;
    const dict_table_t *table;
} reading_t;

static dberr_t read_row(void *ctx, const byte *row)
{
    reading_t *reading = ctx;
    keep_row(reading->work, make_row(reading->table, row))->live = true;
    return DB_SUCCESS;
}

static bool read_rows(work_t *work)
{
    reading_t reading = {.work = work, .table = definition(work)};
    return done(work, engine_scan(work->engine, work->table->name, NULL, read_row, &reading),
                "scan");
}

static bool same_unique_key(const dict_index_t *index, const byte *a, const byte *b)
{
    byte *recs = mem_alloc(2 * (size_t)index->tree.leaf_rec_size);
    byte *other = recs + index->tree.leaf_rec_size;
    dict_row_to_sec(index, a, recs);
    dict_row_to_sec(index, b, other);
    bool same =
        memcmp(recs + 1, other + 1, index->unique_len) == 0 && !dict_key_has_null(index, recs + 1);
    free(recs);
    return same;
}

static bool same_key(const work_t *work, const dict_table_t *table, const byte *a, const byte *b)
{
    byte *other = work->pk + table->pk_len;
    dict_row_to_pk(table, a, work->pk);
    dict_row_to_pk(table, b, other);
    bool same = memcmp(work->pk, other, table->pk_len) == 0;
    for (uint32_t i = 1; i < table->n_indexes && !same; i++) {
        same = table->indexes[i].unique && same_unique_key(&table->indexes[i], a, b);
    }
    return same;
}

/** own: a row whose keys it may share; NULL: none. */
static bool is_new(const work_t *work, const work_row_t *row, const work_row_t *own)
{
    const dict_table_t *table = definition(work);
    for (uint32_t i = 0; i < work->n_rows; i++) {
        if (work->rows[i] != own && same_key(work, table, work->rows[i]->bytes, row->bytes)) {
            return false;
        }
    }
    return true;
}

/** A row like no other, kept; NULL: there is hardly any left. */
static work_row_t *new_row(work_t *work)
{
    const dict_table_t *table = definition(work);
    work_row_t *row = make_row(table, NULL);
    for (uint32_t i = 0; i < TRIES; i++) {
        for (uint32_t j = 0; j < table->n_cols; j++) {
            work_draw_value(&work->stream, &table->cols[j], row->bytes);
        }
        if (is_new(work, row, NULL)) {
            return keep_row(work, row);
        }
    }
    free(row);
    return NULL;
}

/** A column that an update may change: of no primary key. n_cols: there is none. */
static uint32_t draw_column(work_t *work, const dict_table_t *table)
{
    const dict_index_t *primary = &table->indexes[0];
    uint32_t first = (uint32_t)stream_below(&work->stream, table->n_cols);
    for (uint32_t i = 0; i < table->n_cols; i++) {
        uint32_t col = (first + i) % table->n_cols;
        bool in_key = false;
        for (uint32_t j = 0; j < primary->n_fields; j++) {
            in_key |= primary->fields[j].col == col;
        }
        if (!in_key) {
            return col;
        }
    }
    return table->n_cols;
}

/* ---- statements ---- */

static void note(work_trx_t *trx, work_row_t *row, bool comes)
{
    CHECK(trx->n < CHANGES_MAX);
    trx->changes[trx->n++] = (change_t){.row = row, .comes = comes};
}

static void begin(work_t *work, work_trx_t *trx)
{
    *trx = (work_trx_t){.n = 0};
    if (work->right) {
        (void)done(work, engine_begin(work->engine, &trx->trx), "begin");
    }
}

static const byte *primary_key(const work_t *work, const work_row_t *row)
{
    dict_row_to_pk(definition(work), row->bytes, work->pk);
    return work->pk;
}

/** @return the row; NULL: it is not there */
static work_row_t *insert(work_t *work, work_trx_t *trx)
{
    work_row_t *row = work->right ? new_row(work) : NULL;
    const char *table = work->table->name;
    if (row == NULL
        || !done(work, engine_insert(work->engine, trx->trx, table, row->bytes), "insert")) {
        return NULL;
    }
    note(trx, row, true);
    return row;
}

static void delete_row(work_t *work, work_trx_t *trx, work_row_t *row)
{
    const char *table = work->table->name;
    if (work->right && row != NULL
        && done(work, engine_delete(work->engine, trx->trx, table, primary_key(work, row)),
                "delete")) {
        note(trx, row, false);
    }
}

/** @return the row was changed; there may be no column, or no value, that can be */
static bool update(work_t *work, work_trx_t *trx, work_row_t *row)
{
    const dict_table_t *table = definition(work);
    uint32_t col = draw_column(work, table);
    if (!work->right || row == NULL || col == table->n_cols) {
        return false;
    }
    work_row_t *after = keep_row(work, make_row(table, row->bytes));
    work_draw_value(&work->stream, &table->cols[col], after->bytes);
    bool null = dict_col_is_null(&table->cols[col], after->bytes);
    row_upd_t upd = {.col = col, .value = null ? NULL : after->bytes + table->cols[col].row_offset};
    if (!is_new(work, after, row)
        || !done(work,
                 engine_update(work->engine, trx->trx, work->table->name, primary_key(work, row),
                               &upd, 1),
                 "update")) {
        return false;
    }
    note(trx, row, false);
    note(trx, after, true);
    return true;
}

/* ---- commits ---- */

static void sum_index(check_table_t *sum, const dict_index_t *index, const byte *row, bool comes)
{
    check_index_t *entry = sum->indexes;
    while (entry < sum->indexes + sum->n_indexes && strcmp(entry->name, index->name) != 0) {
        entry++;
    }
    if (entry == sum->indexes + sum->n_indexes) {
        return;
    }
    uint64_t hash = work_entry_hash(index, row);
    entry->entries += comes ? 1 : UINT64_MAX;
    entry->hash += comes ? hash : 0 - hash;
}

static void sum_row(check_table_t *sum, const dict_table_t *table, const byte *row, bool comes)
{
    uint64_t hash = work_row_hash(table, row);
    sum->rows += comes ? 1 : UINT64_MAX;
    sum->hash += comes ? hash : 0 - hash;
    for (uint32_t i = 1; i < table->n_indexes; i++) {
        sum_index(sum, &table->indexes[i], row, comes);
    }
}

/** Before what makes a new prefix. */
static void issue(const work_t *work)
{
    image_os_promise(work->image, work->acked + 1, work->acked);
}

/** After it. */
static void acknowledge(work_t *work)
{
    allowed_add(work->allowed, work->tables, work->n_tables);
    work->acked++;
    image_os_promise(work->image, work->acked, work->acked);
}

static void commit(work_t *work, const work_trx_t *trx)
{
    if (!work->right) {
        return;
    }
    issue(work);
    if (done(work, engine_commit(work->engine, trx->trx), "commit")) {
        for (uint32_t i = 0; i < trx->n; i++) {
            const change_t *change = &trx->changes[i];
            sum_row(work->table, definition(work), change->row->bytes, change->comes);
            change->row->live = change->comes;
        }
        acknowledge(work);
    }
}

/* ---- the parts ---- */

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

/** A transaction that may not touch what another, still open, has changed, nor insert what is there. */
static void conflicts(work_t *work, const work_row_t *locked, const work_row_t *inserted)
{
    work_trx_t trx;
    const char *table = work->table->name;
    begin(work, &trx);
    if (work->right && locked != NULL) {
        (void)refused(work, engine_delete(work->engine, trx.trx, table, primary_key(work, locked)),
                      DB_LOCK_CONFLICT, "delete of a row that an open transaction has changed");
    }
    if (work->right && inserted != NULL) {
        (void)refused(work, engine_insert(work->engine, trx.trx, table, inserted->bytes),
                      DB_DUPLICATE_KEY, "insert of a primary key that is there");
    }
    if (work->right) {
        (void)done(work, engine_rollback(work->engine, trx.trx), "rollback");
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
    (void)done(work, err, "checkpoint or page cleaner");
}

/** @return the name of a new index of the table; "": none was made. name: NAME_LEN_MAX + 1 bytes */
static void add_index(work_t *work, char *name)
{
    const dict_table_t *table = definition(work);
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
    issue(work);
    if (!done(work, engine_alter(work->engine, &alter), "add index")) {
        return;
    }
    sum->indexes[sum->n_indexes] = (check_index_t){.entries = 0};
    memcpy(sum->indexes[sum->n_indexes++].name, name, NAME_LEN_MAX + 1);
    table = definition(work);
    for (uint32_t i = 0; i < work->n_rows; i++) {
        if (work->rows[i]->live) {
            sum_index(sum, &table->indexes[table->n_indexes - 1], work->rows[i]->bytes, true);
        }
    }
    acknowledge(work);
}

static void drop_index(work_t *work, const char *name)
{
    if (!work->right || name[0] == '\0') {
        return;
    }
    const ddl_alter_t alter = {.kind = ALTER_DROP_INDEX, .table = work->table->name, .name = name};
    issue(work);
    if (done(work, engine_alter(work->engine, &alter), "drop index")) {
        work->table->n_indexes--;
        acknowledge(work);
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
    forget_rows(work);
    issue(work);
    if (done(work, engine_create_table(work->engine, &made), "create table")) {
        work->table = &work->tables[work->n_tables++];
        *work->table = (check_table_t){.hash = XXH64("a,b,", 4, 0)}; /* the names of its columns */
        memcpy(work->table->name, made.name, sizeof(made.name));
        acknowledge(work);
    }
}

/** Three transactions at once; the first may stay open. @return the table has no open transaction */
static bool transactions(work_t *work)
{
    work_row_t *victims[VICTIMS];
    work_trx_t a;
    work_trx_t b;
    draw_victims(work, victims);
    begin(work, &a);
    delete_row(work, &a, victims[0]);
    (void)insert(work, &a);
    bool locked = update(work, &a, victims[1]);
    begin(work, &b);
    work_row_t *inserted = insert(work, &b);
    (void)insert(work, &b);
    delete_row(work, &b, victims[2]);
    for (uint32_t i = 3; i < VICTIMS; i++) {
        (void)update(work, &b, victims[i]);
    }
    commit(work, &b);
    conflicts(work, locked ? victims[1] : NULL, inserted);
    write_pages(work);
    uint64_t end = stream_below(&work->stream, 4);
    if (end == 1) {
        commit(work, &a);
    } else if (end > 1 && work->right) {
        (void)done(work, engine_rollback(work->engine, a.trx), "rollback");
    }
    return end > 0;
}

static void purge(work_t *work)
{
    bool all;
    if (work->right) {
        (void)done(work, engine_purge(work->engine, UINT32_MAX, &all), "purge");
    }
}

/** Enough that a page is split now and then. */
static void insert_some(work_t *work)
{
    work_trx_t trx;
    uint64_t n = 1 + stream_below(&work->stream, INSERTS_MAX);
    begin(work, &trx);
    for (uint64_t i = 0; i < n; i++) {
        (void)insert(work, &trx);
    }
    commit(work, &trx);
}

static void work_on_table(work_t *work)
{
    char index[NAME_LEN_MAX + 1] = "";
    work->table = &work->tables[stream_below(&work->stream, work->n_tables)];
    if (!read_rows(work)) {
        return;
    }
    insert_some(work);
    bool unused = transactions(work);
    if (unused && stream_below(&work->stream, 2) == 0) {
        add_index(work, index);
    }
    insert_some(work);
    purge(work);
    if (stream_below(&work->stream, 2) == 0) {
        drop_index(work, index);
    }
}

bool work_run(engine_t *engine, image_t *image, const check_report_t *found, uint64_t seed,
              allowed_t *allowed, verdict_t *verdict)
{
    work_t work = {.engine = engine,
                   .image = image,
                   .allowed = allowed,
                   .verdict = verdict,
                   .stream = {.state = seed},
                   .n_tables = found->n_tables,
                   .right = true};
    work.tables = mem_alloc((found->n_tables + 1U) * sizeof(*work.tables));
    work.pk = mem_alloc(PAGE_SIZE_MAX);
    if (found->n_tables > 0) {
        memcpy(work.tables, found->tables, found->n_tables * sizeof(*work.tables));
        work_on_table(&work);
    }
    if (found->n_tables == 0 || stream_below(&work.stream, 4) == 0) {
        create_table(&work);
        insert_some(&work);
    }
    forget_rows(&work);
    free((void *)work.rows);
    free(work.tables);
    free(work.pk);
    return work.right;
}
