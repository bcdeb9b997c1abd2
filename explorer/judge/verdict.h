/** What one crash state broke. */
#ifndef EXPLORER_VERDICT_H
#define EXPLORER_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_FINDINGS_MAX 8U /**< kept; one state that breaks more says nothing more */
#define VERDICT_WHAT_MAX 240U

typedef struct verdict_finding {
    uint32_t invariant;
    char what[VERDICT_WHAT_MAX];
} verdict_finding_t;

typedef struct verdict {
    uint32_t n;
    verdict_finding_t findings[VERDICT_FINDINGS_MAX];
} verdict_t;

/** Adds a finding, unless one of the same invariant is there. */
__attribute__((format(printf, 3, 4))) void verdict_add(verdict_t *verdict, uint32_t invariant,
                                                       const char *format, ...);

#endif
