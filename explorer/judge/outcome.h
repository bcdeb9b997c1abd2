/** What became of one crash state: the one type that every way of recovering an image ends in.

What a recovery shows of an image binds whoever recovers that image again: the same way once more,
other ways (small batches, purge), and recoveries that follow a crash in the first one
(expected_t.is_shown). */
#ifndef EXPLORER_OUTCOME_H
#define EXPLORER_OUTCOME_H

#include "explorer/judge/allowed.h"

#define OUTCOME_COUNTERS_MAX 16U
#define OUTCOME_BACKUPS_MAX 16U /**< of the first so many it is known when they were prepared */

/** What a crash may have left. */
typedef struct expected {
    const allowed_t *allowed;
    uint32_t low;        /**< oldest allowed prefix */
    uint32_t high;       /**< newest allowed prefix */
    uint32_t script_low; /**< newest prefix of the script that was acknowledged: its backups must be
                            there */
    bool is_shown;  /**< a recovery has come to a state of which the crash took nothing away: of the
                            prefixes up to `shown_to` it must be found again (I17) */
    uint64_t shown; /**< its digest */
    uint32_t shown_prefix;
    uint32_t shown_to;
    uint32_t prepared; /**< a bit per backup, by prefix: a prepare of it was acknowledged */
} expected_t;

typedef struct outcome {
    verdict_t verdict;
    bool found;      /**< recovery came to a state that may be there; the next two say which */
    uint32_t prefix; /**< the newest allowed one that equals it */
    uint64_t digest; /**< of all tables */
    /** new work was done on what was found: what was expected, up to `high`, and the prefixes of
    the work; n = 0: none was done */
    allowed_t worked;
    /** per backup, by prefix: its prepare was acknowledged behind so many recorded operations, and
    one; 0: it was not */
    uint32_t prepared[OUTCOME_BACKUPS_MAX];
    uint64_t counters[OUTCOME_COUNTERS_MAX]; /**< what the target counts: target_kind_t.counters */
} outcome_t;

/** Nothing is known; what the outcome holds must have been freed. */
void outcome_init(outcome_t *outcome);
void outcome_free(outcome_t *outcome);

/** The first recovery's state against what is expected: findings, and what was found. */
void outcome_judge(outcome_t *outcome, const expected_t *expected, const check_report_t *report);
/** The digest of another recovery of the same image, which must come to what the first one has
found. what: the beginning of a finding's text. */
void outcome_compare(outcome_t *outcome, uint32_t invariant, const char *what, uint64_t digest);

/** What a crash in the recovery may leave, as far as that recovery has gone: what was expected,
and of that what it has shown. acked, issued: the prefixes of its new work up to there, counted
from 1. */
expected_t outcome_expects(const outcome_t *outcome, const expected_t *expected, uint32_t acked,
                           uint32_t issued);
/** Adds the prepares that were acknowledged when so many operations of the recovery had ended. */
void outcome_expect_prepared(const outcome_t *outcome, uint32_t ended, expected_t *below);

/** The range of prefixes in words of people: narrowed to the one that was shown. */
void expected_range(const expected_t *expected, uint32_t *low, uint32_t *high);

#endif
