/** Private to check/: the walk of a tree. */
#ifndef CHECK_CHECK_TREE_H
#define CHECK_CHECK_TREE_H

#include "check/check_int.h"

/** What the leaf records of an index add up to. */
typedef struct chk_sum {
    uint64_t n;
    uint64_t hash;
} chk_sum_t;

typedef struct chk_leaf chk_leaf_t; /**< check_memo.h */

/** What a scan of records keeps per leaf, so that the memo can stand for it. */
typedef struct chk_leaf_ops {
    /** Hash of what the records of the next leaf are held against, besides its tree. */
    uint64_t (*context)(void *ctx);
    void (*begin)(void *ctx);
    /** In place of its records. False: they have to be read. */
    bool (*take)(void *ctx, page_no_t page_no, const chk_leaf_t *leaf);
    /** Behind its records. @return they were all right: *leaf says what they add up to */
    bool (*end)(void *ctx, page_no_t page_no, chk_leaf_t *leaf);
} chk_leaf_ops_t;

typedef struct chk_tree {
    chk_file_t *file;
    const char *table; /**< names, for messages */
    const char *index;
    index_id_t id;
    page_no_t root;
    uint32_t key_len;
    uint32_t rec_size; /**< of leaf records, or PAGE_REC_VARIES */
    uint32_t instant;  /**< the instant mark: there is a metadata record; 0: there is none */
    uint32_t *leaves;  /**< gets the owner number of the leaves' segment, before the first record */
    uint64_t definition;       /**< hash of all that says what its records must be */
    const chk_leaf_ops_t *ops; /**< NULL: leaves are always read */
} chk_tree_t;

/** Called for each leaf record in key order: info byte first, len bytes. */
typedef dberr_t (*chk_rec_fn)(void *ctx, page_no_t page_no, const byte *rec, uint32_t len);

/** Walks a whole tree. *whole = nothing wrong was met; otherwise the walk stopped at the first
thing. */
WARN_UNUSED dberr_t chk_tree_walk(chk_t *chk, const chk_tree_t *tree, chk_rec_fn fn, void *ctx,
                                  bool *whole);

#endif
