/** Crash models: which parts of what waits does a power loss keep?

A state is numbered by crash point, model and k. What it keeps follows from these, the seed and
nothing else, so that neither batches nor workers nor the choice of states can change it. */
#ifndef DISK_MODELS_H
#define DISK_MODELS_H

#include "disk/chosen.h"
#include "disk/persist.h"
#include "disk/stream.h"
#include "disk/torn.h"

typedef enum model {
    MODEL_ALL_PERSISTED,
    MODEL_NONE_PERSISTED,
    MODEL_ONE_DROPPED,
    MODEL_ONE_PERSISTED,
    MODEL_ONE_TORN,
    MODEL_SUBSET,
    MODEL_ORDERED,
    MODEL_LOG_CUT,
    MODEL_KILL,
    MODEL_BY_FILE,
    MODEL_ONE_PART,
    MODEL_OVERLAPPED,
    MODEL_SIZE_FIRST,
    MODEL_KINDS,
    MODEL_CHOSEN = MODEL_KINDS /**< asked for by name only: states of model_config_t.chosen */
} model_t;

#define MODELS_ALL ((1U << MODEL_KINDS) - 1U)
#define MODEL_PICKS_MAX 16U /**< events that one model singles out at one crash point */
#define MODEL_SUBSETS 8U
#define MODEL_FILE_DRAWS 6U
#define MODEL_CUTS_MAX 1024U /**< sectors at which one write of the log is cut */

const char *model_name(model_t model);
/** What is kept of that which was not fsynced. */
const char *model_what(model_t model);
/** False if there is no such model. */
bool model_parse(const char *text, size_t len, model_t *out);

/** Are recoveries crashed again? Only where they are is a kill anything else than all-persisted. */
static inline bool models_go_deeper(uint32_t enabled)
{
    return (enabled >> MODEL_KILL & 1U) != 0;
}

/** Few states that cost little and say much: each end of the run, and of its log. A kill has the
image of all-persisted, and a crash below it can lose more. */
static inline bool model_is_basic(uint32_t enabled, model_t model)
{
    model_t whole = models_go_deeper(enabled) ? MODEL_KILL : MODEL_ALL_PERSISTED;
    return model == whole || model == MODEL_LOG_CUT;
}

/** Hears which sectors of a waiting event a state keeps, [first, end) of it; of one that is no
write, [0, 1). What it does not hear of is lost. */
typedef struct model_watch {
    void (*kept)(void *ctx, uint32_t pending, uint64_t first, uint64_t end);
    void *ctx;
} model_watch_t;

typedef struct model_config {
    uint32_t enabled; /**< bit per model */
    uint32_t sector;  /**< bytes that are persisted whole */
    /** Bit per site: writes of these are of a log, which is read up to its first gap, so that each
       of their sectors may be its end. */
    uint32_t log_sites;
    uint64_t seed;
    const chosen_t *chosen;     /**< of MODEL_CHOSEN, state k at every crash point; or NULL */
    const model_watch_t *watch; /**< or NULL */
} model_config_t;

/** Sectors that a write touches, at least in part; 1 of anything else. */
static inline uint64_t model_sectors(const model_config_t *config, const fs_event_t *event)
{
    bool sized = event->kind == FS_WRITE && event->length > 0;
    uint64_t last = sized ? event->offset + event->length - 1 : event->offset;
    return last / config->sector - event->offset / config->sector + 1;
}

/** Is it the write that happened last that this state tears? It was under way when the power
failed, and likelier torn than any other. */
bool model_tears_newest(const model_config_t *config, model_t model, uint32_t k,
                        const persist_t *persist);

/** The event that this state loses or keeps alone, whole or in part; NULL: it does not single out
one. point: as of model_apply(). */
const fs_event_t *model_single(const model_config_t *config, model_t model, uint32_t k,
                               uint64_t point, const persist_t *persist);

/** How many states of this model the crash point has. */
uint32_t model_count(const model_config_t *config, model_t model, const persist_t *persist);

/** Adds each write of the list to the kinds of loss that it has sectors enough for. */
void torn_possible(const model_config_t *config, const fs_list_t *list, torn_t *torn);

/** Applies to the image what state k of the model keeps of what waits. point: identifies the crash
point. torn: the writes that were torn or dropped are added. */
void model_apply(const model_config_t *config, model_t model, uint32_t k, uint64_t point,
                 const persist_t *persist, torn_t *torn);

/** What a process that was killed in state k of MODEL_KILL had written, and what nothing has made
durable: appended to list, the last write cut as model_apply() cuts it. Payloads stay those of the
waiting events. */
void model_kill_waiting(const model_config_t *config, uint32_t k, uint64_t point,
                        const persist_t *persist, fs_list_t *list);

#endif
