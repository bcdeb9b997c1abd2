/* Findings of one state. Leaf of the explorer. */
#include "explorer/judge/verdict.h"

#include <stdarg.h>
#include <stdio.h>

void verdict_add(verdict_t *verdict, uint32_t invariant, const char *format, ...)
{
    for (uint32_t i = 0; i < verdict->n; i++) {
        if (verdict->findings[i].invariant == invariant) {
            return;
        }
    }
    if (verdict->n < VERDICT_FINDINGS_MAX) {
        verdict_finding_t *finding = &verdict->findings[verdict->n++];
        va_list args;
        finding->invariant = invariant;
        va_start(args, format);
        (void)vsnprintf(finding->what, sizeof(finding->what), format, args);
        va_end(args);
    }
}
