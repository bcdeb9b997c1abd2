/** A database made by hand, byte by byte, whose every step the rules hear of: the log with its
blocks and slots, pages, the doublewrite area, names. Nothing of the engine writes here. */
#ifndef EXPLORER_TESTS_WORLD_H
#define EXPLORER_TESTS_WORLD_H

#include "explorer/judge/rules.h"

#define WORLD_PAGE 4096U
#define WORLD_LOG_BYTES (2048U + 512U * 512U)
#define WORLD_EXTENT 8U /**< pages */
#define WORLD_SPACE 5U  /**< of "t.ibd" */
#define WORLD_OTHER 6U  /**< of any other table's file */
#define WORLD_INDEX 40U
#define LOG_FILE "ib_logfile0"

typedef struct world {
    const log_format_t *format; /**< WORLD_LOG_FORMAT in the environment: "10.5", else 10.4 */
    image_t *image;
    rules_t *rules;
    rules_t *history; /**< of the process before, where the log is shared; NULL: it is not */
    bool doublewrite;
    uint32_t atomic_unit; /**< set before world_begin(); see rules_config_t */
    uint32_t found[32];   /**< findings by invariant */
    char told[128];       /**< names of the rules that found them, each once, in this order */
    char what[256];       /**< the last one */
    uint64_t accused;     /**< by the last one */
    fs_site_t site;       /**< of the last write */

    byte log[WORLD_LOG_BYTES]; /**< the log as far as it was appended, its blocks stamped */
    lsn_t end_lsn;             /**< appended */
    lsn_t written_lsn;         /**< in the file */
    uint32_t epoch;
    uint64_t slot_no;
    lsn_t c;
} world_t;

/** All but atomic_unit is begun anew: a log, "t.ibd" with page 0, all durable; doublewrite area of
8 positions; checkpoint 1 behind that. */
void world_begin(world_t *w, bool doublewrite);
void world_end(world_t *w);
/** Another process finds the files as they are. */
void world_restart(world_t *w, bool cold);
/** The same, judged with the log of the process before at hand, as recoveries are. */
void world_restart_sharing(world_t *w);
/** What was found up to here is forgotten. */
void world_forget(world_t *w);
/** The same process closes its log, and opens it again. */
void world_start_again(world_t *w);

/* The log. Each record is a group; the end LSN of its last. */
lsn_t world_append(world_t *w, const redo_rec_t *rec);
lsn_t world_init(world_t *w, uint32_t page);
lsn_t world_free(world_t *w, uint32_t page);
/** An extent that page 0 describes becomes a free one. */
lsn_t world_free_extent(world_t *w, uint32_t extent);
lsn_t world_change(world_t *w, uint32_t page);
/** Takes a record out of the page: what comes of it depends on the page. */
lsn_t world_delete_rec(world_t *w, uint32_t page);
lsn_t world_load(world_t *w, index_id_t index);
lsn_t world_create_index(world_t *w, uint32_t page, index_id_t index);
/** Of the space that the path, the new one where there are two, has here. */
lsn_t world_file_op(world_t *w, redo_op_t op, const char *path, const char *path2);
lsn_t world_file_op_of(world_t *w, redo_op_t op, space_id_t space, const char *path,
                       const char *path2);
/** What was appended is written, from the block in which the last write ended. */
void world_log_write(world_t *w);
/** The same, fsynced. */
void world_log(world_t *w);
/** A change, and what was appended is durable. */
lsn_t world_change_durable(world_t *w, uint32_t page);
/** The same of INDEX_LOAD. */
void world_load_durable(world_t *w, index_id_t index);
/** A group that ends in the next block, of which only the first block is durable. */
lsn_t world_half_group(world_t *w);
/** That many blocks' worth of changes of page 0, each durable; none goes home. */
void world_fill_log(world_t *w, uint32_t blocks);
/** Where the block of that LSN lies in the file. */
uint64_t world_log_offset(lsn_t lsn);
/** Bytes into the log file, as they are. */
void world_log_raw(world_t *w, uint64_t offset, const byte *bytes, uint64_t len);
/** Takes the next epoch: slot, then the block at the end, cut there; each fsynced. */
void world_epoch(world_t *w);
void world_epoch_slot(world_t *w, bool sync);
void world_epoch_cut(world_t *w, bool sync);
/** The marker's record, durable; its start LSN. */
lsn_t world_marker(world_t *w, lsn_t c);
void world_slot(world_t *w, uint32_t slot, uint64_t no, lsn_t c, lsn_t marker);
/** Marker, slot, fsync. */
void world_checkpoint(world_t *w, lsn_t c);

/* Pages of "t.ibd". */
void world_page_bytes(byte out[WORLD_PAGE], uint32_t page, lsn_t lsn, index_id_t index);
/** The same in another space. */
void world_page_of(byte out[WORLD_PAGE], page_id_t id, lsn_t lsn, index_id_t index);
void world_home(world_t *w, uint32_t page, lsn_t lsn);
void world_home_of(world_t *w, uint32_t page, lsn_t lsn, index_id_t index);
void world_copy(world_t *w, uint32_t position, uint32_t page, lsn_t lsn);
void world_copy_of(world_t *w, uint32_t position, uint32_t page, lsn_t lsn, index_id_t index);
/** Copy, fsync. */
void world_copy_durable(world_t *w, uint32_t position, uint32_t page, lsn_t lsn);
/** Copy, fsync, home write: that one is not fsynced. */
void world_copy_and_home(world_t *w, uint32_t position, uint32_t page, lsn_t lsn);
/** Copy, fsync, home write, fsync. */
void world_flush(world_t *w, uint32_t page, lsn_t lsn);
/** A change, made durable and flushed. */
lsn_t world_change_flushed(world_t *w, uint32_t page);
void world_read(world_t *w, uint32_t page);

/* Files. */
void world_write(world_t *w, const char *path, uint64_t offset, const byte *bytes, uint64_t len);
/** Into the file as a crash leaves it: no rule hears of it. */
void world_damage(world_t *w, const char *path, uint64_t offset, const byte *bytes, uint64_t len);
/** A hole in "t.ibd", from there to the end of the page. */
void world_punch(world_t *w, uint32_t page, uint32_t from);
/** The table's file is cut to so many pages. */
void world_cut(world_t *w, uint32_t n_pages);
/** Its space begins anew, with so many. */
lsn_t world_trim(world_t *w, uint32_t n_pages);
void world_sync(world_t *w, const char *path);
void world_entry(world_t *w, fs_kind_t kind, const char *path, const char *to);
void world_sync_dir(world_t *w);

#endif
