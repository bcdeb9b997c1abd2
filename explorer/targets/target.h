/** What the explorer asks of a target, whichever it is: to judge one crash state after the
other. */
#ifndef EXPLORER_TARGET_H
#define EXPLORER_TARGET_H

#include "explorer/judge/outcome.h"
#include "explorer/judge/rules.h"

#define EXIT_MACHINE                                                                               \
    10 /**< the machine failed (no room for an image, a process ended from outside): no verdict */
#define TARGET_TWICE_EVERY 16U /**< of so many images one is recovered twice */

/** A state to judge. */
typedef struct target_case {
    const expected_t *expected;
    fs_list_t *record; /**< gets what recovery, and what follows it, do to the files; may be NULL */
    /** this table's file can be carried elsewhere as it is, if its .cfg is whole (I28); or NULL */
    const char *exported;
    bool export_acked; /**< and its .cfg must be there, and whole */
    /** of the image: what else is looked at is drawn by it; a multiple of TARGET_TWICE_EVERY:
    recover again, on what the first recovery left (I17) */
    uint64_t sample;
    bool killed; /**< what recovery finds may lie in the page cache only */
} target_case_t;

/** Is it to be recovered twice? */
static inline bool target_case_is_twice(const target_case_t *c)
{
    return c->sample % TARGET_TWICE_EVERY == 0;
}

/** A state that must be condemned (run/canary.h), made of the end of a run. */
typedef struct target_canary {
    const char *name;
    uint32_t invariant; /**< that it breaks */
    uint64_t shows_as;  /**< bit per invariant that the same damage may show as */
    bool twice;         /**< it shows when the image is recovered once more */
    bool is_judged;  /**< what make() has found is the outcome; else the target judges the image */
    uint32_t number; /**< the kind's own */
    /** Makes it, of a target that is used for nothing else afterwards. number: of the canary.
    @return why it cannot be made; NULL: it is made */
    const char *(*make)(void *self, uint32_t number, outcome_t *outcome);
} target_canary_t;

/** A kind of target, and with what it is asked: the same in all processes. */
typedef struct target_kind {
    const char *name;
    const void *config;          /**< the kind's own; outlives all that was opened with it */
    const char *const *counters; /**< names of what it counts in outcome_t.counters */
    uint32_t n_counters;         /**< at most OUTCOME_COUNTERS_MAX */
    /** its recovery takes nothing away that is durable, also where commits need not be so */
    bool keeps_all;
    bool any_state; /**< no state is promised, only that recovery comes to an end */
    const target_canary_t *canaries;
    uint32_t n_canaries;
    bool has_deadline; /**< it ends a recovery that takes too long by itself */

    /** For the states of one process, on its image. history: what the rules know of the run that
    the images come from, or NULL. */
    void *(*open)(const void *config, image_t *image, const rules_t *history);
    /** The outcome of the image, which is left as it was. outcome: as after outcome_init().
    @return other than DB_SUCCESS, and a message: the image cannot be laid out, what recovery did
    cannot be followed, or the judge contradicts itself; no verdict counts */
    dberr_t (*judge)(void *self, const target_case_t *c, outcome_t *outcome, err_sink_t *err);
    /** Frees it. @return as of judge, of what was judged before */
    dberr_t (*close)(void *self, err_sink_t *err);
} target_kind_t;

/** A target that was opened. */
typedef struct target {
    const target_kind_t *kind;
    void *self;
} target_t;

/** kind: outlives the target. The others as of target_kind_t.open. */
void target_open(target_t *target, const target_kind_t *kind, image_t *image,
                 const rules_t *history);
/** As target_kind_t.judge; ends the process with EXIT_MACHINE and a line on standard error where no
verdict counts. */
void target_judge(target_t *target, const target_case_t *c, outcome_t *outcome);
/** Ends the process as target_judge() does. */
void target_close(target_t *target);

#endif
