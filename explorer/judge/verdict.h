/** What one crash state broke. */
#ifndef EXPLORER_VERDICT_H
#define EXPLORER_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_FINDINGS_MAX 8U /**< kept; one state that breaks more says nothing more */
#define VERDICT_WHAT_MAX 240U

/** Who says so, the strongest first. */
typedef enum verdict_source {
    VERDICT_STATE, /**< recovery, scanner or oracle, of what a crash left */
    VERDICT_RULE   /**< a rule on what recovery says and does */
} verdict_source_t;

typedef struct verdict_finding {
    uint32_t invariant;
    verdict_source_t source;
    char what[VERDICT_WHAT_MAX];
} verdict_finding_t;

typedef struct verdict {
    uint32_t n;
    verdict_finding_t findings[VERDICT_FINDINGS_MAX];
} verdict_t;

/** Adds a finding of the state, unless one of the same invariant is there; that of a rule it replaces. */
__attribute__((format(printf, 3, 4))) void verdict_add(verdict_t *verdict, uint32_t invariant,
                                                       const char *format, ...);
/** Adds a finding of a rule, unless one of the same invariant is there. */
__attribute__((format(printf, 3, 4))) void verdict_add_rule(verdict_t *verdict, uint32_t invariant,
                                                            const char *format, ...);
/** "state" or "rule". */
const char *verdict_source_name(verdict_source_t source);

#endif
