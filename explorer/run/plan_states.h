/** Which states are run, and in which batches.

States are chosen by class: basic ones (model_is_basic), those in the middle of a write (model_tears_newest), others, and
whatever lies right after an operation that is suspected; each by place, that is the site of the write that
their crash point follows, or that it follows a hole, or that a name changes there: it follows such a change, or comes
right before one; and by the kind of the statement that was issued last. */
#ifndef EXPLORER_PLAN_STATES_H
#define EXPLORER_PLAN_STATES_H

#include "explorer/run/kinds.h"
#include "explorer/run/state.h"

/** A run of crash points. */
typedef struct batch {
    uint32_t first; /**< crash point */
    uint32_t end;   /**< one past the last */
} batch_t;

#define PLAN_PLACES (SITE_KINDS + 2U)
/** Parts of all states. */
enum {
    PLAN_BASIC,
    PLAN_NEWEST, /**< the write that happened last is torn */
    PLAN_OTHER,
    PLAN_SUSPECT, /**< of any kind, right after a suspect */
    PLAN_PARTS
};

/** A crash point. Its states belong to three classes, those of its group; or to one, right after a suspect. */
typedef struct plan_point {
    uint32_t group;              /**< place and kind */
    bool suspect;                /**< the operation before it is one */
    uint64_t number;             /**< states before it */
    uint64_t before[PLAN_PARTS]; /**< those of its own classes */
} plan_point_t;

typedef struct state_plan {
    plan_point_t *points; /**< crash points of the trace, and one more at the end */
    uint32_t n_points;    /**< without that */
    uint32_t n_groups;
    uint64_t total;               /**< states in the range */
    uint64_t *totals[PLAN_PARTS]; /**< the same by group */
    uint64_t wanted;              /**< how many of them are run at the first level */
    uint64_t *shares[PLAN_PARTS]; /**< the same by group */
    uint64_t seed;
    batch_t *batches;
    uint32_t n_batches;
    uint32_t n_crash_points; /**< with at least one state in the range */
} state_plan_t;

typedef struct plan_limits {
    uint64_t states;    /**< at most, all depths together; 0: all */
    uint64_t trees_max; /**< at most, of the first level; 0: no limit */
    uint64_t from_seq;
    uint64_t to_seq;
    const uint64_t *at; /**< the only crash points, by the event before each; n_at 0: all */
    uint32_t n_at;
    const uint64_t *suspects; /**< events by which the run broke a rule */
    uint32_t n_suspects;
    uint32_t batch_states; /**< about as many in one batch */
    uint32_t slice;        /**< 1 ... n_slices: the batches of this part of them; see slice.h */
    uint32_t n_slices;     /**< 0: all */
    const kinds_t *kinds;  /**< of statements */
} plan_limits_t;

/** image is as before the first event, and is left so. */
void plan_create(state_plan_t *plan, const campaign_t *campaign, const trace_t *trace,
                 image_t *image, const plan_limits_t *limits);
void plan_free(state_plan_t *plan);

/** What is at the crash point: a site, or one of two behind them, which are a name and a hole. */
uint32_t plan_place(const fs_list_t *list, uint32_t point);

/** The number of the first state at a crash point, over all points and classes. */
uint64_t plan_number(const state_plan_t *plan, uint32_t point);

/** Calls fn for each state at this crash point that is run, with its number. persist is there. */
typedef void (*plan_state_fn)(void *ctx, model_t model, uint32_t k, uint64_t number);
void plan_each(const state_plan_t *plan, const model_config_t *models, const persist_t *persist,
               plan_state_fn fn, void *ctx);

#endif
