/** Which crashes of a recorded recovery are looked at: points, and what is lost there. */
#ifndef EXPLORER_NESTED_H
#define EXPLORER_NESTED_H

#include "disk/models.h"
#include "explorer/judge/verdict.h"

typedef struct nested_pick {
    uint32_t point; /**< events of the recording before the crash */
    bool newest;    /**< what happened right before it is torn, or is there alone */
    bool last;      /**< the recovery has ended, or has just synced: all that waits is lost */
    uint64_t draw;
} nested_pick_t;

/** Operations of a recovery by which it broke a rule, counted from its beginning. */
typedef struct nested_suspects {
    uint32_t n;
    uint32_t at[VERDICT_FINDINGS_MAX];
} nested_suspects_t;

/** Draws n > 0 picks, in the order of their points, among the events of a recording that begins at
`first`. torn: by the crash above. */
void nested_draw(const fs_list_t *list, uint32_t first, const torn_t *torn,
                 const nested_suspects_t *suspects, uint64_t seed, nested_pick_t *picks,
                 uint32_t n);

/** The model and its k that a pick means, when persist is at its point; false: no model has a state
there. */
bool nested_state(const model_config_t *models, const persist_t *persist, const nested_pick_t *pick,
                  model_t *model, uint32_t *k);

#endif
