/* How far a build is (onlineddl_pct_progress).

Place: ddl/, beside ddl_build.c. Reads only.

Rules
1. An estimate by the work that is known: each index is scanned for, merged, loaded, and then flushed and brought
   up to date; the clustered index of a rebuild is scanned and loaded at once.
2. It never falls, though the table, and what is logged of its changes, may grow meanwhile.
3. 10000 means that nothing is left but the last step. */
#include "ddl/ddl_online.h"

#define WHOLE 10000U /**< 100 % */

/** Shares of the work for one index. */
#define SCANNED 3U
#define MERGED 3U
#define LOADED 4U
#define CAUGHT_UP 2U

/** How much of the table the scan has passed. */
static dberr_t ddl_scan_position(const ddl_build_t *build, uint32_t *out)
{
    *out = 0;
    return build->scan_started ? btr_key_position(
               build_pool(build), &build->source->indexes[0].tree, build->last_pk, out)
                               : DB_SUCCESS;
}

/** What is done of the current index after its scan. */
static uint64_t ddl_index_work(const ddl_build_t *build)
{
    const merge_sort_t *sort = build->sorts[build->current];
    switch (build->phase) {
    case DDL_MERGE:
        return (uint64_t)MERGED * merge_sort_progress(sort);
    case DDL_LOAD:
        return (uint64_t)MERGED * WHOLE
               + LOADED * WHOLE * build->loaded / (merge_sort_n_records(sort) + 1);
    default:
        return (uint64_t)(MERGED + LOADED) * WHOLE;
    }
}

/** A build that is neither copying nor loaded. scanned: by the present scan. */
static uint64_t ddl_build_work(const ddl_build_t *build, uint32_t scanned)
{
    uint64_t work = (uint64_t)build->current * (SCANNED + MERGED + LOADED) * WHOLE;
    work += (uint64_t)(build->scan_end - build->current) * SCANNED * scanned;
    if (build->phase != DDL_SCAN && build->current < build->n) {
        work += ddl_index_work(build);
    }
    if (build->kind->rebuild) {
        bool first = build->phase == DDL_SCAN && build->current == 0;
        work += (uint64_t)(SCANNED + LOADED) * (first ? scanned : WHOLE);
    } else {
        work += (uint64_t)build->current * CAUGHT_UP * WHOLE;
    }
    return work;
}

static uint64_t ddl_build_total(const ddl_build_t *build)
{
    uint32_t clustered = build->kind->rebuild ? SCANNED + LOADED + CAUGHT_UP : 0;
    return build->n * (SCANNED + MERGED + LOADED + CAUGHT_UP) + clustered;
}

dberr_t ddl_build_note_progress(ddl_build_t *build)
{
    uint64_t progress = WHOLE;
    uint32_t scanned = WHOLE;
    dberr_t err = DB_SUCCESS;
    if (build->phase == DDL_DEFRAGMENT) {
        err = ddl_defragment_position(build, &scanned);
    } else if (build->phase == DDL_COPY || build->phase == DDL_SCAN) {
        err = ddl_scan_position(build, &scanned);
    }
    if (build->phase == DDL_COPY || build->phase == DDL_DEFRAGMENT) {
        progress = scanned;
    } else if (build->phase == DDL_COMMIT && !ddl_build_is_loaded(build)) {
        /* Only what was changed meanwhile is left. */
        uint64_t left = build->kind->rebuild ? (build->n + 1) * CAUGHT_UP : CAUGHT_UP;
        uint64_t total = ddl_build_total(build);
        progress = (total - left) * WHOLE / total;
        progress += left * ddl_online_use(build).applied / total;
    } else if (build->phase < DDL_COMMIT) {
        progress = ddl_build_work(build, scanned) / ddl_build_total(build);
    }
    if (err == DB_SUCCESS && build->progress < progress) {
        build->progress = (uint32_t)progress;
    }
    return err;
}

ddl_progress_t ddl_build_progress(const ddl_build_t *build)
{
    ddl_progress_t progress = {.pct_progress = build->progress};
    if (build->online != NULL) {
        ddl_online_use_t use = ddl_online_use(build);
        progress.rowlog_records = use.records;
        progress.rowlog_pct_used = use.used;
    }
    return progress;
}
