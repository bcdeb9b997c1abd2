/* Findings of one state. Leaf of the explorer. */
#include "explorer/judge/verdict.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *finding_source_name(finding_source_t source)
{
    static const char *const NAMES[] = {"recovery", "scan", "oracle", "rule"};
    return NAMES[source];
}

bool verdict_state_is_right(const verdict_t *verdict)
{
    for (uint32_t i = 0; i < verdict->n; i++) {
        if (verdict->findings[i].source != SOURCE_RULE) {
            return false;
        }
    }
    return true;
}

int verdict_finding_compare(const verdict_finding_t *a, const verdict_finding_t *b)
{
    if (a->invariant != b->invariant) {
        return a->invariant < b->invariant ? -1 : 1;
    }
    if (a->source != b->source) {
        return a->source < b->source ? -1 : 1;
    }
    return a->rule == NULL || b->rule == NULL ? (a->rule != NULL) - (b->rule != NULL)
                                              : strcmp(a->rule, b->rule);
}

/** Room for a finding, or NULL if there is one like it. */
static verdict_finding_t *finding_new(verdict_t *verdict, finding_source_t source,
                                      uint32_t invariant, const char *rule)
{
    verdict_finding_t finding = {.invariant = invariant, .source = source, .rule = rule};
    for (uint32_t i = 0; i < verdict->n; i++) {
        if (verdict_finding_compare(&verdict->findings[i], &finding) == 0) {
            return NULL;
        }
    }
    if (verdict->n == VERDICT_FINDINGS_MAX) {
        return NULL;
    }
    verdict->findings[verdict->n] = finding;
    return &verdict->findings[verdict->n++];
}

/** Bytes of the character that begins here; 0: none does. */
static size_t char_len(const char *text)
{
    const unsigned char first = (unsigned char)text[0];
    size_t len = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (len == 1) {
        return first < 0x20 || first == 0x7F ? 0 : 1;
    }
    if (strnlen(text, len) < len) {
        return 0;
    }
    json_t *known = len > 0 ? json_stringn(text, len) : NULL; /* refuses what is no UTF-8 */
    json_decref(known);
    bool is_control = len == 2 && first == 0xC2 && (unsigned char)text[1] < 0xA0;
    return known != NULL && !is_control ? len : 0;
}

void verdict_clean(char *text)
{
    while (*text != '\0') {
        size_t len = char_len(text);
        if (len == 0) {
            *text = '?';
            len = 1;
        }
        text += len;
    }
}

void verdict_add(verdict_t *verdict, finding_source_t source, uint32_t invariant,
                 const char *format, ...)
{
    verdict_finding_t *finding = finding_new(verdict, source, invariant, NULL);
    if (finding != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(finding->what, sizeof(finding->what), format, args);
        va_end(args);
        verdict_clean(finding->what);
    }
}

void verdict_add_rule(verdict_t *verdict, uint32_t invariant, const char *rule, uint32_t at,
                      const char *what)
{
    verdict_finding_t *finding = finding_new(verdict, SOURCE_RULE, invariant, rule);
    if (finding != NULL) {
        finding->at = at;
        (void)snprintf(finding->what, sizeof(finding->what), "%s", what);
        verdict_clean(finding->what);
    }
}
