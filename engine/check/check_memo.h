/** Private to check/: what earlier scans found right, by content.

Only what was right is kept, together with all that it was held against. A page that is not known,
or stands among other neighbours, is looked at as if there were no memo, and whatever is wrong is
found there: no finding is ever kept. */
#ifndef CHECK_CHECK_MEMO_H
#define CHECK_CHECK_MEMO_H

#include "check/check_tree.h"

/** What the records of a leaf add up to; kept where each of them was right. */
struct chk_leaf {
    uint64_t place;    /**< hash of what it was held against; 0: not known */
    uint64_t last_key; /**< hash of its greatest key */
    page_no_t prev;
    page_no_t next;
    uint32_t n_recs;
    chk_sum_t live;
    uint64_t n_deleted;
    uint64_t n_history;   /**< rows with the id of a transaction, or an undo record */
    trx_id_t trx_id_max;  /**< of its rows */
    uint32_t unique_slot; /**< unique index: its last live entry; UINT32_MAX: none */
    uint64_t unique_key;  /**< hash of its key columns */
    uint32_t n_expected;  /**< clustered: secondary indexes */
    uint64_t *expected;   /**< of each the hash sum of the entries that live rows call for */
};

/** A page at its place that was right by itself. */
struct chk_fact {
    uint64_t version; /**< of its stored bytes, os_view_t */
    uint64_t content[2];
    uint64_t used; /**< number of the last scan that met it */
    bool right;
    uint32_t type;
    lsn_t lsn;
    chk_leaf_t leaf;
    uint32_t expected_room; /**< of leaf.expected, which is the fact's own */
};

/** Makes the memo ready for a scan of pages of chk->page_size. */
void chk_memo_begin(chk_t *chk);
/** Makes room for the facts of a file whose size is known. Without memory it goes without. */
void chk_memo_file(chk_t *chk, chk_file_t *file);
/** Enters the page into file->facts, if the memo is there and the back end can tell its content.
@return it was right before */
bool chk_memo_find(chk_t *chk, chk_file_t *file, page_no_t page_no);
/** The page that chk_memo_find() has entered, without success, is right: chk->page. */
void chk_memo_learn(const chk_t *chk, const chk_file_t *file, page_no_t page_no);
/** NULL: nothing can be kept of this page. */
chk_fact_t *chk_fact_of(const chk_file_t *file, page_no_t page_no);
/** Keeps a leaf that was right, as it stood there. */
void chk_leaf_learn(chk_t *chk, chk_fact_t *fact, const chk_leaf_t *leaf);

#endif
