/** The backups in an image: each finished one must become a database, in the state of its prefix
(I28). */
#ifndef EXPLORER_JUDGE_BACKUPS_H
#define EXPLORER_JUDGE_BACKUPS_H

#include "explorer/targets/engine/judge.h"

/** Prepares those of the prefixes up to `high`: what was issued may be there, what was acknowledged
(`script_low`) must; one whose prepare was acknowledged is prepared. stats: counts them. */
void judge_backups_prepare(judge_t *judge, const expected_t *expected,
                           const engine_options_t *options, outcome_t *outcome, stats_t *stats);
/** Scans them, and compares each with its prefix; of a prepare that was refused there is nothing to
scan. */
void judge_backups_scan(judge_t *judge, const expected_t *expected, verdict_t *verdict);

#endif
