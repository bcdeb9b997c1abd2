/** Crash models: which parts of what waits does a power loss keep?

A state is numbered by crash point, model and k. What it keeps follows from these, the seed and
nothing else, so that neither batches nor workers nor the choice of states can change it. */
#ifndef EXPLORER_MODELS_H
#define EXPLORER_MODELS_H

#include "faults/explorer/persist.h"

typedef enum model {
    MODEL_ALL_PERSISTED,
    MODEL_NONE_PERSISTED,
    MODEL_ONE_DROPPED,
    MODEL_ONE_PERSISTED,
    MODEL_ONE_TORN,
    MODEL_SUBSET,
    MODEL_ORDERED,
    MODEL_LOG_CUT,
    MODEL_KINDS
} model_t;

#define MODELS_ALL ((1U << MODEL_KINDS) - 1U)
#define MODEL_PICKS_MAX 16U /**< events that one model singles out at one crash point */
#define MODEL_SUBSETS 8U
#define MODEL_CUTS_MAX 1024U /**< sectors at which one write of the log is cut */

const char *model_name(model_t model);
/** False if there is no such model. */
bool model_parse(const char *text, size_t len, model_t *out);

typedef struct model_config {
    uint32_t enabled; /**< bit per model */
    uint32_t sector;  /**< bytes that are persisted whole */
    uint64_t seed;
} model_config_t;

/** How many states of this model the crash point has. */
uint32_t model_count(const model_config_t *config, model_t model, const persist_t *persist);
uint32_t model_count_all(const model_config_t *config, const persist_t *persist);

typedef enum tear { TEAR_PREFIX, TEAR_SUFFIX, TEAR_INTERIOR, TEAR_KINDS } tear_t;
const char *tear_name(tear_t tear);

/** A write that was torn, for the torn-page matrix; n = 0 or more per state. */
typedef struct torn {
    fs_site_t site;
    bool first_flush;
    tear_t tear;
} torn_t;

/** Applies to the image what state k of the model keeps of what waits. point: identifies the crash
point. torn: what was torn, up to room entries; @return their number. */
uint32_t model_apply(const model_config_t *config, model_t model, uint32_t k, uint64_t point,
                     const persist_t *persist, torn_t *torn, uint32_t room);

/** A stream of pseudo-random numbers (splitmix64). */
typedef struct stream {
    uint64_t state;
} stream_t;
uint64_t stream_next(stream_t *stream);
uint64_t stream_below(stream_t *stream, uint64_t bound); /**< bound > 0 */
/** A seed from several numbers. */
uint64_t stream_mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

#endif
