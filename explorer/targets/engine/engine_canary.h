/** States of the engine that must be condemned (run/canary.h). */
#ifndef EXPLORER_ENGINE_CANARY_H
#define EXPLORER_ENGINE_CANARY_H

#include "explorer/targets/engine/judge.h"
#include "explorer/targets/target.h"

/* As target_canary_t.make, of a judge. */
const char *canary_foreign_page(judge_t *judge);
const char *canary_torn_page(judge_t *judge);
const char *canary_future_page(judge_t *judge);
const char *canary_swapped_name(judge_t *judge);
/** What the rules say of a page that goes home is in the outcome. */
const char *canary_unlogged_page(judge_t *judge, outcome_t *outcome);

#endif
