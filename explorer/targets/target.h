/** The target whose crash states are judged: the engine, inside this process, or one that reads real files. */
#ifndef EXPLORER_TARGET_H
#define EXPLORER_TARGET_H

#include "explorer/judge/judge.h"
#include "explorer/targets/external.h"

#define EXIT_MACHINE                                                                               \
    10 /**< the machine failed (no room for an image, a process ended from outside): no verdict */

typedef struct target {
    judge_t judge;
    const external_config_t *external; /**< NULL: the engine */
    external_t directory;              /**< of this process, opened at its first state */
} target_t;

/** external: NULL for the engine. history: what the rules know of the run that the images come from, or NULL. */
void target_init(target_t *target, image_t *image, const engine_options_t *options,
                 const external_config_t *external, const rules_t *history);
/** Ends the process as target_judge() does where a verifier's answers cannot be told apart. */
void target_free(target_t *target);

/** The outcome of the image, which is left as it was; of judge_case_t an external target knows expected,
twice and record. outcome: as after outcome_init(). stats: the counters of the engine's recovery, zero for another target. Ends the process with EXIT_MACHINE
and a line on standard error if the image cannot be laid out, or the judge contradicts itself. */
void target_judge(target_t *target, const judge_case_t *c, outcome_t *outcome, stats_t *stats);

#endif
