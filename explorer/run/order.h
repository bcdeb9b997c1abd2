/** The order of states, of which every beginning is the best sample: with few states its beginning
is run, with little time as much of it as there is time for, and slices are parts of what is run.

Its levels, from the top, each shared out by weight:
- part: what lies right after an operation that broke a rule on bytes (a quarter, if there is any:
  what the rule complains of shows there, if anywhere); where a rule accuses a page, half as many
  there that tear, lose or keep one write of it, and half as many elsewhere, since a rule may hear
  of it late; the basic states (model_is_basic), three
  quarters of the others, a half where recoveries are crashed again: what a torn or lost write
  leaves behind is what the next crash meets; of the rest those that tear the write that happened
  last, a quarter: where many wait, it is one of them in few states, and yet the one that a power
  failure tears. If asked for, each write of a file's first bytes is torn once, while it happens, in
  as many states as are basic: what a file begins with leads to all the rest of it. If all basic
  states are asked for, they come before all others, which have half of `states` at least;
- place: the site of the write that the crash point follows, or that it follows a hole, or that a
  name changes there (it follows such a change, or comes right before one). By the square root of
  its number, and half of it evenly: there are hundreds of data pages to one checkpoint, one hole or
  one new name, and a bug may need that one;
- kind of the statement that was issued last, and model, by the square root again: there are
  thousands of inserts to one defragmentation.
Below them states are spread over the run.

Where nothing ends it early, the states are in the order of the trace. */
#ifndef EXPLORER_ORDER_H
#define EXPLORER_ORDER_H

#include "explorer/run/kinds.h"
#include "explorer/run/plan_states.h"

#define ORDER_STATES_MAX 1000000U /**< with a budget; of more, so many */

typedef struct order_state {
    uint64_t number; /**< plan_number() counts it so */
    uint32_t point;
} order_state_t;

typedef struct order {
    order_state_t *states;
    uint64_t n;
} order_t;

/** A page of a file. */
typedef struct order_page {
    uint32_t inode;
    uint64_t offset;
} order_page_t;

typedef struct order_limits {
    uint64_t states;          /**< at most, all depths together; 0: all */
    bool hurried;             /**< there is a budget: ORDER_STATES_MAX holds, turn by turn */
    uint32_t slice;           /**< 1 ... n_slices: this part of them, along the trace ... */
    uint32_t n_slices;        /**< ... of so many of about as many each; 0: all. Not if hurried */
    const uint64_t *suspects; /**< events by which the run broke a rule */
    uint32_t n_suspects;
    const order_page_t *accused; /**< pages of which it broke one */
    uint32_t n_accused;
    bool whole;           /**< every basic state comes first, whatever `states` says */
    bool heads;           /**< each write of the first bytes of a file is torn once early */
    const kinds_t *kinds; /**< of statements */
} order_limits_t;

/** Of the plan's states the first ones. image is as before the first event, and is left so. */
void order_create(order_t *order, const state_plan_t *plan, const campaign_t *campaign,
                  const trace_t *trace, image_t *image, const order_limits_t *limits);
void order_free(order_t *order);

/** Sorts the n states from `from` on as the trace has them. */
void order_by_trace(order_t *order, uint64_t from, uint64_t n);

/** States per state of the first level, itself included. */
uint64_t order_states_per_tree(const campaign_t *campaign);

/** What is at the crash point: a site, or one of two behind them, which are a name and a hole. */
uint32_t order_place(const fs_list_t *list, uint32_t point);

#endif
