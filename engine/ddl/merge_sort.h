/** External merge sort of fixed-size records in temporary files, within a memory budget that counts
every byte it allocates. A sort of no records allocates no buffer. Temporary files are named
"#sql-tmp-ID-N" and are never logged; recovery removes them. Order: memcmp of the first key_len
bytes; keys are distinct (a secondary key ends with the primary key). */
#ifndef DDL_MERGE_SORT_H
#define DDL_MERGE_SORT_H

#include "os/os.h"

#define MERGE_TMP_PREFIX "#sql-tmp-"

typedef struct merge_sort merge_sort_t;

/** The least memory that a sort of such records works in. */
uint64_t merge_sort_memory_min(uint32_t rec_size);
/** Each of these may fail with DB_TEMP_FILE_FAILED: the sort is of no use then, the handle is.
memory_bytes: the budget; merge_sort_memory_min() if that is more. id makes file names unique. */
WARN_UNUSED dberr_t merge_sort_create(env_t *env, uint64_t id, uint32_t rec_size, uint32_t key_len,
                                      uint64_t memory_bytes, merge_sort_t **out);
WARN_UNUSED dberr_t merge_sort_add(merge_sort_t *sort, const byte *rec);
/** Ends input; a resumable merge: call until *done. Each call merges one group of runs. */
WARN_UNUSED dberr_t merge_sort_step(merge_sort_t *sort, bool *done);
/** Next record in order; DB_NOT_FOUND at the end. Valid until the next call. */
WARN_UNUSED dberr_t merge_sort_next(merge_sort_t *sort, const byte **rec);
/** How far the merge is, in 10000ths. */
uint32_t merge_sort_progress(const merge_sort_t *sort);
uint64_t merge_sort_n_records(const merge_sort_t *sort); /**< all that were added */
/** Removes its files and frees it; NULL is fine. */
void merge_sort_free(merge_sort_t *sort);
void merge_sort_abandon(merge_sort_t *sort); /**< frees it; its files stay, as after a crash */

#endif
