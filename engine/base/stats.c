/* The list of counters. Lowest layer.

1. Every field of stats_t is listed exactly once, in the order of the header. */
#include "base/stats.h"

#include <stddef.h>

typedef struct stat_field {
    const char *name;
    size_t offset;
} stat_field_t;

#define STAT(field)                                                                                \
    {                                                                                              \
#field, offsetof(stats_t, field)                                                           \
    }

static const stat_field_t STAT_FIELDS[] = {
    STAT(data_reads),
    STAT(data_writes),
    STAT(data_fsyncs),
    STAT(dblwr_writes),
    STAT(dblwr_batches),
    STAT(dblwr_full_batches),
    STAT(batches_unsynced),
    STAT(dblwr_skipped_init),
    STAT(dblwr_unskipped),
    STAT(dblwr_skipped_atomic),
    STAT(batches_interleaved),
    STAT(checkpoints_amid_batch),
    STAT(full_checkpoints_amid),
    STAT(yield_points),
    STAT(placed_checkpoints),
    STAT(placed_cleans),
    STAT(placed_evictions),
    STAT(placed_fills),
    STAT(writes_amid_fsync),
    STAT(log_waits_overtaken),
    STAT(latch_waits),
    STAT(pages_reused_in_flight),
    STAT(pages_freed_in_flight),
    STAT(pages_freed_unwritten),
    STAT(pages_scrubbed),
    STAT(pages_compressed),
    STAT(pages_punched),
    STAT(spaces_dropped_in_flight),
    STAT(os_log_written),
    STAT(os_log_fsyncs),
    STAT(log_wraps),
    STAT(log_buffer_full),
    STAT(log_moves),
    STAT(log_converted),
    STAT(log_room_waits),
    STAT(checkpoints),
    STAT(pages_evicted),
    STAT(pages_evicted_singly),
    STAT(pages_exported_singly),
    STAT(load_pages_evicted),
    STAT(flush_list_visited),
    STAT(spaces_passed),
    STAT(xdes_pages),
    STAT(extents_freed),
    STAT(btr_splits),
    STAT(btr_merges),
    STAT(defragment_count),
    STAT(defragment_failures),
    STAT(defragment_pages_freed),
    STAT(defragment_own_steps),
    STAT(defragment_pauses),
    STAT(blobs_written),
    STAT(blobs_purged),
    STAT(blobs_rolled_back),
    STAT(blobs_reapplied),
    STAT(pages_reorganized),
    STAT(bulk_rows),
    STAT(sort_runs),
    STAT(sort_merges),
    STAT(sort_bytes),
    STAT(sort_bytes_max),
    STAT(build_rescans),
    STAT(rowlog_records),
    STAT(rowlog_blocks_written),
    STAT(rowlog_loads_behind),
    STAT(rowlog_applied),
    STAT(rowlog_mapped),
    STAT(rowlog_overflows),
    STAT(loads_logged_after_skip),
    STAT(loads_amid_inits),
    STAT(load_flushes_amid),
    STAT(builds_duplicate),
    STAT(builds_aborted),
    STAT(indexes_dropped),
    STAT(system_tables),
    STAT(system_index_loads),
    STAT(tables_rebuilt),
    STAT(tables_copied),
    STAT(columns_added),
    STAT(columns_dropped),
    STAT(primary_keys_changed),
    STAT(rows_resorted),
    STAT(tables_truncated),
    STAT(tables_exported),
    STAT(tables_imported),
    STAT(optimize_ddl_sets),
    STAT(alters_instant),
    STAT(columns_added_instant),
    STAT(varchars_extended),
    STAT(alters_combined),
    STAT(rebuilds_combined),
    STAT(backup_pages),
    STAT(backup_rereads),
    STAT(backup_files_again),
    STAT(backup_files_moved),
    STAT(backup_log_wraps),
    STAT(backups_finished),
    STAT(backups_aborted),
    STAT(backups_prepared),
    STAT(trx_commits),
    STAT(trx_rollbacks),
    STAT(unique_duplicates),
    STAT(unique_conflicts),
    STAT(unique_marked),
    STAT(purged_records),
    STAT(purged_amid_commit),
    STAT(undo_truncations),
    STAT(undo_pages_truncated),
    STAT(recv_dblwr_restored),
    STAT(recv_pages_read),
    STAT(recv_pages_created),
    STAT(recv_index_load_reads),
    STAT(recv_freed_reads),
    STAT(recv_records),
    STAT(recv_pages_compared),
    STAT(recv_batches),
    STAT(recv_trx_rolled_back),
    STAT(recv_indexes_dropped),
    STAT(recv_tables_dropped),
    STAT(recv_swaps_finished),
};

#define N_STATS (sizeof(STAT_FIELDS) / sizeof(STAT_FIELDS[0]))

_Static_assert(N_STATS * sizeof(uint64_t) == sizeof(stats_t), "a counter is missing from the list");

void stats_each(const stats_t *stats, stats_fn fn, void *ctx)
{
    for (size_t i = 0; i < N_STATS; i++) {
        const char *field = (const char *)stats + STAT_FIELDS[i].offset;

        fn(ctx, STAT_FIELDS[i].name, *(const uint64_t *)(const void *)field);
    }
}

void stats_add(stats_t *sum, const stats_t *later)
{
    uint64_t most =
        sum->sort_bytes_max > later->sort_bytes_max ? sum->sort_bytes_max : later->sort_bytes_max;
    for (size_t i = 0; i < N_STATS; i++) {
        const char *more = (const char *)later + STAT_FIELDS[i].offset;
        char *to = (char *)sum + STAT_FIELDS[i].offset;

        *(uint64_t *)(void *)to += *(const uint64_t *)(const void *)more;
    }
    sum->sort_bytes = later->sort_bytes;
    sum->sort_bytes_max = most;
}
