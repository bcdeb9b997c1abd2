/** What transactions left in records: delete marks and transaction ids.

Place: check/, below check_rows.c and check_dict.c.

Checked: I25 no row carries a transaction id at or above the limit, and once the history is empty
none carries any, nor a delete mark. */
#include <inttypes.h>

#include "base/mach.h"
#include "check/check_table.h"
#include "page/page_index.h"

chk_row_marks_t chk_row_marks(const byte *rec, uint32_t pk_len)
{
    const byte *sys = rec + 1 + pk_len;
    trx_id_t trx_id = mach_read_6(sys);
    return (chk_row_marks_t){.trx_id = trx_id,
                             .history = trx_id != 0 || mach_read_7(sys + CHK_TRX_ID_LEN) != 0,
                             .deleted = rec_is_deleted(rec)};
}

void chk_marks_add(chk_marks_t *marks, const chk_marks_t *more, page_no_t page_no)
{
    if (marks->n_deleted + marks->n_trx_id + marks->n_beyond == 0) {
        marks->page_no = page_no;
    }
    marks->n_deleted += more->n_deleted;
    marks->n_trx_id += more->n_trx_id;
    marks->n_beyond += more->n_beyond;
}

void chk_marks_row(const chk_t *chk, const chk_table_t *table, page_no_t page_no, const byte *rec,
                   chk_marks_t *marks)
{
    chk_row_marks_t row = chk_row_marks(rec, table->pk_len);
    const chk_marks_t more = {.n_beyond = chk->trx_id_limit != 0 && row.trx_id >= chk->trx_id_limit,
                              .n_trx_id = chk->quiet && row.history,
                              .n_deleted = chk->quiet && row.deleted};
    chk_marks_add(marks, &more, page_no);
}

void chk_marks_report(chk_t *chk, const chk_tree_t *tree, const chk_marks_t *marks)
{
    if (marks->n_deleted + marks->n_trx_id + marks->n_beyond == 0) {
        return;
    }
    chk_find(chk, 25, tree->file, marks->page_no,
             "index %s of table %s: %" PRIu64 " delete marks and %" PRIu64
             " transaction ids although there is no history; %" PRIu64
             " ids not below the maximum of %" PRIu64,
             tree->index, tree->table, marks->n_deleted, marks->n_trx_id, marks->n_beyond,
             chk->trx_id_limit);
}
