/** Status counters, under the names that InnoDB's users know (SHOW STATUS). All count since open,
but sort_bytes, which is what is held now. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stdint.h>

typedef struct stats {
    uint64_t data_reads;    /**< pages read from data files */
    uint64_t data_writes;   /**< page images written: home writes and doublewrite copies */
    uint64_t data_fsyncs;   /**< fsyncs of data files and the doublewrite file */
    uint64_t dblwr_writes;  /**< page copies written to the doublewrite area, as 10.4 counts them
                                       when pages are flushed for export */
    uint64_t dblwr_batches; /**< batches: one area write and fsync each */
    uint64_t dblwr_full_batches; /**< of them, those that filled the batch region */
    uint64_t batches_unsynced;   /**< those without copies, which end without an fsync */
    uint64_t dblwr_skipped_init; /**< home writes without doublewrite thanks to init_on_flush */
    /** initialisations whose first write takes a copy because of an INDEX_LOAD since C */
    uint64_t dblwr_unskipped;
    uint64_t dblwr_skipped_atomic;   /**< the same thanks to the storage's promise */
    uint64_t batches_interleaved;    /**< batches during which others wrote to the log */
    uint64_t checkpoints_amid_batch; /**< slots written while a batch was in flight */
    uint64_t full_checkpoints_amid;  /**< full checkpoints at a yield point: amid what others do */
    uint64_t yield_points;
    uint64_t placed_checkpoints; /**< what a script has placed at a yield point, and was done */
    uint64_t placed_cleans;
    uint64_t placed_evictions;
    uint64_t placed_fills;      /**< of the log */
    uint64_t writes_amid_fsync; /**< page writes while an fsync of their file was under way */
    /** waits for the log, written and not yet fsynced, during which others wrote */
    uint64_t log_waits_overtaken;
    uint64_t latch_waits; /**< changes and creations of a page that waited for its home write */
    uint64_t pages_reused_in_flight; /**< of them, creations */
    uint64_t pages_freed_in_flight;
    uint64_t pages_freed_unwritten;    /**< freed pages that were dirty and given up, not written */
    uint64_t pages_scrubbed;           /**< freed pages overwritten with zeros */
    uint64_t pages_compressed;         /**< home writes of compressed pages */
    uint64_t pages_punched;            /**< holes: behind compressed pages, and for freed ones */
    uint64_t spaces_dropped_in_flight; /**< deletions of a file that waited for its pages */
    uint64_t os_log_written;           /**< bytes written to the redo file */
    uint64_t os_log_fsyncs;
    uint64_t log_wraps;       /**< log writes that straddled the end of the file */
    uint64_t log_buffer_full; /**< log writes because the buffer was full */
    uint64_t log_moves;       /**< records that copy bytes within a page: a 10.5 log has them */
    uint64_t log_converted;   /**< redo files replaced by one of another format */
    uint64_t log_room_waits; /**< flushes and checkpoints because the log had no room for a group */
    uint64_t checkpoints;
    uint64_t pages_evicted;
    uint64_t pages_evicted_singly;  /**< dirty victims written by themselves, not in a batch */
    uint64_t pages_exported_singly; /**< pages of a space written one by one for its export */
    uint64_t load_pages_evicted; /**< pages of a load without redo that were written for room in the
                                      pool, before the load's own flush */
    uint64_t flush_list_visited; /**< flush list entries looked at while flushing one space */
    uint64_t spaces_passed;      /**< other spaces looked at while finding a page's space by id */
    uint64_t xdes_pages;         /**< descriptor pages made, page 0 of a space not counted */
    uint64_t extents_freed;      /**< extents that came back to their space */
    uint64_t btr_splits;
    uint64_t btr_merges;
    uint64_t defragment_count;    /**< groups of leaves that a defragmentation has packed */
    uint64_t defragment_failures; /**< of them, those that were as many pages as before */
    uint64_t defragment_pages_freed;
    uint64_t defragment_own_steps; /**< steps that came after a commit (defragment_interval) */
    uint64_t defragment_pauses;    /**< statements that found a defragmentation switched off */
    uint64_t blobs_written;        /**< long values that got pages of their own, loads included */
    uint64_t blobs_purged;         /**< of them, those that purge has freed */
    uint64_t blobs_rolled_back;    /**< the same of rollback */
    uint64_t blobs_reapplied;   /**< those that a later change in a build's row log has replaced */
    uint64_t pages_reorganized; /**< pages put together because a record needed their garbage */
    uint64_t bulk_rows;         /**< records added by bulk loads */
    uint64_t sort_runs;         /**< merge sort runs spilled to a temporary file */
    uint64_t sort_merges;       /**< groups of runs merged into a longer run */
    uint64_t sort_bytes;        /**< memory that the merge sorts of index builds hold now */
    uint64_t sort_bytes_max;    /**< the most that they have held */
    uint64_t build_rescans;  /**< scans of a table for more indexes of a build, beyond its first */
    uint64_t rowlog_records; /**< changes of rows and entries logged for builds with LOCK=NONE */
    uint64_t rowlog_blocks_written; /**< full blocks of such logs, in a temporary file */
    uint64_t rowlog_loads_behind;   /**< loads at whose end full blocks of such logs waited */
    uint64_t rowlog_applied;        /**< of the records, those that were applied */
    uint64_t rowlog_mapped;         /**< of these, rows that have other columns then */
    uint64_t rowlog_overflows;      /**< such logs that online_alter_log_max_size had no room for */
    /** loads logged against log_optimize_ddl: pages of their space may be torn without a copy */
    uint64_t loads_logged_after_skip;
    /** loads without redo before whose first page such a write was still to come */
    uint64_t loads_amid_inits;
    /** parts of a load's flush, its fsync, its INDEX_LOAD: those in front of which others wrote */
    uint64_t load_flushes_amid;
    uint64_t builds_duplicate; /**< index builds given up for a duplicate in a unique index */
    uint64_t builds_aborted;   /**< index builds */
    uint64_t indexes_dropped;  /**< by statements */
    /** tables created in the system tablespace */
    uint64_t system_tables;
    uint64_t system_index_loads; /**< INDEX_LOADs of the system tablespace */
    uint64_t tables_rebuilt;     /**< ALTER TABLE ... FORCE */
    uint64_t tables_copied;      /**< ALTER TABLE with ALGORITHM=COPY */
    uint64_t columns_added;      /**< by a rebuild or a copy */
    uint64_t columns_dropped;
    uint64_t primary_keys_changed; /**< by a rebuild or a copy */
    uint64_t rows_resorted;        /**< rows loaded in the order of a sort by another primary key */
    uint64_t tables_truncated;
    uint64_t tables_exported;
    uint64_t tables_imported;
    uint64_t optimize_ddl_sets; /**< SET log_optimize_ddl, done */
    /** ALTER statements that changed nothing but a row of the catalogue */
    uint64_t alters_instant;
    uint64_t columns_added_instant; /**< of these, ADD COLUMN */
    uint64_t varchars_extended;     /**< of these, MODIFY COLUMN */
    uint64_t alters_combined;       /**< ALTER statements of several clauses, committed */
    uint64_t rebuilds_combined;     /**< of these, those that made a new table */
    uint64_t backup_pages;          /**< pages copied by hot backups */
    /** of them, those that were torn, because they were being written, and read again */
    uint64_t backup_rereads;
    /** files that were copied again: an index was loaded into them without redo */
    uint64_t backup_files_again;
    /** files whose name was another one, or that were gone, at the end */
    uint64_t backup_files_moved;
    /** backups that hold more log than the file of the log has room for */
    uint64_t backup_log_wraps;
    uint64_t backups_finished;
    uint64_t backups_aborted;
    uint64_t backups_prepared; /**< of a prepare: it has made a database of a backup */
    uint64_t trx_commits;
    uint64_t trx_rollbacks;
    uint64_t unique_duplicates; /**< changes of rows refused for a duplicate in a unique index */
    /** the same for a key that another open transaction may free or take */
    uint64_t unique_conflicts;
    uint64_t unique_marked; /**< delete-marked entries of a key that was free all the same */
    uint64_t purged_records;
    uint64_t purged_amid_commit;   /**< of them, while a commit waited for its log */
    uint64_t undo_truncations;     /**< undo tablespaces cut to their initial size */
    uint64_t undo_pages_truncated; /**< pages that this took from their files */
    /** torn or zero home pages overwritten from the doublewrite area */
    uint64_t recv_dblwr_restored;
    uint64_t recv_pages_read;    /**< pages that recovery read to apply records */
    uint64_t recv_pages_created; /**< pages initialised in memory, never read (MDEV-12699) */
    /** reads that only an INDEX_LOAD in the space made necessary */
    uint64_t recv_index_load_reads;
    uint64_t recv_freed_reads;    /**< of them, those of pages that the log frees last */
    uint64_t recv_records;        /**< redo records applied */
    uint64_t recv_pages_compared; /**< page checksums in the log that the page had after redo */
    uint64_t recv_batches;        /**< apply batches */
    uint64_t recv_trx_rolled_back;
    uint64_t recv_indexes_dropped;
    uint64_t recv_tables_dropped;
    uint64_t recv_swaps_finished; /**< rebuilt tables whose file got its name in recovery */
} stats_t;

typedef void (*stats_fn)(void *ctx, const char *name, uint64_t value);

/** Calls fn for each counter, in the order above: the one list that status output uses. */
void stats_each(const stats_t *stats, stats_fn fn, void *ctx);

/** Adds the counters of a later start of the same database: sort_bytes is that of the later one,
sort_bytes_max the larger one. */
void stats_add(stats_t *sum, const stats_t *later);

#endif
