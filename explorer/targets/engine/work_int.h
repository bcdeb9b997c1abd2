/** Private to the new work: its state, and statements that keep what must be there
(work_stmt.c). */
#ifndef EXPLORER_WORK_INT_H
#define EXPLORER_WORK_INT_H

#include "explorer/targets/engine/work.h"
#include "explorer/targets/engine/work_row.h"

#define CHANGES_MAX 24U

typedef struct work_row {
    bool live; /**< after the last commit */
    byte bytes[];
} work_row_t;

/** A row that comes or goes with a commit. */
typedef struct work_change {
    work_row_t *row;
    bool comes;
} work_change_t;

typedef struct work_trx {
    trx_t *trx;
    uint32_t n;
    work_change_t changes[CHANGES_MAX];
} work_trx_t;

typedef struct work {
    engine_t *engine;
    image_t *image;
    allowed_t *allowed;
    verdict_t *verdict;
    stream_t stream;
    check_table_t
        *tables; /**< as they must be after the last commit; room for those that are made */
    uint32_t n_tables;
    check_table_t *table; /**< the one that is worked on */
    const char *exported; /**< the table that is, "": none */
    uint32_t acked;
    work_row_t **rows; /**< every row that was in it, or wanted to be */
    uint32_t n_rows;
    uint32_t capacity;
    byte *pk; /**< room for two primary keys */
    bool right;
} work_t;

/** Must this be done? It is not: a finding. */
bool work_done(work_t *work, dberr_t err, const char *what);
/** Must it be refused with `wanted`? It is not: a finding. */
bool work_refused(work_t *work, dberr_t err, dberr_t wanted, const char *what);
/** A finding. */
void work_found(work_t *work, const char *what, const char *why);

/** The table that is worked on, as the engine has it now. */
const dict_table_t *work_definition(const work_t *work);
/** Reads its rows; false: a finding. */
bool work_read_rows(work_t *work);
void work_forget_rows(work_t *work);
const byte *work_primary_key(const work_t *work, const work_row_t *row);

/* Statements of a transaction; once something is wrong they do nothing. */

void work_begin(work_t *work, work_trx_t *trx);
/** Of a row whose values nobody has. NULL: there is none. */
work_row_t *work_insert(work_t *work, work_trx_t *trx);
/** row: NULL: nothing is done. */
void work_delete(work_t *work, work_trx_t *trx, work_row_t *row);
/** The same. @return the row was changed */
bool work_update(work_t *work, work_trx_t *trx, work_row_t *row);

/** Adds an entry of the row to the digest of an index, or takes it away. */
void work_sum_index(check_table_t *sum, const dict_index_t *index, const byte *row, bool comes);
/** Adds a row to a table and its indexes, or takes it away. */
void work_sum_row(check_table_t *sum, const dict_table_t *table, const byte *row, bool comes);
/** Before and after what makes a new prefix; work_commit() does both. */
void work_issue(const work_t *work);
void work_acknowledge(work_t *work);
void work_commit(work_t *work, const work_trx_t *trx);
/** Must this be done? It makes a prefix of its own. */
bool work_made(work_t *work, dberr_t err, const char *what);
/** Takes the rows of the table that is worked on away. */
void work_sum_nothing(const work_t *work, check_table_t *sum);

/* ---- work_out.c ---- */

/** A backup must succeed, and its prepare, and have the tables of the last commit. */
void work_backup(work_t *work, const work_draw_t *draw);
/** Exports the table, which no transaction has changed, and imports it as one that is worked on
from now on. */
void work_copy_table(work_t *work);

#endif
