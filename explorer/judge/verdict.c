/* Findings of one state. Leaf of the explorer. */
#include "explorer/judge/verdict.h"

#include <stdarg.h>
#include <stdio.h>

const char *finding_source_name(finding_source_t source)
{
    static const char *const NAMES[] = {"recovery", "scan", "oracle", "rule"};
    return NAMES[source];
}

/** Room for a finding, or NULL if there is one like it, or none left. */
static verdict_finding_t *finding_new(verdict_t *verdict, finding_source_t source,
                                      uint32_t invariant)
{
    for (uint32_t i = 0; i < verdict->n; i++) {
        if (verdict->findings[i].invariant == invariant && verdict->findings[i].source == source) {
            return NULL;
        }
    }
    if (verdict->n == VERDICT_FINDINGS_MAX) {
        return NULL;
    }
    verdict_finding_t *finding = &verdict->findings[verdict->n++];
    *finding = (verdict_finding_t){.invariant = invariant, .source = source};
    return finding;
}

void verdict_add(verdict_t *verdict, finding_source_t source, uint32_t invariant,
                 const char *format, ...)
{
    verdict_finding_t *finding = finding_new(verdict, source, invariant);
    if (finding != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(finding->what, sizeof(finding->what), format, args);
        va_end(args);
    }
}

void verdict_add_rule(verdict_t *verdict, uint32_t invariant, const char *rule, const char *what)
{
    verdict_finding_t *finding = finding_new(verdict, SOURCE_RULE, invariant);
    if (finding != NULL) {
        finding->rule = rule;
        (void)snprintf(finding->what, sizeof(finding->what), "%s", what);
    }
}
