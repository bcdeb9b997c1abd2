/** States that must be condemned, made of recorded ones and judged as all others are. A judge that
lets one of them pass is deaf, and what it called right says nothing. */
#ifndef EXPLORER_CANARY_H
#define EXPLORER_CANARY_H

#include "explorer/judge/canaries.h"
#include "explorer/run/state.h"

/** Which there are for the target; all untried. */
void canaries_list(const campaign_t *campaign, canaries_t *out);
/** The crash point that number i of them is made of: a number of events. It does not descend with
i. from_seq: as plan_range_t. */
uint32_t canary_point(const explorer_t *explorer, uint32_t i, uint64_t from_seq);
/** Judges it. The explorer's persist is at its crash point, from_point is that of the first one.
The image is left as it was. The target of the explorer is not to be used for anything else
afterwards. */
void canary_try(explorer_t *explorer, uint32_t i, uint32_t from_point, canary_t *canary);

#endif
