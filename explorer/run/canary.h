/** States that must be condemned, made of recorded ones and judged as all others are. A judge that lets one of them
pass is deaf, and what it called right says nothing. */
#ifndef EXPLORER_CANARY_H
#define EXPLORER_CANARY_H

#include <jansson.h>

#include "explorer/run/state.h"

#define CANARIES_MAX 8U
#define CANARY_NAME_MAX 32U
#define CANARY_BY_MAX 200U

typedef enum canary_fate {
    CANARY_UNTRIED, /**< cannot be made of this recording */
    CANARY_JUDGED,  /**< it is being judged: who dies now dies of it */
    CANARY_CONDEMNED,
    CANARY_DEAF
} canary_fate_t;

typedef struct canary {
    char name[CANARY_NAME_MAX];
    uint32_t invariant; /**< that it breaks */
    canary_fate_t fate;
    char by[CANARY_BY_MAX]; /**< who condemned it, in words, or why it is untried */
} canary_t;

/** Those of one exploration. */
typedef struct canaries {
    uint32_t n;
    canary_t list[CANARIES_MAX];
} canaries_t;

/** Which there are for the target; all untried. */
void canaries_list(const campaign_t *campaign, canaries_t *out);
/** The crash point that number i of them is made of: a number of events. It does not descend with i. from_seq: as plan_limits_t. */
uint32_t canary_point(const explorer_t *explorer, uint32_t i, uint64_t from_seq);
/** Judges it. The explorer's persist is at its crash point, from_point is that of the first one. The image is left as it
was. The target of the explorer is not to be used for anything else afterwards. */
void canary_try(explorer_t *explorer, uint32_t i, uint32_t from_point, canary_t *canary);

/** The first that is deaf, or NULL. */
const canary_t *canaries_deaf(const canaries_t *canaries);
/** [{name, invariant, condemned: true, false or null, by}]. */
json_t *canaries_object(const canaries_t *canaries);
/** The same read back. */
bool canaries_read(const json_t *object, canaries_t *out);

#endif
