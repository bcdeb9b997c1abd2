/* Outcomes.

Place: above allowed.c; every judge of a target ends here.

Rules
1. A state that is none of the allowed ones is told as that (I1, I2, I3, I10), whatever was shown
   before. One that is allowed, and not what was shown, breaks I17.
2. What was shown is a digest: of several prefixes with the same state any one is right.
3. What new work adds lies behind `shown_to`, and is judged by its own prefixes. */
#include "explorer/judge/outcome.h"

#include <string.h>

void outcome_init(outcome_t *outcome)
{
    outcome->verdict.n = 0;
    outcome->found = false;
    outcome->prefix = 0;
    outcome->digest = 0;
    outcome->worked = (allowed_t){.n = 0};
    memset(outcome->prepared, 0, sizeof(outcome->prepared));
    memset(outcome->counters, 0, sizeof(outcome->counters));
}

void outcome_free(outcome_t *outcome)
{
    allowed_free(&outcome->worked);
}

void outcome_judge(outcome_t *outcome, const expected_t *expected, const check_report_t *report)
{
    verdict_t *verdict = &outcome->verdict;
    outcome->digest = allowed_digest(report->tables, report->n_tables);
    outcome->found = allowed_judge(expected->allowed, report, expected->low, expected->high, "",
                                   verdict, &outcome->prefix);
    if (outcome->found && expected->is_shown && outcome->prefix <= expected->shown_to
        && outcome->digest != expected->shown) {
        outcome->found = false;
        if (expected->allowed->by_client) {
            verdict_add(
                verdict, SOURCE_ORACLE, 17,
                "of its clients another state than the recovery that was crashed had shown");
        } else {
            verdict_add(verdict, SOURCE_ORACLE, 17,
                        "prefix %u found, but the recovery that was crashed had come to prefix %u",
                        outcome->prefix, expected->shown_prefix);
        }
    }
}

void outcome_compare(outcome_t *outcome, uint32_t invariant, const char *what, uint64_t digest)
{
    if (digest != outcome->digest) {
        verdict_add(&outcome->verdict, SOURCE_ORACLE, invariant,
                    "%sanother state than the first recovery", what);
    }
}

expected_t outcome_expects(const outcome_t *outcome, const expected_t *expected, uint32_t acked,
                           uint32_t issued)
{
    expected_t below = *expected;
    if (outcome->found) {
        below.is_shown = true;
        below.shown = outcome->digest;
        below.shown_prefix = outcome->prefix;
        below.shown_to = expected->high;
    }
    if (issued > 0 && outcome->worked.n > expected->high + issued) {
        below.allowed = &outcome->worked;
        below.high = expected->high + issued;
        below.low = acked > 0 ? expected->high + acked : expected->low;
    }
    return below;
}

void outcome_expect_prepared(const outcome_t *outcome, uint32_t ended, expected_t *below)
{
    for (uint32_t i = 0; i < OUTCOME_BACKUPS_MAX; i++) {
        if (outcome->prepared[i] > 0 && outcome->prepared[i] <= ended + 1) {
            below->prepared |= 1U << i;
        }
    }
}

void expected_range(const expected_t *expected, uint32_t *low, uint32_t *high)
{
    bool narrow = expected->is_shown && expected->low <= expected->shown_to;
    *low = narrow ? expected->shown_prefix : expected->low;
    *high =
        narrow && expected->high == expected->shown_to ? expected->shown_prefix : expected->high;
}
