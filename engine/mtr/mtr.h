/** Mini-transactions: page changes and their log as one atomic group.

Use: buf_log_free_check(); mtr_start(); get or create pages (each pinned until the end); change them
through the functions below only; mtr_commit(). Everything that can fail comes before the first
change. If an error strikes later, mtr_abort() poisons the handle, because half a change is in
memory: nothing is written any more and recovery will restore the last consistent state.

Modes: MTR_LOG_ALL writes redo. MTR_LOG_NO_REDO writes none and stamps pages with the current LSN;
its pages carry the stamp of a flush observer (the index being loaded) until they are written. */
#ifndef MTR_MTR_H
#define MTR_MTR_H

#include "buf/buf.h"

typedef enum mtr_mode {
    MTR_LOG_ALL,
    MTR_LOG_NO_REDO,
    MTR_READ_ONLY /**< a change is a programmer's mistake */
} mtr_mode_t;

#define MTR_MEMO_MAX 512U /**< pages pinned or freed by one mtr */
#define MTR_SPACES_MAX 8U /**< spaces that the records of one mtr name */

/** Private to mtr/, here so that callers can put it on their stack. */
typedef struct mtr {
    buf_pool_t *pool;
    mtr_mode_t mode;
    index_id_t observer;
    bool changed;
    uint32_t n_memo;
    struct {
        page_id_t id;
        buf_block_t *block; /**< NULL: freed without being in the pool */
        bool dirty;
        bool init; /**< initialised by a logged record of this mtr */
        bool freed;
    } memo[MTR_MEMO_MAX];
    uint32_t n_spaces;
    space_id_t spaces[MTR_SPACES_MAX]; /**< named by records, the system space excepted */
    redo_group_t log;
    lsn_t end_lsn; /**< after commit */
} mtr_t;

void mtr_start(mtr_t *mtr, buf_pool_t *pool, mtr_mode_t mode);
/** For MTR_LOG_NO_REDO: the index whose load this is. */
void mtr_set_observer(mtr_t *mtr, index_id_t observer);
/** Appends the group to the log, stamps and dirties the pages, unpins all. Cannot fail. */
void mtr_commit(mtr_t *mtr);
/** Unpins all. If something was changed, poisons the handle. */
void mtr_abort(mtr_t *mtr);
/** Commits if all went well so far, else aborts. @return err */
WARN_UNUSED dberr_t mtr_end(mtr_t *mtr, dberr_t err);

/** Pins a page for this mtr (once per page; a second get gives the same block). As buf_page_get;
DB_OUT_OF_SPACE beyond MTR_MEMO_MAX pages, DB_CORRUPTION for a page that this mtr has freed. */
WARN_UNUSED dberr_t mtr_page_get(mtr_t *mtr, page_id_t id, buf_block_t **out);
/** Creates and initialises a page, and logs that. As buf_page_create. */
WARN_UNUSED dberr_t mtr_page_create(mtr_t *mtr, page_id_t id, page_type_t type, buf_block_t **out);
/** Logs that the page is free and marks the page freed if it is in the pool. The only record of its
page in the mtr (CHECK: no earlier change of it here; ask mtr_page_is_changed before, if bytes from
disk chose the page). */
void mtr_page_free(mtr_t *mtr, page_id_t id);
bool mtr_page_is_changed(const mtr_t *mtr, page_id_t id); /**< freed included */
bool mtr_page_is_freed(const mtr_t *mtr, page_id_t id);

/** Direct changes of a pinned page. offset + length lies in the page (CHECK). */
void mtr_write_1(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t value);
void mtr_write_2(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t value);
void mtr_write_4(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t value);
void mtr_write_8(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint64_t value);
void mtr_write_string(mtr_t *mtr, buf_block_t *block, uint32_t offset, const byte *data,
                      uint32_t len);
void mtr_memset(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t len, byte value);

/** Index page changes, as page/page_index.h. DB_CORRUPTION leaves page and mtr unchanged. */
WARN_UNUSED dberr_t mtr_index_create(mtr_t *mtr, buf_block_t *block, uint32_t level,
                                     index_id_t index_id, uint32_t rec_size, uint32_t key_len);
WARN_UNUSED dberr_t mtr_rec_insert(mtr_t *mtr, buf_block_t *block, uint32_t slot, const byte *rec,
                                   uint32_t len);
WARN_UNUSED dberr_t mtr_rec_delete(mtr_t *mtr, buf_block_t *block, uint32_t slot);
WARN_UNUSED dberr_t mtr_rec_update(mtr_t *mtr, buf_block_t *block, uint32_t slot,
                                   uint32_t rec_offset, const byte *bytes, uint32_t len);
WARN_UNUSED dberr_t mtr_list_end_delete(mtr_t *mtr, buf_block_t *block, uint32_t slot);
WARN_UNUSED dberr_t mtr_list_start_delete(mtr_t *mtr, buf_block_t *block, uint32_t slot);
WARN_UNUSED dberr_t mtr_reorganize(mtr_t *mtr, buf_block_t *block);

/** Logs that all pages of the space begin anew, and the file has so many at first: what the log
says of them before this mtr is void. The pages that this mtr creates are of the new life. The
caller sees to pool and file. */
void mtr_trim_pages(mtr_t *mtr, space_id_t space, uint32_t size_pages);

/** Adds INDEX_LOAD(space, root, index) to this mtr. */
void mtr_index_load(mtr_t *mtr, space_id_t space, page_no_t root, index_id_t index_id);

#endif
