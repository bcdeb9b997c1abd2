/** Crash models: which parts of what waits does a power loss keep?

A state is numbered by crash point, model and k. What it keeps follows from these, the seed and
nothing else, so that neither batches nor workers nor the choice of states can change it. */
#ifndef DISK_MODELS_H
#define DISK_MODELS_H

#include "disk/persist.h"
#include "disk/stream.h"

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
    MODEL_KINDS
} model_t;

#define MODELS_ALL ((1U << MODEL_KINDS) - 1U)
#define MODEL_PICKS_MAX 16U /**< events that one model singles out at one crash point */
#define MODEL_SUBSETS 8U
#define MODEL_FILE_DRAWS 6U
#define MODEL_CUTS_MAX 1024U /**< sectors at which one write of the log is cut */
#define MODEL_LOST_MAX 16U   /**< places of lost writes that are remembered */

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

/** Few states that cost little and say much: each end of the run, and of its log. A kill has the image of all-persisted,
and a crash below it can lose more. */
static inline bool model_is_basic(uint32_t enabled, model_t model)
{
    model_t whole = models_go_deeper(enabled) ? MODEL_KILL : MODEL_ALL_PERSISTED;
    return model == whole || model == MODEL_LOG_CUT;
}

/** Hears which sectors of a waiting event a state keeps, [first, end) of it; of one that is no write, [0, 1). What it
does not hear of is lost. */
typedef struct model_watch {
    void (*kept)(void *ctx, uint32_t pending, uint64_t first, uint64_t end);
    void *ctx;
} model_watch_t;

typedef struct model_config {
    uint32_t enabled; /**< bit per model */
    uint32_t sector;  /**< bytes that are persisted whole */
    /** Bit per site: writes of these are of a log, which is read up to its first gap, so that each of their sectors may be its end. */
    uint32_t log_sites;
    uint64_t seed;
    const model_watch_t *watch; /**< or NULL */
} model_config_t;

/** Sectors that a write touches, at least in part; 1 of anything else. */
uint64_t model_sectors(const model_config_t *config, const fs_event_t *event);

/** Is it the write that happened last that this state tears? It was under way when the power failed, and likelier torn than
any other. */
bool model_tears_newest(const model_config_t *config, model_t model, uint32_t k,
                        const persist_t *persist);

/** How many states of this model the crash point has. */
uint32_t model_count(const model_config_t *config, model_t model, const persist_t *persist);

/** Which sectors of a lost write are there: the first ones, the last ones, any others, none. */
typedef enum tear { TEAR_PREFIX, TEAR_SUFFIX, TEAR_INTERIOR, TEAR_DROPPED, TEAR_KINDS } tear_t;
#define TEAR_PARTS 3U /**< kinds that keep a part */
const char *tear_name(tear_t tear);

/** Writes by site, flush (0 first, 1 later) and tear: the torn-page matrix. And where the newest of them
were: what a second crash had better tear again. */
typedef struct torn {
    uint32_t n[FS_SITES_MAX][2][TEAR_KINDS];
    uint32_t n_places;
    struct {
        uint32_t inode;
        uint64_t offset;
        uint64_t length;
    } places[MODEL_LOST_MAX]; /**< a ring: place i of the run is at i % MODEL_LOST_MAX */
} torn_t;

/** Did the write lose anything of what this event writes? */
bool torn_overlaps(const torn_t *torn, const fs_event_t *event);

/** Adds one write that lost anything. */
void torn_add(torn_t *torn, const fs_event_t *event, tear_t tear);

/** Adds each write of the list to the kinds of loss that it has sectors enough for. */
void torn_possible(const model_config_t *config, const fs_list_t *list, torn_t *torn);

/** Applies to the image what state k of the model keeps of what waits. point: identifies the crash
point. torn: the writes that were torn or dropped are added. */
void model_apply(const model_config_t *config, model_t model, uint32_t k, uint64_t point,
                 const persist_t *persist, torn_t *torn);

/** What a process that was killed in state k of MODEL_KILL had written, and what nothing has made durable: appended
to list, the last write cut as model_apply() cuts it. Payloads stay those of the waiting events. */
void model_kill_waiting(const model_config_t *config, uint32_t k, uint64_t point,
                        const persist_t *persist, fs_list_t *list);

/** A hash of `from` and of the places where writes were lost. */
uint64_t torn_hash(const torn_t *torn, uint64_t from);

#endif
