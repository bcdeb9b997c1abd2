/* Findings of one state. Leaf of the explorer. */
#include "explorer/judge/verdict.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/** Where a finding of this invariant and source goes. NULL: one at least as strong is there, or no room. */
static verdict_finding_t *verdict_place(verdict_t *verdict, uint32_t invariant,
                                        verdict_source_t source)
{
    uint32_t i = 0;
    while (i < verdict->n && verdict->findings[i].invariant != invariant) {
        i++;
    }
    if (i == VERDICT_FINDINGS_MAX || (i < verdict->n && verdict->findings[i].source <= source)) {
        return NULL;
    }
    verdict->n = i == verdict->n ? i + 1 : verdict->n;
    verdict->findings[i].invariant = invariant;
    verdict->findings[i].source = source;
    return &verdict->findings[i];
}

void verdict_add(verdict_t *verdict, uint32_t invariant, const char *format, ...)
{
    verdict_finding_t *finding = verdict_place(verdict, invariant, VERDICT_STATE);
    if (finding != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(finding->what, sizeof(finding->what), format, args);
        va_end(args);
    }
}

void verdict_add_rule(verdict_t *verdict, uint32_t invariant, const char *format, ...)
{
    verdict_finding_t *finding = verdict_place(verdict, invariant, VERDICT_RULE);
    if (finding != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(finding->what, sizeof(finding->what), format, args);
        va_end(args);
    }
}

const char *verdict_source_name(verdict_source_t source)
{
    return source == VERDICT_STATE ? "state" : "rule";
}
