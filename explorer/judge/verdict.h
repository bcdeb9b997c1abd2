/** What one crash state, or one run, broke. */
#ifndef EXPLORER_VERDICT_H
#define EXPLORER_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_FINDINGS_MAX 64U /**< more than there are rules and other ways to find */
#define VERDICT_WHAT_MAX 240U

/** Who found it, strongest first: what a crash state became, or a rule on the bytes that were
written. */
typedef enum finding_source {
    SOURCE_RECOVERY, /**< it was refused, or did not end as it must */
    SOURCE_SCAN,
    SOURCE_ORACLE,
    SOURCE_RULE
} finding_source_t;

const char *finding_source_name(finding_source_t source);

typedef struct verdict_finding {
    uint32_t invariant;
    finding_source_t source;
    const char *rule; /**< name of the rule, static; NULL for other sources */
    /** of a rule: operations that the recovery had done before the one it complains of */
    uint32_t at;
    char what[VERDICT_WHAT_MAX];
} verdict_finding_t;

typedef struct verdict {
    uint32_t n;
    verdict_finding_t findings[VERDICT_FINDINGS_MAX];
} verdict_t;

/** Orders by invariant, source and rule; 0: two findings say the same of one state. */
int verdict_finding_compare(const verdict_finding_t *a, const verdict_finding_t *b);
/** Did recovery, scan and oracle find nothing? What a rule says does not count. */
bool verdict_state_is_right(const verdict_t *verdict);
/** Makes UTF-8 without control characters of a text that may hold anything, as names of files and
words of a target do, or that was cut: each other byte becomes '?'. */
void verdict_clean(char *text);
/** Adds a finding, unless one is there that compares equal. Its text is cleaned. */
__attribute__((format(printf, 4, 5))) void verdict_add(verdict_t *verdict, finding_source_t source,
                                                       uint32_t invariant, const char *format, ...);
void verdict_add_rule(verdict_t *verdict, uint32_t invariant, const char *rule, uint32_t at,
                      const char *what);

#endif
