/* External merge sort of fixed-size records.

Place: ddl/, above os/ only. Feeds the bottom-up loads of an index build (WL#7277).

Rules
1. Memory never exceeds the budget given at creation (or four records), whatever the input: a full
   buffer is sorted and spilled as a run, and a merge reads a bounded number of runs at a time.
2. All runs of a generation but the last have the same length, and a merge keeps the byte position
   of its group, so a file needs no directory: run i starts at record i * run_len.
3. Temporary files are never synced and never logged. They vanish with the object; what a crash
   leaves is removed by recovery (MERGE_TMP_PREFIX). A failure of one, as on a full disk, fails the
   statement and nothing else.

    generation 0    | run | run | run | run | run |     file 0
                     \____ fan_in ____/ \________/
    generation 1    |       run       |    run    |     file 1, then file 0 is removed, and so on */
#include "ddl/merge_sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"

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
    uint64_t memory_bytes;
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
    os_file_t *files[2];
    uint32_t current; /**< which of the two holds the generation */
    /* merging */
    uint32_t fan_in;
    uint32_t block_recs;
    byte *blocks; /**< fan_in + 1 blocks; the last one is for output */
    run_reader_t readers[MERGE_FAN_IN_MAX];
    uint32_t heap[MERGE_FAN_IN_MAX];
    uint32_t heap_size;
    bool advance; /**< the record last handed out is still at the top of the heap */
};

static void merge_path(const merge_sort_t *sort, uint32_t which, char path[PATH_LEN_MAX + 1])
{
    (void)snprintf(path, PATH_LEN_MAX + 1, MERGE_TMP_PREFIX "%" PRIu64 "-%u", sort->id, which);
}

static dberr_t merge_out_of_memory(merge_sort_t *sort)
{
    return err_set(&sort->env->err, DB_OUT_OF_MEMORY, "no memory for a sort of %" PRIu64 " bytes",
                   sort->memory_bytes);
}

dberr_t merge_sort_create(env_t *env, uint64_t id, uint32_t rec_size, uint32_t key_len,
                          uint64_t memory_bytes, merge_sort_t **out)
{
    CHECK(rec_size >= key_len && key_len > 0);
    merge_sort_t *sort = calloc(1, sizeof(*sort));
    if (sort == NULL) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for a sort");
    }
    sort->env = env;
    sort->id = id;
    sort->rec_size = rec_size;
    sort->key_len = key_len;
    /* Twice the references: qsort_r may copy them once. */
    uint64_t cost = rec_size + 2 * sizeof(sort_ref_t);
    uint64_t capacity = memory_bytes / cost;
    if (capacity < MERGE_RECORDS_MIN) {
        capacity = MERGE_RECORDS_MIN;
    }
    if (capacity > UINT32_MAX / 2) {
        capacity = UINT32_MAX / 2;
    }
    sort->memory_bytes = capacity * cost;
    sort->capacity = (uint32_t)capacity;
    sort->run_len = capacity;
    sort->recs = malloc((size_t)capacity * rec_size);
    sort->refs = malloc((size_t)capacity * sizeof(sort_ref_t));
    sort->spare = malloc(rec_size);
    if (sort->recs == NULL || sort->refs == NULL || sort->spare == NULL) {
        dberr_t err = merge_out_of_memory(sort);
        merge_sort_free(sort);
        return err;
    }
    *out = sort;
    return DB_SUCCESS;
}

/* ---- runs ---- */

static uint64_t merge_key_head(const merge_sort_t *sort, const byte *rec)
{
    if (sort->key_len >= 8) {
        return mach_read_8(rec);
    }
    uint64_t head = 0;
    for (uint32_t i = 0; i < 8; i++) {
        head = head << 8 | (i < sort->key_len ? rec[i] : 0U);
    }
    return head;
}

static int merge_compare(const merge_sort_t *sort, const byte *a, const byte *b)
{
    return memcmp(a, b, sort->key_len);
}

static int merge_ref_compare(const void *a, const void *b, void *ctx)
{
    const merge_sort_t *sort = ctx;
    const sort_ref_t *x = a;
    const sort_ref_t *y = b;
    if (x->head != y->head) {
        return x->head < y->head ? -1 : 1;
    }
    int order = merge_compare(sort, sort->recs + (size_t)x->pos * sort->rec_size,
                              sort->recs + (size_t)y->pos * sort->rec_size);
    return order != 0 ? order : (x->pos < y->pos ? -1 : 1);
}

/** Sorts the buffer in place: references first, then one cycle of moves per cycle of the
permutation. */
static void merge_sort_buffer(merge_sort_t *sort)
{
    size_t size = sort->rec_size;
    qsort_r(sort->refs, sort->n, sizeof(sort_ref_t), merge_ref_compare, sort);
    for (uint32_t start = 0; start < sort->n; start++) {
        if (sort->refs[start].pos == start) {
            continue;
        }
        memcpy(sort->spare, sort->recs + start * size, size);
        uint32_t to = start;
        for (;;) {
            uint32_t from = sort->refs[to].pos;
            sort->refs[to].pos = to;
            if (from == start) {
                memcpy(sort->recs + to * size, sort->spare, size);
                break;
            }
            memcpy(sort->recs + to * size, sort->recs + from * size, size);
            to = from;
        }
    }
}

static dberr_t merge_file_create(merge_sort_t *sort, uint32_t which)
{
    char path[PATH_LEN_MAX + 1];
    merge_path(sort, which, path);
    return env_tmp_create(sort->env, path, &sort->files[which]);
}

static void merge_file_remove(merge_sort_t *sort, uint32_t which)
{
    char path[PATH_LEN_MAX + 1];
    if (sort->files[which] != NULL) {
        env_close(sort->env, sort->files[which]);
        sort->files[which] = NULL;
        merge_path(sort, which, path);
        env_tmp_remove(sort->env, path);
    }
}

static dberr_t merge_spill(merge_sort_t *sort)
{
    merge_sort_buffer(sort);
    if (sort->files[0] == NULL) {
        dberr_t err = merge_file_create(sort, 0);
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    dberr_t err = env_write(sort->env, sort->files[0], sort->n_spilled * sort->rec_size, sort->recs,
                            (size_t)sort->n * sort->rec_size);
    if (err != DB_SUCCESS) {
        return err;
    }
    sort->env->stats.sort_runs++;
    sort->n_spilled += sort->n;
    sort->n = 0;
    return DB_SUCCESS;
}

dberr_t merge_sort_add(merge_sort_t *sort, const byte *rec)
{
    CHECK(sort->phase == PHASE_COLLECT);
    if (sort->n == sort->capacity) {
        dberr_t err = merge_spill(sort);
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    memcpy(sort->recs + (size_t)sort->n * sort->rec_size, rec, sort->rec_size);
    sort->refs[sort->n].head = merge_key_head(sort, rec);
    sort->refs[sort->n].pos = sort->n;
    sort->n++;
    return DB_SUCCESS;
}

/* ---- merging ---- */

static const byte *merge_reader_rec(const merge_sort_t *sort, const run_reader_t *reader)
{
    return reader->block + (size_t)reader->pos * sort->rec_size;
}

static dberr_t merge_reader_fill(merge_sort_t *sort, run_reader_t *reader)
{
    uint64_t left = reader->end - reader->next;
    reader->pos = 0;
    reader->n = left < sort->block_recs ? (uint32_t)left : sort->block_recs;
    if (reader->n == 0) {
        return DB_SUCCESS;
    }
    size_t len = (size_t)reader->n * sort->rec_size;
    size_t n_read = 0;
    dberr_t err = env_read(sort->env, sort->files[sort->current], reader->next * sort->rec_size,
                           reader->block, len, &n_read);
    if (err != DB_SUCCESS) {
        return err;
    }
    if (n_read != len) {
        return err_set(&sort->env->err, DB_TEMP_FILE_FAILED,
                       "sort file " MERGE_TMP_PREFIX "%" PRIu64 "-%u: %zu of %zu bytes read",
                       sort->id, sort->current, n_read, len);
    }
    reader->next += reader->n;
    return DB_SUCCESS;
}

static bool merge_heap_less(const merge_sort_t *sort, uint32_t a, uint32_t b)
{
    int order = merge_compare(sort, merge_reader_rec(sort, &sort->readers[a]),
                              merge_reader_rec(sort, &sort->readers[b]));
    return order < 0 || (order == 0 && a < b);
}

static void merge_heap_sift_down(merge_sort_t *sort, uint32_t at)
{
    for (;;) {
        uint32_t least = 2 * at + 1;
        if (least >= sort->heap_size) {
            return;
        }
        if (least + 1 < sort->heap_size
            && merge_heap_less(sort, sort->heap[least + 1], sort->heap[least])) {
            least++;
        }
        if (!merge_heap_less(sort, sort->heap[least], sort->heap[at])) {
            return;
        }
        uint32_t swap = sort->heap[at];
        sort->heap[at] = sort->heap[least];
        sort->heap[least] = swap;
        at = least;
    }
}

/** Opens the runs of a group; returns its first and last + 1 record. */
static dberr_t merge_group_open(merge_sort_t *sort, uint64_t group, uint64_t *first, uint64_t *end)
{
    uint64_t group_len = sort->run_len * sort->fan_in;
    *first = group * group_len;
    *end = *first + group_len < sort->n_spilled ? *first + group_len : sort->n_spilled;
    sort->heap_size = 0;
    sort->advance = false;
    for (uint64_t start = *first; start < *end; start += sort->run_len) {
        uint32_t i = sort->heap_size;
        run_reader_t *reader = &sort->readers[i];
        reader->next = start;
        reader->end = start + sort->run_len < *end ? start + sort->run_len : *end;
        reader->block = sort->blocks + (size_t)i * sort->block_recs * sort->rec_size;
        dberr_t err = merge_reader_fill(sort, reader);
        if (err != DB_SUCCESS) {
            return err;
        }
        sort->heap[i] = i;
        sort->heap_size++;
    }
    for (uint32_t at = sort->heap_size / 2; at > 0; at--) {
        merge_heap_sift_down(sort, at - 1);
    }
    return DB_SUCCESS;
}

/** The next record of the open group, or DB_NOT_FOUND. */
static dberr_t merge_group_next(merge_sort_t *sort, const byte **rec)
{
    if (sort->advance) {
        run_reader_t *reader = &sort->readers[sort->heap[0]];
        if (++reader->pos == reader->n) {
            dberr_t err = merge_reader_fill(sort, reader);
            if (err != DB_SUCCESS) {
                return err;
            }
            if (reader->n == 0) {
                sort->heap[0] = sort->heap[--sort->heap_size];
            }
        }
        merge_heap_sift_down(sort, 0);
        sort->advance = false;
    }
    if (sort->heap_size == 0) {
        return DB_NOT_FOUND;
    }
    *rec = merge_reader_rec(sort, &sort->readers[sort->heap[0]]);
    sort->advance = true;
    return DB_SUCCESS;
}

/** Merges one group of the generation into the other file, at the same position. */
static dberr_t merge_group(merge_sort_t *sort)
{
    uint32_t other = 1 - sort->current;
    size_t block_bytes = (size_t)sort->block_recs * sort->rec_size;
    byte *out = sort->blocks + sort->fan_in * block_bytes;
    size_t fill = 0;
    uint64_t first = 0;
    uint64_t end = 0;
    dberr_t err = merge_group_open(sort, sort->group, &first, &end);
    uint64_t offset = first * sort->rec_size;
    while (err == DB_SUCCESS) {
        const byte *rec = NULL;
        err = merge_group_next(sort, &rec);
        if (err == DB_SUCCESS) {
            memcpy(out + fill, rec, sort->rec_size);
            fill += sort->rec_size;
        }
        if (fill > 0 && (fill == block_bytes || err == DB_NOT_FOUND)) {
            dberr_t write_err = env_write(sort->env, sort->files[other], offset, out, fill);
            if (write_err != DB_SUCCESS) {
                return write_err;
            }
            offset += fill;
            fill = 0;
        }
    }
    CHECK(err != DB_NOT_FOUND || offset == end * sort->rec_size);
    sort->env->stats.sort_merges++;
    return err == DB_NOT_FOUND ? DB_SUCCESS : err;
}

/** Trades the collecting buffer for merge buffers of the same budget. */
static dberr_t merge_start(merge_sort_t *sort)
{
    dberr_t err = sort->n > 0 ? merge_spill(sort) : DB_SUCCESS;
    if (err != DB_SUCCESS) {
        return err;
    }
    free(sort->recs);
    free(sort->refs);
    sort->recs = NULL;
    sort->refs = NULL;
    uint64_t block = sort->rec_size > MERGE_BLOCK_BYTES ? sort->rec_size : MERGE_BLOCK_BYTES;
    uint64_t blocks = sort->memory_bytes / block;
    sort->fan_in =
        blocks > MERGE_FAN_IN_MAX ? MERGE_FAN_IN_MAX : (blocks < 3 ? 2U : (uint32_t)blocks - 1);
    uint64_t recs = sort->memory_bytes / (sort->fan_in + 1) / sort->rec_size;
    CHECK(recs > 0);
    sort->block_recs = recs > UINT32_MAX ? UINT32_MAX : (uint32_t)recs;
    sort->blocks = malloc((size_t)(sort->fan_in + 1) * sort->block_recs * sort->rec_size);
    if (sort->blocks == NULL) {
        return merge_out_of_memory(sort);
    }
    sort->phase = PHASE_MERGE;
    return DB_SUCCESS;
}

dberr_t merge_sort_step(merge_sort_t *sort, bool *done)
{
    *done = false;
    if (sort->phase == PHASE_COLLECT) {
        if (sort->n_spilled > 0) {
            return merge_start(sort);
        }
        merge_sort_buffer(sort);
        sort->phase = PHASE_READ_MEMORY;
    }
    if (sort->phase != PHASE_MERGE) {
        *done = true;
        return DB_SUCCESS;
    }
    uint64_t group_len = sort->run_len * sort->fan_in;
    if (sort->n_spilled <= group_len) {
        uint64_t first = 0;
        uint64_t end = 0;
        dberr_t err = merge_group_open(sort, 0, &first, &end);
        sort->phase = PHASE_READ_RUNS;
        *done = err == DB_SUCCESS;
        return err;
    }
    uint32_t other = 1 - sort->current;
    dberr_t err = sort->files[other] == NULL ? merge_file_create(sort, other) : DB_SUCCESS;
    if (err == DB_SUCCESS) {
        err = merge_group(sort);
    }
    if (err == DB_SUCCESS && ++sort->group * group_len >= sort->n_spilled) {
        merge_file_remove(sort, sort->current);
        sort->current = other;
        sort->run_len = group_len;
        sort->group = 0;
    }
    return err;
}

dberr_t merge_sort_next(merge_sort_t *sort, const byte **rec)
{
    CHECK(sort->phase == PHASE_READ_MEMORY || sort->phase == PHASE_READ_RUNS);
    if (sort->phase == PHASE_READ_RUNS) {
        return merge_group_next(sort, rec);
    }
    if (sort->read_pos == sort->n) {
        return DB_NOT_FOUND;
    }
    *rec = sort->recs + (size_t)sort->read_pos++ * sort->rec_size;
    return DB_SUCCESS;
}

void merge_sort_free(merge_sort_t *sort)
{
    for (uint32_t which = 0; sort != NULL && which < 2; which++) {
        merge_file_remove(sort, which);
    }
    merge_sort_abandon(sort);
}

void merge_sort_abandon(merge_sort_t *sort)
{
    if (sort == NULL) {
        return;
    }
    for (uint32_t which = 0; which < 2; which++) {
        if (sort->files[which] != NULL) {
            env_close(sort->env, sort->files[which]);
        }
    }
    free(sort->recs);
    free(sort->refs);
    free(sort->spare);
    free(sort->blocks);
    free(sort);
}
