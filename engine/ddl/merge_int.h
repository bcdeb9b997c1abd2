/** Private to the merge sort: the object that collecting (merge_sort.c) and merging (merge_runs.c)
share. */
#ifndef DDL_MERGE_INT_H
#define DDL_MERGE_INT_H

#include "ddl/merge_sort.h"

#define MERGE_FAN_IN_MIN 2U
#define MERGE_FAN_IN_MAX 64U
#define MERGE_BLOCK_BYTES 16384U
#define MERGE_RECORDS_MIN 4U

typedef enum merge_phase {
    PHASE_COLLECT,
    PHASE_MERGE,
    PHASE_READ_MEMORY,
    PHASE_READ_RUNS
} merge_phase_t;

/** What is sorted in memory: the first key bytes as a number (most comparisons end there). */
typedef struct sort_ref {
    uint64_t head;
    uint32_t pos;
} sort_ref_t;

typedef struct run_reader {
    uint64_t next; /**< record of the file to read next */
    uint64_t end;
    byte *block;
    uint32_t pos; /**< current record of the block */
    uint32_t n;   /**< records in the block; 0 = exhausted */
} run_reader_t;

struct merge_sort {
    env_t *env;
    uint64_t id;
    uint32_t rec_size;
    uint32_t key_len;
    merge_phase_t phase;
    uint64_t memory_bytes; /**< budget */
    uint64_t held_bytes;   /**< of it, in use */
    /* collecting, and reading when nothing was spilled */
    byte *recs;
    sort_ref_t *refs;
    byte *spare; /**< one record, for the permutation */
    uint32_t capacity;
    uint32_t n;
    uint32_t read_pos;
    /* runs */
    uint64_t n_spilled; /**< records in a generation */
    uint64_t run_len;
    uint64_t group; /**< next group of this generation to merge */
    uint32_t generation;
    os_file_t *files[2];
    uint32_t current; /**< which of the two holds the generation */
    /* merging */
    uint32_t fan_in;
    uint32_t block_recs;
    byte *blocks;          /**< fan_in + 1 blocks; the last one is for output */
    run_reader_t *readers; /**< fan_in */
    uint32_t *heap;        /**< of readers, fan_in */
    uint32_t heap_size;
    bool advance; /**< the record last handed out is still at the top of the heap */
};

/* ---- merge_runs.c ---- */

/** Says how much the sort holds from now on (stats.sort_bytes). */
void merge_hold(merge_sort_t *sort, uint64_t bytes);
WARN_UNUSED dberr_t merge_out_of_memory(merge_sort_t *sort);
/** The least that merging takes, besides the object itself. */
uint64_t merge_runs_memory_min(uint32_t rec_size);
/** Makes the merge buffers, within the budget: how many runs at a time is decided here. No other
buffer is held any more. */
WARN_UNUSED dberr_t merge_runs_alloc(merge_sort_t *sort);
/** Opens the runs of a group; returns its first and last + 1 record. */
WARN_UNUSED dberr_t merge_group_open(merge_sort_t *sort, uint64_t group, uint64_t *first,
                                     uint64_t *end);
/** The next record of the open group, or DB_NOT_FOUND. */
WARN_UNUSED dberr_t merge_group_next(merge_sort_t *sort, const byte **rec);
/** Merges one group of the generation into the other file, at the same position. */
WARN_UNUSED dberr_t merge_group(merge_sort_t *sort);

#endif
