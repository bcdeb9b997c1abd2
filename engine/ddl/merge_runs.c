/* Merging of the runs of a sort.

Place: below merge_sort.c, which spills the runs and drives the merge step by step.

Rules
1. A merge reads a bounded number of runs at a time, through blocks that fit the budget.
2. Records with equal keys keep the order of their runs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ddl/merge_int.h"

dberr_t merge_out_of_memory(merge_sort_t *sort)
{
    return err_set(&sort->env->err, DB_OUT_OF_MEMORY, "no memory for a sort of %" PRIu64 " bytes",
                   sort->memory_bytes);
}

void merge_hold(merge_sort_t *sort, uint64_t bytes)
{
    stats_t *stats = &sort->env->stats;
    stats->sort_bytes = stats->sort_bytes - sort->held_bytes + bytes;
    sort->held_bytes = bytes;
    if (stats->sort_bytes_max < stats->sort_bytes) {
        stats->sort_bytes_max = stats->sort_bytes;
    }
}

static uint64_t merge_reader_cost(void)
{
    return sizeof(run_reader_t) + sizeof(uint32_t);
}

uint64_t merge_runs_memory_min(uint32_t rec_size)
{
    return MERGE_FAN_IN_MIN * merge_reader_cost() + (MERGE_FAN_IN_MIN + 1) * (uint64_t)rec_size;
}

/** As many runs at a time as there is memory for blocks of a good size, and two at least. */
static uint32_t merge_fan_in(const merge_sort_t *sort, uint64_t memory_bytes)
{
    uint64_t block = sort->rec_size > MERGE_BLOCK_BYTES ? sort->rec_size : MERGE_BLOCK_BYTES;
    uint64_t blocks = memory_bytes / (block + merge_reader_cost());
    if (blocks <= MERGE_FAN_IN_MIN) {
        return MERGE_FAN_IN_MIN;
    }
    return blocks > MERGE_FAN_IN_MAX ? MERGE_FAN_IN_MAX : (uint32_t)blocks - 1;
}

dberr_t merge_runs_alloc(merge_sort_t *sort)
{
    uint64_t room = sort->memory_bytes - sizeof(*sort);
    sort->fan_in = merge_fan_in(sort, room);
    uint64_t readers = sort->fan_in * merge_reader_cost();
    uint64_t recs = (room - readers) / (sort->fan_in + 1) / sort->rec_size;
    CHECK(recs > 0);
    sort->block_recs = recs > UINT32_MAX ? UINT32_MAX : (uint32_t)recs;
    uint64_t blocks = (uint64_t)(sort->fan_in + 1) * sort->block_recs * sort->rec_size;
    sort->blocks = malloc(blocks);
    sort->readers = calloc(sort->fan_in, sizeof(*sort->readers));
    sort->heap = calloc(sort->fan_in, sizeof(*sort->heap));
    if (sort->blocks == NULL || sort->readers == NULL || sort->heap == NULL) {
        return merge_out_of_memory(sort);
    }
    merge_hold(sort, sizeof(*sort) + readers + blocks);
    return DB_SUCCESS;
}

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
    TRY(env_read(sort->env, sort->files[sort->current], reader->next * sort->rec_size,
                 reader->block, len, &n_read));
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
    int order = memcmp(merge_reader_rec(sort, &sort->readers[a]),
                       merge_reader_rec(sort, &sort->readers[b]), sort->key_len);
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

dberr_t merge_group_open(merge_sort_t *sort, uint64_t group, uint64_t *first, uint64_t *end)
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
        TRY(merge_reader_fill(sort, reader));
        sort->heap[i] = i;
        sort->heap_size++;
    }
    for (uint32_t at = sort->heap_size / 2; at > 0; at--) {
        merge_heap_sift_down(sort, at - 1);
    }
    return DB_SUCCESS;
}

dberr_t merge_group_next(merge_sort_t *sort, const byte **rec)
{
    if (sort->advance) {
        run_reader_t *reader = &sort->readers[sort->heap[0]];
        if (++reader->pos == reader->n) {
            TRY(merge_reader_fill(sort, reader));
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

dberr_t merge_group(merge_sort_t *sort)
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
            TRY(env_write(sort->env, sort->files[other], offset, out, fill));
            offset += fill;
            fill = 0;
        }
    }
    CHECK(err != DB_NOT_FOUND || offset == end * sort->rec_size);
    sort->env->stats.sort_merges++;
    return err == DB_NOT_FOUND ? DB_SUCCESS : err;
}
