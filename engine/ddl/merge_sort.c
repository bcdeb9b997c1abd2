/* External merge sort of fixed-size records.

Place: ddl/, above os/ only, with merge_runs.c. Feeds the bottom-up loads of an index build
(WL#7277).

Rules
1. Memory never exceeds the budget given at creation, whatever the input: a full buffer is sorted
   and spilled as a run, and a merge (merge_runs.c) holds no more. All is counted (sort_bytes): this
   object, its buffers, and the copy of the references that qsort_r() may make.
2. All runs of a generation but the last have the same length, and a merge keeps the byte position
   of its group, so a file needs no directory: run i starts at record i * run_len.
3. Temporary files are never synced and never logged. They vanish with the object; what a crash
   leaves is removed by recovery (MERGE_TMP_PREFIX). A failure of one, as on a full disk, fails the
   statement and nothing else.

    generation 0    | run | run | run | run | run |     file 0
                     \____ fan_in ____/ \________/
    generation 1    |       run       |    run    |     file 1, then file 0 is removed, and so on */
#include "ddl/merge_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "ddl/ddl.h"

static void merge_path(const merge_sort_t *sort, uint32_t which, char path[PATH_LEN_MAX + 1])
{
    (void)snprintf(path, PATH_LEN_MAX + 1, MERGE_TMP_PREFIX "%" PRIu64 "-%u", sort->id, which);
}

/** A record that waits to be sorted; twice the reference, because qsort_r() may copy it once. */
static uint64_t merge_record_cost(uint32_t rec_size)
{
    return rec_size + 2 * sizeof(sort_ref_t);
}

/** What a sort needs whatever its buffer: itself, and one record for the permutation. */
static uint64_t merge_fixed_cost(uint32_t rec_size)
{
    return sizeof(merge_sort_t) + rec_size;
}

uint64_t merge_sort_memory_min(uint32_t rec_size)
{
    uint64_t collect = MERGE_RECORDS_MIN * merge_record_cost(rec_size);
    uint64_t merge = merge_runs_memory_min(rec_size);
    return merge_fixed_cost(rec_size) + (collect > merge ? collect : merge);
}

dberr_t merge_sort_create(env_t *env, uint64_t id, uint32_t rec_size, uint32_t key_len,
                          uint64_t memory_bytes, merge_sort_t **out)
{
    CHECK(rec_size >= key_len && key_len > 0);
    merge_sort_t *sort = calloc(1, sizeof(*sort));
    if (sort == NULL) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for a sort");
    }
    uint64_t memory_min = merge_sort_memory_min(rec_size);
    sort->env = env;
    sort->id = id;
    sort->rec_size = rec_size;
    sort->key_len = key_len;
    sort->memory_bytes = memory_bytes > memory_min ? memory_bytes : memory_min;
    merge_hold(sort, sizeof(*sort));
    *out = sort;
    return DB_SUCCESS;
}

/** The buffer that collects records, made for the first of them. */
static dberr_t merge_buffer_alloc(merge_sort_t *sort)
{
    uint64_t cost = merge_record_cost(sort->rec_size);
    uint64_t capacity = (sort->memory_bytes - merge_fixed_cost(sort->rec_size)) / cost;
    if (capacity > UINT32_MAX / 2) {
        capacity = UINT32_MAX / 2;
    }
    sort->capacity = (uint32_t)capacity;
    sort->run_len = capacity;
    sort->recs = malloc((size_t)capacity * sort->rec_size);
    sort->refs = malloc((size_t)capacity * sizeof(sort_ref_t));
    sort->spare = malloc(sort->rec_size);
    if (sort->recs == NULL || sort->refs == NULL || sort->spare == NULL) {
        return merge_out_of_memory(sort);
    }
    merge_hold(sort, merge_fixed_cost(sort->rec_size) + capacity * cost);
    return DB_SUCCESS;
}

/** Gives up every buffer. */
static void merge_buffers_free(merge_sort_t *sort)
{
    free(sort->recs);
    free(sort->refs);
    free(sort->spare);
    free(sort->blocks);
    free(sort->readers);
    free(sort->heap);
    sort->recs = NULL;
    sort->refs = NULL;
    sort->spare = NULL;
    sort->blocks = NULL;
    sort->readers = NULL;
    sort->heap = NULL;
    merge_hold(sort, sizeof(*sort));
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

static int merge_ref_compare(const void *a, const void *b, void *ctx)
{
    const merge_sort_t *sort = ctx;
    const sort_ref_t *x = a;
    const sort_ref_t *y = b;
    if (x->head != y->head) {
        return x->head < y->head ? -1 : 1;
    }
    int order = memcmp(sort->recs + (size_t)x->pos * sort->rec_size,
                       sort->recs + (size_t)y->pos * sort->rec_size, sort->key_len);
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
        TRY(merge_file_create(sort, 0));
    }
    TRY(env_write(sort->env, sort->files[0], sort->n_spilled * sort->rec_size, sort->recs,
                  (size_t)sort->n * sort->rec_size));
    sort->env->stats.sort_runs++;
    sort->n_spilled += sort->n;
    sort->n = 0;
    return DB_SUCCESS;
}

dberr_t merge_sort_add(merge_sort_t *sort, const byte *rec)
{
    CHECK(sort->phase == PHASE_COLLECT);
    if (sort->recs == NULL) {
        TRY(merge_buffer_alloc(sort));
    } else if (sort->n == sort->capacity) {
        TRY(merge_spill(sort));
    }
    memcpy(sort->recs + (size_t)sort->n * sort->rec_size, rec, sort->rec_size);
    sort->refs[sort->n].head = merge_key_head(sort, rec);
    sort->refs[sort->n].pos = sort->n;
    sort->n++;
    return DB_SUCCESS;
}

/** Trades the collecting buffer for merge buffers of the same budget. */
static dberr_t merge_start(merge_sort_t *sort)
{
    TRY(sort->n > 0 ? merge_spill(sort) : DB_SUCCESS);
    merge_buffers_free(sort);
    TRY(merge_runs_alloc(sort));
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
        if (sort->n > 0) {
            merge_sort_buffer(sort);
        }
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
    AND_THEN(err, merge_group(sort));
    if (err == DB_SUCCESS && ++sort->group * group_len >= sort->n_spilled) {
        merge_file_remove(sort, sort->current);
        sort->current = other;
        sort->run_len = group_len;
        sort->group = 0;
        sort->generation++;
    }
    return err;
}

uint64_t merge_sort_n_records(const merge_sort_t *sort)
{
    return sort->n_spilled + sort->n;
}

uint32_t merge_sort_progress(const merge_sort_t *sort)
{
    if (sort->phase != PHASE_MERGE) {
        return sort->phase == PHASE_COLLECT ? 0 : PROGRESS_MAX;
    }
    /* Every generation moves all records once; the last merge is read by the load. */
    uint64_t group_len = sort->run_len * sort->fan_in;
    uint64_t moved = sort->generation * sort->n_spilled + sort->group * group_len;
    uint64_t generations = sort->generation;
    for (uint64_t len = group_len; len < sort->n_spilled; len *= sort->fan_in) {
        generations++;
    }
    return generations == 0 ? PROGRESS_MAX
                            : (uint32_t)(moved * PROGRESS_MAX / (generations * sort->n_spilled));
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
    merge_buffers_free(sort);
    merge_hold(sort, 0);
    free(sort);
}
