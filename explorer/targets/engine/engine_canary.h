/** States of the engine that must be condemned (run/canary.h). */
#ifndef EXPLORER_ENGINE_CANARY_H
#define EXPLORER_ENGINE_CANARY_H

#include "explorer/targets/engine/judge.h"
#include "explorer/targets/target.h"

/** What is damaged in pages of a table, in a database that was recovered and closed, and has no
copies. */
typedef enum canary_pages {
    CANARY_FOREIGN_PAGE,
    CANARY_TORN_PAGE,
    CANARY_FUTURE_PAGE,
    CANARY_PAGE_SHAPE,
    CANARY_ROW_ORDER,
    CANARY_SIBLINGS,
    CANARY_ONE_PARENT,
    CANARY_EXTENTS,
    CANARY_TRX_ID
} canary_pages_t;

/* As target_canary_t.make, of a judge. */
const char *canary_damaged_pages(judge_t *judge, canary_pages_t which);
const char *canary_swapped_name(judge_t *judge);
const char *canary_no_checkpoint(judge_t *judge);
/** What the rules say of a page that goes home is in the outcome. */
const char *canary_unlogged_page(judge_t *judge, outcome_t *outcome);

#endif
