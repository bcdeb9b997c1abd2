/** Explores one state: builds its image, skips it if it was visited, judges it, and goes on below
it. */
#ifndef EXPLORER_STATE_H
#define EXPLORER_STATE_H

#include "explorer/judge/trace_read.h"
#include "explorer/run/nested.h"
#include "explorer/run/shared.h"
#include "explorer/targets/target.h"

/** What is explored and how; the same in all processes. */
typedef struct campaign {
    model_config_t models;
    disk_profile_t disk;
    uint32_t depth;  /**< 1 ... DEPTH_MAX */
    uint32_t nested; /**< states inside each recovery */
    target_kind_t target;
    bool relaxed;         /**< commits need not be durable: older prefixes are allowed */
    const char *dump_dir; /**< with `only`: where its image is written; or NULL */
    const char *way_file; /**< with `only`: where way.h writes how it came to be; or NULL */
    state_path_t only;    /**< depth 0: all */
    bool is_sampled;      /**< with `only`: what else is looked at is drawn by `sample` */
    uint64_t sample;
} campaign_t;

/** One process's exploration. */
typedef struct explorer {
    const campaign_t *campaign;
    const trace_t *trace;
    shared_t *shared;
    progress_t *progress;
    image_t *image;
    target_t target;
    persist_t persist;             /**< at the present crash point of the trace */
    const allowed_t *allowed;      /**< of the script */
    fs_list_t records[DEPTH_MAX];  /**< what the recovery at each level did */
    outcome_t outcomes[DEPTH_MAX]; /**< and what came of it */
    /** the image that is expanded, for shared_count(); TALLY_STATE: the trace */
    uint64_t counted_for;
    bool only_found;
} explorer_t;

void explorer_init(explorer_t *explorer, const campaign_t *campaign, const trace_t *trace,
                   image_t *image, const allowed_t *allowed, shared_t *shared);
void explorer_free(explorer_t *explorer);

/** State k of the model at the crash point that explorer->persist is at. */
void explorer_visit(explorer_t *explorer, model_t model, uint32_t k);

/** The event number of a crash point, given as number of events before it. */
uint64_t point_seq(const fs_list_t *list, uint32_t point);
/** The site of the write that a crash point follows. */
fs_site_t point_site(const fs_list_t *list, uint32_t point);

#endif
