/* Statements of new work, and what must be there when they are committed.

Place: below work.c, above work_row.c.

Rules
1. What must be there is computed from the rows as they were read at the start and from what was
   changed, by the definition of the digest (check/check.h); that the rows are those of a commit
   prefix is judged before.
2. Values are new: of no row that was ever in the table, in no unique index. So nothing may be
   refused. */
#include "explorer/targets/engine/work_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define TRIES 64U /**< for a row whose keys nobody has */

/* ---- what went wrong ---- */

void work_found(work_t *work, const char *what, const char *why)
{
    work->right = false;
    verdict_add(work->verdict, SOURCE_RECOVERY, 30, "new work after the recovery: %s: %.180s", what,
                why);
}

/** Must this be done? It is not: a finding. */
bool work_done(work_t *work, dberr_t err, const char *what)
{
    if (err != DB_SUCCESS) {
        char why[VERDICT_WHAT_MAX];
        (void)snprintf(why, sizeof(why), "%s: %.150s", err_name(err), engine_error(work->engine));
        work_found(work, what, why);
    }
    return err == DB_SUCCESS;
}

bool work_refused(work_t *work, dberr_t err, dberr_t wanted, const char *what)
{
    if (err != wanted) {
        char why[VERDICT_WHAT_MAX];
        (void)snprintf(why, sizeof(why), "%s, not %s", err_name(err), err_name(wanted));
        work_found(work, what, why);
    }
    return err == wanted;
}

/* ---- rows ---- */

const dict_table_t *work_definition(const work_t *work)
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

void work_forget_rows(work_t *work)
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

bool work_read_rows(work_t *work)
{
    if (engine_table(work->engine, work->table->name) == NULL) {
        work_found(work, work->table->name, "the catalogue has no such table");
        return false;
    }
    reading_t reading = {.work = work, .table = work_definition(work)};
    return work_done(work, engine_scan(work->engine, work->table->name, NULL, read_row, &reading),
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
    const dict_table_t *table = work_definition(work);
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
    const dict_table_t *table = work_definition(work);
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
    trx->changes[trx->n++] = (work_change_t){.row = row, .comes = comes};
}

void work_begin(work_t *work, work_trx_t *trx)
{
    *trx = (work_trx_t){.n = 0};
    if (work->right) {
        (void)work_done(work, engine_begin(work->engine, &trx->trx), "begin");
    }
}

const byte *work_primary_key(const work_t *work, const work_row_t *row)
{
    dict_row_to_pk(work_definition(work), row->bytes, work->pk);
    return work->pk;
}

/** @return the row; NULL: it is not there */
work_row_t *work_insert(work_t *work, work_trx_t *trx)
{
    work_row_t *row = work->right ? new_row(work) : NULL;
    const char *table = work->table->name;
    if (row == NULL
        || !work_done(work, engine_insert(work->engine, trx->trx, table, row->bytes), "insert")) {
        return NULL;
    }
    note(trx, row, true);
    return row;
}

void work_delete(work_t *work, work_trx_t *trx, work_row_t *row)
{
    const char *table = work->table->name;
    if (work->right && row != NULL
        && work_done(work,
                     engine_delete(work->engine, trx->trx, table, work_primary_key(work, row)),
                     "delete")) {
        note(trx, row, false);
    }
}

/** @return the row was changed; there may be no column, or no value, that can be */
bool work_update(work_t *work, work_trx_t *trx, work_row_t *row)
{
    const dict_table_t *table = work_definition(work);
    uint32_t col = draw_column(work, table);
    if (!work->right || row == NULL || col == table->n_cols) {
        return false;
    }
    work_row_t *after = make_row(table, row->bytes);
    work_draw_value(&work->stream, &table->cols[col], after->bytes);
    if (!is_new(work, after, row)) {
        free(after);
        return false;
    }
    keep_row(work, after);
    bool null = dict_col_is_null(&table->cols[col], after->bytes);
    row_upd_t upd = {.col = col, .value = null ? NULL : after->bytes + table->cols[col].row_offset};
    if (!work_done(work,
                   engine_update(work->engine, trx->trx, work->table->name,
                                 work_primary_key(work, row), &upd, 1),
                   "update")) {
        return false;
    }
    note(trx, row, false);
    note(trx, after, true);
    return true;
}

/* ---- commits ---- */

void work_sum_index(check_table_t *sum, const dict_index_t *index, const byte *row, bool comes)
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

void work_sum_row(check_table_t *sum, const dict_table_t *table, const byte *row, bool comes)
{
    uint64_t hash = work_row_hash(table, row);
    sum->rows += comes ? 1 : UINT64_MAX;
    sum->hash += comes ? hash : 0 - hash;
    for (uint32_t i = 1; i < table->n_indexes; i++) {
        work_sum_index(sum, &table->indexes[i], row, comes);
    }
}

/** Before what makes a new prefix. */
void work_issue(const work_t *work)
{
    image_os_promise(work->image, work->acked + 1, work->acked);
}

/** After it. */
void work_acknowledge(work_t *work)
{
    allowed_add(work->allowed, work->tables, work->n_tables);
    (void)snprintf(work->allowed->prefixes[work->allowed->n - 1].exported, NAME_LEN_MAX + 1, "%s",
                   work->exported);
    work->acked++;
    image_os_promise(work->image, work->acked, work->acked);
}

bool work_made(work_t *work, dberr_t err, const char *what)
{
    bool done = work_done(work, err, what);
    if (done) {
        work_acknowledge(work);
    }
    return done;
}

void work_sum_nothing(const work_t *work, check_table_t *sum)
{
    for (uint32_t i = 0; i < work->n_rows; i++) {
        if (work->rows[i]->live) {
            work_sum_row(sum, work_definition(work), work->rows[i]->bytes, false);
        }
    }
}

void work_commit(work_t *work, const work_trx_t *trx)
{
    if (!work->right) {
        return;
    }
    work_issue(work);
    if (work_done(work, engine_commit(work->engine, trx->trx), "commit")) {
        for (uint32_t i = 0; i < trx->n; i++) {
            const work_change_t *change = &trx->changes[i];
            work_sum_row(work->table, work_definition(work), change->row->bytes, change->comes);
            change->row->live = change->comes;
        }
        work_acknowledge(work);
    }
}
