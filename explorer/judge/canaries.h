/** Canaries: what must be condemned, made of what was recorded, and judged as all else is. A judge
that lets one of them pass is deaf, and what it called right says nothing. */
#ifndef EXPLORER_CANARIES_H
#define EXPLORER_CANARIES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define CANARIES_MAX 64U
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

/** Those of one exploration, or of one recording. */
typedef struct canaries {
    uint32_t n;
    canary_t list[CANARIES_MAX];
} canaries_t;

/** Sets what became of it. format: by whom, or why. */
__attribute__((format(printf, 3, 4))) void canary_tell(canary_t *canary, canary_fate_t fate,
                                                       const char *format, ...);
/** Puts the others behind. */
void canaries_append(canaries_t *canaries, const canaries_t *others);
/** The first that is deaf, or NULL. */
const canary_t *canaries_deaf(const canaries_t *canaries);
/** [{name, invariant, condemned: true, false or null, by}]. */
json_t *canaries_object(const canaries_t *canaries);
/** The same read back. */
bool canaries_read(const json_t *object, canaries_t *out);

#endif
